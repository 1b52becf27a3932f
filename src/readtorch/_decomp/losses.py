"""Losses and their backward. In PyTorch: `torch/_decomp/decompositions.py`.

reduction: 0 none, 1 mean, 2 sum, as operators have it.
"""

import readtorch as rt
from readtorch.aten.native.loss import MEAN, NONE, apply_loss_reduction

from .activations import elementwise


def share(self, reduction):
    """What an element's loss counts for."""
    return 1.0 / self.numel() if reduction == MEAN else 1.0


@elementwise("mse_loss.default")
def mse_loss(self, target, reduction=MEAN):
    return apply_loss_reduction((self - target) ** 2, reduction)


@elementwise("mse_loss_backward.default")
def mse_loss_backward(grad_output, self, target, reduction):
    return 2.0 * share(self, reduction) * (self - target) * grad_output


@elementwise("smooth_l1_loss.default")
def smooth_l1_loss(self, target, reduction=MEAN, beta=1.0):
    distance = (self - target).abs()
    if beta == 0:
        return apply_loss_reduction(distance, reduction)
    return apply_loss_reduction(rt.where(distance < beta, 0.5 * distance**2 / beta, distance - 0.5 * beta), reduction)


@elementwise("smooth_l1_loss_backward.default")
def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    x, grad = self - target, share(self, reduction) * grad_output
    return rt.where(x.abs() < beta, grad * x / beta, grad * x.sign())


@elementwise("huber_loss.default")
def huber_loss(self, target, reduction=MEAN, delta=1.0):
    distance = (self - target).abs()
    return apply_loss_reduction(
        rt.where(distance < delta, 0.5 * distance**2, delta * (distance - 0.5 * delta)), reduction
    )


@elementwise("huber_loss_backward.default")
def huber_loss_backward(grad_output, self, target, reduction, delta):
    return share(self, reduction) * (self - target).clamp(-delta, delta) * grad_output


@elementwise("soft_margin_loss.default")
def soft_margin_loss(self, target, reduction=MEAN):
    return apply_loss_reduction((-target * self).exp().log1p(), reduction)


@elementwise("soft_margin_loss_backward.default")
def soft_margin_loss_backward(grad_output, self, target, reduction):
    return -target * grad_output * ((target * self).neg().sigmoid() * share(self, reduction))


@elementwise("binary_cross_entropy.default")
def binary_cross_entropy(self, target, weight=None, reduction=MEAN):
    loss = (target - 1) * (-self).log1p().clamp(min=-100) - target * self.log().clamp(min=-100)
    return apply_loss_reduction(loss if weight is None else loss * weight, reduction)


@elementwise("binary_cross_entropy_backward.default")
def binary_cross_entropy_backward(grad_output, self, target, weight=None, reduction=MEAN):
    grad = grad_output * (self - target) / ((1 - self) * self).clamp(min=1e-12)
    grad = grad if weight is None else grad * weight
    return grad * share(self, reduction)


# -- negative log likelihood: the target says which class counts


def of_classes(vector, self):
    """A number for each class beside (classes,) or (batch, classes, …)."""
    return vector.view([-1 if d == max(0, min(1, self.dim() - 1)) else 1 for d in range(self.dim())])


def picked(self, target, ignore_index):
    """(the dimension of classes, the target as indices along it, where it counts)"""
    channel = 0 if self.dim() < 2 else 1
    target = target if self.dim() > 1 or not target.dim() else target[0]
    target = target.unsqueeze(channel)
    counts = target != ignore_index
    return channel, rt.where(counts, target, 0), counts


@elementwise("nll_loss_forward.default", "nll_loss2d_forward.default")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    channel, index, counts = picked(self, target, ignore_index)
    scores = self if weight is None else self * of_classes(weight, self)
    losses = rt.where(counts, -rt.gather(scores, channel, index), 0).squeeze(channel)
    if reduction == NONE and self.dim() > 1:
        return losses, self.new_full((), 0.0)
    if weight is None:
        total = counts.sum().to(self.dtype)
    else:
        total = rt.where(counts, rt.gather(of_classes(weight, self).expand(self.shape), channel, index), 0).sum()
    if reduction == MEAN:
        return losses.sum() / total, total
    return losses.sum(), total


@elementwise("nll_loss_backward.default", "nll_loss2d_backward.default")
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    channel, index, counts = picked(self, target, ignore_index)
    grad_output = grad_output / total_weight if reduction == MEAN else grad_output
    if self.dim() > grad_output.dim() > 0:
        grad_output = grad_output.unsqueeze(channel)
    if weight is not None:
        grad_output = grad_output * of_classes(weight, self)
    chosen = rt.zeros_like(self).scatter(channel, index, -1.0)
    return chosen * rt.where(counts, grad_output, 0)
