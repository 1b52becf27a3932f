"""The largest, in order.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset10.py`, `symbolic_opset11.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import parse_arg, parse_args, rank, size_of, slice_, vector_of


@onnx_symbolic("aten::topk")
def topk(g, self, k, dim, largest, sorted):
    return _top(g, self, vector_of(g, k), parse_arg(dim, "i"), parse_arg(largest, "b"), parse_arg(sorted, "b"))


def _top(g, self, count, dim, largest, sorted=True):
    return g.op("TopK", self, count, axis_i=dim, largest_i=int(largest), sorted_i=int(sorted), outputs=2)


def sorted_(g, self, dim, descending):
    """All of them are the top."""
    count = g.constant([1]) if rank(self) == 0 else vector_of(g, size_of(g, self, dim))
    return _top(g, self, count, dim, descending)


@onnx_symbolic("aten::sort")
def sort(g, self, *arguments):
    """`sort(dim, descending)` or `sort(stable, dim, descending)`; ONNX keeps the order of equal numbers."""
    dim, descending = arguments[-2:]
    return sorted_(g, self, parse_arg(dim, "i"), parse_arg(descending, "b"))


@onnx_symbolic("aten::argsort")
def argsort(g, self, *arguments):
    dim, descending = arguments[-2:]
    return sorted_(g, self, parse_arg(dim, "i"), parse_arg(descending, "b"))[1]


@onnx_symbolic("aten::kthvalue")
@parse_args("v", "v", "i", "b")
def kthvalue(g, self, k, dim, keepdim):
    """The last of the k smallest."""
    results = _top(g, self, vector_of(g, k), dim, False)
    last = [slice_(g, r, [dim], [-1], [readtorch.iinfo(readtorch.int64).max]) for r in results]
    return tuple(last if keepdim else [g.op("Squeeze", r, [dim]) for r in last])
