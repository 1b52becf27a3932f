"""Attention in its parts: ONNX has a node for it only since version 23.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset14.py`.
"""

import readtorch
from readtorch.onnx._constants import INT64_MAX
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import cast, dtype, is_none, parse_arg, slice_, transpose, unsupported


@onnx_symbolic("aten::scaled_dot_product_attention", opset=14)
def scaled_dot_product_attention(
    g, query, key, value, attn_mask=None, dropout_p=None, is_causal=None, scale=None, enable_gqa=None
):
    """softmax(q kᵀ · scale + mask) v, with the root of the scale in both factors, so that neither grows too
    large.
    """
    if enable_gqa is not None and parse_arg(enable_gqa, "b"):
        raise unsupported("scaled_dot_product_attention with enable_gqa", query)
    factor = _default_scale(g, query) if is_none(scale) else cast(g, scale, dtype(query))
    mask = causal_mask(g, query, key) if is_causal is not None and parse_arg(is_causal, "b") else attn_mask
    turned = transpose(g, key, -2, -1)
    root = g.op("Sqrt", factor)
    scores = g.op("MatMul", g.op("Mul", query, root), g.op("Mul", turned, root))
    if not is_none(mask):
        scores = g.op("Add", scores, additive(g, mask, dtype(query)))
    weights = g.op("Softmax", scores, axis_i=-1)
    if dropout_p is not None and parse_arg(dropout_p, "f") != 0:
        weights, _ = g.op(
            "Dropout", weights, cast(g, dropout_p, dtype(query)), g.constant(True, readtorch.bool), outputs=2
        )
    return g.op("MatMul", weights, value)


def _default_scale(g, query):
    """1/√d, d being the last size, whether it is known now or not."""
    size = slice_(g, g.op("Shape", query), [0], [-1], [INT64_MAX])
    return g.op(
        "Div", g.constant(readtorch.tensor([1.0], dtype=dtype(query))), g.op("Sqrt", cast(g, size, dtype(query)))
    )


def causal_mask(g, query, key):
    """0 where a position may look, -inf where it may not: made from the sizes of the run."""
    lengths = [slice_(g, g.op("Shape", each), [0], [-2], [-1]) for each in (query, key)]
    ones = g.op("Expand", g.constant(readtorch.tensor([1.0], dtype=dtype(query))), g.op("Concat", *lengths, axis_i=0))
    below = g.op("Trilu", ones, upper_i=0)
    return g.op(
        "Where", g.op("Equal", below, 0.0), g.constant(float("-inf"), dtype(query)), g.constant(0.0, dtype(query))
    )


def additive(g, mask, to):
    """A mask of bools as numbers to add."""
    if dtype(mask) != readtorch.bool:
        return mask
    return g.op("Where", mask, g.constant(0.0, to), g.constant(float("-inf"), to))
