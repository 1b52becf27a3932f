"""Losses that compare two tensors element by element.

In PyTorch: `aten/src/ATen/native/Loss.cpp`. Explained in the chapter "One training step, end to end".
"""
import math

import numpy as np


from ..functions import at
from ..native_function import below_autograd, native_function
from .gradient_sizes import check_broadcasts
from .scalar_ops import add_scalar, div_scalar, mul_scalar
from .tensor_iterator import computing, not_implemented, result_type

# What becomes of the losses of the single elements (`at::Reduction`).
NONE, MEAN, SUM = range(3)


def apply_loss_reduction(unreduced, reduction):
    if reduction == MEAN:
        return unreduced.mean()
    return unreduced.sum() if reduction == SUM else unreduced


def loss_kernel(function, kernel_name):
    """A CPU kernel (self, target, reduction, *parameters) from `function(x, target, *parameters)`."""
    def kernel(self, target, reduction, *parameters):
        common = result_type(self, target)
        if not (common.is_floating_point or common.is_complex and kernel_name == "mse_cpu"):
            raise not_implemented(kernel_name)(common)

        def reduced(x, target):
            losses = function(x, target, *parameters)
            return losses if reduction == NONE else losses.mean() if reduction == MEAN else losses.sum()

        if (
            kernel_name == "mse_cpu" and common.itemsize == 2
        ):  # PyTorch rounds each step of this one to 16 bits
            with below_autograd():
                difference = self - target
                return apply_loss_reduction(difference * difference, reduction)
        return computing(reduced, self, target, common=common)
    return kernel


def loss_backward_kernel(function):
    """A CPU kernel for `function(x, target, *parameters)`, the slope of one loss: scaled by grad, and 1/numel
    for a mean."""
    def kernel(grad_output, self, target, reduction, *parameters):
        def backward(g, x, t):
            slope = function(x, t, *parameters)
            return slope * (g / slope.dtype.type(slope.size) if reduction == MEAN else g)
        return computing(backward, grad_output, self, target)
    return kernel


def declare_backward(name, parameters=""):
    return native_function(f"{name}_backward(Tensor grad_output, Tensor self, Tensor target, int "
                           f"reduction{parameters}) -> Tensor",
                           module="nn")


def scaled(grad, numel, reduction):
    """`grad / numel` for a mean: each element's share of the gradient."""
    return div_scalar.call(grad, numel) if reduction == MEAN else grad


# ------------------------------------------------------------------------------------------------- mse and l1

mse_loss = native_function("mse_loss(Tensor self, Tensor target, int reduction=Mean) -> "
                           "Tensor", module="nn", out=True, direct=True)
mse_loss_backward = declare_backward("mse_loss")


def squared_error(x, t):
    difference = x - t
    return np.multiply(difference, difference, out=difference) if difference.ndim else difference * difference


mse_loss.kernel(loss_kernel(squared_error, "mse_cpu"))
mse_loss_backward.kernel(loss_backward_kernel(lambda x, t: 2 * (x - t)))


@mse_loss.backward
class MseLossBackward0:
    def self(grad, self, target, reduction):
        return mse_loss_backward.call(grad, self, target, reduction)

    def target(grad, self, target, reduction):
        return mse_loss_backward.call(grad, target, self, reduction)


@mse_loss_backward.backward
class MseLossBackwardBackward0:
    def grad_output(grad, self, target, reduction):
        return mse_loss_backward.call(grad, self, target, reduction)

    def self(grad, grad_output, self_sym_sizes, reduction):
        return scaled(2 * (grad * grad_output), numel_of(self_sym_sizes), reduction)

    def target(grad, grad_output, target_sym_sizes, reduction):
        return -scaled(2 * (grad * grad_output), numel_of(target_sym_sizes), reduction)


def numel_of(sizes):
    count = 1
    for n in sizes:
        count *= n
    return count


l1_loss = native_function("l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", module="nn")


@l1_loss.compose
def l1_loss_composite(self, target, reduction):
    return apply_loss_reduction((self - target).abs(), reduction)


# ---------------------------------------------------------------------------------------- smooth l1 and huber

smooth_l1_loss = native_function("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float "
                                 "beta=1.0) -> Tensor",
                                 module="nn", out=True)
smooth_l1_loss_backward = declare_backward("smooth_l1_loss", ", float beta")
huber_loss = native_function("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> "
                             "Tensor", module="nn", out=True)
huber_loss_backward = declare_backward("huber_loss", ", float delta")


def smooth_l1(x, t, beta):
    """A parabola within `beta` of the target, |x - t| outside."""
    distance = np.abs(x - t)
    return np.where(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta)


def huber(x, t, delta):
    """smooth_l1 times delta: a parabola of unit curvature, then straight lines of slope delta."""
    distance = np.abs(x - t)
    return np.where(distance < delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))


_smooth_l1_loss = loss_kernel(smooth_l1, "smooth_l1_cpu")
_huber_loss = loss_kernel(huber, "huber_cpu")


@smooth_l1_loss.kernel
def smooth_l1_loss_cpu(self, target, reduction, beta):
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return mae(self, target, reduction) if beta == 0 else _smooth_l1_loss(self, target, reduction, beta)


mae = loss_kernel(lambda x, t: np.abs(x - t), "smooth_l1_cpu")


@huber_loss.kernel
def huber_loss_cpu(self, target, reduction, delta):
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return _huber_loss(self, target, reduction, delta)


smooth_l1_loss_backward.kernel(
    loss_backward_kernel(lambda x, t, beta: np.clip((x - t) / beta, -1, 1) if beta else np.sign(x - t))
)
huber_loss_backward.kernel(loss_backward_kernel(lambda x, t, delta: np.clip(x - t, -delta, delta)))


@smooth_l1_loss.backward
class SmoothL1LossBackward0:
    def self(grad, self, target, reduction, beta):
        return smooth_l1_loss_backward.call(grad, self, target, reduction, beta)

    def target(grad, self, target, reduction, beta):
        return smooth_l1_loss_backward.call(grad, target, self, reduction, beta)


@huber_loss.backward
class HuberLossBackward0:
    def self(grad, self, target, reduction, delta):
        return huber_loss_backward.call(grad, self, target, reduction, delta)

    def target(grad, self, target, reduction, delta):
        return huber_loss_backward.call(grad, target, self, reduction, delta)


def curvature(grad, grad_output, self, target, width, reduction):
    """The gradient through a slope that grows by 1 per unit, but only within `width` of the target."""
    inside = (self - target).abs() < width
    return scaled(grad * grad_output * inside, numel_of(self._array.shape), reduction)


@smooth_l1_loss_backward.backward
class SmoothL1LossBackwardBackward0:
    def grad_output(grad, self, target, reduction, beta):
        return smooth_l1_loss_backward.call(grad, self, target, reduction, beta)

    def self(grad, grad_output, self, target, reduction, beta):
        return (
            curvature(grad, grad_output, self, target, beta, reduction) / beta
            if beta
            else at.zeros_like(grad)
        )

    def target(grad, grad_output, self, target, reduction, beta):
        return (
            -curvature(grad, grad_output, self, target, beta, reduction) / beta
            if beta
            else at.zeros_like(grad)
        )


@huber_loss_backward.backward
class HuberLossBackwardBackward0:
    def grad_output(grad, self, target, reduction, delta):
        return huber_loss_backward.call(grad, self, target, reduction, delta)

    def self(grad, grad_output, self, target, reduction, delta):
        return curvature(grad, grad_output, self, target, delta, reduction)

    def target(grad, grad_output, self, target, reduction, delta):
        return -curvature(grad, grad_output, self, target, delta, reduction)


# ------------------------------------------------------------------------------------------------ soft margin

soft_margin_loss = native_function("soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> "
                                   "Tensor", module="nn", out=True)
soft_margin_loss_backward = declare_backward("soft_margin_loss")
_soft_margin_loss = loss_kernel(lambda x, t: np.log1p(np.exp(-t * x)), "soft_margin_loss")


@soft_margin_loss.kernel
def soft_margin_loss_cpu(self, target, reduction):
    if self._array.dtype.itemsize > 2:
        return _soft_margin_loss(self, target, reduction)
    with below_autograd():  # PyTorch rounds each step to 16 bits
        return apply_loss_reduction((-self * target).exp().log1p(), reduction)


def soft_margin_slope(x, t):
    z = np.exp(-t * x)
    return -t * z / (1 + z)


soft_margin_loss_grad = loss_backward_kernel(soft_margin_slope)


@soft_margin_loss_backward.kernel
def soft_margin_loss_backward_cpu(grad_output, self, target, reduction):
    if self._array.shape == target._array.shape:
        check_broadcasts(grad_output, self._array.shape)
    return soft_margin_loss_grad(grad_output, self, target, reduction)


@soft_margin_loss.backward
class SoftMarginLossBackward0:
    def self(grad, self, target, reduction):
        return soft_margin_loss_backward.call(grad, self, target, reduction)


@soft_margin_loss_backward.backward
class SoftMarginLossBackwardBackward0:
    def grad_output(grad, self, target, reduction):
        return soft_margin_loss_backward.call(grad, self, target, reduction)

    def self(grad, grad_output, self, target, reduction):
        s = (-target * self).sigmoid()
        return scaled(
            grad * grad_output * target * target * s * (1 - s), numel_of(self._array.shape), reduction
        )


# ---------------------------------------------------------------------------------------------------- poisson

poisson_nll_loss = native_function("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, "
                                   "int reduction) -> Tensor")


@poisson_nll_loss.compose
def poisson_nll_loss_composite(input, target, log_input, full, eps, reduction):
    """The expected count, or its logarithm, is the input. full: also the part that depends on the target only,
    log(target!) by Stirling's formula."""
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * add_scalar.call(input, eps, 1).log()
    if full:
        stirling = target * target.log() - target + mul_scalar.call(mul_scalar.call(target, 2 * math.pi).log(), 0.5)
        loss += stirling.masked_fill(target <= 1, 0)
    return apply_loss_reduction(loss, reduction)
