"""mse_loss, smooth_l1_loss, huber_loss, soft_margin_loss, binary cross-entropy, and nll_loss by kernels of its own.

nll_loss: scores are (N, C) or (N, C, …); a thread takes one sample and position. Sums over samples go through
reduce.py: no atomics.

In PyTorch: `aten/src/ATen/native/cuda/Loss.cu`, `aten/src/ATen/native/cuda/NLLLoss2d.cu`,
`aten/src/ATen/native/cuda/BinaryMiscOpsKernels.cu`.
"""

import functools
import math

from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.loss import MEAN, NONE
from readtorch.aten.native.loss import SUM as TOTAL
from readtorch.aten.native.loss_nll import check_target_type, check_weight
from readtorch.aten.native.math import div
from readtorch.c10.cuda.launch import blocks_of, launch, scratch

from .fill_kernel import filled
from .loops import pointwise
from .normalization import by_channel
from .reduce import SUM, reduce
from .register_dispatch_key import cuda_kernel, empty, operator_named, owned
from .rows import flat
from .tensor_iterator import apply

THREADS = 256


def nll_loss(log_p, target, weight, reduction, ignore_index, out, total_weight):
    """out: one number, or target's shape for NONE. total_weight: one number, 0 before
    the call, what MEAN divides by."""
    losses, weights = (scratch(log_p, (target.size,), log_p.dtype) for _ in range(2))
    scores = by_channel(log_p)
    launch(
        nll_kernel(weight is not None),
        blocks_of(target.size, THREADS),
        THREADS,
        scores,
        flat(target),
        flat(log_p) if weight is None else weight,
        ignore_index,
        losses,
        weights,
    )
    finish(losses, weights, reduction, out, total_weight)


def finish(losses, weights, reduction, out, total_weight):
    if reduction == NONE:  # total_weight stays 0
        from .copy import copy

        copy(losses, flat(out))
        return
    reduce(SUM, weights, (0,), flat(total_weight).reshape(()))
    reduce(SUM, losses, (0,), flat(out).reshape(()))
    if reduction == MEAN:
        pointwise(div, [flat(out), flat(total_weight)], flat(out))


def nll_loss_backward(grad, target, weight, reduction, ignore_index, total_weight, grad_input):
    """grad: one number, or target's shape for NONE. Fills grad_input (contiguous)."""
    if grad_input.size == 0:
        return
    result = by_channel(grad_input)
    launch(
        nll_backward_kernel(weight is not None, reduction),
        blocks_of(grad_input.size, THREADS),
        THREADS,
        flat(grad),
        flat(target),
        flat(total_weight) if weight is None else weight,
        ignore_index,
        flat(total_weight),
        result,
    )


def listed(weight, c):
    return weight[c]


def unweighted(weight, c):
    return type(weight[0])(1)


@functools.cache
def nll_kernel(has_weight):
    weight_of = listed if has_weight else unweighted

    def nll(log_p, target, weight, ignore_index, losses, weights):
        """log_p: (N, C, places); target, losses, weights: N · places."""
        places = log_p.shape[2]
        for i in range(cuda.grid(1), target.size, cuda.gridsize(1)):
            c = target[i]
            if c == ignore_index:
                losses[i] = weights[i] = 0
            else:
                w = weight_of(weight, c)
                losses[i], weights[i] = -w * log_p[i // places, c, i % places], w

    return nll


@functools.cache
def nll_backward_kernel(has_weight, reduction):
    weight_of = listed if has_weight else unweighted

    def backward(grad, target, weight, ignore_index, total_weight, out):
        channels, places = out.shape[1], out.shape[2]
        for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            n, c, s = e // (channels * places), e // places % channels, e % places
            i = n * places + s
            value = type(out[n, c, s])(0)
            if target[i] == c and c != ignore_index:
                value = -weight_of(weight, c) * grad[i if reduction == NONE else 0]
                if reduction == MEAN:
                    value /= total_weight[0]
            out[n, c, s] = value

    return backward


def reduced(losses, reduction):
    return losses if reduction == NONE else losses.mean() if reduction == MEAN else losses.sum()


def elementwise(name, function, backward, factor=1):
    """A loss of each pair of elements. `factor`: of its gradient."""

    @cuda_kernel(operator_named(name))
    def forward(self, target, reduction, *given):
        return reduced(apply(function, [self, target], given), reduction)

    @cuda_kernel(operator_named(f"{name}_backward"))
    def gradient(grad_output, self, target, reduction, *given):
        count = max(1, math.prod(at.broadcast_tensors([self, target])[0]._array.shape)) if reduction == MEAN else 1
        return apply(backward, [grad_output, self, target], (factor / count, *given))


elementwise("mse_loss", f.squared_difference, f.squared_difference_backward, factor=2)
elementwise("smooth_l1_loss", f.smooth_l1, f.smooth_l1_backward)
elementwise("huber_loss", f.huber, f.huber_backward)
elementwise("soft_margin_loss", f.soft_margin, f.soft_margin_backward)


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


def nll_forward(self, target, weight, reduction, ignore_index, shape):
    """The loss, of `shape` if it is not reduced, and the sum of the weights."""
    number = self._array.dtype
    output, total = filled(empty(shape if reduction == NONE else (), number), 0), filled(empty((), number), 0)
    if target._array.size:
        nll_loss(
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
    nll_loss_backward(
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
        return nll_forward(as_batch(self), target.reshape(-1), weight, reduction or TOTAL, ignore_index, ())
    return nll_forward(self, target, weight, reduction, ignore_index, t.shape)


def as_batch(self):
    return self.unsqueeze(0) if self._array.ndim == 1 else self


@cuda_kernel(operator_named("nll_loss_backward"))
def nll_loss_backward_cuda(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    grad = nll_backward(grad_output, as_batch(self), target.reshape(-1), weight, reduction, ignore_index, total_weight)
    return owned(grad.view(self._array.shape))


@cuda_kernel(operator_named("nll_loss2d_forward"))
def nll_loss2d_forward_cuda(self, target, weight, reduction, ignore_index):
    check_weight(self, weight, self._array.shape[1])
    check_target_type(target)
    return nll_forward(self, target, weight, reduction, ignore_index, target._array.shape)


@cuda_kernel(operator_named("nll_loss2d_backward"))
def nll_loss2d_backward_cuda(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    return nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)
