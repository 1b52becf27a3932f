"""where, clamp, isclose, isin, and predicates on each element: isnan, isinf, isreal …

In PyTorch: `aten/src/ATen/native/TensorCompare.cpp` and `aten/src/ATen/native/cpu/TensorCompareKernel.cpp`.
"""

import math
from functools import partial

import numpy as np

from readtorch.aten.expand_utils import broadcast_error
from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native_function import BOTH, alias_of, native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser, number_as_tensor
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta, broadcast
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import BACKENDS
from readtorch.c10.overflows import check_fits
from readtorch.c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES, uint8
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, type_name, wrap, wrap_result

from .exact_out import exact_out, found_dtype
from .tensor_iterator import (
    F4,
    F8,
    NUMBERS,
    cast,
    computing,
    elementwise,
    in_order,
    laid_out,
    result_type,
    scalar_tensor,
)
from .vectorized import FROM_SIZE, are_flat, loop

# ------------------------------------------------------------------------------- questions about each element


def predicate(name, array_function, function, variants=BOTH, out=False, **options):
    """Declare `name(Tensor self) -> Tensor` of bools. function, options: see `elementwise`."""
    bools_alone = exact_out(lambda *_: f"{name} does not support non-boolean outputs.")
    operator = native_function(f"{name}(Tensor self) -> Tensor", variants, out=out and bools_alone, direct=True)
    elementwise(operator, function, result=scalar_type.bool, **options)
    operator.kernel(lambda self: wrap_result(array_function(self._array)))
    return operator


def infinity(name, value):
    """Declare a question for one of the two infinities."""

    def check(self):
        if self._array.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")

    operator = predicate(
        name,
        None,
        lambda dtype: f.is_infinite if dtype.is_floating_point else f.never,
        out=True,
        by_dtype=True,
        constants=lambda dtype: (value,) if dtype.is_floating_point else (),
        check=check,
    )

    @operator.kernel
    def is_infinite_cpu(self):
        check(self)
        return wrap_result(self._array == value)

    return operator


def is_real_array(x):
    return np.imag(x) == 0 if x.dtype.kind == "c" else laid_out(np.ones(x.shape, bool), x)


isnan = predicate("isnan", np.isnan, f.isnan)
isinf = predicate("isinf", np.isinf, f.isinf)
isfinite = predicate("isfinite", np.isfinite, f.isfinite)
isposinf = infinity("isposinf", np.inf)
isneginf = infinity("isneginf", -np.inf)
isreal = predicate(
    "isreal", is_real_array, lambda dtype: f.on_real_axis if dtype.is_complex else f.always, by_dtype=True
)


def check_signbit(self):
    if self._array.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")


def sign_of(dtype):
    """What looks at the sign of an element of this dtype."""
    if dtype.is_floating_point:
        return f.signbit
    return f.never if dtype is scalar_type.bool else f.is_negative


signbit = predicate("signbit", None, sign_of, out=True, by_dtype=True, check=check_signbit)


@signbit.kernel
def signbit_cpu(self):
    check_signbit(self)
    x = self._array
    return wrap_result(np.signbit(x) if x.dtype.kind in "fV" else x < 0)


# ------------------------------------------------------------------------------------------------------ logic

logical_not = native_function("logical_not(Tensor self) -> Tensor", BOTH, inplace=True, out=True, direct=True)
elementwise(logical_not, f.is_zero, result=scalar_type.bool)


@logical_not.kernel
def logical_not_cpu(self):
    return wrap_result(np.logical_not(self._array))


# --------------------------------------------------------------------------------------------- equal or close

equal = native_function("equal(Tensor self, Tensor other) -> bool", BOTH)
isclose = native_function(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor", BOTH
)
allclose = native_function(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool", BOTH
)
is_nonzero = native_function("is_nonzero(Tensor self) -> bool", BOTH)


@equal.kernel
def equal_cpu(self, other):
    x, y = self._array, other._array
    return x.shape == y.shape and bool((x == y).all())


def check_close(self, other, rtol, atol, equal_nan):
    if self._array.dtype != other._array.dtype:
        raise RuntimeError(f"{SCALAR_TYPE_NAMES[dtype_of(self)]} did not match {SCALAR_TYPE_NAMES[dtype_of(other)]}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")


def wide_type(self, other):
    """What differences of elements are computed in."""
    dtype = dtype_of(self)
    return dtype if dtype.category >= FLOAT else scalar_type.float64


elementwise(
    isclose,
    f.is_close,
    wide_type,
    scalar_type.bool,
    scalars=lambda rtol, atol, equal_nan: (rtol, atol, equal_nan),
    check=check_close,
)


@isclose.kernel
def isclose_cpu(self, other, rtol, atol, equal_nan):
    check_close(self, other, rtol, atol, equal_nan)
    return computing(partial(close_array, rtol, atol, equal_nan), self, other, result=scalar_type.bool)


def close_array(rtol, atol, equal_nan, x, y):
    close = x == y
    if equal_nan and x.dtype.kind in "fc":
        close = close | (np.isnan(x) & np.isnan(y))
    if rtol == 0 and atol == 0:
        return close
    if x.dtype.kind in "biu":
        x, y = x.astype(np.float64), y.astype(np.float64)
    difference = np.abs(x - y)
    return close | (np.isfinite(difference) & (difference <= atol + np.abs(rtol * y)))


@allclose.kernel
@any_device
def allclose_any(self, other, rtol, atol, equal_nan):
    return bool(at.all(isclose.call(self, other, rtol, atol, equal_nan)))


is_nonzero.compose(bool)

# -------------------------------------------------------------------------------------- what programs assert

_is_all_true = native_function("_is_all_true(Tensor self) -> Tensor", BOTH)
_is_any_true = native_function("_is_any_true(Tensor self) -> Tensor", BOTH)
_assert_async = native_function("_assert_async(Tensor self) -> ()")
_assert_async_message = native_function("_assert_async.msg(Tensor self, str assert_msg) -> ()")


def check_bool(self, name):
    if self._array.dtype.kind != "b":  # in PyTorch: an internal assertion
        raise RuntimeError(f"{name}(): expected a bool tensor, but got {SCALAR_TYPE_NAMES[dtype_of(self)]}")


@_is_all_true.compose
def is_all_true(self):
    check_bool(self, "_is_all_true")
    return self.all()


@_is_any_true.compose
def is_any_true(self):
    check_bool(self, "_is_any_true")
    return self.any()


@_assert_async.compose
def assert_async(self):
    """Raises RuntimeError if the only element is 0. In PyTorch: on a GPU without waiting for it."""
    assert_async_message(self, "Expected Tensor with single nonzero value, but got zero")


@_assert_async_message.compose
def assert_async_message(self, assert_msg):
    if not is_nonzero.call(self):
        raise RuntimeError(assert_msg)


# ------------------------------------------------------------------------------------------------------- isin

isin = native_function(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor",
    out=exact_out(),
)
isin_number = native_function(
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor",
    out=exact_out(),
)
isin_of_number = native_function(
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor",
    out=exact_out(),
)


@isin.meta
def isin_meta(elements, test_elements, assume_unique, invert):
    return TensorMeta(elements._array.shape, scalar_type.bool)


@isin.kernel
def isin_cpu(elements, test_elements, assume_unique, invert):
    common = result_type(elements, test_elements).numpy
    x, candidates = cast(elements._array, common), cast(test_elements._array, common)
    return wrap_result(np.isin(x, candidates, assume_unique=assume_unique, invert=invert))


@isin_number.kernel
@any_device
def isin_number_any(elements, test_element, assume_unique, invert):
    kernel = isin.table[elements._keys & BACKENDS]
    return kernel(elements, scalar_tensor(test_element), assume_unique, invert)


@isin_of_number.kernel
@any_device
def isin_of_number_any(element, test_elements, assume_unique, invert):
    kernel = isin.table[test_elements._keys & BACKENDS]
    return kernel(scalar_tensor(element), test_elements, assume_unique, invert)


# ------------------------------------------------------------------------------------------------------ clamp

clamp_tensor = native_function(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", BOTH, inplace=True, out=True
)
clamp = native_function(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", BOTH, inplace=True, out=exact_out(found_dtype)
)
clamp_min_tensor = native_function("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", BOTH, inplace=True, out=True)
clamp_min = native_function(
    "clamp_min(Tensor self, Scalar min) -> Tensor", BOTH, inplace=True, out=exact_out(found_dtype)
)
clamp_max_tensor = native_function("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", BOTH, inplace=True, out=True)
clamp_max = native_function(
    "clamp_max(Tensor self, Scalar max) -> Tensor", BOTH, inplace=True, out=exact_out(found_dtype)
)


@clamp.meta
@clamp_tensor.meta
def clamp_meta(self, min, max):
    bounds = [b if isinstance(b, TensorImpl) else scalar_tensor(b) for b in (min, max) if b is not None]
    if not bounds:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    common = result_type(self, *bounds)
    if common.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    return broadcast(common, self, *bounds)


@clamp_min.meta
@clamp_min_tensor.meta
def clamp_min_meta(self, min):
    return clamp_meta(self, min, None)


@clamp_max.meta
@clamp_max_tensor.meta
def clamp_max_meta(self, max):
    return clamp_meta(self, None, max)


def check_bounds(self, low, high):
    """Raises RuntimeError if the result's dtype does not have a bound."""
    for bound in (low, high):
        if bound is not None and not isinstance(bound, TensorImpl):
            check_fits(bound, result_type(self, scalar_tensor(bound)))


def between(self, low, high):
    """min(max(self, low), high); a bound may be None. nan stays, and a nan bound gives nan."""
    x = self._array
    plain = number_or_none(low) and number_or_none(high) and not (low is None and high is None)
    if not (plain and -100 <= (low or 0) <= 100 and -100 <= (high or 0) <= 100):  # every dtype but bool has these
        check_bounds(self, low, high)
    if plain and (x.dtype is F4 or x.dtype is F8):
        if x.size >= FROM_SIZE and are_flat(x) and not (is_nan(low) or is_nan(high)):
            return wrap(
                loop(f.clamp, x, numbers=(-math.inf if low is None else low, math.inf if high is None else high))
            )
        value = x if low is None else np.maximum(x, x.dtype.type(low))
        return wrap_result(value if high is None else np.minimum(value, x.dtype.type(high)))
    common = clamp_meta(self, low, high).dtype
    operands = [b if isinstance(b, TensorImpl) else scalar_tensor(b) for b in (low, high) if b is not None]
    steps = [step for step, bound in ((np.maximum, low), (np.minimum, high)) if bound is not None]

    def clamped(x, *bounds):
        for step, bound in zip(steps, bounds):
            x = step(x, bound)
        return x

    return computing(clamped, self, *operands, common=common)


clamp.kernel(between)
clamp_tensor.kernel(between)
for _operator in (clamp_min, clamp_min_tensor):
    _operator.kernel(lambda self, min: between(self, min, None))
for _operator in (clamp_max, clamp_max_tensor):
    _operator.kernel(lambda self, max: between(self, None, max))


def is_nan(bound):
    return bound is not None and bound != bound


def number_or_none(value):
    kind = type(value)
    return kind is float or kind is int or value is None


@python_binding("clamp")
def clamp_binding(input, *args, **kwargs):
    """`input` kept between `min` and `max`, which are numbers, tensors or None. In PyTorch: `torch.clamp`."""
    if len(args) == 2 and not kwargs and isinstance(input, TensorImpl) and all(map(number_or_none, args)):
        return clamp.call(input, *args)
    return parse_clamp((input, *args), kwargs)


parse_clamp = make_parser(packets["torch", "clamp"], is_method=False)
alias_of("clip", "clamp")


def inside(self, low, high):
    """Where self lies between the bounds, the borders included: there the gradient passes."""
    if low is None:
        return self <= high
    return self >= low if high is None else (self >= low).logical_and(self <= high)


def passing(mask, grad):
    return at.where(mask, grad, zero_for(grad))


def zero_for(grad):
    """What a gradient is where nothing passes."""
    return at.scalar_tensor(0.0, dtype=grad.dtype, layout=grad.layout, device=grad.device)


@clamp_tensor.backward
class ClampBackward0:
    def self(grad, self, min, max):
        zero = zero_for(grad)
        return at.where(inside(self, min, max), grad, zero)

    def min__max(grad, self, min, max, grad_input_mask):
        to_min, to_max = grad_input_mask
        below_min = None
        if to_min:
            below_min = passing(self < min if max is None else (self < min) & (min < max), grad)
        above_max = None
        if to_max:
            above_max = passing(self > max if min is None else (self > max) | (max <= min), grad)
        return below_min, above_max

    def result(self_p, self_t, min_p, min_t, max_p, max_t):
        """Where the limits have crossed, the upper one holds."""
        if max_p is None:
            return at.where(self_p > min_p, self_t, min_t)
        if min_p is None:
            return at.where(self_p < max_p, self_t, max_t)
        return at.where(min_p > max_p, max_t, at.where(self_p < min_p, min_t, at.where(self_p > max_p, max_t, self_t)))


@clamp.backward
class ClampBackward1:
    def self(grad, self, min, max):
        zero = zero_for(grad)
        return at.where(inside(self, min, max), grad, zero)

    result = "auto_element_wise"


@clamp_min.backward
class ClampMinBackward0:
    def self(grad, self, min):
        return passing(self >= min, grad)

    result = "auto_element_wise"


@clamp_min_tensor.backward
class ClampMinBackward1:
    def self(grad, self, min):
        return passing(self >= min, grad)

    def min(grad, self, min):
        return passing(self < min, grad)

    def result(self_p, self_t, min_p, min_t):
        return at.where(self_p >= min_p, self_t, min_t)


@clamp_max.backward
class ClampMaxBackward0:
    def self(grad, self, max):
        return passing(self <= max, grad)

    result = "auto_element_wise"


@clamp_max_tensor.backward
class ClampMaxBackward1:
    def self(grad, self, max):
        return passing(self <= max, grad)

    def max(grad, self, max):
        return passing(self > max, grad)

    def result(self_p, self_t, max_p, max_t):
        return at.where(self_p <= max_p, self_t, max_t)


# ------------------------------------------------------------------------------------------------------ where


def expected_out_type(out, result, *arguments):
    return f"Expected out type to be {type_name(result)} but got {type_name(out)}"


where = native_function(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    "function",
    out=exact_out(expected_out_type),
    numbers_as_tensors=True,
)
where_nonzero = native_function("where(Tensor condition) -> Tensor[]", "function")


@where.meta
def where_meta(condition, self, other):
    if condition._array.dtype != bool and dtype_of(condition) is not uint8:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {type_name(condition)}"
        )
    return broadcast(result_type(self, other), condition, self, other)


@where.kernel
def where_cpu(condition, self, other):
    """`self` where the condition holds, `other` elsewhere; all three are broadcast."""
    mask, x, y = condition._array, self._array, other._array
    if mask.dtype != bool:
        where_meta(condition, self, other)
        mask = mask.astype(bool)
    common = result_type(self, other).numpy
    try:
        value = np.where(mask, np.asarray(x, common), np.asarray(y, common))
    except ValueError:
        raise broadcast_error(mask.shape, x.shape, y.shape) from None
    if value.ndim < 2 or value.flags.c_contiguous and mask.flags.c_contiguous and mask.shape == value.shape:
        return wrap(value)
    return wrap(in_order(value, mask, x, y))


@where.backward
class WhereBackward0:
    def self(grad, condition):
        return at.where(condition, grad, at.scalar_tensor(0, dtype=grad.dtype, layout=grad.layout, device=grad.device))

    def other(grad, condition):
        return at.where(condition, at.scalar_tensor(0, dtype=grad.dtype, layout=grad.layout, device=grad.device), grad)

    def result(condition, self_t, other_t):
        return at.where(condition, self_t, other_t)


@python_binding("where", "method", module="Tensor")
def where_method(self, condition, other):
    """`where(condition, self, other)`: as a method it belongs to the tensor that is kept."""
    return at.where(condition, self, other)


@python_binding("where", "function")
def where_function(condition, input=None, other=None, *, out=None):
    """`input` where the condition holds, `other` elsewhere; with a condition alone, where it holds."""
    if input is None and other is None:
        return where_nonzero.call(condition)
    input = input if hasattr(input, "_keys") else as_operand(input, "input", other)
    other = other if hasattr(other, "_keys") else as_operand(other, "other", input)
    if out is not None:
        return where.out.call(condition, input, other, out)
    return where.call(condition, input, other)


def as_operand(number, name, beside):
    """`number` as a tensor. Raises RuntimeError if the dtype of the result with the other operand cannot hold it."""
    if not isinstance(number, NUMBERS):
        raise TypeError(f"where(): argument '{name}' must be Tensor, not {type(number).__name__}")
    if not -100 <= number.real <= 100:  # every dtype has these
        other = number_as_tensor(beside) if isinstance(beside, NUMBERS) else beside
        common = result_type(number_as_tensor(number), other)
        if common.itemsize > 2 or common.category < FLOAT:  # 16-bit floats round it to infinity
            check_fits(number, common)
    return number_as_tensor(number)


@where_nonzero.compose
def where_nonzero_composite(condition):
    return at.nonzero(condition, as_tuple=True)
