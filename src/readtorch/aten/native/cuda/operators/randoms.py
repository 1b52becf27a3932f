"""Random tensors and dropout: from the device's generator, by Philox (../philox.py).

In PyTorch: `aten/src/ATen/native/cuda/{Distributions.cu,Dropout.cu}`.
"""

import math

import numpy as np

from .....c10.cuda import runtime
from .....c10.cuda.cuda_generator_impl import default_engines
from .....c10.device import current_device
from .....c10.tensor_impl import dtype_of
from ....functions import at
from ....native_function import resize
from ...distributions import check_no_internal_overlap, check_std, check_uniform_bounds
from ...distribution_templates import closed_range, open_range
from ...tensor_advanced_indexing.index import BOOL
from ...distribution_templates import check_from_to_in_range
from ...distributions import check_multinomial
from ...tensor_iterator import WIDENED
from .. import distributions as kernels
from .. import samples
from .copies import clone_cuda, copy_elements
from .factories import empty_cuda, filled
from .pointwise import operator_named
from .reductions import LONG, converted
from .registration import broadcast_shape, cuda_kernel, empty, owned


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


# ----------------------------------------------------------------------------------- probabilities in a tensor


@cuda_kernel(operator_named("bernoulli_.Tensor"))
def bernoulli_tensor_cuda_(self, p, generator):
    """The probabilities stay unchecked: to look at them, the host would have to wait."""
    array = self._array
    if array.size:
        check_no_internal_overlap(array)
        number = np.dtype(np.float64 if array.dtype == np.float64 else np.float32)
        drawn_numbers = empty(array.shape, number)
        chances = converted(at.expand(p, array.shape).contiguous(), number)
        kernels.bernoulli_each(generator.philox_state(10), chances._array, drawn_numbers._array)
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


@cuda_kernel(operator_named("multinomial"))
def multinomial_cuda(self, num_samples, replacement, generator):
    check_multinomial(self, num_samples, replacement)
    rows = self if self._array.ndim == 2 else self.unsqueeze(0)
    if not rows._array.shape[0]:
        return empty((0, num_samples), LONG)
    if replacement and num_samples > 1:
        result = with_replacement(rows, num_samples, generator)
    else:
        result = winners(rows, num_samples, generator)
    return result if self._array.ndim == 2 else owned(result.squeeze(0))


def winners(rows, num_samples, generator):
    """A race: who has the greatest of probability / (exponential number) is drawn first, and so on."""
    if not at.logical_and(rows.max() < math.inf, rows.min() >= 0).item():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if at.eq(rows.sum(1), 0).any().item():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    race = rows / exponential_cuda_(at.empty_like(rows), 1.0, generator)
    return race.argmax(1, True) if num_samples == 1 else race.topk(num_samples, 1)[1]


def with_replacement(rows, num_samples, generator):
    number = WIDENED.get(rows._array.dtype, rows._array.dtype)
    probabilities = converted(rows, number).contiguous()
    probabilities = probabilities / probabilities.sum(1, True)
    ends = probabilities.cumsum(1)
    result = empty((rows._array.shape[0], num_samples), LONG)
    state = generator.philox_state(samples.draws_used(rows._array.shape[0]))
    samples.sample(state, ends._array, probabilities._array, result._array)
    return result


def normal_about(mean, std, generator):
    """Standard normal numbers, then times `std` and plus `mean`, which are tensors or numbers."""
    tensors = [t for t in (mean, std) if hasattr(t, "_array")]
    result = empty(broadcast_shape(*[t._array.shape for t in tensors]), tensors[0]._array.dtype)
    if hasattr(std, "_array"):
        if std._array.size and not at.ge(std.min(), 0).item():
            raise RuntimeError("normal expects all elements of std >= 0.0")
        normal_cuda_(result, 0.0, 1.0, generator).mul_(std)
    else:
        normal_cuda_(result, 0.0, std, generator)
    return result.add_(mean)


cuda_kernel(operator_named("normal.Tensor_Tensor"))(normal_about)
cuda_kernel(operator_named("normal.Tensor_float"))(normal_about)
cuda_kernel(operator_named("normal.float_Tensor"))(normal_about)
