"""Primitives of strings.

In PyTorch: `torch/csrc/jit/runtime/register_string_ops.cpp` (ASCII only there; Python's strings here), `register_prim_ops.cpp`.
"""
from ..ir.constant_text import float_text
from ....c10.device import device as Device
from ....c10.tensor_impl import TensorImpl
from .operator import prim

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
        return str(value)  # in PyTorch: C++'s form, elements below each other and the type behind them
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
    lambda string, start, end, step: string[start:end:step])
prim("aten::ord(str string) -> int")(ord)
prim("aten::chr(int i) -> str")(chr)
prim("aten::bin(int i) -> str")(bin)
prim("aten::oct(int i) -> str")(oct)
prim("aten::hex(int i) -> str")(hex)

for _name in ("capitalize", "lower", "upper", "swapcase", "title"):
    prim(f"aten::{_name}(str self) -> str")(getattr(str, _name))
for _name in ("isalnum", "isalpha", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace",
              "istitle", "isupper"):
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


for _name, _result in (("find", "int"), ("rfind", "int"), ("rindex", "int"), ("count", "int"), ("startswith", "bool"),
                       ("endswith", "bool")):
    prim(f"aten::{_name}(str self, str substr, int start=0, int end=-1) -> {_result}")(_between(_name))
prim("aten::index.str(str self, str substr, int start=0, int end=-1) -> int")(_between("index"))
