"""Losses: nll_loss, mse_loss, smooth_l1_loss, huber_loss, binary cross-entropy with and without logits. (margins.py:
multi_margin_loss and multilabel_margin_loss.)

In PyTorch: `aten/src/ATen/native/cuda/{Loss,NLLLoss2d,BinaryMiscOpsKernels}.cu`.
"""

import math

import numpy as np

from .....c10.cuda.device_memory import tensor_on
from .....c10.tensor_impl import dtype_of
from ....functions import at
from ...loss import MEAN, NONE, SUM
from ...loss_ctc import check_arguments, check_saved
from ...loss_nll import check_target_type, check_weight
from ...tensor_iterator import not_implemented
from .. import ctc
from .. import loss as kernels
from .. import more_functions as g
from ..rows import flat
from .broadcasting import apply
from .factories import filled
from .pointwise import operator_named
from .registration import cuda_kernel, empty, here, owned

# ------------------------------------------------------------------------------------- of the elements one by
# one


def reduced(losses, reduction):
    return losses if reduction == NONE else losses.mean() if reduction == MEAN else losses.sum()


def elementwise(name, function, backward, factor=1):
    """A loss of each pair of elements. `factor`: of its gradient."""

    @cuda_kernel(operator_named(name))
    def forward(self, target, reduction, *given):
        return reduced(apply(function, [self, target], given), reduction)

    @cuda_kernel(operator_named(f"{name}_backward"))
    def gradient(grad_output, self, target, reduction, *given):
        count = (
            max(1, math.prod(at.broadcast_tensors([self, target])[0]._array.shape))
            if reduction == MEAN
            else 1
        )
        return apply(backward, [grad_output, self, target], (factor / count, *given))


elementwise("mse_loss", g.squared_difference, g.squared_difference_backward, factor=2)
elementwise("smooth_l1_loss", g.smooth_l1, g.smooth_l1_backward)
elementwise("huber_loss", g.huber, g.huber_backward)
elementwise("soft_margin_loss", g.soft_margin, g.soft_margin_backward)


@cuda_kernel(operator_named("binary_cross_entropy"))
def binary_cross_entropy_cuda(self, target, weight, reduction):
    """Logarithms are not less than -100."""
    losses = (target - 1) * (1 - self).log().clamp(min=-100) - target * self.log().clamp(min=-100)
    return reduced(losses if weight is None else losses * weight, reduction)


@cuda_kernel(operator_named("binary_cross_entropy_backward"))
def binary_cross_entropy_backward_cuda(grad_output, self, target, weight, reduction):
    grad = grad_output * (self - target) / ((1 - self) * self).clamp(min=1e-12)
    grad = grad if weight is None else grad * weight
    return grad / max(1, self._array.size) if reduction == MEAN else grad


@cuda_kernel(operator_named("binary_cross_entropy_with_logits"))
def binary_cross_entropy_with_logits_cuda(self, target, weight, pos_weight, reduction):
    log_weight = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    losses = (1 - target) * self - log_weight * at.log_sigmoid_forward(self)[0]
    return reduced(losses if weight is None else losses * weight, reduction)


# ------------------------------------------------------------------------------------------------------
# nll_loss


def nll_forward(self, target, weight, reduction, ignore_index, shape):
    """The loss, of `shape` if it is not reduced, and the sum of the weights."""
    number = self._array.dtype
    output, total = filled(empty(shape if reduction == NONE else (), number), 0), filled(empty((), number), 0)
    if target._array.size:
        kernels.nll_loss(
            self._array,
            target._array,
            None if weight is None else weight._array,
            reduction,
            ignore_index,
            output._array,
            total._array,
        )
    elif reduction == MEAN:
        filled(output, math.nan)
    return output, total


def nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    result = filled(empty(self._array.shape, self._array.dtype), 0)
    kernels.nll_loss_backward(
        grad_output._array,
        target._array,
        None if weight is None else weight._array,
        reduction,
        ignore_index,
        total_weight._array,
        result._array,
    )
    return result


@cuda_kernel(operator_named("nll_loss_forward"))
def nll_loss_forward_cuda(self, target, weight, reduction, ignore_index):
    x, t = self._array, target._array
    if not 0 < x.ndim <= 2:
        raise RuntimeError("input tensor should be 1D or 2D")
    if t.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not (x.ndim == 1 and t.size == 1) and x.shape[0] != t.shape[0]:
        raise RuntimeError(f"size mismatch (got input: {list(x.shape)}, target: {list(t.shape)})")
    check_weight(self, weight, x.shape[-1])
    check_target_type(target)
    if x.ndim == 1:  # one sample: nothing to reduce
        return nll_forward(as_batch(self), target.reshape(-1), weight, reduction or SUM, ignore_index, ())
    return nll_forward(self, target, weight, reduction, ignore_index, t.shape)


def as_batch(self):
    return self.unsqueeze(0) if self._array.ndim == 1 else self


@cuda_kernel(operator_named("nll_loss_backward"))
def nll_loss_backward_cuda(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    grad = nll_backward(
        grad_output, as_batch(self), target.reshape(-1), weight, reduction, ignore_index, total_weight
    )
    return owned(grad.view(self._array.shape))


@cuda_kernel(operator_named("nll_loss2d_forward"))
def nll_loss2d_forward_cuda(self, target, weight, reduction, ignore_index):
    check_weight(self, weight, self._array.shape[1])
    check_target_type(target)
    return nll_forward(self, target, weight, reduction, ignore_index, target._array.shape)


@cuda_kernel(operator_named("nll_loss2d_backward"))
def nll_loss2d_backward_cuda(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    return nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)


# ------------------------------------------------------------------------------------------------------
# CTC


def target_lists(targets, input_lengths, target_lengths):
    """Targets in one row, where each sample's begin, and the lengths: as arrays on the device."""
    if targets._array.ndim == 2:
        starts = np.arange(len(target_lengths)) * targets._array.shape[1]
    else:
        starts = np.cumsum([0, *target_lengths])[:-1]
    lists = [tensor_on(here(), np.array(a, np.int64)) for a in (starts, input_lengths, target_lengths)]
    return flat(targets._array), *[t._array for t in lists]


@cuda_kernel(operator_named("_ctc_loss"))
def ctc_loss_cuda(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """The loss of each sample (N), and alpha (N, T, S) for backward. The labels stay unchecked."""
    check_arguments(log_probs, targets, input_lengths, target_lengths, blank)
    if log_probs._array.dtype.name not in ("float32", "float64"):
        raise not_implemented("ctc_loss_cuda")(dtype_of(log_probs))
    steps, samples, _ = log_probs._array.shape
    longest = targets._array.shape[1] if targets._array.ndim == 2 else max(target_lengths, default=0)
    log_alpha = filled(empty((samples, steps, 2 * longest + 1), log_probs._array.dtype), -math.inf)
    losses = empty((samples,), log_probs._array.dtype)
    ctc.ctc_loss(log_probs._array, *target_lists(targets, input_lengths, target_lengths), blank, log_alpha._array,
                 losses._array)
    return losses, log_alpha


@cuda_kernel(operator_named("_ctc_loss_backward"))
def ctc_loss_backward_cuda(
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity
):
    check_arguments(log_probs, targets, input_lengths, target_lengths, blank)
    check_saved(grad, log_probs, target_lengths, neg_log_likelihood, log_alpha)
    result = filled(empty(log_probs._array.shape, log_probs._array.dtype), 0)
    ctc.ctc_loss_backward(grad._array, log_probs._array, *target_lists(targets, input_lengths, target_lengths),
                          neg_log_likelihood._array, log_alpha._array, blank, zero_infinity, result._array)
    return result
