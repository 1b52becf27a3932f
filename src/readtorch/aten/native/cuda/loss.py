"""mse_loss, smooth_l1_loss, huber_loss, soft_margin_loss, binary cross-entropy, and nll_loss by kernels of its own.

nll_loss: scores are (N, C) or (N, C, …); a thread takes one sample and position. Sums over samples go through
reduce.py: no atomics.

In PyTorch: `aten/src/ATen/native/cuda/Loss.cu`, `aten/src/ATen/native/cuda/NLLLoss2d.cu`,
`aten/src/ATen/native/cuda/BinaryMiscOpsKernels.cu`.
"""

import functools
import math

from numba import cuda

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.native import math as f
from readtorch.aten.native.loss import MEAN, NONE, apply_loss_reduction, check_same_dtype, room, share, weighed
from readtorch.aten.native.loss import SUM as TOTAL
from readtorch.aten.native.loss_nll import check_types
from readtorch.aten.native.math import div
from readtorch.c10.cuda.cuda_device_assertion import cuda_kernel_assert
from readtorch.c10.cuda.launch import blocks_of, launch, scratch
from readtorch.c10.tensor_impl import dtype_of

from .fill_kernel import filled
from .loops import pointwise
from .normalization import by_channel
from .reduce import SUM, reduce
from .register_dispatch_key import cuda_impl, cuda_kernel, operator_named
from .rows import flat
from .tensor_iterator import apply, run

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
            t = target[i]
            if t == ignore_index:
                losses[i] = weights[i] = 0
            else:
                cuda_kernel_assert(0 <= t < log_p.shape[1])
                w = weight_of(weight, t)
                losses[i], weights[i] = -w * log_p[i // places, t, i % places], w

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


def elementwise(name, function, backward, factor=1):
    """A loss of each pair of elements. `factor`: of its gradient."""
    loss = operator_named(name)

    @cuda_kernel(loss)
    def forward(self, target, reduction, *given):
        loss.shape_rule(self, target, reduction, *given)
        return apply_loss_reduction(apply(function, [self, target], given), reduction)

    @cuda_impl(operator_named(f"{name}_backward"))
    def gradient(grad_output, self, target, reduction, *given):
        *given, out = given
        losses = broadcast_shape(self._array.shape, target._array.shape)
        count = max(1, math.prod(losses)) if reduction == MEAN else 1
        run(backward, [grad_output, self, target], (factor / count, *given), dtype_of(out), out._array)


elementwise("mse_loss", f.squared_difference, f.squared_difference_backward, factor=2)
elementwise("smooth_l1_loss", f.smooth_l1, f.smooth_l1_backward)
elementwise("huber_loss", f.huber, f.huber_backward)
elementwise("soft_margin_loss", f.soft_margin, f.soft_margin_backward)


@cuda_kernel(operator_named("binary_cross_entropy"))
def binary_cross_entropy_cuda(self, target, weight, reduction):
    check_same_dtype(self, target)
    return weighed(apply(cross_entropy_of_pair, [self, target]), weight, reduction)


def cross_entropy_of_pair(x, y, scalars):
    """Of a probability and what it should be. Logarithms are not less than -100."""
    x, y, least = probability(x), probability(y), type(x)(-100)
    return (y - type(x)(1)) * max(math.log1p(-x), least) - y * max(math.log(x), least)


def probability(x):
    cuda_kernel_assert(0 <= x <= 1)
    return x


@cuda_kernel(operator_named("binary_cross_entropy_backward"))
def binary_cross_entropy_backward_cuda(grad_output, self, target, weight, reduction):
    return share(grad_output * (self - target) / room(self), weight, reduction)


def nll_forward(self, target, weight, reduction, ignore_index, output, total_weight):
    check_types(self, target, weight)
    filled(output, math.nan if reduction == MEAN and not target._array.size else 0)
    filled(total_weight, 0)
    if target._array.size:
        arrays = [t if t is None else t._array for t in (self, target, weight)]
        nll_loss(*arrays, reduction, ignore_index, output._array, total_weight._array)


def nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out):
    check_types(self, target, weight)
    grad, labels, weight, total = [t if t is None else t._array for t in (grad_output, target, weight, total_weight)]
    nll_loss_backward(grad, labels, weight, reduction, ignore_index, total, out._array)


@cuda_impl(operator_named("nll_loss_forward"))
def nll_loss_forward_cuda(self, target, weight, reduction, *rest):
    if self._array.ndim == 1:  # one sample: nothing to reduce
        self, target, reduction = self.unsqueeze(0), target.reshape(-1), reduction or TOTAL
    nll_forward(self, target, weight, reduction, *rest)


@cuda_impl(operator_named("nll_loss_backward"))
def nll_loss_backward_cuda(grad_output, self, target, weight, reduction, ignore_index, total_weight, out):
    if self._array.ndim == 1:
        out, target = out.unsqueeze(0), target.reshape(-1)
    nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out)


cuda_impl(operator_named("nll_loss2d_forward"))(nll_forward)
cuda_impl(operator_named("nll_loss2d_backward"))(nll_backward)
