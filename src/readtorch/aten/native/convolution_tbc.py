"""conv_tbc: convolution of signals of shape (time, batch, channels), by matrix products that need no transposition.

In PyTorch: `aten/src/ATen/native/ConvolutionTBC.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta, like
from readtorch.c10.tensor_impl import dtype_of

from .tensor_iterator import WIDENED, cast

conv_tbc = native_function("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor")
conv_tbc_backward = native_function(
    "conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)", ""
)


@conv_tbc.meta
def conv_tbc_meta(self, weight, bias, pad):
    """y[t] = Σ x[t + k - pad] W[k] + b. self: (time, batch, in), weight: (kernel, in, out), bias: (out)."""
    x, w = self._array, weight._array
    check_shapes(x, w, bias._array)
    shape = (x.shape[0] + 2 * pad - w.shape[0] + 1, x.shape[1], w.shape[2])
    if shape[0] < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {shape[0]}: {list(shape)}")
    return TensorMeta(shape, dtype_of(self))


@conv_tbc.impl()
def conv_tbc_cpu(self, weight, bias, pad, out):
    x, w, b = _wide(self, weight, bias)
    result = np.broadcast_to(b, out._array.shape).copy()
    for k, (source, target) in enumerate(overlaps(x.shape[0], len(result), w.shape[0], pad)):
        result[target] += x[source] @ w[k]
    out._array[...] = cast(result, out._array.dtype)


def check_shapes(x, w, b):
    if x.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if w.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if b.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if x.shape[2] != w.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if w.shape[2] != b.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")


def _wide(*tensors):
    return [cast(t._array, WIDENED.get(t._array.dtype, t._array.dtype)) for t in tensors]


def overlaps(inputs, outputs, kernel, pad):
    """For each element of the kernel: the times of the input that it multiplies, and the times of the output that they
    reach."""
    for k in range(kernel):
        first, last = max(0, pad - k), min(outputs, inputs + pad - k)
        yield slice(first + k - pad, max(first, last) + k - pad), slice(first, max(first, last))


@conv_tbc.backward
class ConvTbcBackward0:
    def self__weight__bias(grad, self, weight, bias, pad):
        return conv_tbc_backward.call(grad, self, weight, bias, pad)


@conv_tbc_backward.meta
def conv_tbc_backward_meta(self, input, weight, bias, pad):
    """The gradients of input, weight and bias; `self` is that of the output."""
    return like(input), like(weight), like(bias)


@conv_tbc_backward.impl()
def conv_tbc_backward_cpu(self, input, weight, bias, pad, *outs):
    grad, x, w = _wide(self, input, weight)
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for k, (source, target) in enumerate(overlaps(x.shape[0], grad.shape[0], w.shape[0], pad)):
        dx[source] += grad[target] @ w[k].T
        dw[k] = np.einsum("tbi,tbo->io", x[source], grad[target])
    for out, gradient in zip(outs, (dx, dw, grad.sum((0, 1)))):
        out._array[...] = cast(gradient, out._array.dtype)
