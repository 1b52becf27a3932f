"""Rows of a table.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset10.py`, `symbolic_opset11.py`.
"""

from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import parse_args, unsupported

from .reduction import reduced


@onnx_symbolic("aten::embedding")
def embedding(g, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    """The three settings matter to gradients alone."""
    return g.op("Gather", weight, indices)


@onnx_symbolic("aten::embedding_bag")
@parse_args("v", "v", "v", "i", "i", "i", "v", "i", "i")
def embedding_bag(
    g,
    weight,
    indices,
    offsets,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    include_last_offset,
    padding_idx=None,
):
    """Of bags of equal size: the offsets are the multiples of it, known now."""
    starts = _offsets(offsets)
    size = starts[1] - starts[0] if len(starts) > 1 else None
    if size is None or any(b - a != size for a, b in zip(starts, starts[1:])):
        raise unsupported("embedding_bag with bags of several sizes", indices)
    rows = g.op("Gather", weight, g.op("Reshape", indices, [-1, size]))
    name = {0: "ReduceSum", 1: "ReduceMean", 2: "ReduceMax"}[mode]
    return reduced(g, name, rows, [1], False), None, None, None


def _offsets(value):
    if value.node().kind() != "onnx::Constant":
        raise unsupported("embedding_bag with offsets that only a run tells", value)
    return value.node().t("value").tolist()
