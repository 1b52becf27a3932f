"""Losses that compare probabilities: binary cross entropy and the Kullback-Leibler divergence.

In PyTorch: `aten/src/ATen/native/Loss.cpp`. Explained in the chapter "Layers, functional, init".
"""
import numpy as np

from ...c10.tensor_impl import wrap_result
from ..functions import at
from ..native_function import below_autograd, native_function
from .loss import apply_loss_reduction, scaled
from .tensor_iterator import computing

_SELF_TARGET = "Tensor self, Tensor target, Tensor? weight=None"

# ------------------------------------------------------------------------------------------- of probabilities

binary_cross_entropy = native_function(f"binary_cross_entropy({_SELF_TARGET}, int reduction=Mean) -> "
                                       f"Tensor", module="nn", out=True)
binary_cross_entropy_backward = native_function(
    f"binary_cross_entropy_backward(Tensor grad_output, {_SELF_TARGET}, int reduction=Mean) -> "
    f"Tensor", module="nn")


def cross_entropy_of_bits(x, t):
    """Logarithms stop at -100, so that a certain but wrong prediction costs much and not infinitely much."""
    least = x.dtype.type(-100)
    return (t - x.dtype.type(1)) * np.maximum(np.log1p(-x), least) - t * np.maximum(np.log(x), least)


@binary_cross_entropy.kernel
def binary_cross_entropy_cpu(self, target, weight, reduction):
    for name, t in (("input", self), ("target", target)):
        if ((t._array < 0) | (t._array > 1)).any():
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    if self._array.dtype.itemsize == 2:  # PyTorch rounds each step to 16 bits
        loss = wrap_result(cross_entropy_of_bits(self._array, target._array))
    else:
        loss = computing(cross_entropy_of_bits, self, target)
    return finish(loss, weight, reduction)


def finish(loss, weight, reduction):
    """Weigh the elements' losses and reduce them."""
    with below_autograd():
        return apply_loss_reduction(loss if weight is None else loss * weight, reduction)


@binary_cross_entropy.backward
class BinaryCrossEntropyBackward0:
    def self(grad, self, target, weight, reduction):
        return binary_cross_entropy_backward.call(grad, self, target, weight, reduction)

    def target(grad, self, target, weight, reduction):
        slope = (1 - self).log().clamp(min=-100) - self.log().clamp(min=-100)
        return share(slope * grad, weight, reduction)


def share(gradients, weight, reduction):
    """The elements' gradients, weighed, and divided by their number if the loss was a mean."""
    return scaled(gradients if weight is None else gradients * weight, gradients._array.size, reduction)


@binary_cross_entropy_backward.kernel
def binary_cross_entropy_backward_cpu(grad_output, self, target, weight, reduction):
    slope = computing(
        lambda g, x, t: g * (x - t) / np.maximum((1 - x) * x, x.dtype.type(1e-12)), grad_output, self, target
    )
    with below_autograd():
        return share(slope, weight, reduction)


@binary_cross_entropy_backward.backward
class BinaryCrossEntropyBackwardBackward0:
    def grad_output(grad, self, target, weight, reduction):
        return share(grad * (self - target) / room(self), weight, reduction)

    def self(grad, grad_output, self, target, weight, reduction):
        below, above = self + 1e-12, 1 - self + 1e-12
        curvature = target / (below * below) + (1 - target) / (above * above)
        return share(grad * grad_output * curvature, weight, reduction)

    def target(grad, grad_output, self, weight, reduction):
        return share(-grad * grad_output / room(self), weight, reduction)


def room(x):
    """x (1 - x), kept away from 0 where it divides."""
    return ((1 - x) * x).clamp(min=1e-12)


# -------------------------------------------------------------------------------------------------- of logits

binary_cross_entropy_with_logits = native_function(
    f"binary_cross_entropy_with_logits({_SELF_TARGET}, Tensor? pos_weight=None, int reduction=Mean) -> "
    f"Tensor", out=True)


@binary_cross_entropy_with_logits.kernel
def binary_cross_entropy_with_logits_cpu(self, target, weight, pos_weight, reduction):
    """(1 - t) x - (1 + (pos_weight - 1) t) log sigmoid(x): sigmoid's logarithm is never taken of a rounded
    0."""
    with below_autograd():
        log_weight = 1 if pos_weight is None else (pos_weight - 1) * target + 1
        loss = (1 - target) * self - at.log_sigmoid(self) * log_weight
    return finish(loss, weight, reduction)


@binary_cross_entropy_with_logits.backward
class BinaryCrossEntropyWithLogitsBackward0:
    def self(grad, self, target, weight, pos_weight, reduction):
        if pos_weight is None:
            slope = self.sigmoid() - target
        else:
            positive = pos_weight * target
            slope = (positive + 1 - target) * self.sigmoid() - positive
        return share(slope * grad, weight, reduction)

    def target(grad, self, weight, pos_weight, reduction):
        if pos_weight is None:
            return share(-self * grad, weight, reduction)
        slope = at.log_sigmoid(-self) - pos_weight * at.log_sigmoid(self)
        return share(slope * grad, weight, reduction)


# ------------------------------------------------------------------------------------- of whole distributions

kl_div = native_function("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) "
                         "-> Tensor")


@kl_div.compose
def kl_div_composite(self, target, reduction, log_target):
    """target · (log target - self): `self` holds logarithms."""
    if self.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if log_target:
        divergence = target.exp() * (target - self)
    else:
        divergence = at.xlogy(target, target) - target * self
    return apply_loss_reduction(divergence, reduction)
