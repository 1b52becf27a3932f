"""Filling tensors with random numbers: uniform_, normal_, random_, bernoulli_ and the other distributions, in
place.

In PyTorch: `aten/src/ATen/native/DistributionTemplates.h` (checks) and `Distributions.cpp`. The numbers come
from `cpu/distribution_kernels.py`. Explained in the chapter "Layers, functional, init".
"""
import math

import numpy as np

from ...c10 import scalar_type
from ...c10.cpu_generator import of_thread
from ...c10.cuda.cuda_generator import CUDAGeneratorImpl
from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of
from ..functions import at
from ..native_function import native_function, packets, python_face
from ..python_arg_parser import make_parser
from .cpu import distribution_kernels as kernels
from .integer_ranges import (CPP_NAMES, DRAWN, DRAWN_FLOATS, INT64_MIN, LARGEST, check_from_to_in_range,
                             closed_range, open_range)


# ---------------------------------------------------------------------------------------------------- checks

def generator_of(generator):
    """The engine behind a `Generator` argument; None stands for the default one."""
    if generator is None:
        return of_thread.generator
    if isinstance(generator, CUDAGeneratorImpl):
        return generator
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
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to "
                           "a single memory location. Please clone() the tensor before performing the "
                           "operation.")


def real_parts(array):
    """A complex array as a real one with a last dimension of 2; any other array as it is."""
    if array.dtype.kind != "c":
        return array
    part = array.real
    return np.lib.stride_tricks.as_strided(part, part.shape + (2,), part.strides + (part.itemsize,))


def run(kernel, *parameters):
    """Call a kernel of `distribution_kernels`, or its twin that draws from a device's engine, the last parameter."""
    if isinstance(parameters[-1], CUDAGeneratorImpl):
        from .cpu import philox_kernels
        kernel = getattr(philox_kernels, kernel.__name__)
    return kernel(*parameters)


def fill(self, kernel, *parameters):
    """Run a kernel of `distribution_kernels` on the tensor's memory and count the write."""
    array = self._array
    if array.size:
        check_no_internal_overlap(array)
        run(kernel, real_parts(array), *parameters)
    self._counter[0] += 1
    return self


def filler(name, arguments=""):
    """Declare an in-place operator that takes, beside `arguments`, the generator to draw from."""
    separator = ", " if arguments else ""
    text = f"{name}(Tensor(a!) self{separator}{arguments}, *, Generator? generator=None) -> Tensor(a!)"
    return native_function(text, "method")


def zero_gradient(name, *inputs):
    """Formulas of an operator whose result no longer depends on its inputs: their gradients are zeros."""
    def zeros(grad):
        return at.zeros_like(grad)
    return type(name, (), {given: zeros for given in inputs or ("self",)})


def quick_face(operator):
    """A Python face for an operator of plain numbers; only unusual calls go through the argument parser."""
    name = operator.schema.name
    parse = make_parser(packets["torch", name], True)
    defaults = tuple(a.default if a.has_default else None for a in operator.schema.arguments[1:-1])
    required = sum(not a.has_default for a in operator.schema.arguments[1:-1])
    call = operator.call

    def face(self, *numbers, generator=None, **named):
        if named or not required <= len(numbers) <= len(defaults) or not all(
                [type(number) in (int, float) for number in numbers]):
            return parse((self, *numbers), named if generator is None else {"generator": generator, **named})
        return call(self, *numbers, *defaults[len(numbers):], generator)
    face.__name__ = face.__qualname__ = name
    python_face(name, "method")(face)


# -------------------------------------------------------------------------------------------------- uniform_

uniform_ = filler("uniform_", "float from=0, float to=1")
uniform_.backward(zero_gradient("UniformBackward0"))


@uniform_.kernel
def uniform_cpu_(self, low, high, generator):
    dtype = dtype_of(self)
    if not dtype.is_complex:
        check_uniform_bounds(dtype, low, high)
    elif self._array.size:
        check_uniform_bounds(dtype.to_real(), low, high)
    return fill(self, kernels.uniform_, low, high, generator_of(generator))


def check_uniform_bounds(dtype, low, high):
    limit = LARGEST.get(dtype)
    if limit is None:
        name = SCALAR_TYPE_NAMES[dtype]
        raise NotImplementedError(f"\"check_uniform_bounds\" not implemented for '{name}'")
    for name, value in (("from", low), ("to", high)):
        if not -limit <= value <= limit:
            raise RuntimeError(f"{name} is out of bounds for {CPP_NAMES[dtype]}")
    if not low <= high:
        raise RuntimeError("uniform_ expects to return a [from, to) range, but found "
                           f"from={low:g} > to={high:g}")
    if not high - low <= limit:
        name = SCALAR_TYPE_NAMES[dtype]
        raise RuntimeError(f"uniform_ expects to-from <= std::numeric_limits<{name}>::max(), but found "
                           f"to={high:g} and from={low:g} which result in to-from to exceed the limit")


# --------------------------------------------------------------------------------------------------- normal_

normal_ = filler("normal_", "float mean=0, float std=1")
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


log_normal_ = filler("log_normal_", "float mean=1, float std=2")
log_normal_.backward(zero_gradient("LogNormalBackward0"))


@log_normal_.kernel
def log_normal_cpu_(self, mean, std, generator):
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if self._array.size:
        check_kernel_type(self, "log_normal_cpu", DRAWN_FLOATS)
    return fill(self, kernels.log_normal_, mean, std, generator_of(generator))


# ------------------------------------------------------------------------- exponential_, geometric_, cauchy_

exponential_ = filler("exponential_", "float lambd=1")
exponential_.backward(zero_gradient("ExponentialBackward0"))


@exponential_.kernel
def exponential_cpu_(self, lambd, generator):
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    dtype = dtype_of(self)
    if self._array.size and not dtype.is_floating_point:
        raise RuntimeError("Exponential distribution is a continuous probability distribution. dtype must be "
                           f"a floating point but you specified {SCALAR_TYPE_NAMES[dtype]}")
    return fill(self, kernels.exponential_, lambd, generator_of(generator))


geometric_ = filler("geometric_", "float p")
geometric_.backward(zero_gradient("GeometricBackward0"))


@geometric_.kernel
def geometric_cpu_(self, p, generator):
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self._array.size:
        check_kernel_type(self, "geometric_cpu", DRAWN - {scalar_type.bool})
    return fill(self, kernels.geometric_, p, generator_of(generator))


cauchy_ = filler("cauchy_", "float median=0, float sigma=1")
cauchy_.backward(zero_gradient("CauchyBackward0"))


@cauchy_.kernel
def cauchy_cpu_(self, median, sigma, generator):
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    dtype = dtype_of(self)
    if not dtype.is_floating_point:
        raise RuntimeError("Cauchy distribution is a continuous probability distribution. dtype must be "
                           f"a floating point but you specified {CPP_NAMES[dtype]}")
    return fill(self, kernels.cauchy_, median, sigma, generator_of(generator))


# --------------------------------------------------------------------------------------------------- random_

random_from = filler("random_.from", "int from, int? to")
random_to = filler("random_.to", "int to")
random_ = filler("random_")
random_from.backward(zero_gradient("RandomBackward0"))
random_to.backward(zero_gradient("RandomBackward1"))
random_.backward(zero_gradient("RandomBackward2"))


parse_random = make_parser(packets["torch", "random_"], True)
RANDOM_BY_ENDS = (random_, random_to, random_from)


@python_face("random_", "method")
def random_face(self, *ends, generator=None, **named):
    """`random_()`, `random_(to)` or `random_(from, to)`."""
    if named or len(ends) > 2 or not all([type(end) is int for end in ends]):
        return parse_random((self, *ends), named if generator is None else {"generator": generator, **named})
    return RANDOM_BY_ENDS[len(ends)].call(self, *ends, generator)


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
            check_kernel_type(self, "random_full_64_bits_range_kernel_cpu", NOT_HALF_OR_BOOL)
            if dtype not in FULL_RANGE:
                raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float "
                                   "and bfloat16")
        return fill(self, kernels.random_from_to_, 0, 0, generator_of(generator))
    check_from_to_in_range(dtype, low, last)
    return fill(self, kernels.random_from_to_, last - low + 1 & (1 << 64) - 1, low, generator_of(generator))


NOT_HALF_OR_BOOL = DRAWN - {scalar_type.float16, scalar_type.bool}
FULL_RANGE = frozenset({scalar_type.int64, scalar_type.float64, scalar_type.float32, scalar_type.bfloat16})


# ------------------------------------------------------------------------------------------------ bernoulli_

bernoulli_tensor_ = filler("bernoulli_.Tensor", "Tensor p")
bernoulli_float_ = filler("bernoulli_.float", "float p=0.5")
bernoulli_float_.backward(zero_gradient("BernoulliBackward2"))


parse_bernoulli = make_parser(packets["torch", "bernoulli_"], True)


@python_face("bernoulli_", "method")
def bernoulli_face(self, p=0.5, *, generator=None):
    """`bernoulli_(p)` with a number or a tensor of probabilities."""
    if type(p) in (float, int):
        return bernoulli_float_.call(self, p, generator)
    return parse_bernoulli((self, p), {} if generator is None else {"generator": generator})


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
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
                           "message be improved?  If so, please report an enhancement request to PyTorch.)")


@bernoulli_tensor_.backward
class BernoulliBackward1:
    def self(grad):
        return at.zeros_like(grad)

    def p(p):
        return at.zeros_like(p)


for operator in (uniform_, normal_, log_normal_, exponential_, cauchy_, geometric_):
    quick_face(operator)
