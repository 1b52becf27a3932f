"""Primitives of numbers: arithmetic, comparison, conversion.

The overloads differ in the types of their results, not in what they compute: Python's operators look at the
operands themselves. In PyTorch: ints are 64 bits wide and wrap around; here they are Python's.

In PyTorch: `torch/csrc/jit/runtime/register_prim_ops.cpp`.
"""
import cmath
import math
import operator

from ....c10.tensor_impl import TensorImpl
from .operator import prim

# ------------------------------------------------------------------------------------ arithmetic: two numbers

# Types of the operands and the overload's name, in the order in which overloads are tried.
_REAL_PAIRS = [("int", "int", "int"), ("float", "float", "float"), ("int", "float", "int_float"),
               ("float", "int", "float_int")]
_COMPLEX_PAIRS = [
    ("complex", "complex", "complex"),
    ("int", "complex", "int_complex"),
    ("complex", "int", "complex_int"),
    ("float", "complex", "float_complex"),
    ("complex", "float", "complex_float"),
]
_SCALAR_PAIR = [("Scalar", "Scalar", "")]


def _declare_pairs(name, function, pairs, result):
    """result(left, right): the type of the result."""
    for left, right, overload in pairs:
        full_name = f"{name}.{overload}" if overload else name
        prim(f"{full_name}({left} a, {right} b) -> {result(left, right)}")(function)


def _wider(left, right):
    for kind in ("Scalar", "complex", "float"):
        if kind in (left, right):
            return kind
    return "int"


def _float(left, right):
    return "complex" if "complex" in (left, right) else "float"


def _bool(left, right):
    return "bool"


def _divide(a, b):
    if b == 0:
        raise ZeroDivisionError("division by zero")
    return a / b


def _floordiv(a, b):
    if b == 0 and isinstance(b, int) and isinstance(a, int):
        raise ZeroDivisionError("division by 0")
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a // b


def _remainder(a, b):
    if b == 0 and isinstance(b, int) and isinstance(a, int):
        raise ZeroDivisionError("division by 0")
    return math.nan if b == 0 else a % b


def _fmod(a, b):
    return math.fmod(a, b) if b else math.nan


def _power(a, b):
    try:
        result = a ** b
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return math.inf
    return (
        math.nan
        if isinstance(result, complex) and not isinstance(a, complex) and not isinstance(b, complex)
        else result
    )


def _float_power(a, b):
    result = _power(a, b)
    return result if isinstance(result, complex) else float(result)


def _copysign(a, b):
    return math.copysign(a, b)


_PAIRS = (
    _REAL_PAIRS[:1]
    + _COMPLEX_PAIRS[:1]
    + _REAL_PAIRS[1:2]
    + _COMPLEX_PAIRS[1:]
    + _REAL_PAIRS[2:]
    + _SCALAR_PAIR
)
for _name, _function in (
    ("aten::add", operator.add),
    ("aten::sub", operator.sub),
    ("aten::mul", operator.mul),
):
    _declare_pairs(_name, _function, _PAIRS, _wider)
_declare_pairs(
    "aten::div", _divide, _REAL_PAIRS[:1] + _COMPLEX_PAIRS[:1] + _REAL_PAIRS[1:2] + _SCALAR_PAIR, _float
)
for _name, _function in (("aten::floordiv", _floordiv), ("aten::remainder", _remainder)):
    _declare_pairs(_name, _function, _REAL_PAIRS + _SCALAR_PAIR, _wider)
for _name, _function in (
    ("aten::fmod", _fmod),
    ("aten::mathremainder", math.remainder),
    ("aten::copysign", _copysign),
):
    _declare_pairs(_name, _function, _REAL_PAIRS + _SCALAR_PAIR, _float)
_declare_pairs(
    "aten::pow",
    _float_power,
    _REAL_PAIRS[:1]
    + _COMPLEX_PAIRS[:1]
    + _REAL_PAIRS[1:]
    + _COMPLEX_PAIRS[3:]
    + [("Scalar", "Scalar", "Scalar_Scalar")],
    _float,
)
prim("aten::pow.int_to_int(int a, int b) -> int")(lambda a, b: int(_power(a, b)))
_declare_pairs("aten::atan2", math.atan2, _REAL_PAIRS + [("Scalar", "Scalar", "Scalar_Scalar")], _float)
_declare_pairs("aten::polar", lambda a, b: complex(a * math.cos(b), a * math.sin(b)),
               _REAL_PAIRS + [("Scalar", "Scalar", "Scalar_Scalar")],
               lambda left, right: "Scalar" if left == "Scalar" else "complex")
for _name, _function in (("prim::min", min), ("prim::max", max)):
    _declare_pairs(_name, _function, _REAL_PAIRS + _SCALAR_PAIR, _wider)


def _log_to_base(a, b):
    try:
        return math.log(a) / math.log(b)
    except (ValueError, ZeroDivisionError):
        return math.nan


_declare_pairs(
    "aten::log", _log_to_base, [(a, b, f"{a}_{b}") for a, b, _ in _REAL_PAIRS + _SCALAR_PAIR], _float
)

for _kind in ("int", "float"):
    _mixed = [
        ("int", "int", "int"),
        ("float", "float", "float"),
        ("float", "int", "float_int"),
        ("int", "float", "int_float"),
    ]
for _left, _right, _overload in _mixed:
    _kind = _wider(_left, _right)
    prim(f"aten::divmod.{_overload}({_left} x, {_right} y) -> ({_kind}, {_kind})")(
        lambda x, y: (_floordiv(x, y), _remainder(x, y)))

prim("aten::gcd.int(int a, int b) -> int")(math.gcd)
prim("aten::__round_to_zero_floordiv.int(int a, int b) -> int")(
    lambda a, b: (
        int(_divide(a, b)) if abs(a) < 2**53 else (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    )
)
prim("aten::ldexp(float x, int i) -> float")(math.ldexp)

# ------------------------------------------------------------------------------------------------- comparison

_COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "gt": operator.gt, "le": operator.le,
                "ge": operator.ge}
for _name, _function in _COMPARISONS.items():
    if _name in ("eq", "ne"):
        for _kind in ("Device", "bool", "AnyEnumType"):
            _overload = {"Device": "device", "AnyEnumType": "enum"}.get(_kind, _kind)
            prim(f"aten::{_name}.{_overload}({_kind} a, {_kind} b) -> bool")(_function)
        _declare_pairs(f"aten::{_name}", _function, _COMPLEX_PAIRS[:1] + _COMPLEX_PAIRS[3:], _bool)
    _declare_pairs(f"aten::{_name}", _function, _REAL_PAIRS + _SCALAR_PAIR, _bool)
    prim(f"aten::{_name}.str(str a, str b) -> bool")(_function)


def _is(self, obj):
    return self is obj or (
        isinstance(self, (int, float, str, bool)) and type(self) is type(obj) and self == obj
    )


prim("aten::__is__(t1 self, t2 obj) -> bool")(_is)
prim("aten::__isnot__(t1 self, t2 obj) -> bool")(lambda self, obj: not _is(self, obj))
prim("aten::__not__(bool self) -> bool")(operator.not_)
for _name, _function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
    prim(f"aten::__{_name}__.bool(bool a, bool b) -> bool")(_function)
    prim(f"aten::__{_name}__.int(int a, int b) -> int")(_function)
prim("aten::__lshift__.int(int a, int b) -> int")(operator.lshift)
prim("aten::__rshift__.int(int a, int b) -> int")(operator.rshift)

# ------------------------------------------------------------------------------------------------- one number


def _nan_outside(function):
    """Like C's: not a number outside of the domain, infinity beyond the range."""
    def guarded(a):
        try:
            return function(a)
        except ValueError:
            return -math.inf if a == 0 and function in _LOGARITHMS else math.nan
        except OverflowError:
            return math.inf
    return guarded


_LOGARITHMS = (math.log, math.log10, math.log1p)
_FLOAT_FUNCTIONS = {
    name: getattr(math, name)
    for name in (
        "acos acosh asin asinh atan atanh cos cosh degrees erf erfc exp expm1 fabs gamma lgamma log log10 log1p radians sin "
        "sinh sqrt tan tanh"
    ).split()
}
for _name, _function in _FLOAT_FUNCTIONS.items():
    for _kind, _result in (("int", "float"), ("float", "float"), ("Scalar", "Scalar")):
        prim(f"aten::{_name}.{_kind}({_kind} a) -> {_result}")(_nan_outside(_function))


for _name in "acos acosh asin asinh atan atanh cos cosh exp log log10 sin sinh sqrt tan tanh".split():
    prim(f"aten::{_name}.complex(complex a) -> complex")(getattr(cmath, _name))
for _name in ("isnan", "isinf", "isfinite"):
    prim(f"aten::{_name}.complex(complex a) -> bool")(getattr(cmath, _name))
for _kind in ("int", "float", "complex"):
    prim(f"aten::angle.{_kind}({_kind} a) -> float")(cmath.phase)


def _round(a):
    """Halves go away from zero, as C's `round` does."""
    return math.copysign(math.floor(abs(a) + 0.5), a) if math.isfinite(a) else a


prim("aten::round.int(int a) -> float")(float)
prim("aten::round.float(float a) -> float")(lambda a: float(round(a)) if math.isfinite(a) else a)
prim("aten::round.Scalar(Scalar a) -> Scalar")(_round)
for _name, _function in (("floor", math.floor), ("ceil", math.ceil)):
    prim(f"aten::{_name}.int(int a) -> int")(_function)
    prim(f"aten::{_name}.float(float a) -> int")(_function)
    prim(f"aten::{_name}.Scalar(Scalar a) -> Scalar")(_function)
for _kind in ("int", "float", "complex"):
    prim(f"aten::neg.{_kind}({_kind} a) -> {_kind}")(operator.neg)
    prim(f"prim::abs.{_kind}({_kind} a) -> {'float' if _kind == 'complex' else _kind}")(abs)
prim("aten::neg.Scalar(Scalar a) -> Scalar")(operator.neg)
prim("prim::abs.Scalar(Scalar a) -> Scalar")(abs)
prim("prim::abs(Tensor x) -> Tensor")(lambda x: x.abs())
prim("aten::factorial.int(int a) -> int")(math.factorial)
prim("aten::modf(float a) -> (float, float)")(math.modf)
prim("aten::frexp(float a) -> (float, int)")(math.frexp)
for _name in ("isnan", "isinf", "isfinite"):
    prim(f"aten::{_name}.float(float a) -> bool")(getattr(math, _name))

# ------------------------------------------------------------------------------------------------- conversion


def one_number(a):
    """The number that a tensor holds. Raises RuntimeError if it has not exactly one element."""
    if isinstance(a, TensorImpl):
        return a.item()
    return a


def _from_text(kind):
    def convert(a):
        return kind(one_number(a))
    return convert


def _implicit(kind):
    def convert(a):
        if a.requires_grad:
            raise RuntimeError("Cannot input a tensor that requires grad as a scalar argument")
        if a.dim():
            raise RuntimeError(f"Cannot input a tensor of dimension other than 0 as a scalar argument. "
                               f"Got a tensor of dimension {a.dim()}")
        if kind is int and not isinstance(a.item(), int):
            raise RuntimeError("Cannot input a tensor of non-integral dtype as an integral argument")
        return a.item() if kind is None else kind(a.item())
    return convert


for _name, _kind, _from in (("Bool", bool, "Tensor int float"), ("Int", int, "Tensor bool float Scalar str"),
                            ("Float", float, "Tensor Scalar int bool str")):
    for _source in _from.split():
        prim(f"aten::{_name}.{_source}({_source} a) -> {_name.lower()}")(_from_text(_kind))
prim("aten::Complex.Scalar(Scalar a) -> complex")(complex)
for _left in ("int", "bool", "float"):
    for _right in ("int", "bool", "float"):
        prim(f"aten::Complex.{_left}_{_right}({_left} x, {_right} y) -> complex")(complex)
prim("aten::IntImplicit(Tensor a) -> int")(_implicit(int))
prim("aten::FloatImplicit(Tensor a) -> float")(_implicit(float))
prim("aten::ComplexImplicit(Tensor a) -> complex")(_implicit(complex))
prim("aten::ScalarImplicit(Tensor a) -> Scalar")(_implicit(None))
prim("aten::hash.generic(t value) -> int")(hash)


# ------------------------------------------------------------------------------------------------------ loops

@prim("aten::__range_length(int lo, int hi, int step) -> int")
def range_length(lo, hi, step):
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(lo, hi, step))


@prim("aten::__derive_index(int index, int start, int step) -> int")
def derive_index(index, start, step):
    return start + index * step
