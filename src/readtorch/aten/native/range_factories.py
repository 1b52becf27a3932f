"""Evenly spaced numbers: arange, linspace, logspace.

In PyTorch: `aten/src/ATen/native/RangeFactories.cpp`, `aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp`.
"""

import math
import warnings

import numpy as np

from readtorch.aten.native_function import native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.register_dispatch_key import any_device, check_result_type, resize, write_out
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import META
from readtorch.c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES, op_math_type
from readtorch.c10.sym_int import SymFloat
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, wrap

from .tensor_factories import OPTIONS, check_options, described

# ---------------------------------------------------------------------------------------------------- arange

arange_end = native_function(f"arange(Scalar end, *, {OPTIONS}) -> Tensor", "function", out=True)
arange_start = native_function(f"arange.start(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor", "function", out=True)
arange = native_function(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor", "function", out=True
)
range_ = native_function(
    f"range.step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor", "function", out=True
)


@arange_end.kernel
@any_device
def arange_end_composite(end, dtype, layout, device, pin_memory):
    return arange.call(0, end, 1, dtype, layout, device, pin_memory)


@arange_start.kernel
@any_device
def arange_start_composite(start, end, dtype, layout, device, pin_memory):
    return arange.call(start, end, 1, dtype, layout, device, pin_memory)


def check_range(start, end, step):
    """Raises RuntimeError for what is no range of real numbers."""
    for value in (start, end, step):
        if isinstance(value, complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(math.isfinite(value) for value in (start, end) if isinstance(value, float)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def check_computable(dtype, name):
    if dtype is scalar_type.bool or dtype.is_complex and name == "arange_cpu":
        raise NotImplementedError(f"\"{name}\" not implemented for '{SCALAR_TYPE_NAMES[dtype]}'")


def arithmetic_series(start, step, length, dtype):
    """`start + i * step`, each computed from its index in double precision and rounded once.

    In PyTorch: eight or sixteen at a time, from the rounded first of them; the last bit may differ.
    """
    if dtype.category < FLOAT and all(isinstance(v, int) for v in (start, step)):
        return wrap((start + np.arange(length, dtype=np.int64) * step).astype(dtype.numpy))
    if dtype.category < FLOAT:
        start, step = int(start), int(step)
    return wrap((start + np.arange(length, dtype=np.float64) * step).astype(dtype.numpy))


def arange_type(start, end, step, dtype):
    """The result's dtype: integers if all three are, else the default dtype. Raises RuntimeError for what is no range."""
    check_range(start, end, step)
    if dtype is None:
        floats = any(isinstance(v, (float, SymFloat)) for v in (start, end, step))
        dtype = scalar_type.get_default_dtype() if floats else scalar_type.int64
    if dtype is scalar_type.int64 and math.trunc(step) == 0:  # it was a fraction
        raise ValueError("step must be nonzero")
    return dtype


def arange_length(start, end, step, dtype):
    if dtype is scalar_type.int64:
        start, end, step = math.trunc(start), math.trunc(end), math.trunc(step)
        return -((start - end) // step)
    return math.ceil((end - start) / step)


@arange.meta
def arange_meta(start, end, step, dtype, layout, device, pin_memory):
    check_options(layout, device)
    dtype = arange_type(start, end, step, dtype)
    return described((arange_length(start, end, step, dtype),), dtype)


arange_start.meta(lambda start, end, *options: arange_meta(start, end, 1, *options))
arange_end.meta(lambda end, *options: arange_meta(0, end, 1, *options))


@arange.kernel
def arange_cpu(start, end, step, dtype, layout, device, pin_memory):
    """From `start` up to but without `end`."""
    check_options(layout, device)
    dtype = arange_type(start, end, step, dtype)
    check_computable(dtype, "arange_cpu")
    if dtype is scalar_type.int64:
        return wrap(np.arange(int(start), int(end), int(step)))
    return arithmetic_series(start, step, arange_length(start, end, step, dtype), dtype)


def warn_of_range():
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
        "[start, end).",
        stacklevel=6,
    )


@range_.meta
def range_meta(start, end, step, dtype, layout, device, pin_memory):
    warn_of_range()
    check_range(start, end, step)
    return described((int((end - start) / step) + 1,), dtype)


@range_.kernel
def range_cpu(start, end, step, dtype, layout, device, pin_memory):
    """The old form, which includes `end`."""
    output = range_meta(start, end, step, dtype, layout, device, pin_memory)
    check_computable(output.dtype, "range_cpu")
    return arithmetic_series(start, step, output.shape[0], output.dtype)


def keeps_shape_of_out(operator):
    """Such a range goes into an `out` of any shape that has as many elements."""

    @operator.out.kernel
    @any_device
    def fill_out(*arguments):
        *arguments, out = arguments
        if out._keys & META:
            return described_out(operator.shape_rule(*arguments), out)
        result = operator.call(*arguments)
        if result._array.size == out._array.size:
            result = result.reshape(out._array.shape)
        else:
            check_result_type(result, out)
            resize_range(out, result._array.shape, warns=operator in (arange_end, arange_start, arange))
        return write_out(result, (out,))


def described_out(output, out):
    """`out` on the Meta device, as if this output had been written to it."""
    check_result_type(output, out)
    if out._array.size != math.prod(output.shape):
        resize_range(out, output.shape, warns=False)
    return out


def resize_range(out, shape, warns):
    """Make `out` as large as the range; `arange` warns if it held elements."""
    if warns and out._array.size:
        warnings.warn(
            f"The number of elements in the out tensor of shape {list(out._array.shape)} is {out._array.size} which does not match "
            f"the computed number of elements {shape[0]}. Note that this may occur as a result of rounding error. The out tensor "
            f"will be resized to a tensor of shape ({shape[0]},).",
            stacklevel=6,
        )
    resize(out, shape)


for _operator in (arange_end, arange_start, arange, range_):
    keeps_shape_of_out(_operator)

_BY_BOUNDS = (None, arange_end, arange_start, arange)
_NUMBERS, _parse_arange = frozenset({int, float}), make_parser(packets["torch", "arange"], False)


@python_binding("arange", "function")
def arange_binding(*bounds, **options):
    """`arange(end)`, `arange(start, end)`, `arange(start, end, step)`: numbers in a row, without `end`."""
    if options or not bounds or len(bounds) > 3 or not _NUMBERS.issuperset(map(type, bounds)):
        return _parse_arange(bounds, options)
    return _BY_BOUNDS[len(bounds)].call(*bounds, None, None, None, None)


# ------------------------------------------------------------------------------------------------- linspace


def _with_tensor_bounds(name, more, kernel):
    """Declare `name` for numbers and for 0-dimensional tensors as bounds; both give the same. Returns all four."""
    forms = {
        "Tensor_Tensor": ("Tensor", "Tensor"),
        "Tensor_Scalar": ("Tensor", "Scalar"),
        "Scalar_Tensor": ("Scalar", "Tensor"),
        "": ("Scalar", "Scalar"),
    }
    return [
        _with_bounds(f"{name}{'.' if overload else ''}{overload}({first} start, {second} end", name, more, kernel)
        for overload, (first, second) in forms.items()
    ]


def _with_bounds(text, name, more, kernel):
    operator = native_function(f"{text}, int steps{more}, *, {OPTIONS}) -> Tensor", "function", out=True)

    @operator.meta
    def series_meta(start, end, steps, *rest):
        *_, dtype, layout, device, pin_memory = rest
        check_options(layout, device)
        check_bounds(name, start, end)
        return described((steps,), series_type(name, start, end, dtype, steps))

    @operator.kernel
    def series_cpu(start, end, steps, *rest):
        output = series_meta(start, end, steps, *rest)
        check_computable(output.dtype, f"{name}_cpu")
        return wrap(
            kernel(number_of(start), number_of(end), steps, output.dtype, *rest[:-4]).astype(output.dtype.numpy)
        )

    keeps_shape_of_out(operator)
    return operator


def check_bounds(name, *bounds):
    for which, value in zip(("start", "end"), bounds):
        if isinstance(value, TensorImpl) and value._array.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with "
                f"{value._array.ndim} dimension(s)."
            )


def number_of(bound):
    """A bound as a Python number."""
    return bound.item() if isinstance(bound, TensorImpl) else bound


def is_complex(bound):
    return dtype_of(bound).is_complex if isinstance(bound, TensorImpl) else isinstance(bound, complex)


def series_type(name, start, end, dtype, steps):
    """The result's dtype. Raises RuntimeError for a negative number of steps or a dtype that cannot hold the bounds."""
    inferred = scalar_type.get_default_dtype()
    if is_complex(start) or is_complex(end):
        inferred = scalar_type.get_default_complex_dtype()
        if dtype is not None and not dtype.is_complex:
            raise RuntimeError(
                f"torch.{name}(): inferred dtype "
                f"c10::complex<{'float' if inferred.itemsize == 8 else 'double'}> can't be safely cast "
                f"to passed dtype {SCALAR_TYPE_NAMES[dtype]}"
            )
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return dtype or inferred


def even_steps(start, end, steps, dtype, kind=None):
    """`steps` numbers from `start` to `end`: the first half counted up from start, the second down from
    end. They are computed in the type `kind`, by default in their own, or float64 for integers."""
    integral = dtype.category < FLOAT
    kind = np.dtype(np.float64) if integral else kind or dtype.numpy
    bounds = [np.asarray(int(v) if integral else v) for v in (start, end)]
    start, end = (v.astype(kind if integral else dtype.numpy).astype(kind) for v in bounds)
    if steps == 1:
        return start.reshape(1)
    step = (end - start) / kind.type(steps - 1)
    place = np.arange(steps).astype(kind)
    counted_down = end - step * (steps - 1 - place).astype(kind)
    return np.where(np.arange(steps) < steps // 2, start + step * place, counted_down)


def logarithmic_steps(start, end, steps, dtype, base):
    """`base` to the power of each number that linspace gives."""
    if steps == 1 and dtype.category >= FLOAT:  # start itself, whatever the dtype makes of it
        return np.power(base, np.array([start]))
    exponents = even_steps(start, end, steps, dtype, op_math_type(dtype).numpy)
    return np.power(exponents.dtype.type(base), exponents)


linspace = _with_tensor_bounds("linspace", "", even_steps)
logspace = _with_tensor_bounds("logspace", ", float base=10.0", logarithmic_steps)
