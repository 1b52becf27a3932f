"""Comparison, logic, and choosing between two tensors.

Both sides of a comparison get the type that PyTorch compares them in: that of the tensors, to which a number
beside them gives way.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset11.py`, `symbolic_opset13.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import cast, dtype, is_number, rank

from .arithmetic import promoted


def common_dtype(*values):
    """The type that PyTorch's promotion gives these; only ranks and types count, not sizes."""
    return readtorch.result_type(*map(_example, values))


def _example(value):
    if is_number(value):
        return value.node().t("value").item()
    return readtorch.empty([1] * rank(value), dtype=dtype(value))


def compared(g, operator, a, b):
    common = common_dtype(a, b)
    if common == readtorch.bool and operator != "Equal":
        common = readtorch.int32  # ONNX orders numbers alone
    return g.op(operator, cast(g, a, common), cast(g, b, common))


COMPARISONS = {
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
}


def _comparison(operator):
    def symbolic(g, self, other):
        return compared(g, operator, self, other)

    return symbolic


for _ours, _theirs in COMPARISONS.items():
    onnx_symbolic(f"aten::{_ours}")(_comparison(_theirs))


@onnx_symbolic("aten::ne", "aten::not_equal")
def ne(g, self, other):
    return g.op("Not", compared(g, "Equal", self, other))


def _logic(operator):
    def symbolic(g, self, other):
        return g.op(operator, cast(g, self, readtorch.bool), cast(g, other, readtorch.bool))

    return symbolic


for _word in ("And", "Or", "Xor"):
    onnx_symbolic(f"aten::logical_{_word.lower()}")(_logic(_word))


@onnx_symbolic("aten::logical_not")
def logical_not(g, self):
    return g.op("Not", cast(g, self, readtorch.bool))


def _bitwise(word):
    def symbolic(g, self, other):
        operands = promoted(g, self, other)
        return g.op(word if g.result_dtype == readtorch.bool else f"Bitwise{word}", *operands)

    return symbolic


for _word in ("And", "Or", "Xor"):
    onnx_symbolic(f"aten::bitwise_{_word.lower()}", f"aten::__{_word.lower()}__")(_bitwise(_word))


@onnx_symbolic("aten::bitwise_not")
def bitwise_not(g, self):
    return g.op("Not" if dtype(self) == readtorch.bool else "BitwiseNot", self)


@onnx_symbolic("aten::where")
def where(g, condition, self=None, other=None):
    if self is None:
        return g.pack(list(nonzero_columns(g, condition)))
    return g.op("Where", cast(g, condition, readtorch.bool), *promoted(g, self, other))


def nonzero_columns(g, condition):
    """`where(condition)`: the indices along each dimension."""
    parts = g.op("Split", nonzero(g, condition), [1] * rank(condition), outputs=rank(condition), axis_i=1)
    parts = parts if isinstance(parts, tuple) else (parts,)
    return [g.op("Squeeze", part, [1]) for part in parts]


@onnx_symbolic("aten::nonzero")
def nonzero(g, self):
    """ONNX has a row for each dimension, PyTorch a column."""
    return g.op("Transpose", g.op("NonZero", self), perm_i=[1, 0])


@onnx_symbolic("aten::masked_fill")
def masked_fill(g, self, mask, value):
    return g.op("Where", cast(g, mask, readtorch.bool), cast(g, value, dtype(self)), self)


@onnx_symbolic("aten::masked_select")
def masked_select(g, self, mask):
    shape = g.op("Shape", self)
    return g.op("Compress", g.op("Reshape", self, [-1]), g.op("Reshape", g.op("Expand", mask, shape), [-1]))
