"""How a constant is printed: as C++ prints it, with which PyTorch prints graphs.

In PyTorch: `IValue::repr` in `aten/src/ATen/core/ivalue.cpp`, `printQuotedString` in `c10/util/StringUtil.h`,
`print` of tensors in `aten/src/ATen/core/Formatting.cpp`.
"""

import enum
import math

from readtorch.c10.device import device as Device
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import TensorImpl

MAX_ELEMENTS = 10  # a tensor with more is printed as <Tensor>
_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def constant_text(value):
    """Any value that a graph can hold."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, complex):
        sign = "" if str(value.imag).startswith("-") else "+"
        return f"{float_text(value.real)}{sign}{float_text(value.imag)}j"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Device):
        return f'torch.device("{value}")'
    if isinstance(value, TensorImpl):
        return tensor_text(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(constant_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        if value and isinstance(value[0], TensorImpl):
            return "[<Tensors>]"
        return f"[{', '.join(map(constant_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{constant_text(k)}: {constant_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return f"object({id(value):#x})"


def float_text(x):
    """Shortest for whole numbers (`3.`), else all 17 digits: what is read back is the same number."""
    if math.isfinite(x) and abs(x) < 1e10 and x == int(x):
        return f"{'-' if math.copysign(1, x) < 0 and x == 0 else ''}{int(x)}."
    return f"{x:.17g}"


def quoted(text):
    """A string in double quotes; what cannot be printed in octal, byte by byte."""
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(c):
    if c in _ESCAPES:
        return _ESCAPES[c]
    return c if " " <= c <= "~" else "".join(f"\\{byte:03o}" for byte in c.encode())


# ---------------------------------------------------------------------------------------------------- tensors

LINE = 80  # characters


def tensor_text(t):
    """`{2}` for one element, the elements for up to ten, else `<Tensor>`."""
    if t.numel() == 1:
        return "{" + _element_text(t.item()) + "}"
    if t.numel() > MAX_ELEMENTS:
        return "<Tensor>"
    kind = f"[ {t.device.type.upper()}{SCALAR_TYPE_NAMES[t.dtype]}Type{{{','.join(map(str, t.shape))}}} ]"
    values = (t.real if t.dtype.is_complex else t).tolist()
    return (_nested(values, t.dim(), _Format(_leaves(values))) + kind).replace("\n", " ")


def _element_text(x):
    if isinstance(x, complex):
        return f"({x.real:g},{x.imag:g})"
    return f"{x:g}" if isinstance(x, float) else str(int(x))


def _leaves(values):
    return [leaf for v in values for leaf in _leaves(v)] if isinstance(values, list) else [values]


class _Format:
    """How the elements of one tensor are written: their width, a common factor, digits.

    In PyTorch: `__printFormat`.
    """

    def __init__(self, values):
        finite = [abs(v) for v in values if math.isfinite(v)]
        low, high = _digits(min(finite, default=0)), _digits(max(finite, default=0))
        self.scale = 1
        self.spec = ".4f"
        if all(v == math.ceil(v) for v in finite):
            self.width, self.spec = (11, ".4e") if high > 9 else (high + 1, ".0f")
        elif high - low > 4:
            self.width, self.spec = 11 + (abs(high) > 99 or abs(low) > 99), ".4e"
        elif high > 5 or high < 0:
            self.width, self.scale = 7, 10.0 ** (high - 1)
        else:
            self.width = 7 if high == 0 else high + 6

    def factor(self):
        return f"{self.scale:g} *\n" if self.scale != 1 else ""

    def element(self, v):
        return f"{v / self.scale:{self.width}{self.spec}}"


def _digits(v):
    """The number of digits before the point."""
    return math.floor(math.log10(v)) + 1 if v else 1


def _nested(values, dims, form, where=()):
    if dims <= 1:
        return (form.factor() if values else "") + "".join(form.element(v) + "\n" for v in values)
    if dims == 2:
        return _matrix(values, form, 0)
    parts = []
    for i, inner in enumerate(values, 1):
        header = f"({','.join(map(str, (*where, i)))},.,.) = \n"
        parts.append(header + _matrix(inner, form, 1) if dims == 3 else _nested(inner, dims - 1, form, (*where, i)))
    return "\n".join(parts)


def _matrix(rows, form, indent):
    """As many columns at a time as fit on a line."""
    per_line = (LINE - indent) // (form.width + 1)
    count = len(rows[0]) if rows else 0
    parts = []
    for first in range(0, count, per_line):
        columns = f"Columns {first + 1} to {min(first + per_line, count)}" if per_line < count else ""
        shown = [" ".join(map(form.element, row[first : first + per_line])) + "\n" for row in rows]
        margin = " " * (indent + (form.scale != 1))
        factor = form.factor()
        parts.append(columns + factor + (" " * indent if factor else "") + margin.join(shown))
    return "\n".join(parts)
