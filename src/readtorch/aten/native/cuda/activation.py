"""Activation functions and their gradients.

In PyTorch: `aten/src/ATen/native/cuda/Activation.cpp`, `aten/src/ATen/native/cuda/ActivationEluKernel.cu`,
`aten/src/ATen/native/cuda/ActivationGeluKernel.cu`, `aten/src/ATen/native/cuda/ActivationSoftplusKernel.cu`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.aten.register_dispatch_key import write_result
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .copy import copy_elements
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named
from .tensor_iterator import apply


@cuda_kernel(operator_named("log_sigmoid_forward"))
def log_sigmoid_forward_cuda(self):
    """The buffer is for the CPU's backward."""
    return apply(f.log_sigmoid, [self]), empty((0,), self._array.dtype)


@cuda_impl(operator_named("log_sigmoid_backward"))
def log_sigmoid_backward_cuda(grad_output, self, buffer, out):
    apply(f.log_sigmoid_backward, [grad_output, self], out=out)


@cuda_impl(operator_named("_prelu_kernel_backward"))
def prelu_backward_cuda(grad_output, self, weight, to_input, to_weight):
    apply(f.prelu_backward, [grad_output, self, weight], out=to_input)
    apply(f.prelu_slope_backward, [grad_output, self], out=to_weight)


@cuda_kernel(operator_named("rrelu_with_noise"))
def rrelu_cuda(self, noise, lower, upper, training, generator):
    """Every element draws a slope, also those that do not need it: so each thread knows which numbers are its own.

    In PyTorch: one kernel draws and multiplies.
    """
    if not training:
        return at.leaky_relu(self, (lower + upper) / 2)
    slopes = at.uniform_(at.empty_like(self), lower, upper, generator=generator)
    factors = at.where(self <= 0, slopes, 1.0)
    copy_elements(factors, noise)  # read by backward only, whose node has saved it: this counts as no write
    return self * factors


@cuda_kernel(operator_named("rrelu_with_noise_"))
def rrelu_cuda_(self, *arguments):
    return write_result(self, rrelu_cuda(self, *arguments))


@cuda_kernel(operator_named("rrelu_with_noise_backward"))
def rrelu_backward_cuda(grad_output, self, noise, lower, upper, training, self_is_result):
    """self: the input, or the result, which has the same signs."""
    if training and upper - lower > 1e-6:
        return grad_output * noise
    return apply(f.leaky_relu_backward, [grad_output, self], ((lower + upper) / 2,))


def halves(t, dim):
    dim = wrap_dim(dim, t._array.ndim)
    size = t._array.shape[dim] // 2
    return t.narrow(dim, 0, size), t.narrow(dim, size, size)


@cuda_impl(operator_named("glu"))
def glu_cuda(self, dim, out):
    if not dtype_of(self).is_floating_point:
        raise not_implemented("glu_cuda")(dtype_of(self))
    apply(f.gated, halves(self, dim), out=out)


@cuda_impl(operator_named("glu_backward"))
def glu_backward_cuda(grad_output, self, dim, out):
    (x, gate), (to_x, to_gate) = halves(self, dim), halves(out, dim)
    apply(f.gated, [grad_output, gate], out=to_x)
    apply(f.gated_backward, [grad_output, x, gate], out=to_gate)
