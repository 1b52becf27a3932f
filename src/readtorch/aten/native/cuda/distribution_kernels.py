"""Random tensors of the device's generator, by Philox (philox_rng_engine.py).

In PyTorch: `aten/src/ATen/native/Distributions.cpp`, `aten/src/ATen/native/cuda/DistributionUniform.cu`.
"""

import ml_dtypes
import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import distributions as ops
from readtorch.aten.native.distribution_templates import DRAWN, closed_range, open_range
from readtorch.aten.native.distributions import check_kernel_type, check_no_internal_overlap
from readtorch.aten.native.tensor_iterator import WIDENED
from readtorch.c10 import scalar_type
from readtorch.c10.cuda import runtime
from readtorch.c10.device import current_device
from readtorch.c10.tensor_impl import dtype_of

from .copy import copy_elements
from .distribution_templates import (
    THREADS,
    bernoulli,
    bernoulli_each,
    cauchy,
    draws_used,
    exponential,
    geometric,
    integers,
    narrow_integers,
    normal,
    uniform,
    wide_integers,
)
from .distributions import DOUBLE
from .reduce_ops import LONG, converted
from .register_dispatch_key import cuda_kernel, empty


def most_blocks():
    """How many blocks of 256 threads the device holds at once."""
    properties = runtime.driver().get_device_properties(current_device.index)
    return properties.multi_processor_count * (properties.max_threads_per_multi_processor // THREADS)


def state_for(engine, size, at_once):
    """(seed, offset) for a launch over so many elements; the generator moves on."""
    return engine.philox_state(draws_used(size, at_once, most_blocks()))


def drawn(self, engine, run, *parameters, at_once=None):
    """Fill `self` by a launcher of distributions.py, through a contiguous tensor where it is none itself."""
    array = self._array
    if array.size:
        check_no_internal_overlap(array)
        numbers = WIDENED.get(array.dtype, array.dtype)
        direct = array.flags.c_contiguous and array.dtype == numbers
        target = self if direct else empty(array.shape, numbers)
        state = state_for(engine, array.size, at_once or (2 if numbers.itemsize == 8 and numbers.kind == "f" else 4))
        run(state, target._array, *parameters, most_blocks=most_blocks())
        if not direct:
            copy_elements(target, self)
    return self


def drawing(operator, run):
    """The CUDA kernel of an in-place operator of plain numbers."""

    @cuda_kernel(operator)
    def kernel_(self, *numbers_and_generator):
        *numbers, generator = numbers_and_generator
        operator.shape_rule(self, *numbers_and_generator)
        return drawn(self, generator, run, *numbers)

    return kernel_


uniform_cuda_ = drawing(ops.uniform_, uniform)
normal_cuda_ = drawing(ops.normal_, normal)
exponential_cuda_ = drawing(ops.exponential_, exponential)
drawing(ops.bernoulli_float_, bernoulli)
drawing(ops.cauchy_, cauchy)


@cuda_kernel(ops.log_normal_)
def log_normal_cuda_(self, mean, std, generator):
    ops.log_normal_meta_(self, mean, std, generator)
    return at.exp_(normal_cuda_(self, mean, std, generator))


@cuda_kernel(ops.random_from)
def random_from_cuda_(self, low, to, generator):
    ops.random_from_meta_(self, low, to, generator)
    low, last = closed_range(dtype_of(self), low, to) if to is not None else open_range(dtype_of(self), low)
    return drawn(self, generator, integers, low, last + 1, at_once=2 if last - low + 1 >= 1 << 28 else 4)


@cuda_kernel(ops.random_to)
def random_to_cuda_(self, to, generator):
    return random_from_cuda_(self, 0, to, generator)


@cuda_kernel(ops.bernoulli_tensor_)
def bernoulli_tensor_cuda_(self, p, generator):
    """The probabilities stay unchecked: to look at them, the host would have to wait."""
    array = self._array
    if array.size:
        check_no_internal_overlap(array)
        number = np.dtype(np.float64 if array.dtype == np.float64 else np.float32)
        drawn_numbers = empty(array.shape, number)
        chances = converted(at.expand(p, array.shape).contiguous(), number)
        bernoulli_each(generator.philox_state(10), chances._array, drawn_numbers._array)
        copy_elements(drawn_numbers, self)
    return self


@cuda_kernel(ops.geometric_)
def geometric_cuda_(self, p, generator):
    ops.geometric_meta_(self, p, generator)
    check_kernel_type(self, "geometric_cuda", DRAWN - {scalar_type.bool})
    return drawn(self, generator, geometric, p)


@cuda_kernel(ops.random_)
def random_cuda_(self, generator):
    """Whole numbers from 0 to the largest of an integer type, or as many as a floating one has without
    gaps."""
    check_kernel_type(self, "random_kernel_cuda", DRAWN)
    dtype = self._array.dtype
    if dtype.kind == "b":
        end = 2
    elif dtype.kind in "iu":
        end = int(np.iinfo(dtype).max) + 1
    else:
        end = 2 ** (ml_dtypes.finfo(dtype).nmant + 1) + 1
    wide = dtype in (LONG, DOUBLE)
    run = wide_integers if wide else narrow_integers
    return drawn(self, generator, run, 0, end, at_once=2 if wide else 4)
