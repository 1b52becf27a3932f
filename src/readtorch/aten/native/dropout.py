"""Dropout in its forms: of single numbers, of whole channels, and the one that keeps mean and variance.

In PyTorch: `aten/src/ATen/native/Dropout.cpp`; `cuda/Dropout.cu` for the numbers of a device. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.tensor_meta import broadcast, like
from readtorch.c10.cuda.cuda_generator_impl import default_engines
from readtorch.c10.dispatch_key import GPUS
from readtorch.c10.memory_format import fastest_first, is_non_overlapping_and_dense
from readtorch.c10.python_dispatcher_tls import python_dispatcher_enabled
from readtorch.c10.scalar_type import bool as bool_
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import dtype_of, wrap

from .distributions import bernoulli_float_
from .tensor_iterator import result_type, scalar_tensor

# The limit of SELU for very negative inputs, with the opposite sign.
ALPHA = 1.7580993408473766


def channel_noise(input):
    """An empty tensor with one number for each channel of each sample."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return at.new_empty(input, shape[:2] + (1,) * (len(shape) - 2))


def drop(input, p, train, multiply, channels=False, alpha=False):
    """Multiply `input` by noise that is 0 with probability p and otherwise such that the mean stays."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or input._array.size == 0:
        return input
    if p == 1:
        return multiply(input, at.zeros((), dtype=input.dtype, device=input.device))
    noise = channel_noise(input) if channels else at.empty_like(input)
    bernoulli_float_.call(noise, 1 - p, None)
    if not alpha:
        return multiply(input, noise.div_(1 - p))
    scale = 1 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(ALPHA * scale).add_(ALPHA * scale * p)
    return multiply(input, noise.mul_(scale)).add_(shift)


def declare(name, channels=False, alpha=False):
    """One form of dropout and its in-place twin."""
    functional = native_function(f"{name}(Tensor input, float p, bool train) -> Tensor")
    inplace = native_function(f"{name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
    plain = not channels and not alpha

    @functional.compose
    def composite(input, p, train):
        if plain and python_dispatcher_enabled():
            return native_dropout.call(input, p, train)[0] if train and p else input.clone()
        if plain and input._keys & GPUS and train and 0 < p < 1 and input._array.size:
            return native_dropout.call(input, p, train)[0]
        return drop(input, p, train, at.mul, channels, alpha)

    inplace.compose(lambda self, p, train: drop(self, p, train, at.mul_, channels, alpha))
    return functional


dropout = declare("dropout")
feature_dropout = declare("feature_dropout", channels=True)
alpha_dropout = declare("alpha_dropout", alpha=True)
feature_alpha_dropout = declare("feature_alpha_dropout", channels=True, alpha=True)


# -------------------------------------------------------------------------------------------- native_dropout

native_dropout = native_function("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)")
native_dropout_backward = native_function(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor"
)


def scale_of(p, train):
    """What the kept numbers are multiplied by."""
    if train is False:
        return 1.0
    return 0.0 if p == 1 else 1 / (1 - p)


def rounded(scale, input):
    """The scale as a number of the input's type: PyTorch rounds it before it multiplies a 16-bit tensor."""
    dtype = input._array.dtype
    return float(dtype.type(scale)) if input.dtype.is_floating_point else scale


@native_dropout.meta
def native_dropout_meta(input, p, train):
    return like(input), like(input, bool_)


@native_dropout.kernel
def native_dropout_cpu(input, p, train):
    array = input._array
    mask = wrap(np.ones_like(array, bool))
    with below_autograd():
        if train is False:
            return at.clone(input), mask
        scale = rounded(scale_of(p, train), input)
        if not input._keys & GPUS:
            bernoulli_float_.call(mask, 1 - p, None)
        elif 0 < p < 1 and array.size:
            scale = drawn_as_on_a_device(input, p, mask._array)
        elif p == 1:
            mask._array[...] = False
        return at.mul_(at.mul(input, mask), scale), mask


# ------------------------------------------------------------------------------ the numbers of the CUDA kernel


def order_in_memory(array):
    """The dimensions from the slowest to the fastest, if the elements lie side by side, and the order that undoes it.

    One that has gaps is taken index by index.
    """
    order = list(range(array.ndim))
    if is_non_overlapping_and_dense(array):
        order = fastest_first(array.shape, array.strides)[::-1]
    return order, [order.index(d) for d in range(array.ndim)]


def numbers_a_thread(input):
    """How many neighbours a thread takes: 16 bytes of them, or the half of that, and so on, until there are no remainders.

    1 means four numbers that are a whole grid apart. In PyTorch: `get_vector_size` in `cuda/Dropout.cu`.
    """
    array = input._array
    if not is_non_overlapping_and_dense(array):
        return 1
    width = 16 // array.itemsize
    while width > 1 and (array.size % width or input.storage_offset() % width):
        width //= 2
    return width


def drawn_as_on_a_device(input, p, mask):
    """Fill the mask with what the kernel of a device draws, and return its scale, a number of the type it computes in."""
    from .cpu import philox_kernels

    keep = op_math_type(dtype_of(input)).numpy.type(1 - p)
    in_memory = mask.transpose(order_in_memory(input._array)[0])
    philox_kernels.dropout(in_memory, keep, numbers_a_thread(input), default_engines[input.device.index])
    return 1 / float(keep)


@native_dropout.backward
class NativeDropoutBackward0:
    output_differentiability = [True, False]

    def input(grad, result1, p, train):
        return native_dropout_backward.call(grad, result1, scale_of(p, train))

    def result0(input_t, result1, p, train):
        return input_t if train is False else input_t * result1 * scale_of(p, train)


@native_dropout_backward.meta
def native_dropout_backward_meta(grad_output, mask, scale):
    return broadcast(result_type(grad_output, scalar_tensor(scale)), grad_output, mask)


@native_dropout_backward.kernel
def native_dropout_backward_cpu(grad_output, mask, scale):
    with below_autograd():
        return at.mul(at.mul(grad_output, mask), rounded(scale, grad_output))


@native_dropout_backward.backward
class NativeDropoutBackwardBackward0:
    def grad_output(grad, mask, scale):
        return grad * (mask.to(grad.dtype) * scale)

    def result(grad_output_t, mask, scale):
        return native_dropout_backward.call(grad_output_t, mask, scale)
