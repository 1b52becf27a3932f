"""Random tensors of the device's generator, by Philox (philox_rng_engine.py).

In PyTorch: `aten/src/ATen/native/Distributions.cpp`, `aten/src/ATen/native/cuda/DistributionUniform.cu`.
"""

import ml_dtypes
import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.distribution_templates import (
    CPP_NAMES,
    DRAWN,
    check_from_to_in_range,
    closed_range,
    open_range,
)
from readtorch.aten.native.distributions import (
    check_kernel_type,
    check_no_internal_overlap,
    check_std,
    check_uniform_bounds,
)
from readtorch.aten.native.tensor_iterator import WIDENED
from readtorch.aten.register_dispatch_key import resize
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
from .register_dispatch_key import cuda_kernel, empty, operator_named


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
    self._counter[0] += 1
    return self


@cuda_kernel(operator_named("uniform_"))
def uniform_cuda_(self, low, high, generator):
    check_uniform_bounds(dtype_of(self), low, high)
    return drawn(self, generator, uniform, low, high)


@cuda_kernel(operator_named("normal_"))
def normal_cuda_(self, mean, std, generator):
    check_std(std)
    return drawn(self, generator, normal, mean, std)


@cuda_kernel(operator_named("log_normal_"))
def log_normal_cuda_(self, mean, std, generator):
    return at.exp_(normal_cuda_(self, mean, std, generator))


@cuda_kernel(operator_named("exponential_"))
def exponential_cuda_(self, lambd, generator):
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return drawn(self, generator, exponential, lambd)


@cuda_kernel(operator_named("bernoulli_.float"))
def bernoulli_cuda_(self, p, generator):
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return drawn(self, generator, bernoulli, p)


@cuda_kernel(operator_named("random_.from"))
def random_from_cuda_(self, low, to, generator):
    dtype = dtype_of(self)
    low, last = closed_range(dtype, low, to) if to is not None else open_range(dtype, low)
    check_from_to_in_range(dtype, low, last)
    at_once = 2 if last - low + 1 >= 1 << 28 else 4
    return drawn(self, generator, integers, low, last + 1, at_once=at_once)


@cuda_kernel(operator_named("random_.to"))
def random_to_cuda_(self, to, generator):
    return random_from_cuda_(self, 0, to, generator)


@cuda_kernel(operator_named("bernoulli_.Tensor"))
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
    self._counter[0] += 1
    return self


@cuda_kernel(operator_named("bernoulli"))
def bernoulli_cuda(self, generator):
    return bernoulli_tensor_cuda_(empty(self._array.shape, self._array.dtype), self, generator)


@cuda_kernel(operator_named("bernoulli.out"))
def bernoulli_out_cuda(self, generator, out):
    if out._array.shape != self._array.shape:
        resize(out, self._array.shape)
    return bernoulli_tensor_cuda_(out, self, generator)


@cuda_kernel(operator_named("geometric_"))
def geometric_cuda_(self, p, generator):
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    check_kernel_type(self, "geometric_cuda", DRAWN - {scalar_type.bool})
    return drawn(self, generator, geometric, p)


@cuda_kernel(operator_named("cauchy_"))
def cauchy_cuda_(self, median, sigma, generator):
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if not dtype_of(self).is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be "
            f"a floating point but you specified {CPP_NAMES[dtype_of(self)]}"
        )
    return drawn(self, generator, cauchy, median, sigma)


@cuda_kernel(operator_named("random_"))
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
