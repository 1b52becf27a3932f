"""Primitives of numbers, lists, dicts and strings. The values are Python's own.

The overloads of an arithmetic operator differ in the types of their results, not in what they compute: Python's operators
look at the operands themselves. In PyTorch: ints have 64 bits and wrap around, here they are Python's; strings are of
ASCII characters, here they are Python's.

In PyTorch: `torch/csrc/jit/runtime/register_prim_ops.cpp`.
"""

import cmath
import math
import operator

from readtorch.c10.device import device as Device
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.ir.formatting import float_text

from .operator import prim

KEYS = ("str", "int", "bool", "float", "complex", "Tensor")  # what may be a dict's key


# --------------------------------------------------------------------------------------------------------------- lists


@prim("aten::__getitem__.t(t[](a) list, int idx) -> t(*)")
def getitem(list, idx):
    return list[idx]


@prim("aten::select.t(t[](a) list, int idx) -> t(*)")
def select(list, idx):
    return list[idx]


@prim("aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)")
def set_item(l, idx, el):
    try:
        l[idx] = el
    except IndexError:
        raise IndexError("list index out of range") from None
    return l


@prim("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)")
def append(self, el):
    self.append(el)
    return self


@prim("aten::extend.t(t[](a!) self, t[] other) -> ()")
def extend(self, other):
    self.extend(other)


@prim("aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()")
def insert(self, idx, el):
    self.insert(idx, el)


@prim("aten::clear.t(t[](a!) self) -> ()")
def clear(self):
    self.clear()


@prim("aten::Delete.t(t[](a!) self, int idx) -> ()")
def delete(self, idx):
    if not -len(self) <= idx < len(self):
        raise IndexError("list index out of range")
    del self[idx]


@prim("aten::pop.t(t[](a!) self, int idx=-1) -> t(*)")
def pop(self, idx):
    if not self:
        raise IndexError("pop from empty list")
    if not -len(self) <= idx < len(self):
        raise IndexError("list index out of range")
    return self.pop(idx)


@prim("aten::reverse.t(t[](a!) self) -> ()")
def reverse(self):
    self.reverse()


@prim("aten::copy.t(t[](a) self) -> t[]")
def copy(self):
    return list(self)


@prim("aten::list.t(t[] l) -> t[]")
def list_of_list(l):
    return list(l)


@prim("aten::len.t(t[] a) -> int")
def length(a):
    return len(a)


@prim("aten::add.t(t[] a, t[] b) -> t[]")
def concatenate(a, b):
    return a + b


@prim("aten::add_.t(t[](a!) self, t[] b) -> t[]")
def extend_and_return(self, b):
    self.extend(b)
    return self


@prim("aten::mul.left_t(t[] l, int n) -> t[]")
def repeat(l, n):
    return l * n


@prim("aten::mul.right_(int n, t[] l) -> t[]")
def repeat_from_left(n, l):
    return l * n


@prim("aten::mul_.t(t[](a!) l, int n) -> t[](a!)")
def repeat_in_place(l, n):
    l *= n
    return l


@prim("aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]")
def slice_list(l, start, end, step):
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return l[start:end:step]


def _position(list, el):
    for i, value in enumerate(list):
        if equal(value, el):
            return i
    return None


def equal(a, b):
    """Whether two elements are: tensors if all their elements are."""
    if isinstance(a, TensorImpl):
        return bool((a == b).all().item())
    return a == b


def _index(self, el):
    position = _position(self, el)
    if position is None:
        raise ValueError(f"'{el}' is not in list")
    return position


def _remove(self, el):
    position = _position(self, el)
    if position is None:
        raise ValueError("list.remove(x): x not in list")
    del self[position]


def _count(self, el):
    return sum(equal(value, el) for value in self)


def _contains(l, item):
    return _position(l, item) is not None


def _lists_equal(a, b):
    return len(a) == len(b) and all(map(equal, a, b))


def _lists_differ(a, b):
    return not _lists_equal(a, b)


def _sort(self, reverse):
    self.sort(key=_sort_key, reverse=reverse)


def _sorted(input):
    return sorted(input, key=_sort_key)


def _sort_key(value):
    if hasattr(value, "script_sort_key"):  # objects of a class that defines __lt__
        return value.script_sort_key()
    return value.item() if isinstance(value, TensorImpl) else value


for _element in ("int", "float", "bool", "str", "Tensor"):
    prim(f"aten::index.list_{_element}({_element}[] self, {_element} el) -> int")(_index)
    prim(f"aten::remove.{_element}({_element}[](a!) self, {_element} el) -> ()")(_remove)
    prim(f"aten::count.{_element}({_element}[] self, {_element} el) -> int")(_count)
    prim(f"aten::__contains__.{_element}_list({_element}[] l, {_element} item) -> bool")(_contains)
    prim(f"aten::eq.{_element}_list({_element}[] a, {_element}[] b) -> bool")(_lists_equal)
    prim(f"aten::ne.{_element}_list({_element}[] a, {_element}[] b) -> bool")(_lists_differ)
    prim(f"aten::sort.{_element}({_element}[](a!) self, bool reverse=False) -> ()")(_sort)
    prim(f"aten::sorted.{_element}({_element}[](a) input) -> {_element}[]")(_sorted)
prim("aten::sort.any(t[](a!) self, bool reverse=False) -> ()")(_sort)
prim("aten::sorted.any(t[](a) self) -> t[]")(_sorted)


def _least(l):
    if not l:
        raise ValueError("Expected more than 0 elements")
    return min(l)


def _greatest(l):
    if not l:
        raise ValueError("Expected more than 0 elements")
    return max(l)


def _any(self):
    return any(self)


def _all(self):
    return all(self)


def _sum(self):
    return sum(self)


for _element, _total in (("int", "int"), ("float", "float"), ("bool", "int")):
    prim(f"prim::min.{_element}_list({_element}[] l, {_element}[] r) -> {_element}[]")(min)
    prim(f"prim::max.{_element}_list({_element}[] l, {_element}[] r) -> {_element}[]")(max)
    prim(f"prim::min.self_{_element}({_element}[] self) -> {_element}")(_least)
    prim(f"prim::max.self_{_element}({_element}[] self) -> {_element}")(_greatest)
    prim(f"aten::any.{_element}({_element}[] self) -> bool")(_any)
    prim(f"aten::all.{_element}({_element}[] self) -> bool")(_all)
    prim(f"aten::sum.{_element}({_element}[] self) -> {_total}")(_sum)
prim("aten::sum.complex(complex[] self) -> complex")(_sum)
prim("aten::any.str(str[] self) -> bool")(_any)


@prim("aten::list_with_default(int[] list, int[] defaults) -> int[]")
def list_with_default(list, defaults):
    return [default if size is None else size for size, default in zip(list, defaults[-len(list) :])]


@prim("prim::rangelist(int n) -> int[]")
def rangelist(n):
    return list(range(n))


# --------------------------------------------------------------------------------------------------------------- dicts
# A tensor as a key is itself, not its elements: Python hashes tensors by identity, PyTorch's dict does so too.


def _missing(key):
    return RuntimeError(f"KeyError: {key}")


def _dict_getitem(self, key):
    if key not in self:
        raise _missing(key)
    return self[key]


def _dict_set(l, idx, v):
    l[idx] = v


def _dict_delete(self, key):
    if key not in self:
        raise _missing(key)
    del self[key]


def _dict_pop(self, key):
    if key not in self:
        raise _missing(key)
    return self.pop(key)


def _dict_of_pairs(inputs):
    return dict(inputs)


for _key in KEYS:
    _dict = f"Dict({_key}, t)"
    prim(f"aten::len.Dict_{_key}({_dict} self) -> int")(length)
    prim(f"aten::keys.{_key}({_dict} self) -> {_key}[](*)")(lambda self: list(self))
    prim(f"aten::values.{_key}({_dict} self) -> t[](*)")(lambda self: list(self.values()))
    prim(f"aten::items.{_key}({_dict} self) -> (({_key}, t)[])")(lambda self: list(self.items()))
    prim(f"aten::__getitem__.Dict_{_key}({_dict} self, {_key} key) -> t(*)")(_dict_getitem)
    prim(f"aten::get.{_key}({_dict} self, {_key} key) -> t(*)?")(lambda self, key: self.get(key))
    prim(f"aten::get.default_{_key}({_dict} self, {_key} key, t default_value) -> t(*)")(
        lambda self, key, default: self.get(key, default)
    )
    prim(f"aten::setdefault.{_key}({_dict}(a!) self, {_key}(b -> *) key, t(c -> *) default_value) -> t(*)")(
        lambda self, key, default: self.setdefault(key, default)
    )
    prim(f"aten::Delete.Dict_{_key}({_dict}(a!) self, {_key} key) -> ()")(_dict_delete)
    prim(f"aten::pop.Dict_{_key}({_dict}(a!) self, {_key} key) -> t(*)")(_dict_pop)
    prim(f"aten::pop.Dict_default_{_key}({_dict}(a!) self, {_key} key, t default_value) -> t(*)")(
        lambda self, key, default: self.pop(key, default)
    )
    prim(f"aten::popitem.{_key}({_dict}(a!) self) -> (({_key}, t))")(lambda self: self.popitem())
    prim(f"aten::clear.{_key}({_dict}(a!) self) -> ()")(clear)
    prim(f"aten::update.{_key}({_dict}(a!) self, {_dict}(a!) to_add) -> ()")(lambda self, to_add: self.update(to_add))
    prim(f"aten::copy.Dict_{_key}({_dict}(a) self) -> {_dict}")(lambda self: dict(self))
    prim(f"aten::__contains__.{_key}({_dict} dict, {_key} key) -> bool")(lambda dict, key: key in dict)
    prim(f"aten::_set_item.{_key}({_dict}(a!) l, {_key}(b -> *) idx, t(c -> *) v) -> ()")(_dict_set)
    prim(f"aten::dict.{_key}(({_key}, tVal)[] inputs) -> Dict({_key}, tVal)")(_dict_of_pairs)
    prim(f"aten::dict.Dict_{_key}({_dict}(a) self) -> {_dict}")(lambda self: dict(self))
prim("aten::dict() -> Dict(str, Tensor)")(dict)
prim("aten::len.any(Any[] a) -> int")(length)


# ------------------------------------------------------------------------------------ arithmetic: two numbers

# Types of the operands and the overload's name, in the order in which overloads are tried.
_REAL_PAIRS = [
    ("int", "int", "int"),
    ("float", "float", "float"),
    ("int", "float", "int_float"),
    ("float", "int", "float_int"),
]
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
        result = a**b
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


_PAIRS = _REAL_PAIRS[:1] + _COMPLEX_PAIRS[:1] + _REAL_PAIRS[1:2] + _COMPLEX_PAIRS[1:] + _REAL_PAIRS[2:] + _SCALAR_PAIR
for _name, _function in (("aten::add", operator.add), ("aten::sub", operator.sub), ("aten::mul", operator.mul)):
    _declare_pairs(_name, _function, _PAIRS, _wider)
_declare_pairs("aten::div", _divide, _REAL_PAIRS[:1] + _COMPLEX_PAIRS[:1] + _REAL_PAIRS[1:2] + _SCALAR_PAIR, _float)
for _name, _function in (("aten::floordiv", _floordiv), ("aten::remainder", _remainder)):
    _declare_pairs(_name, _function, _REAL_PAIRS + _SCALAR_PAIR, _wider)
for _name, _function in (("aten::fmod", _fmod), ("aten::mathremainder", math.remainder), ("aten::copysign", _copysign)):
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
_declare_pairs(
    "aten::polar",
    lambda a, b: complex(a * math.cos(b), a * math.sin(b)),
    _REAL_PAIRS + [("Scalar", "Scalar", "Scalar_Scalar")],
    lambda left, right: "Scalar" if left == "Scalar" else "complex",
)
for _name, _function in (("prim::min", min), ("prim::max", max)):
    _declare_pairs(_name, _function, _REAL_PAIRS + _SCALAR_PAIR, _wider)


def _log_to_base(a, b):
    try:
        return math.log(a) / math.log(b)
    except (ValueError, ZeroDivisionError):
        return math.nan


_declare_pairs("aten::log", _log_to_base, [(a, b, f"{a}_{b}") for a, b, _ in _REAL_PAIRS + _SCALAR_PAIR], _float)

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
        lambda x, y: (_floordiv(x, y), _remainder(x, y))
    )

prim("aten::gcd.int(int a, int b) -> int")(math.gcd)
prim("aten::__round_to_zero_floordiv.int(int a, int b) -> int")(
    lambda a, b: int(_divide(a, b)) if abs(a) < 2**53 else (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
)
prim("aten::ldexp(float x, int i) -> float")(math.ldexp)

# ------------------------------------------------------------------------------------------------- comparison

_COMPARISONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "gt": operator.gt,
    "le": operator.le,
    "ge": operator.ge,
}
for _name, _function in _COMPARISONS.items():
    if _name in ("eq", "ne"):
        for _kind in ("Device", "bool", "AnyEnumType"):
            _overload = {"Device": "device", "AnyEnumType": "enum"}.get(_kind, _kind)
            prim(f"aten::{_name}.{_overload}({_kind} a, {_kind} b) -> bool")(_function)
        _declare_pairs(f"aten::{_name}", _function, _COMPLEX_PAIRS[:1] + _COMPLEX_PAIRS[3:], _bool)
    _declare_pairs(f"aten::{_name}", _function, _REAL_PAIRS + _SCALAR_PAIR, _bool)
    prim(f"aten::{_name}.str(str a, str b) -> bool")(_function)


def _is(self, obj):
    return self is obj or (isinstance(self, (int, float, str, bool)) and type(self) is type(obj) and self == obj)


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
            raise RuntimeError(
                f"Cannot input a tensor of dimension other than 0 as a scalar argument. "
                f"Got a tensor of dimension {a.dim()}"
            )
        if kind is int and not isinstance(a.item(), int):
            raise RuntimeError("Cannot input a tensor of non-integral dtype as an integral argument")
        return a.item() if kind is None else kind(a.item())

    return convert


for _name, _kind, _from in (
    ("Bool", bool, "Tensor int float"),
    ("Int", int, "Tensor bool float Scalar str"),
    ("Float", float, "Tensor Scalar int bool str"),
):
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


# -------------------------------------------------------------------------------------------------------------- strings


SPACES = " \n\t\f\v"


def plain_text(value):
    """A value as `print` and `str` write it in TorchScript: like a constant, strings without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, complex):
        return f"{float_text(value.real)}{'' if value.imag < 0 else '+'}{float_text(value.imag)}j"
    if isinstance(value, TensorImpl):
        return str(value)  # in PyTorch: C++'s form, one element a line, followed by the type
    if isinstance(value, Device):
        return str(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(plain_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(plain_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{plain_text(k)}: {plain_text(v)}" for k, v in value.items()) + "}"
    return str(value)


@prim("aten::str(t elem) -> str")
def str_of(elem):
    return plain_text(elem)


@prim("aten::format(str self, ...) -> str")
def format(self, *values):
    """Each `{}` in turn by the next value; anything else in the text stays, values beyond the last `{}` are left."""
    parts = self.split("{}")
    if len(parts) - 1 > len(values):
        raise RuntimeError(f"Too few arguments for format string: {self}")
    return "".join(part + text for part, text in zip(parts, [*map(plain_text, values[: len(parts) - 1]), ""]))


@prim("aten::percentFormat(str self, ...) -> str")
def percent_format(self, *values):
    given = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    try:
        return self % tuple(plain_text(v) if not isinstance(v, (int, float)) else v for v in given)
    except TypeError as error:
        raise RuntimeError(f"Incorrect number of arguments for format string: {error}") from None


@prim("aten::__getitem__.str(str s, int index) -> str")
@prim("prim::StringIndex(str string, int index) -> str")
def string_index(string, index):
    if not -len(string) <= index < len(string):
        raise IndexError("string index out of range")
    return string[index]


prim("aten::add.str(str a, str b) -> str")(lambda a, b: a + b)
prim("aten::len.str(str s) -> int")(len)
prim("aten::list(str t) -> str[]")(list)
prim("aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str")(
    lambda string, start, end, step: string[start:end:step]
)
prim("aten::ord(str string) -> int")(ord)
prim("aten::chr(int i) -> str")(chr)
prim("aten::bin(int i) -> str")(bin)
prim("aten::oct(int i) -> str")(oct)
prim("aten::hex(int i) -> str")(hex)

for _name in ("capitalize", "lower", "upper", "swapcase", "title"):
    prim(f"aten::{_name}(str self) -> str")(getattr(str, _name))
for _name in (
    "isalnum",
    "isalpha",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
):
    prim(f"aten::{_name}(str self) -> bool")(getattr(str, _name))
for _name in ("strip", "lstrip", "rstrip"):
    prim(f'aten::{_name}(str self, str chars=" \\n\\t\\f\\v") -> str')(getattr(str, _name))
for _name in ("center", "ljust", "rjust"):
    prim(f'aten::{_name}(str self, int width, str fillchar=" ") -> str')(getattr(str, _name))
prim("aten::zfill(str self, int width) -> str")(str.zfill)
prim("aten::expandtabs(str self, int tabsize=8) -> str")(str.expandtabs)
prim("aten::join(str self, str[] values) -> str")(str.join)
prim("aten::partition(str self, str separator) -> (str, str, str)")(str.partition)
prim("aten::rpartition(str self, str separator) -> (str, str, str)")(str.rpartition)
prim("aten::replace(str self, str old, str new, int max=-1) -> str")(str.replace)
prim("aten::splitlines(str self, bool keepends=False) -> str[]")(str.splitlines)
prim("aten::split.str(str self, str? separator=None, int max=-1) -> str[]")(str.split)
prim('aten::rsplit(str self, str separator=" ", int max=-1) -> str[]')(str.rsplit)


def _end(self, end):
    """-1 stands for the string's end in these schemas."""
    return len(self) if end == -1 else end


def _between(method):
    return lambda self, substr, start, end: getattr(str, method)(self, substr, start, _end(self, end))


for _name, _result in (
    ("find", "int"),
    ("rfind", "int"),
    ("rindex", "int"),
    ("count", "int"),
    ("startswith", "bool"),
    ("endswith", "bool"),
):
    prim(f"aten::{_name}(str self, str substr, int start=0, int end=-1) -> {_result}")(_between(_name))
prim("aten::index.str(str self, str substr, int start=0, int end=-1) -> int")(_between("index"))
