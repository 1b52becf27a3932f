"""How a constant is printed: as C++ prints it, with which PyTorch prints graphs.

In PyTorch: `IValue::repr` in `aten/src/ATen/core/ivalue.cpp`, `printQuotedString` in `torch/csrc/jit/ir/../serialization`,
`operator<<(ostream, Tensor)` in `aten/src/ATen/core/Formatting.cpp`.
"""
import enum
import math

from ....c10.device import device as Device
from ....c10.scalar_type import SCALAR_TYPE_NAMES
from ....c10.tensor_impl import TensorImpl

MOST_ELEMENTS = 10  # a tensor with more is printed as <Tensor>
_ESCAPES = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
            "\t": "\\t", "\v": "\\v"}


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


# ------------------------------------------------------------------------------------------------------------- tensors

def tensor_text(t):
    """`{2}` for one element, the elements for up to ten, else `<Tensor>`."""
    if t.numel() == 1:
        return "{" + _element_text(t.item()) + "}"
    if t.numel() > MOST_ELEMENTS:
        return "<Tensor>"
    kind = f"[ {t.device.type.upper()}{SCALAR_TYPE_NAMES[t.dtype]}Type{{{','.join(map(str, t.shape))}}} ]"
    return (_matrices(t.tolist(), t.dim(), *_width_and_format(t)) + kind).replace("\n", " ")


def _element_text(x):
    if isinstance(x, complex):
        return f"({x.real:g},{x.imag:g})"
    return f"{x:g}" if isinstance(x, float) else str(int(x))


def _matrices(values, dims, width, show, where=()):
    if dims <= 1:
        return "".join(f"{show(v):>{width}}\n" for v in values)
    if dims == 2:
        indent = " " if where else ""
        return "".join(indent + " ".join(f"{show(v):>{width}}" for v in row) + "\n" for row in values)
    parts = []
    for i, inner in enumerate(values, 1):
        header = f"({','.join(map(str, (*where, i)))},.,.) =\n" if dims == 3 else ""
        parts.append(header + _matrices(inner, dims - 1, width, show, (*where, i)))
    return "\n".join(parts)


def _width_and_format(t):
    """The width of a column and the function that writes an element."""
    flat = t.reshape(-1).tolist()
    if t.dtype.is_complex:
        return 10, _element_text
    finite = [abs(v) for v in flat if math.isfinite(v)]
    whole = all(v == int(v) for v in finite)
    low = min((_exponent(v) for v in finite), default=1)
    high = max((_exponent(v) for v in finite), default=1)
    if not t.dtype.is_floating_point or whole:
        return max(high, 1) + 1, lambda v: f"{v:.0f}" if isinstance(v, float) else str(int(v))
    if high - low > 4 or high > 5 or low < -4:
        return 11, lambda v: f"{v:.4e}"
    return (7 if high <= 0 else high + 6), lambda v: f"{v:.4f}"


def _exponent(v):
    return math.floor(math.log10(v)) + 1 if v else 1
