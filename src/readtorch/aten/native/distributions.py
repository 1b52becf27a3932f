"""Filling tensors with random numbers: uniform_, normal_, random_, bernoulli_ and the other distributions, in place.

In PyTorch: `aten/src/ATen/native/DistributionTemplates.h` (checks) and `Distributions.cpp`. The numbers come from
`cpu/distribution_kernels.py`. Explained in the chapter "Tensor and Storage".
"""
import math
import warnings

import ml_dtypes
import numpy as np

from ...c10 import scalar_type
from ...c10.cpu_generator import default_cpu_generator
from ...c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of
from ..functions import at
from ..native_function import native_function
from .cpu import distribution_kernels as kernels

INT64_MIN, INT64_MAX = -2**63, 2**63 - 1
UNSIGNED = frozenset({scalar_type.uint16, scalar_type.uint32, scalar_type.uint64})
# The types that most kernels are compiled for.
DRAWN_FLOATS = frozenset({scalar_type.float16, scalar_type.bfloat16, scalar_type.float32, scalar_type.float64})
DRAWN_INTEGERS = frozenset({scalar_type.uint8, scalar_type.int8, scalar_type.int16, scalar_type.int32, scalar_type.int64})
DRAWN = DRAWN_FLOATS | DRAWN_INTEGERS | {scalar_type.bool}

# What C++ calls the types: some messages print these.
CPP_NAMES = {
    scalar_type.uint8: "unsigned char", scalar_type.int8: "signed char", scalar_type.int16: "short int",
    scalar_type.int32: "int", scalar_type.int64: "long int", scalar_type.float16: "c10::Half",
    scalar_type.float32: "float", scalar_type.float64: "double", scalar_type.complex64: "c10::complex<float>",
    scalar_type.complex128: "c10::complex<double>", scalar_type.bool: "bool",
    scalar_type.bfloat16: "c10::BFloat16", scalar_type.uint16: "short unsigned int",
    scalar_type.uint32: "unsigned int", scalar_type.uint64: "long unsigned int"}


# ---------------------------------------------------------------------------------------------------- checks

def generator_of(generator):
    """The engine behind a `Generator` argument; None stands for the default one."""
    if generator is None:
        return default_cpu_generator
    if generator.device.type != "cpu":
        raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{generator.device.type}'")
    return generator._impl


def check_kernel_type(self, kernel, allowed):
    """NotImplementedError, as PyTorch words it, unless `kernel` exists for the tensor's type."""
    dtype = dtype_of(self)
    if dtype not in allowed:
        raise NotImplementedError(f'"{kernel}" not implemented for \'{SCALAR_TYPE_NAMES[dtype]}\'')


def check_no_internal_overlap(array):
    """An expanded tensor shows one number in many places; it cannot be filled with different ones."""
    if not array.flags.c_contiguous and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape)):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single "
                           "memory location. Please clone() the tensor before performing the operation.")


def real_parts(array):
    """A complex array as a real one with a last dimension of 2; any other array as it is."""
    if array.dtype.kind != "c":
        return array
    part = array.real
    return np.lib.stride_tricks.as_strided(part, part.shape + (2,), part.strides + (part.itemsize,))


def fill(self, kernel, *parameters):
    """Run a kernel of `distribution_kernels` on the tensor's memory and count the write."""
    array = self._array
    if array.size:
        check_no_internal_overlap(array)
        kernel(real_parts(array), *parameters)
    self._counter[0] += 1
    return self


def zero_gradient(name, *inputs):
    """Formulas of an operator whose result no longer depends on its inputs: their gradients are zeros."""
    def zeros(grad):
        return at.zeros_like(grad)
    return type(name, (), {given: zeros for given in inputs or ("self",)})


# -------------------------------------------------------------------------------------------------- uniform_

uniform_ = native_function(
    "uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)", "method")
uniform_.backward(zero_gradient("UniformBackward0"))


@uniform_.kernel
def uniform_cpu_(self, low, high, generator):
    dtype = dtype_of(self)
    if not (dtype.is_complex and self._array.size == 0):
        check_uniform_bounds(dtype.to_real(), low, high)
    return fill(self, kernels.uniform_, low, high, generator_of(generator))


def check_uniform_bounds(dtype, low, high):
    if dtype not in DRAWN_FLOATS:
        raise NotImplementedError(f'"check_uniform_bounds" not implemented for \'{SCALAR_TYPE_NAMES[dtype]}\'')
    limit = float(ml_dtypes.finfo(dtype.numpy).max)
    for name, value in (("from", low), ("to", high)):
        if not -limit <= value <= limit:
            raise RuntimeError(f"{name} is out of bounds for {CPP_NAMES[dtype]}")
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if not high - low <= limit:
        raise RuntimeError(f"uniform_ expects to-from <= std::numeric_limits<{SCALAR_TYPE_NAMES[dtype]}>::max(), but "
                           f"found to={high:g} and from={low:g} which result in to-from to exceed the limit")


# --------------------------------------------------------------------------------------------------- normal_

normal_ = native_function(
    "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)", "method")
normal_.backward(zero_gradient("NormalBackward0"))


def check_std(std):
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@normal_.kernel
def normal_cpu_(self, mean, std, generator):
    check_std(std)
    dtype = dtype_of(self)
    if self._array.size and not dtype.is_complex:
        check_kernel_type(self, "normal_kernel_cpu", DRAWN_FLOATS)
    spread = std / math.sqrt(2) if dtype.is_complex else std    # the two parts share the variance
    return fill(self, kernels.normal_, mean, spread, generator_of(generator))


log_normal_ = native_function(
    "log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)", "method")
log_normal_.backward(zero_gradient("LogNormalBackward0"))


@log_normal_.kernel
def log_normal_cpu_(self, mean, std, generator):
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if self._array.size:
        check_kernel_type(self, "log_normal_cpu", DRAWN_FLOATS)
    return fill(self, kernels.log_normal_, mean, std, generator_of(generator))


# ------------------------------------------------------------------------- exponential_, geometric_, cauchy_

exponential_ = native_function(
    "exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)", "method")
exponential_.backward(zero_gradient("ExponentialBackward0"))


@exponential_.kernel
def exponential_cpu_(self, lambd, generator):
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    dtype = dtype_of(self)
    if self._array.size and not dtype.is_floating_point:
        raise RuntimeError("Exponential distribution is a continuous probability distribution. dtype must be a floating "
                           f"point but you specified {SCALAR_TYPE_NAMES[dtype]}")
    return fill(self, kernels.exponential_, lambd, generator_of(generator))


geometric_ = native_function(
    "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)", "method")
geometric_.backward(zero_gradient("GeometricBackward0"))


@geometric_.kernel
def geometric_cpu_(self, p, generator):
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self._array.size:
        check_kernel_type(self, "geometric_cpu", DRAWN - {scalar_type.bool})
    return fill(self, kernels.geometric_, p, generator_of(generator))


cauchy_ = native_function(
    "cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)", "method")
cauchy_.backward(zero_gradient("CauchyBackward0"))


@cauchy_.kernel
def cauchy_cpu_(self, median, sigma, generator):
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    dtype = dtype_of(self)
    if not dtype.is_floating_point:
        raise RuntimeError("Cauchy distribution is a continuous probability distribution. dtype must be a floating point "
                           f"but you specified {CPP_NAMES[dtype]}")
    return fill(self, kernels.cauchy_, median, sigma, generator_of(generator))


# --------------------------------------------------------------------------------------------------- random_

random_from = native_function(
    "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)", "method")
random_to = native_function("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)", "method")
random_ = native_function("random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)", "method")
random_from.backward(zero_gradient("RandomBackward0"))
random_to.backward(zero_gradient("RandomBackward1"))
random_.backward(zero_gradient("RandomBackward2"))


@random_.kernel
def random_cpu_(self, generator):
    if self._array.size:
        check_kernel_type(self, "random_kernel_cpu", DRAWN)
    return fill(self, kernels.random_, generator_of(generator))


@random_to.kernel
def random_to_cpu_(self, to, generator):
    return random_from_cpu_(self, 0, to, generator)


@random_from.kernel
def random_from_cpu_(self, low, to, generator):
    """Whole numbers of [low, to); without `to`, up to the type's largest."""
    check_no_internal_overlap(self._array)
    dtype = dtype_of(self)
    if to is not None:
        low, last = closed_range(dtype, low, to)
    elif low != INT64_MIN:
        low, last = open_range(dtype, low)
    else:
        if self._array.size:
            check_kernel_type(self, "random_full_64_bits_range_kernel_cpu", DRAWN - {scalar_type.float16, scalar_type.bool})
            if dtype not in FULL_RANGE:
                raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
        return fill(self, kernels.random_from_to_, 0, 0, generator_of(generator))
    check_from_to_in_range(dtype, low, last)
    return fill(self, kernels.random_from_to_, last - low + 1 & (1 << 64) - 1, low, generator_of(generator))


FULL_RANGE = frozenset({scalar_type.int64, scalar_type.float64, scalar_type.float32, scalar_type.bfloat16})

# Note [Whole numbers in floating types]
# Drawn numbers are rounded to the tensor's type, and rounding may carry the largest ones out of [from, to): in
# float16, 65503 becomes 65504. So for floating types the ends are first moved inwards to numbers that the type has.


def closed_range(dtype, low, to):
    """The first and the last number to draw for [low, to)."""
    if not low < to:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={to}")
    if dtype in DRAWN_FLOATS:
        low, to = first_representable(dtype, low), end_representable(dtype, to)
        if not low < to:
            raise RuntimeError("random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                               f"from={low} >= to={to}")
    return low, to - 1


def open_range(dtype, low):
    """The first and the last number to draw from `low` on."""
    if dtype in DRAWN_FLOATS:
        last = 2 ** digits_of(dtype)
        low = first_representable(dtype, low)
        if not low < last:
            raise RuntimeError("random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to "
                               f"dtype, but got from={low} > to_inc={last}")
        return low, last
    if dtype.category >= FLOAT:
        raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    return low, 1 if dtype is scalar_type.bool else int(np.iinfo(dtype.numpy).max)


def digits_of(dtype):
    """How many binary digits a floating type has: all whole numbers up to 2**digits are among its numbers."""
    return ml_dtypes.finfo(dtype.numpy).nmant + 1


def rounded(dtype, number):
    """The whole number that `number` becomes in `dtype`; outside of its range, what x86 makes of infinity."""
    wide = np.int64(number).astype(scalar_type.op_math_type(dtype).numpy)
    with np.errstate(over="ignore"):
        value = float(wide.astype(dtype.numpy))
    return int(value) if abs(value) < 2.0**63 else INT64_MIN


def first_representable(dtype, low):
    above = rounded(dtype, low + 1)
    if above < low:
        return above + (1 << max((abs(low + 1)).bit_length() - digits_of(dtype), 0))
    return low


def end_representable(dtype, to):
    below = rounded(dtype, to - 1)
    if below >= to:
        return below - (1 << max((abs(to - 1)).bit_length() - digits_of(dtype), 0))
    return to


def check_from_to_in_range(dtype, low, last):
    """RuntimeError if the ends are not numbers of `dtype`; a warning if some numbers between them are not."""
    ends = (("from", low), ("to - 1", last))
    if dtype.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if dtype.is_floating_point:
        smallest, largest = -float(ml_dtypes.finfo(dtype.numpy).max), float(ml_dtypes.finfo(dtype.numpy).max)
    elif dtype is scalar_type.bool:
        smallest, largest = 0, 1
    else:
        smallest, largest = np.iinfo(dtype.numpy).min, min(int(np.iinfo(dtype.numpy).max), INT64_MAX)
    for name, value in ends:
        if not smallest <= value <= largest:
            raise RuntimeError(f"{name} is out of bounds for {CPP_NAMES[dtype]}")
    if dtype.is_floating_point:
        for name, value in ends:
            warn_of_gaps(dtype, name, value)


def warn_of_gaps(dtype, name, value):
    digits = digits_of(dtype)
    if abs(value) > 1 << digits:
        warnings.warn(f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                      f"{CPP_NAMES[dtype]} can support discrete uniform distribution only within this range. This warning "
                      "will become an error in version 1.7 release, please fix the code in advance", stacklevel=5)


# ------------------------------------------------------------------------------------------------ bernoulli_

bernoulli_tensor_ = native_function(
    "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)", "method")
bernoulli_float_ = native_function(
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)", "method")
bernoulli_float_.backward(zero_gradient("BernoulliBackward2"))


@bernoulli_float_.kernel
def bernoulli_float_cpu_(self, p, generator):
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if self._array.size:
        check_no_internal_overlap(self._array)
        check_kernel_type(self, "bernoulli_scalar_cpu_", DRAWN)
    return fill(self, kernels.bernoulli_, p, generator_of(generator))


@bernoulli_tensor_.kernel
def bernoulli_tensor_cpu_(self, p, generator):
    if self._array.size:
        check_no_internal_overlap(self._array)
        check_kernel_type(self, "bernoulli_tensor_cpu_self_", DRAWN)
        p = at.expand(p, self._array.shape)
        check_kernel_type(p, "bernoulli_tensor_cpu_p_", DRAWN_FLOATS)
        check_probabilities(p._array)
    return fill(self, kernels.bernoulli_, p._array, generator_of(generator))


def check_probabilities(p):
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be "
                           "improved?  If so, please report an enhancement request to PyTorch.)")


@bernoulli_tensor_.backward
class BernoulliBackward1:
    def self(grad):
        return at.zeros_like(grad)

    def p(p):
        return at.zeros_like(p)
