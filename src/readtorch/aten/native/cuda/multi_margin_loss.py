"""Margins between the scores of one sample: multi_margin_loss and multilabel_margin_loss, of other operators.

In PyTorch: `aten/src/ATen/native/cuda/MultiMarginLoss.cu`, `aten/src/ATen/native/cuda/MultiLabelMarginCriterion.cu`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native.loss import MEAN, NONE
from readtorch.aten.native.loss_multi_margin import check_multi_margin, check_multilabel, check_types, rows_of
from readtorch.c10.tensor_impl import dtype_of

from .register_dispatch_key import cuda_kernel, operator_named, owned


def as_rows(t):
    """A vector is one sample, a number one sample of one class."""
    return t.reshape(rows_of(t))


def reduced(losses, reduction, has_batch):
    if reduction == NONE:
        return losses if has_batch else owned(losses.reshape(()))
    total = losses.sum()
    return total / max(losses._array.size, 1) if reduction == MEAN else total


def shares(grad, count, reduction):
    """How much of `grad` belongs to each of `count` losses: a column, or a number for all."""
    return grad.reshape(-1, 1) / (max(count, 1) if reduction == MEAN else 1)


def gaps(x, labels, margin):
    """By how much each wrong class comes too close to the right one; 0 for the right one."""
    z = (x - x.gather(1, labels) + margin).clamp(min=0)
    return z.scatter(1, labels, 0)


@cuda_kernel(operator_named("multi_margin_loss"))
def multi_margin_loss_cuda(self, target, p, margin, weight, reduction):
    check_multi_margin(self, target, p, weight)
    check_types(self, target, "MultiMarginLoss_forward_kernel_cuda", weight)
    x, labels = as_rows(self), target.reshape(-1)
    z = gaps(x, labels.unsqueeze(1), margin)
    losses = (z if p == 1 else z * z).sum(1) / x._array.shape[1]
    losses = losses if weight is None else losses * weight.reshape(-1)[labels]
    return reduced(losses, reduction, target._array.ndim > 0)


@cuda_kernel(operator_named("multi_margin_loss_backward"))
def multi_margin_loss_backward_cuda(grad_output, self, target, p, margin, weight, reduction):
    check_multi_margin(self, target, p, weight)
    check_types(self, target, "MultiMarginLoss_backward_kernel_cuda", weight)
    x, labels = as_rows(self), target.reshape(-1, 1)
    z = gaps(x, labels, margin)
    slope = (z > 0).to(dtype_of(x)) if p == 1 else 2 * z
    slope = slope if weight is None else slope * weight.reshape(-1)[labels]
    slope = slope.scatter(1, labels, -slope.sum(1, True)) / x._array.shape[1]
    return owned((slope * shares(grad_output, x._array.shape[0], reduction)).reshape(self._array.shape))


def listed_labels(target):
    """The labels as rows, a label in place of each -1, and which are listed: those before the first -1."""
    labels = as_rows(target)
    return labels.clamp(min=0), at.cumprod((labels >= 0).to(dtype_of(target)), 1)


def violations(x, labels, listed, is_target):
    """max(0, 1 - x[n, labels[n, i]] + x[n, j]) as (n, i, j); 0 where i is not listed or j is a right one."""
    z = (x.unsqueeze(1) - x.gather(1, labels).unsqueeze(2) + 1).clamp(min=0)
    return z * listed.unsqueeze(2) * (is_target == 0).unsqueeze(1)


@cuda_kernel(operator_named("multilabel_margin_loss_forward"))
def multilabel_margin_loss_cuda(self, target, reduction):
    check_multilabel(self, target)
    check_types(self, target, "multilabel_margin_loss_forward_kernel")
    x, (labels, listed) = as_rows(self), listed_labels(target)
    is_target = at.zeros_like(x).scatter_reduce(1, labels, listed.to(dtype_of(x)), "amax")
    losses = violations(x, labels, listed, is_target).sum((1, 2)) / x._array.shape[1]
    return reduced(losses, reduction, target._array.ndim > 1), owned(is_target.reshape(target._array.shape))


@cuda_kernel(operator_named("multilabel_margin_loss_backward"))
def multilabel_margin_loss_backward_cuda(grad_output, self, target, reduction, is_target):
    check_multilabel(self, target)
    check_types(self, target, "multilabel_margin_loss_backward_kernel")
    x, (labels, listed) = as_rows(self), listed_labels(target)
    violated = (violations(x, labels, listed, as_rows(is_target)) > 0).to(dtype_of(x))
    slope = violated.sum(1).scatter_add(1, labels, -violated.sum(2)) / x._array.shape[1]
    return owned((slope * shares(grad_output, x._array.shape[0], reduction)).reshape(self._array.shape))
