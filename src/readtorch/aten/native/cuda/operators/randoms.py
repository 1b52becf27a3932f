"""Random tensors and dropout: from the device's generator, by Philox (../philox.py).

In PyTorch: `aten/src/ATen/native/cuda/{Distributions.cu,Dropout.cu}`.
"""

from .....c10.cuda import runtime
from .....c10.cuda.cuda_generator import default_engines
from .....c10.device import current_device
from .....c10.tensor_impl import dtype_of
from ....functions import at
from ...distributions import (
    check_no_internal_overlap,
    check_std,
    check_uniform_bounds,
    closed_range,
    open_range,
)
from ...indexing import BOOL
from ...integer_ranges import check_from_to_in_range
from ...tensor_iterator import WIDENED
from .. import distributions as kernels
from .copies import clone_cuda, copy_elements
from .factories import empty_cuda, filled
from .pointwise import operator_named
from .reductions import converted
from .registration import cuda_kernel, empty


def most_blocks():
    """How many blocks of 256 threads the device holds at once."""
    properties = runtime.driver().get_device_properties(current_device.index)
    return properties.multi_processor_count * (properties.max_threads_per_multi_processor // kernels.THREADS)


def state_for(engine, size, at_once):
    """(seed, offset) for a launch over so many elements; the generator moves on."""
    return engine.philox_state(kernels.draws_used(size, at_once, most_blocks()))


def drawn(self, engine, run, *parameters, at_once=None):
    """Fill `self` by a launcher of distributions.py, through a contiguous tensor where it is none itself."""
    array = self._array
    if array.size:
        check_no_internal_overlap(array)
        numbers = WIDENED.get(array.dtype, array.dtype)
        direct = array.flags.c_contiguous and array.dtype == numbers
        target = self if direct else empty(array.shape, numbers)
        state = state_for(
            engine, array.size, at_once or (2 if numbers.itemsize == 8 and numbers.kind == "f" else 4)
        )
        run(state, target._array, *parameters, most_blocks=most_blocks())
        if not direct:
            copy_elements(target, self)
    self._counter[0] += 1
    return self


@cuda_kernel(operator_named("uniform_"))
def uniform_cuda_(self, low, high, generator):
    check_uniform_bounds(dtype_of(self), low, high)
    return drawn(self, generator, kernels.uniform, low, high)


@cuda_kernel(operator_named("normal_"))
def normal_cuda_(self, mean, std, generator):
    check_std(std)
    return drawn(self, generator, kernels.normal, mean, std)


@cuda_kernel(operator_named("log_normal_"))
def log_normal_cuda_(self, mean, std, generator):
    return at.exp_(normal_cuda_(self, mean, std, generator))


@cuda_kernel(operator_named("exponential_"))
def exponential_cuda_(self, lambd, generator):
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return drawn(self, generator, kernels.exponential, lambd)


@cuda_kernel(operator_named("bernoulli_.float"))
def bernoulli_cuda_(self, p, generator):
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return drawn(self, generator, kernels.bernoulli, p)


@cuda_kernel(operator_named("random_.from"))
def random_from_cuda_(self, low, to, generator):
    dtype = dtype_of(self)
    low, last = closed_range(dtype, low, to) if to is not None else open_range(dtype, low)
    check_from_to_in_range(dtype, low, last)
    at_once = 2 if last - low + 1 >= 1 << 28 else 4
    return drawn(self, generator, kernels.integers, low, last + 1, at_once=at_once)


@cuda_kernel(operator_named("random_.to"))
def random_to_cuda_(self, to, generator):
    return random_from_cuda_(self, 0, to, generator)


@cuda_kernel(operator_named("normal.float_float"))
def normal_size_cuda(mean, std, size, generator, dtype, layout, device, pin_memory):
    return normal_cuda_(empty_cuda(size, dtype, layout, device, pin_memory, None), mean, std, generator)


# --------------------------------------------------------------------------------------------------------
# dropout


@cuda_kernel(operator_named("native_dropout"))
def native_dropout_cuda(input, p, train):
    """The result, and a mask of what was kept. One kernel draws, scales and writes both."""
    mask = empty(input._array.shape, BOOL)
    if train is False or p == 0 or p == 1 or not input._array.size:
        kept = train is False or p == 0
        return (clone_cuda(input, None) if kept else at.zeros_like(input)), filled(mask, kept)
    x = converted(input, WIDENED.get(input._array.dtype, input._array.dtype))
    out = empty(x._array.shape, x._array.dtype)
    state = state_for(default_engines[current_device.index], x._array.size, 4)
    kernels.dropout(state, x._array, p, out._array, mask._array, most_blocks=most_blocks())
    return converted(out, input._array.dtype), mask


@cuda_kernel(operator_named("native_dropout_backward"))
def native_dropout_backward_cuda(grad_output, mask, scale):
    result = empty(grad_output._array.shape, grad_output._array.dtype)
    if result._array.size:
        kernels.dropout_backward(grad_output._array, mask._array, scale, result._array)
    return result
