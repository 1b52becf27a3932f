"""How a tensor becomes text: `repr`, `print` and `set_printoptions`.

In PyTorch: `torch/_tensor_str.py`. The chapter "Tensor and Storage" uses it in its first cell.

The work has two halves. `_array_str` lays out the numbers of a NumPy array: choose one format for all
elements, then write nested brackets. `_str` adds what the numbers alone do not tell: dtype, device,
`grad_fn`. In PyTorch the first half runs on tensors, one operator call for each test; here it runs on the
NumPy array behind the tensor, so that printing a tensor calls no operator.
"""

import contextlib
import dataclasses
import math
import textwrap
from typing import Any

import numpy as np

from .aten.sparse_csr_tensor_impl import is_strided, names_of
from .aten.sparse_tensor_impl import is_sparse
from .c10 import layout, scalar_type, tensor_impl
from .c10.dispatch_key import BATCHED, GRAD_WRAPPER, META, NO_STORAGE
from .c10.tensor_impl import host_array, key_set
from .csrc.autograd.forward_grad import tangent


@dataclasses.dataclass
class _PrinterOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = _PrinterOptions()

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set how tensors are printed. What is left at None stays as it is, except `sci_mode`: None is automatic.

    precision: digits after the point; threshold: more elements than this are summarised;
    edgeitems: elements kept at each end of a summarised dimension; linewidth: where lines break;
    profile: "default", "short" or "full", applied before the other arguments.
    """
    options = dict(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update((name, value) for name, value in given.items() if value is not None)
    for name, value in options.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options, as keyword arguments for `set_printoptions`."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**kwargs):
    """`set_printoptions(**kwargs)` inside a `with` block; the old options return at its end."""
    old_options = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**old_options)


# The numbers


class _Formatter:
    """One format for all elements of an array: integers, fixed point or scientific, and the common width."""

    def __init__(self, array):
        self.floating_dtype = _is_floating(array)
        self.int_mode = True
        self.sci_mode = False
        self.max_width = 1
        if self.floating_dtype:
            self._choose_float_format(array)
        else:
            self._widen_for(str(value) for value in array.reshape(-1).tolist())

    def _choose_float_format(self, array):
        # float64 holds every value of the narrower types exactly, and gives the same answers.
        values = array.reshape(-1).astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        if values.size == 0:
            return
        self.int_mode = bool((values == np.ceil(values)).all())
        self.sci_mode = PRINT_OPTS.sci_mode
        if self.sci_mode is None:
            self.sci_mode = _needs_scientific(np.abs(values))
        # Zeros, infinities and NaN do not count for the width: they may stand out of the column.
        self._widen_for(self._format_float(value) for value in values.tolist())

    def _widen_for(self, texts):
        self.max_width = max(self.max_width, max(map(len, texts), default=0))

    def width(self):
        return self.max_width

    def format(self, value):
        text = self._format_float(value) if self.floating_dtype else str(value)
        return text.rjust(self.max_width)

    def _format_float(self, value):
        if self.sci_mode:
            return f"{value:.{PRINT_OPTS.precision}e}"
        if not self.int_mode:
            return f"{value:.{PRINT_OPTS.precision}f}"
        # The point tells 1. (a float) from 1 (an int); inf and nan need no such sign.
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


def _is_floating(array):
    # The types of ml_dtypes (bfloat16) are of kind "V" or "f": floating is what is no other kind.
    return array.dtype.kind not in "biuc"


def _needs_scientific(magnitudes):
    smallest, largest = magnitudes.min(), magnitudes.max()
    with np.errstate(over="ignore"):
        return bool(largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4)


class _ComplexFormatter:
    """Two formats, one for all real parts and one for all imaginary parts."""

    def __init__(self, array):
        self.real, self.imag = _Formatter(array.real), _Formatter(array.imag)

    def width(self):
        return self.real.width() + self.imag.width() + 1  # in PyTorch too: "+" is not counted, "j" is

    def format(self, value):
        imag = self.imag.format(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self.real.format(value.real) + sign + imag


def _array_str(array, indent):
    """The elements of `array` in nested brackets, continuation lines indented by `indent`."""
    if array.size == 0:
        return "[]"
    summarize = array.size > PRINT_OPTS.threshold
    shown = get_summarized_data(array) if summarize else array
    formatter = _ComplexFormatter(shown) if array.dtype.kind == "c" else _Formatter(shown)
    return _nested_str(array, indent, summarize, formatter)


def _tensor_str(self, indent):
    """A tensor's numbers, without what else `repr` says."""
    return _array_str(_numbers(self), indent)


def _nested_str(array, indent, summarize, formatter):
    if array.ndim == 0:
        return formatter.format(array.tolist())
    if array.ndim == 1:
        return _vector_str(array, indent, summarize, formatter)
    edge = PRINT_OPTS.edgeitems
    if summarize and len(array) > 2 * edge:
        tail = range(len(array) - edge, len(array))
        rows = [array[i] for i in range(edge)] + [None] + [array[i] for i in tail]
    else:
        rows = list(array)
    texts = ["..." if row is None else _nested_str(row, indent + 1, summarize, formatter) for row in rows]
    # Between matrices stands one empty line, between stacks of matrices two, and so on.
    separator = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + separator.join(texts) + "]"


def _vector_str(array, indent, summarize, formatter):
    texts = _vector_texts(array, summarize, formatter)
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (formatter.width() + len(", ")))
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _vector_texts(array, summarize, formatter):
    edge = PRINT_OPTS.edgeitems
    if summarize and not edge:
        return ["..."]
    if summarize and len(array) > 2 * edge:
        head, tail = array[:edge].tolist(), array[-edge:].tolist()
        return [formatter.format(v) for v in head] + [" ..."] + [formatter.format(v) for v in tail]
    return [formatter.format(v) for v in array.tolist()]


def get_summarized_data(array):
    """The elements that a summary shows: only they decide the format."""
    edge = PRINT_OPTS.edgeitems
    if not edge and array.ndim > 1:
        return array[:0]
    for dim, size in enumerate(array.shape):
        if size > 2 * edge:
            # With edgeitems=0 the tail `-0:` is everything, in PyTorch too.
            indices = np.r_[0:edge, size - edge : size] if edge else np.arange(size)
            array = np.take(array, indices, axis=dim)
    return array


# What stands around the numbers


def _str(self, *, tensor_contents=None):
    """The text of a tensor. `tensor_contents` replaces the numbers (a subclass may print something else)."""
    # in PyTorch: also quantized and nested tensors
    if key_set(self) & (BATCHED | GRAD_WRAPPER):
        return _wrapper_str(self)
    is_plain_tensor = _is_plain(type(self))
    prefix = "tensor(" if is_plain_tensor else f"{type(self).__name__}("
    if tensor_contents is None:
        tensor_contents = _contents(self, len(prefix))
    suffixes = _device_suffix(self) + _shape_and_dtype_suffixes(self)
    suffixes += _layout_suffix(self) + _grad_suffix(self) + _tangent_suffix(self)
    string_repr = _add_suffixes(prefix + tensor_contents, suffixes, len(prefix), is_sparse(self))
    if getattr(self, "_is_param", False) and not is_plain_tensor:
        return f"Parameter({string_repr})"
    return string_repr


def _wrapper_str(self):
    """A wrapper of a function transform: its kind, its level, and the tensor in it, indented."""
    impl = self._storage_impl
    if key_set(self) & BATCHED:
        head = f"BatchedTensor(lvl={impl.layer.level}, bdim={impl.bdim}, value="
    else:
        head = f"GradTrackingTensor(lvl={impl.layer.level if impl.layer.alive else -2}, value="
    value = textwrap.indent(repr(impl.value), "    ")
    return f"{head}\n{value}\n)"


def _contents(self, indent):
    if _has_no_elements(self):
        return "..."
    if is_strided(self):
        return _array_str(_numbers(self), indent)
    array = self._array
    if is_sparse(self):
        parts = {"indices": array.indices, "values": array.values}
    else:
        parts = dict(zip((*names_of(array.layout), "values"), (array.compressed, array.plain, array.values)))
    return (",\n" + " " * indent).join([_part_str(name, array, indent) for name, array in parts.items()])


def _has_no_elements(self):
    """Whether there is nothing to show: on the Meta device, and of a wrapper whose class has no `__repr__`."""
    # in PyTorch: the numbers of a wrapper are printed by operators, which its class sees
    return bool(key_set(self) & (META | NO_STORAGE))


def _part_str(name, array, indent):
    """One of the tensors that make a sparse one."""
    prefix = f"{name}=tensor("
    size = "" if array.size else f", size={array.shape}"
    return prefix + _array_str(array, indent + len(prefix)) + size + ")"


def _is_plain(cls):
    """Whether `cls` is Tensor or nn.Parameter itself, not a class made from them."""
    return cls is tensor_impl.tensor_class or "_is_param" in vars(cls)


def _numbers(self):
    """The NumPy array with the tensor's elements, on the host."""
    return host_array(self)


def _device_suffix(self):
    # in PyTorch: the deprecated `set_default_tensor_type` can make "cuda" the device that goes without saying
    return [] if self.device.type == "cpu" else [f"device='{self.device}'"]


def _shape_and_dtype_suffixes(self):
    """`size=` when the brackets do not show it, `dtype=` when the numbers do not."""
    if not is_strided(self):
        own = [] if self.dtype in _dtypes_implied_by_numbers() else [f"dtype={self.dtype}"]
        return [f"size={tuple(self.shape)}", f"nnz={self._array.nnz}", *own]
    empty = self.numel() == 0
    hides_size = _has_no_elements(self) or (empty and self.dim() != 1) or (not empty and not PRINT_OPTS.edgeitems)
    # Without elements nothing tells an int64 or bool tensor from a float one.
    implied = {scalar_type.get_default_dtype()} if _has_no_elements(self) or empty else _dtypes_implied_by_numbers()
    suffixes = [f"size={tuple(self.shape)}"] if hides_size else []
    return suffixes + ([] if self.dtype in implied else [f"dtype={self.dtype}"])


def _dtypes_implied_by_numbers():
    default = scalar_type.get_default_dtype()
    return {default, default.to_complex(), scalar_type.int64, scalar_type.bool}


def _layout_suffix(self):
    return [] if self.layout is layout.strided else [f"layout={self.layout}"]


def _grad_suffix(self):
    try:
        grad_fn = self.grad_fn
    except RuntimeError:
        # A view made under no_grad and then written in place has no valid history: asking for it raises.
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{type(grad_fn).__name__}>"]
    return ["requires_grad=True"] if self.requires_grad else []


def _tangent_suffix(self):
    found = tangent(self)
    return [] if found is None else [f"tangent={found}"]


def _add_suffixes(tensor_str, suffixes, indent, force_newline=False):
    parts = [tensor_str]
    last_line_len = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or last_line_len + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last_line_len = indent + len(suffix)
            force_newline = False
        else:
            parts.append(", " + suffix)
            last_line_len += len(suffix) + 2
    return "".join(parts) + ")"
