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
from .register_dispatch_key import cuda_kernel, empty, operator_named
from .tensor_iterator import apply, apply_
from .unary_ops_kernel import NEVER, declare, unary

for _name, _function in {
    "relu": f.relu,
    "silu": f.silu,
    "mish": f.mish,
    "hardswish": f.hardswish,
    "hardsigmoid": f.hardsigmoid,
}.items():
    unary(_name, _function)


unary("leaky_relu", f.leaky_relu, scalars=lambda slope: (slope,))
unary("elu", f.elu, scalars=lambda alpha, scale, inside: (alpha * scale, scale, inside))
unary("softplus", f.softplus, scalars=lambda beta, threshold: (beta, threshold))
unary("hardtanh", f.clamp, scalars=lambda low, high: (low, high))


def by_form(plain, tanh):
    """The function that gelu's argument `approximate` names."""
    return lambda approximate: tanh if approximate == "tanh" else plain


gelu_of, gelu_gradient_of = by_form(f.gelu, f.gelu_tanh), by_form(f.gelu_backward, f.gelu_tanh_backward)
declare(
    "gelu",
    lambda self, approximate: apply(gelu_of(approximate), [self]),
    lambda self, approximate: apply_(gelu_of(approximate), self, []),
)


@cuda_kernel(operator_named("log_sigmoid_forward"))
def log_sigmoid_forward_cuda(self):
    return apply(f.log_sigmoid, [self]), empty((0,), self._array.dtype)


def gradient(name, function, scalars=lambda *arguments: NEVER):
    """An operator of grad and the input (or result): its other arguments are numbers."""

    @cuda_kernel(operator_named(name))
    def kernel(grad_output, self, *arguments):
        return apply(function, [grad_output, self], scalars(*arguments))


gradient("threshold_backward", f.threshold_backward, lambda threshold: (threshold,))
gradient("sigmoid_backward", f.sigmoid_backward)
gradient("tanh_backward", f.tanh_backward)
gradient("silu_backward", f.silu_backward)
gradient("mish_backward", f.mish_backward)
gradient("hardsigmoid_backward", f.hardsigmoid_backward)
gradient("hardswish_backward", f.hardswish_backward)
gradient("leaky_relu_backward", f.leaky_relu_backward, lambda slope, is_result: (slope,))
gradient("hardtanh_backward", f.hardtanh_backward, lambda low, high: (low, high))
gradient("softplus_backward", f.softplus_backward, lambda beta, threshold: (beta, threshold))
gradient("log_sigmoid_backward", f.log_sigmoid_backward)


@cuda_kernel(operator_named("gelu_backward"))
def gelu_backward_cuda(grad_output, self, approximate):
    return apply(gelu_gradient_of(approximate), [grad_output, self])


@cuda_kernel(operator_named("elu_backward"))
def elu_backward_cuda(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    return apply(f.elu_backward, [grad_output, self_or_result], (alpha * scale, scale, input_scale, is_result))


@cuda_kernel(operator_named("_prelu_kernel"))
def prelu_cuda(self, weight):
    return apply(f.prelu, [self, weight])


@cuda_kernel(operator_named("_prelu_kernel_backward"))
def prelu_backward_cuda(grad_output, self, weight):
    return apply(f.prelu_backward, [grad_output, self, weight]), apply(f.prelu_slope_backward, [grad_output, self])


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


@cuda_kernel(operator_named("celu"))
def celu_cuda(self, alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return apply(f.elu, [self], (alpha, 1, 1 / alpha))


cuda_kernel(operator_named("celu_"))(lambda self, alpha: write_result(self, celu_cuda(self, alpha)))


def halves(t, dim):
    if not t._array.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = wrap_dim(dim, t._array.ndim)
    size = t._array.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    return t.narrow(dim, 0, size // 2), t.narrow(dim, size // 2, size // 2)


@cuda_kernel(operator_named("glu"))
def glu_cuda(self, dim):
    if not dtype_of(self).is_floating_point:
        raise not_implemented("glu_cuda")(dtype_of(self))
    return apply(f.gated, halves(self, dim))


@cuda_kernel(operator_named("glu_backward"))
def glu_backward_cuda(grad_output, self, dim):
    result = empty(self._array.shape, self._array.dtype)
    (x, gate), (to_x, to_gate) = halves(self, dim), halves(result, dim)
    apply(f.gated, [grad_output, gate], out=to_x)
    apply(f.gated_backward, [grad_output, x, gate], out=to_gate)
    return result


@cuda_kernel(operator_named("threshold"))
def threshold_cuda(self, threshold, value):
    return at.where(self <= threshold, value, self)


@cuda_kernel(operator_named("threshold_"))
def threshold_cuda_(self, threshold, value):
    return write_result(self, threshold_cuda(self, threshold, value))


@cuda_kernel(operator_named("hardshrink"))
def hardshrink_cuda(self, lambd):
    return self.masked_fill(self.abs() <= lambd, 0)


@cuda_kernel(operator_named("softshrink"))
def softshrink_cuda(self, lambd):
    return self - self.clamp(-lambd, lambd)


@cuda_kernel(operator_named("hardshrink_backward"), operator_named("softshrink_backward"))
def shrink_backward_cuda(grad, self, lambd):
    return grad.masked_fill((self >= -lambd) & (self <= lambd), 0)
