"""nll_loss and cross_entropy over classes, forward and backward.

Scores are (N, C) or (N, C, …); a thread takes one sample and place (nll_loss), or a block of whole warps
takes one (cross_entropy, which needs the whole row of scores twice). Sums over samples go through reduce.py:
no atomics.

In PyTorch: `aten/src/ATen/native/cuda/{Loss,NLLLoss2d}.cu`. There, cross_entropy is log_softmax, then
nll_loss.
"""
import functools
import math

import numpy as np
from numba import cuda

from ....c10.cuda.launch import blocks_of, launch, scratch
from .block_reduce import block_max, block_sum, whole_warps
from .batch_norm import by_channel
from .functions import div
from .loops import pointwise
from .reduce import SUM, reduce
from .rows import flat, matrix

THREADS = 256
NONE, MEAN, TOTAL = 0, 1, 2  # the numbers of PyTorch's at::Reduction


def nll_loss(log_p, target, weight, reduction, ignore_index, out, total_weight):
    """out: one number, or target's shape for NONE. total_weight: one number, what MEAN divides by."""
    losses, weights = (scratch(log_p, (target.size,), log_p.dtype) for _ in range(2))
    scores = by_channel(log_p)
    launch(nll_kernel(weight is not None), blocks_of(target.size, THREADS), THREADS, scores, flat(target),
           flat(log_p) if weight is None else weight, ignore_index, losses, weights)
    finish(losses, weights, reduction, out, total_weight)


def finish(losses, weights, reduction, out, total_weight):
    reduce(SUM, weights, (0,), flat(total_weight).reshape(()))
    if reduction == NONE:
        from .copy import copy
        copy(losses, flat(out))
        return
    reduce(SUM, losses, (0,), flat(out).reshape(()))
    if reduction == MEAN:
        pointwise(div, [flat(out), flat(total_weight)], flat(out))


def nll_loss_backward(grad, target, weight, reduction, ignore_index, total_weight, grad_input):
    """grad: one number, or target's shape for NONE. Fills grad_input (contiguous)."""
    if grad_input.size == 0:
        return
    result = by_channel(grad_input)
    launch(nll_backward_kernel(weight is not None, reduction), blocks_of(grad_input.size, THREADS), THREADS,
           flat(grad),
           flat(target), flat(total_weight) if weight is None else weight, ignore_index, flat(total_weight),
           result)


def cross_entropy(x, target, out, log_sums):
    """The loss of each row of x (N, C), unreduced; log_sums (N): log Σ exp, for the backward pass."""
    if target.size:
        x = matrix(x, x.shape[1])
        launch(cross_entropy_kernel(x.dtype.type), min(len(x), 65535), whole_warps(x.shape[1]), x, target,
               out, log_sums)


def cross_entropy_backward(grad, x, target, log_sums, grad_input):
    """grad: one number for each row."""
    if x.size:
        x, result = matrix(x, x.shape[1]), matrix(grad_input, x.shape[1])
        launch(cross_entropy_backward_kernel, blocks_of(x.size, THREADS), THREADS, grad, x, target, log_sums,
               result)


# ---------------------------------------------------------------------------------------------------- kernels


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


@functools.cache
def cross_entropy_kernel(dtype):
    lowest = dtype(-np.inf)

    def cross_entropy(x, target, out, log_sums):
        shared = cuda.shared.array(32, dtype)
        for r in range(cuda.blockIdx.x, x.shape[0], cuda.gridDim.x):
            greatest, total = lowest, dtype(0)
            for c in range(cuda.threadIdx.x, x.shape[1], cuda.blockDim.x):
                greatest = max(greatest, x[r, c])
            greatest = block_max(greatest, shared, lowest)
            for c in range(cuda.threadIdx.x, x.shape[1], cuda.blockDim.x):
                total += math.exp(x[r, c] - greatest)
            total = math.log(block_sum(total, shared, dtype(0))) + greatest
            if cuda.threadIdx.x == 0:
                log_sums[r] = total
                out[r] = total - x[r, target[r]]
    return cross_entropy


def cross_entropy_backward_kernel(grad, x, target, log_sums, out):
    """grad (softmax - 1 at the target)"""
    classes = x.shape[1]
    for e in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        r, c = e // classes, e % classes
        p = math.exp(x[r, c] - log_sums[r])
        out[r, c] = grad[r] * (p - type(p)(1) if c == target[r] else p)
