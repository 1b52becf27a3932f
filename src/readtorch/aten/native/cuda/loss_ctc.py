"""The CTC loss, forward and backward: Note [ Paths through a label sequence ] in ../cpu/loss_ctc.py.

Forward, and for the backward recursion: a block for each sample, whose threads take the states between them; the
steps of time follow one another, with a barrier after each. Then a thread for each (time, sample) collects what
belongs to one label: no two threads write one place.

In PyTorch: `aten/src/ATen/native/cuda/LossCTC.cu`.
"""

import math

import numpy as np
from numba import cuda

from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.cuda.device_memory import tensor_on
from readtorch.c10.cuda.launch import blocks_of, launch, scratch
from readtorch.c10.tensor_impl import dtype_of

from .block_reduce import whole_warps
from .fill_kernel import filled
from .loops import THREADS
from .register_dispatch_key import cuda_impl, here, operator_named
from .rows import flat

INFINITY = math.inf


def ctc_loss(log_probs, targets, starts, input_lengths, target_lengths, blank, log_alpha, out):
    """log_probs (T, N, C), targets: all in one row, starts: where each sample's begin; log_alpha (N, T, S), -inf
    everywhere, out (N)."""
    launch(
        alpha_kernel,
        out.size,
        whole_warps(log_alpha.shape[2]),
        log_probs,
        targets,
        starts,
        input_lengths,
        target_lengths,
        blank,
        log_alpha,
        out,
    )


def ctc_loss_backward(
    grad, log_probs, targets, starts, input_lengths, target_lengths, losses, log_alpha, blank, zero_infinity, out
):
    """out (T, N, C): zeros."""
    lists = (targets, starts, input_lengths, target_lengths, blank)
    log_beta = scratch(log_alpha, log_alpha.shape, log_alpha.dtype)
    launch(beta_kernel, grad.size, whole_warps(log_alpha.shape[2]), log_probs, *lists, log_beta)
    blocks, saved = blocks_of(out.shape[0] * out.shape[1], THREADS), (losses, log_alpha, log_beta)
    launch(collect_kernel, blocks, THREADS, grad, log_probs, *lists, *saved, int(zero_infinity), out)


def label_of(state, targets, start, blank):
    return targets[start + state // 2] if state % 2 == 1 else blank


def may_skip(state, earlier, targets, start):
    """Whether a path may pass over the blank between `earlier` and `state`, two states further."""
    return state % 2 == 1 and targets[start + state // 2] != targets[start + earlier // 2]


def log_add(a, b, c):
    number = type(a)
    largest = max(a, max(b, c))
    if largest == number(-INFINITY):
        return largest
    return math.log(math.exp(a - largest) + math.exp(b - largest) + math.exp(c - largest)) + largest


def alpha_kernel(log_probs, targets, starts, input_lengths, target_lengths, blank, log_alpha, out):
    n, nothing = cuda.blockIdx.x, log_probs.dtype.type(-INFINITY)
    start, length, states = starts[n], input_lengths[n], 2 * target_lengths[n] + 1
    for t in range(length):
        for s in range(cuda.threadIdx.x, states, cuda.blockDim.x):
            here = log_probs[t, n, label_of(s, targets, start, blank)]
            if t == 0:
                log_alpha[n, 0, s] = here if s < 2 else nothing
            else:
                one = log_alpha[n, t - 1, s - 1] if s > 0 else nothing
                two = nothing
                if s > 1 and may_skip(s, s - 2, targets, start):
                    two = log_alpha[n, t - 1, s - 2]
                log_alpha[n, t, s] = log_add(log_alpha[n, t - 1, s], one, two) + here
        cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        if length == 0:
            out[n] = -nothing if states > 1 else log_probs.dtype.type(0)
        else:
            before = log_alpha[n, length - 1, states - 2] if states > 1 else nothing
            out[n] = -log_add(log_alpha[n, length - 1, states - 1], before, nothing)


def beta_kernel(log_probs, targets, starts, input_lengths, target_lengths, blank, log_beta):
    n, nothing = cuda.blockIdx.x, log_probs.dtype.type(-INFINITY)
    start, length, states = starts[n], input_lengths[n], 2 * target_lengths[n] + 1
    for t in range(length - 1, -1, -1):
        for s in range(cuda.threadIdx.x, states, cuda.blockDim.x):
            here = log_probs[t, n, label_of(s, targets, start, blank)]
            if t == length - 1:
                log_beta[n, t, s] = here if s >= states - 2 else nothing
            else:
                one = log_beta[n, t + 1, s + 1] if s + 1 < states else nothing
                two = nothing
                if s + 2 < states and may_skip(s + 2, s, targets, start):
                    two = log_beta[n, t + 1, s + 2]
                log_beta[n, t, s] = log_add(log_beta[n, t + 1, s], one, two) + here
        cuda.syncthreads()


def collect_kernel(
    grad,
    log_probs,
    targets,
    starts,
    input_lengths,
    target_lengths,
    blank,
    losses,
    log_alpha,
    log_beta,
    zero_infinity,
    out,
):
    """First out holds the logarithm of what all paths through a label sum to, then the gradient."""
    samples, nothing = out.shape[1], log_probs.dtype.type(-INFINITY)
    for i in range(cuda.grid(1), out.shape[0] * samples, cuda.gridsize(1)):
        t, n = i // samples, i % samples
        if t < input_lengths[n] and not (zero_infinity != 0 and losses[n] == -nothing):
            for c in range(out.shape[2]):
                out[t, n, c] = nothing
            for s in range(2 * target_lengths[n] + 1):
                label = label_of(s, targets, starts[n], blank)
                out[t, n, label] = log_add(out[t, n, label], log_alpha[n, t, s] + log_beta[n, t, s], nothing)
            for c in range(out.shape[2]):
                lp = log_probs[t, n, c]
                out[t, n, c] = (math.exp(lp) - math.exp(out[t, n, c] + losses[n] - lp)) * grad[n]


def target_lists(targets, input_lengths, target_lengths):
    """Targets in one row, where each sample's begin, and the lengths: as arrays on the device."""
    if targets._array.ndim == 2:
        starts = np.arange(len(target_lengths)) * targets._array.shape[1]
    else:
        starts = np.cumsum([0, *target_lengths])[:-1]
    lists = [tensor_on(here(), np.array(a, np.int64)) for a in (starts, input_lengths, target_lengths)]
    return flat(targets._array), *[t._array for t in lists]


@cuda_impl(operator_named("_ctc_loss"))
def ctc_loss_cuda(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, losses, log_alpha):
    """The labels stay unchecked."""
    if log_probs._array.dtype.name not in ("float32", "float64"):
        raise not_implemented("ctc_loss_cuda")(dtype_of(log_probs))
    filled(log_alpha, -math.inf)
    lists = target_lists(targets, input_lengths, target_lengths)
    ctc_loss(log_probs._array, *lists, blank, log_alpha._array, losses._array)


@cuda_impl(operator_named("_ctc_loss_backward"))
def ctc_loss_backward_cuda(
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity, out
):
    filled(out, 0)
    lists = target_lists(targets, input_lengths, target_lengths)
    saved = neg_log_likelihood._array, log_alpha._array
    ctc_loss_backward(grad._array, log_probs._array, *lists, *saved, blank, zero_infinity, out._array)
