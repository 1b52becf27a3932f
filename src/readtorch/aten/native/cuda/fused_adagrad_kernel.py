"""The Adagrad step of many tensors in one launch.

In PyTorch: `aten/src/ATen/native/cuda/FusedAdagradKernel.cu`. Explained in the chapter "torch.optim".
"""

import functools
import math

import numpy as np
from numba import cuda

from .multi_tensor_apply import (
    CHUNK,
    changed,
    chunk_of,
    flags_of,
    gradient_at,
    multi_tensor_apply,
    multi_tensor_apply_for_fused_optimizer,
)
from .register_dispatch_key import cuda_kernel, operator_named

f64 = np.float64


def adagrad(
    params, grads, state_sums, steps, lr, lr_decay, eps, weight_decay=0.0, maximize=False, scale=None, found=None
):
    """steps: an array of one number for each tensor, 1 for the first. scale, found: arrays of one number, or None."""
    flags, given = flags_of(scale, found, steps[0].reshape(-1))
    numbers = tuple(map(params[0].dtype.type, (eps, weight_decay)))
    lists = params, grads, state_sums, steps
    multi_tensor_apply(adagrad_kernel(maximize, *flags), lists, numbers, (f64(lr), f64(lr_decay)), *given)


@functools.cache
def adagrad_kernel(maximize, scaled, checked):
    def adagrad(ends, params, grads, state_sums, steps, numbers, rates, scale, found):
        eps, weight_decay = numbers
        if checked and found[0] == 1:
            return
        t, first = chunk_of(ends)
        param, grad, state_sum = params[t], grads[t], state_sums[t]
        rate = type(eps)(rates[0] / (1 + (f64(steps[t][0]) - 1) * rates[1]))
        for i in range(first + cuda.threadIdx.x, min(first + CHUNK, param.size), cuda.blockDim.x):
            p, g = param[i], gradient_at(grad, i, scaled, scale, maximize)
            g += weight_decay * p
            s = state_sum[i] + g * g
            state_sum[i] = s
            param[i] = p - rate * g / (math.sqrt(s) + eps)

    return adagrad


@cuda_kernel(operator_named("_fused_adagrad_"))
def fused_adagrad_cuda_(
    params, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf
):
    def apply(p, g, sums, steps, scale, found):
        adagrad(p, g, sums, steps, lr, lr_decay, eps, weight_decay, maximize, scale, found)

    lists = params, grads, state_sums
    multi_tensor_apply_for_fused_optimizer(apply, lists, state_steps, grad_scale, found_inf)
    changed(params, state_sums, grads if grad_scale is not None else [])
