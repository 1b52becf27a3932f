"""nll_loss, forward and backward.

Scores are (N, C) or (N, C, …); a thread takes one sample and position. Sums over samples go through reduce.py: no
atomics.

In PyTorch: `aten/src/ATen/native/cuda/Loss.cu`, `aten/src/ATen/native/cuda/NLLLoss2d.cu`.
"""
import functools

import numpy as np
from numba import cuda

from ..loss import MEAN, NONE
from ....c10.cuda.launch import blocks_of, launch, scratch
from .batch_norm import by_channel
from .functions import div
from .loops import pointwise
from .reduce import SUM, reduce
from .rows import flat

THREADS = 256


def nll_loss(log_p, target, weight, reduction, ignore_index, out, total_weight):
    """out: one number, or target's shape for NONE. total_weight: one number, 0 before
    the call, what MEAN divides by."""
    losses, weights = (scratch(log_p, (target.size,), log_p.dtype) for _ in range(2))
    scores = by_channel(log_p)
    launch(nll_kernel(weight is not None), blocks_of(target.size, THREADS), THREADS, scores, flat(target),
           flat(log_p) if weight is None else weight, ignore_index, losses, weights)
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
    launch(nll_backward_kernel(weight is not None, reduction), blocks_of(grad_input.size, THREADS), THREADS,
           flat(grad),
           flat(target), flat(total_weight) if weight is None else weight, ignore_index, flat(total_weight),
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
