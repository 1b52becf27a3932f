"""Optimizer steps over many tensors in one launch.

A launch takes 16 tensors: a tuple of 16 parameters, of 16 gradients and so on, filled up with empty ones.
Grid: (blocks, 16), the second number being the tensor's; block: 256 threads, grid-stride loop. Each element
is read and written once for the whole step.

In PyTorch: `aten/src/ATen/native/cuda/MultiTensorApply.cuh`, `ForeachFunctors.cuh`, `FusedAdamKernel.cu`,
`FusedSgdKernel.cu`.
"""
import functools
import math

from numba import cuda

from ....c10.cuda.launch import blocks_of, launch, scratch
from .rows import flat

THREADS, AT_ONCE = 256, 16


def sgd(params, grads, buffers, lr, weight_decay=0.0, momentum=0.0, dampening=0.0, nesterov=False,
        maximize=False, first=False):
    """buffers: momentum's, or None; `first`: they hold nothing yet and begin as the gradient."""
    lists = (params, grads, params if buffers is None else buffers)
    kernel = sgd_kernel(buffers is not None, first, nesterov, maximize)
    for_each(kernel, lists, (lr, weight_decay, momentum, 1 - dampening))


def adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, step, lr, beta1, beta2, eps, weight_decay=0.0,
         decoupled=False, maximize=False):
    """max_exp_avg_sqs: for amsgrad, or None. decoupled: AdamW's weight decay. step: 1 for the first."""
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs or params)
    kernel = adam_kernel(max_exp_avg_sqs is not None, decoupled, maximize)
    for_each(kernel, lists, (lr, 1 - beta1, beta2, 1 - beta2, eps, weight_decay, 1 - beta1**step,
                             math.sqrt(1 - beta2**step)))


def for_each(kernel, lists, numbers):
    """Launch for 16 tensors at a time. All arrays are contiguous and of one dtype."""
    empty = flat(scratch(lists[0][0], (0,), lists[0][0].dtype)) if lists[0] else None
    for begin in range(0, len(lists[0]), AT_ONCE):
        groups = [[x.reshape(-1) for x in arrays[begin:begin + AT_ONCE]] for arrays in lists]
        most = max(x.size for x in groups[0])
        if most:
            filled = [tuple(group + [empty] * (AT_ONCE - len(group))) for group in groups]
            launch(kernel, (blocks_of(most, THREADS, 512), AT_ONCE), THREADS, *filled,
                   tuple(map(empty.dtype.type, numbers)))


@functools.cache
def sgd_kernel(has_buffers, first, nesterov, maximize):
    def sgd(params, grads, buffers, numbers):
        lr, weight_decay, momentum, undamped = numbers
        tensor = cuda.blockIdx.y
        param, grad, buffer = params[tensor], grads[tensor], buffers[tensor]
        for i in range(cuda.grid(1), param.size, cuda.gridsize(1)):
            p, g = param[i], -grad[i] if maximize else grad[i]
            g += weight_decay * p
            if has_buffers:
                b = g if first else momentum * buffer[i] + undamped * g
                buffer[i] = b
                g = g + momentum * b if nesterov else b
            param[i] = p - lr * g
    return sgd


@functools.cache
def adam_kernel(amsgrad, decoupled, maximize):
    def adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, numbers):
        lr, new_1, beta2, new_2, eps, weight_decay, correction_1, correction_2_root = numbers
        t = cuda.blockIdx.y
        param, grad, greatest = params[t], grads[t], max_exp_avg_sqs[t]
        exp_avg, exp_avg_sq = exp_avgs[t], exp_avg_sqs[t]
        for i in range(cuda.grid(1), param.size, cuda.gridsize(1)):
            p, g = param[i], -grad[i] if maximize else grad[i]
            if decoupled:
                p -= lr * weight_decay * p
            else:
                g += weight_decay * p
            m = exp_avg[i] + new_1 * (g - exp_avg[i])
            v = beta2 * exp_avg_sq[i] + new_2 * g * g
            exp_avg[i], exp_avg_sq[i] = m, v
            if amsgrad:
                v = max(v, greatest[i])
                greatest[i] = v
            param[i] = p - lr / correction_1 * m / (math.sqrt(v) / correction_2_root + eps)
    return adam
