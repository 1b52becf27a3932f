"""Batching rules of losses: the losses of the elements are computed at once, and reduced example by example.

In PyTorch: `aten/src/ATen/functorch/BatchRulesLoss.cpp`, and the decompositions of `torch/_decomp/decompositions.py`. Explained in
the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.functions import at
from readtorch.aten.native.loss import MEAN, NONE

from .batch_rules_binary_ops import aligned, tensor_places, without_bdims
from .batch_rules_helper import decomposition, rule_for
from .gen_vmap_plumbing import plumbed


def unreduced(operator, flat):
    """The losses, or their gradients, of all elements, and the reduction that is due."""
    places = tensor_places(operator)
    arguments = without_bdims(flat, places, aligned(flat, places))
    place = [a.name for a in operator.schema.arguments].index("reduction")
    reduction, arguments[place] = arguments[place], NONE
    return operator.call(*arguments), reduction


def loss(operator):
    """The kernel of a loss of elements, with an argument `reduction`."""

    def rule(*flat):
        losses, reduction = unreduced(operator, flat)
        if reduction == NONE or losses.dim() == 1:
            return losses, 0
        losses = losses.flatten(1)
        return losses.mean(-1) if reduction == MEAN else losses.sum(-1), 0

    return plumbed(operator, rule)


def loss_backward(operator):
    """The kernel of its gradient: an element gets a share of its own example's, if the loss was a mean."""

    def rule(*flat):
        gradients, reduction = unreduced(operator, flat)
        count = gradients.numel() // max(gradients.shape[0], 1)
        return gradients / count if reduction == MEAN else gradients, 0

    return plumbed(operator, rule)


_LOSSES = "mse_loss smooth_l1_loss huber_loss soft_margin_loss binary_cross_entropy"
rule_for(loss, f"{_LOSSES} binary_cross_entropy_with_logits")
rule_for(loss_backward, " ".join([f"{name}_backward" for name in _LOSSES.split()]))


# ------------------------------------------------------------------------------------- negative log likelihood


def weights_of(weight, self, channel):
    return weight.reshape([-1 if d == channel else 1 for d in range(self.dim())]).expand(self.shape)


@decomposition("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward_decomposition(self, target, weight, reduction, ignore_index):
    """Each target's entry, weighed, but for those that are ignored; and the weights' sum, by which a mean divides."""
    channel = 0 if self.dim() < 2 else 1
    counts = target != ignore_index
    safe = at.where(counts, target, 0).unsqueeze(channel)
    spread = None if weight is None else weights_of(weight, self, channel)
    picked = at.gather(self if weight is None else self * spread, channel, safe).squeeze(channel)
    losses = at.where(counts, -picked, 0)
    if reduction == NONE and self.dim() > 1:
        return losses, at.new_zeros(self, ())
    weights = counts.to(self.dtype)
    if weight is not None:
        weights = at.where(counts, at.gather(spread, channel, safe).squeeze(channel), 0)
    total = weights.sum()
    if reduction == NONE:
        return losses, total
    return losses.sum() / total if reduction == MEAN else losses.sum(), total


@decomposition("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward_decomposition(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    channel = 0 if self.dim() < 2 else 1
    target = target.unsqueeze(channel)
    counts = target != ignore_index
    chosen = at.scatter(at.zeros_like(self), channel, at.where(counts, target, 0), -1.0)
    if reduction == MEAN:
        grad_output = grad_output / total_weight
    if self.dim() > grad_output.dim() > 0:
        grad_output = grad_output.unsqueeze(channel)
    if weight is not None:
        grad_output = grad_output * weights_of(weight, self, channel)
    return chosen * at.where(counts, grad_output, 0)
