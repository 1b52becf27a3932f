"""clamp: values kept between two bounds, which are numbers or tensors.

In PyTorch: `aten/src/ATen/native/TensorCompare.cpp` and `cpu/TensorCompareKernel.cpp`.
"""
import math

import numpy as np

from ...c10.overflows import check_fits
from ...c10.tensor_impl import TensorImpl, wrap, wrap_result
from ..functions import at
from ..native_function import alias_of, native_function, packets, python_face
from ..python_arg_parser import make_parser
from .exact_out import exact_out, found_dtype
from .tensor_iterator import F4, F8, computing, result_type, scalar_tensor
from .vectorized import FROM_SIZE, are_flat, loop

BOTH = "function, method"

clamp_tensor = native_function("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                               BOTH, inplace=True,
                               out=True)
clamp = native_function("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", BOTH,
                        inplace=True, out=True)
clamp_min_tensor = native_function("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", BOTH, inplace=True,
                                   out=True)
clamp_min = native_function("clamp_min(Tensor self, Scalar min) -> Tensor", BOTH, inplace=True, out=True)
clamp_max_tensor = native_function("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", BOTH, inplace=True,
                                   out=True)
clamp_max = native_function("clamp_max(Tensor self, Scalar max) -> Tensor", BOTH, inplace=True, out=True)


for _operator in (clamp, clamp_min, clamp_max):
    exact_out(_operator, found_dtype)


def check_bounds(self, low, high):
    """Raises RuntimeError if the result's dtype does not have a bound."""
    for bound in (low, high):
        if bound is not None and not isinstance(bound, TensorImpl):
            check_fits(bound, result_type(self, scalar_tensor(bound)))


def between(self, low, high, name="clamp"):
    """min(max(self, low), high); a bound may be None. nan stays, and a nan bound gives nan."""
    x = self._array
    plain = number_or_none(low) and number_or_none(high) and not (low is None and high is None)
    if not (plain and -100 <= (low or 0) <= 100 and -100 <= (high or 0) <= 100):  # every dtype but bool has these
        check_bounds(self, low, high)
    if plain and (x.dtype is F4 or x.dtype is F8):
        if x.size >= FROM_SIZE and are_flat(x) and not (is_nan(low) or is_nan(high)):
            return wrap(loop("clamp", x, numbers=(-math.inf if low is None else low, math.inf if high is None else high)))
        value = x if low is None else np.maximum(x, x.dtype.type(low))
        return wrap_result(value if high is None else np.minimum(value, x.dtype.type(high)))
    operands = [scalar_tensor(b) if not isinstance(b, TensorImpl) else b for b in (low, high)
                if b is not None]
    if not operands:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    common = result_type(self, *operands)
    if common.is_complex or self._array.dtype.kind == "c":
        raise NotImplementedError(f"{name} is not supported for complex types")
    steps = [step for step, bound in ((np.maximum, low), (np.minimum, high)) if bound is not None]

    def clamped(x, *bounds):
        for step, bound in zip(steps, bounds):
            x = step(x, bound)
        return x
    return computing(clamped, self, *operands, common=common)


clamp.kernel(between)
clamp_tensor.kernel(between)
for _operator in (clamp_min, clamp_min_tensor):
    _operator.kernel(lambda self, min: between(self, min, None, "clamp"))
for _operator in (clamp_max, clamp_max_tensor):
    _operator.kernel(lambda self, max: between(self, None, max, "clamp"))


def is_nan(bound):
    return bound is not None and bound != bound


def number_or_none(value):
    kind = type(value)
    return kind is float or kind is int or value is None


@python_face("clamp")
def clamp_face(input, *args, **kwargs):
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
    return self >= low if high is None else (self >= low) & (self <= high)


def passing(mask, grad):
    return at.where(mask, grad, at.zeros((), dtype=grad.dtype, device=grad.device))


@clamp_tensor.backward
class ClampBackward0:
    def self(grad, self, min, max):
        return passing(inside(self, min, max), grad)

    def min__max(grad, self, min, max, grad_input_mask):
        to_min, to_max = grad_input_mask
        below_min = None
        if to_min:
            below_min = passing(self < min if max is None else (self < min) & (min < max), grad)
        above_max = None
        if to_max:
            above_max = passing(self > max if min is None else (self > max) | (max <= min), grad)
        return below_min, above_max


@clamp.backward
class ClampBackward1:
    def self(grad, self, min, max):
        return passing(inside(self, min, max), grad)


@clamp_min.backward
class ClampMinBackward0:
    def self(grad, self, min):
        return passing(self >= min, grad)


@clamp_min_tensor.backward
class ClampMinBackward1:
    def self(grad, self, min):
        return passing(self >= min, grad)

    def min(grad, self, min):
        return passing(self < min, grad)


@clamp_max.backward
class ClampMaxBackward0:
    def self(grad, self, max):
        return passing(self <= max, grad)


@clamp_max_tensor.backward
class ClampMaxBackward1:
    def self(grad, self, max):
        return passing(self <= max, grad)

    def max(grad, self, max):
        return passing(self > max, grad)
