"""Sums, means and what else makes one number of many.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset12.py`, `symbolic_opset18.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import cast, dtype, is_none, parse_arg, parse_args, rank, reshape, squeeze

_AXES_ARE_INPUTS_SINCE = {"ReduceSum": 13}  # the others: since 18


def reduced(g, operator, value, dims=None, keepdim=False):
    """A reduction over `dims`, or over all of them; axes are inputs or attributes, as the version has it."""
    keep = int(bool(keepdim))
    if not dims:
        return g.op(operator, value, keepdims_i=keep)
    if g.opset >= _AXES_ARE_INPUTS_SINCE.get(operator, 18):
        return g.op(operator, value, list(dims), keepdims_i=keep)
    return g.op(operator, value, axes_i=list(dims), keepdims_i=keep)


def _dims(value):
    """The argument `dim`: a number, a list, or none."""
    if is_none(value):
        return None
    dims = parse_arg(value, "is")
    return dims if isinstance(dims, list) else [dims]


def _reduction(operator):
    """`op(self)`, `op(self, dtype)`, `op(self, dim, keepdim)`, `op(self, dim, keepdim, dtype)`"""

    def symbolic(g, self, *arguments):
        dims, keepdim = None, False
        if len(arguments) >= 2:
            dims, keepdim = _dims(arguments[0]), parse_arg(arguments[1], "b")
        return reduced(g, operator, cast(g, self, g.result_dtype), dims, keepdim)

    return symbolic


for _ours, _theirs in {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "prod": "ReduceProd",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
}.items():
    onnx_symbolic(f"aten::{_ours}")(_reduction(_theirs))


@onnx_symbolic("aten::logsumexp")
@parse_args("v", "is", "b")
def logsumexp(g, self, dim, keepdim):
    return reduced(g, "ReduceLogSumExp", self, dim, keepdim)


def _extreme(reduction, elementwise, position):
    """`max(x)`, `max(x, other)`, and `max(x, dim)`, which also tells where."""

    def symbolic(g, self, *arguments):
        if not arguments:
            return reduced(g, reduction, self)
        if len(arguments) == 1:
            return g.op(elementwise, cast(g, self, g.result_dtype), cast(g, arguments[0], g.result_dtype))
        dim, keepdim = parse_arg(arguments[0], "i"), parse_arg(arguments[1], "b")
        return reduced(g, reduction, self, [dim], keepdim), g.op(position, self, axis_i=dim, keepdims_i=int(keepdim))

    return symbolic


onnx_symbolic("aten::max")(_extreme("ReduceMax", "Max", "ArgMax"))
onnx_symbolic("aten::min")(_extreme("ReduceMin", "Min", "ArgMin"))


def _position(operator):
    @parse_args("v", "i", "b")
    def symbolic(g, self, dim, keepdim):
        if dim is not None:
            return g.op(operator, self, axis_i=dim, keepdims_i=int(keepdim))
        return squeeze(g, g.op(operator, reshape(g, self, [-1]), axis_i=0, keepdims_i=1), [0])

    return symbolic


onnx_symbolic("aten::argmax")(_position("ArgMax"))
onnx_symbolic("aten::argmin")(_position("ArgMin"))


def _quantifier(reduction):
    """any, all: of 0 and 1 the largest, the smallest."""

    def symbolic(g, self, dim=None, keepdim=None):
        dims = None if dim is None else _dims(dim)
        numbers = cast(g, cast(g, self, readtorch.bool), readtorch.int32)
        return cast(
            g, reduced(g, reduction, numbers, dims, keepdim is not None and parse_arg(keepdim, "b")), g.result_dtype
        )

    return symbolic


onnx_symbolic("aten::any")(_quantifier("ReduceMax"))
onnx_symbolic("aten::all")(_quantifier("ReduceMin"))


def variance(g, self, arguments):
    """The mean of the squared distances from the mean, and that mean. correction: what the count is lessened
    by.
    """
    dims, correction, keepdim = None, 1, False
    if len(arguments) == 1:  # unbiased
        correction = int(parse_arg(arguments[0], "b"))
    elif len(arguments) == 3:
        dims, keepdim = _dims(arguments[0]), parse_arg(arguments[2], "b")
        correction = 1 if is_none(arguments[1]) else parse_arg(arguments[1], "f")
        correction = float(correction)
    mean = reduced(g, "ReduceMean", self, dims, True)
    distance = g.op("Sub", self, mean)
    result = reduced(g, "ReduceMean", g.op("Mul", distance, distance), dims, keepdim)
    mean = mean if keepdim else reduced(g, "ReduceMean", self, dims, False)
    if correction == 0:
        return result, mean
    count = cast(g, _count(g, self, dims), dtype(self))
    return g.op("Div", g.op("Mul", result, count), g.op("Sub", count, correction)), mean


def _count(g, self, dims):
    """How many numbers go into one result."""
    shape = g.op("Shape", self)
    if dims:
        shape = g.op("Gather", shape, g.constant([d % rank(self) for d in dims]), axis_i=0)
    return g.op("ReduceProd", shape, keepdims_i=0)


@onnx_symbolic("aten::var")
def var(g, self, *arguments):
    return variance(g, self, arguments)[0]


@onnx_symbolic("aten::std")
def std(g, self, *arguments):
    return g.op("Sqrt", variance(g, self, arguments)[0])


@onnx_symbolic("aten::var_mean")
def var_mean(g, self, *arguments):
    return variance(g, self, arguments)


@onnx_symbolic("aten::std_mean")
def std_mean(g, self, *arguments):
    result, mean = variance(g, self, arguments)
    return g.op("Sqrt", result), mean


@onnx_symbolic("aten::norm")
def norm(g, self, p, dim=None, keepdim=None, dtype=None):
    order = parse_arg(p, "f")
    order = 2.0 if order is None else order
    dims = None if dim is None else _dims(dim)
    keep = keepdim is not None and parse_arg(keepdim, "b")
    if order in (1.0, 2.0):
        return reduced(g, f"ReduceL{int(order)}", self, dims, keep)
    powers = reduced(g, "ReduceSum", g.op("Pow", g.op("Abs", self), order), dims, keep)
    return g.op("Pow", powers, 1 / order)
