"""Arithmetic, element by element.

ONNX promotes nothing: both operands of a node have one type. The trace knows the type that PyTorch's
promotion came to (`g.result_dtype`), and both are cast to that. In PyTorch: a pass after the translation,
`scalar_type_analysis.cpp`.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset10.py`, `symbolic_opset11.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import cast, is_constant, is_floating_point, parse_arg, parse_args


def promoted(g, *values):
    return [cast(g, value, g.result_dtype) for value in values]


def times(g, value, alpha):
    """`value * alpha`, and `value` itself for 1."""
    if is_constant(alpha) and parse_arg(alpha, "f") == 1:
        return value
    return g.op("Mul", *promoted(g, value, alpha))


@onnx_symbolic("aten::add")
def add(g, self, other, alpha=1):
    self, other = promoted(g, self, other if alpha == 1 else times(g, other, alpha))
    return g.op("Or" if g.result_dtype == readtorch.bool else "Add", self, other)


@onnx_symbolic("aten::sub")
def sub(g, self, other, alpha=1):
    return g.op("Sub", *promoted(g, self, other if alpha == 1 else times(g, other, alpha)))


@onnx_symbolic("aten::rsub")
def rsub(g, self, other, alpha=1):
    return sub(g, other, self, alpha)


@onnx_symbolic("aten::mul")
def mul(g, self, other):
    return g.op("And" if g.result_dtype == readtorch.bool else "Mul", *promoted(g, self, other))


@onnx_symbolic("aten::div")
def div(g, self, other, rounding_mode=None):
    mode = rounding_mode and parse_arg(rounding_mode, "s")
    if mode == "floor":
        return floor_divide(g, self, other)
    quotient = g.op("Div", *promoted(g, self, other))
    if mode is None or not is_floating_point(quotient):
        return quotient  # integers: ONNX rounds towards zero, too
    return _trunc(g, quotient)


def _trunc(g, value):
    """Rounded towards zero. ONNX has no operator for that: the floor of what is left without the sign."""
    return g.op("Mul", g.op("Sign", value), g.op("Floor", g.op("Abs", value)))


@onnx_symbolic("aten::floor_divide")
def floor_divide(g, self, other):
    self, other = promoted(g, self, other)
    if is_floating_point(self):
        return g.op("Floor", g.op("Div", self, other))
    # ONNX rounds the quotients of integers towards zero: without the rest, which has the sign of `other`,
    # there is nothing to round.
    return g.op("Div", g.op("Sub", self, g.op("Mod", self, other)), other)


@onnx_symbolic("aten::remainder", "aten::__mod__")
def remainder(g, self, other):
    self, other = promoted(g, self, other)
    if not is_floating_point(self):
        return g.op("Mod", self, other)
    return g.op("Sub", self, g.op("Mul", g.op("Floor", g.op("Div", self, other)), other))


@onnx_symbolic("aten::fmod")
def fmod(g, self, other):
    return g.op("Mod", *promoted(g, self, other), fmod_i=1)


@onnx_symbolic("aten::pow")
def pow(g, self, exponent):
    self, exponent = cast(g, self, g.result_dtype), cast(g, exponent, g.result_dtype)
    return g.op("Pow", self, exponent)


@onnx_symbolic("aten::square")
def square(g, self):
    return g.op("Mul", self, self)


@onnx_symbolic("aten::addcmul")
def addcmul(g, self, tensor1, tensor2, value):
    return g.op("Add", self, times(g, g.op("Mul", tensor1, tensor2), value))


@onnx_symbolic("aten::addcdiv")
def addcdiv(g, self, tensor1, tensor2, value):
    return g.op("Add", self, times(g, g.op("Div", tensor1, tensor2), value))


@onnx_symbolic("aten::lerp")
def lerp(g, self, end, weight):
    return g.op("Add", self, g.op("Mul", *promoted(g, g.op("Sub", end, self), weight)))


_NAMES = (
    "abs neg exp log sqrt erf sin cos tan asin acos atan sinh cosh asinh acosh atanh floor ceil round sign "
    "reciprocal tanh sigmoid relu"
)
UNARY = {name: name.capitalize() for name in _NAMES.split()} | {"isnan": "IsNaN", "isinf": "IsInf"}
_KEEP_THE_TYPE = {"Abs", "Neg", "Floor", "Ceil", "Round", "Sign", "Relu", "IsNaN", "IsInf"}


def _unary(operator):
    """The operators that ONNX has, under a name of its own. Of integers most results are floats."""

    def symbolic(g, self, decimals=None):
        if operator in ("Floor", "Ceil", "Round") and not is_floating_point(self):
            return self
        return g.op(operator, self if operator in _KEEP_THE_TYPE else cast(g, self, g.result_dtype))

    return symbolic


for _ours, _theirs in UNARY.items():
    onnx_symbolic(f"aten::{_ours}")(_unary(_theirs))


@onnx_symbolic("aten::rsqrt")
def rsqrt(g, self):
    return g.op("Reciprocal", g.op("Sqrt", cast(g, self, g.result_dtype)))


@onnx_symbolic("aten::trunc")
def trunc(g, self):
    return _trunc(g, self) if is_floating_point(self) else self


@onnx_symbolic("aten::log1p")
def log1p(g, self):
    return g.op("Log", g.op("Add", cast(g, self, g.result_dtype), 1))


@onnx_symbolic("aten::expm1")
def expm1(g, self):
    return g.op("Sub", g.op("Exp", cast(g, self, g.result_dtype)), 1)


@onnx_symbolic("aten::log2")
def log2(g, self):
    return g.op("Div", g.op("Log", cast(g, self, g.result_dtype)), 0.6931471805599453)


@onnx_symbolic("aten::log10")
def log10(g, self):
    return g.op("Div", g.op("Log", cast(g, self, g.result_dtype)), 2.302585092994046)


@onnx_symbolic("aten::clamp", "aten::clip")
def clamp(g, self, min=None, max=None):
    """Clip wants numbers; tensors as bounds are a Max and a Min."""
    self = cast(g, self, g.result_dtype)
    bounds = [None if value is None or value.mustBeNone() else cast(g, value, g.result_dtype) for value in (min, max)]
    if all(b is None or b.type().dim() == 0 for b in bounds):
        return g.op("Clip", self, *bounds)
    for operator, bound in zip(("Max", "Min"), bounds):
        self = self if bound is None else g.op(operator, self, bound)
    return self


@onnx_symbolic("aten::clamp_min")
def clamp_min(g, self, min):
    return clamp(g, self, min)


@onnx_symbolic("aten::clamp_max")
def clamp_max(g, self, max):
    return clamp(g, self, None, max)


@onnx_symbolic("aten::maximum")
def maximum(g, self, other):
    return g.op("Max", *promoted(g, self, other))


@onnx_symbolic("aten::minimum")
def minimum(g, self, other):
    return g.op("Min", *promoted(g, self, other))


@onnx_symbolic("aten::atan2")
def atan2(g, self, other):
    """The angle of y/x; π more or less where x is negative."""
    self, other = promoted(g, self, other)
    angle = g.op("Atan", g.op("Div", self, other))
    half_turn = g.op(
        "Where",
        g.op("Less", self, 0),
        g.constant(-3.141592653589793, g.result_dtype),
        g.constant(3.141592653589793, g.result_dtype),
    )
    return g.op("Where", g.op("Less", other, 0), g.op("Add", angle, half_turn), angle)


@onnx_symbolic("aten::cumsum")
@parse_args("v", "v", "none")
def cumsum(g, self, dim, dtype=None):
    return g.op("CumSum", cast(g, self, g.result_dtype), dim)
