"""The Adam and AdamW step of many tensors in one launch: every element is read once and written once.

In PyTorch: `aten/src/ATen/native/cuda/FusedAdamKernel.cu`, `fused_adam_utils.cuh`. Explained in the chapter "torch.optim".
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


def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    steps,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay=0.0,
    decoupled=False,
    maximize=False,
    scale=None,
    found=None,
):
    """max_exp_avg_sqs: for amsgrad, or None. steps: an array of one number for each tensor, 1 for the first. decoupled:
    AdamW's weight decay. scale, found: arrays of one number, or None."""
    flags, given = flags_of(scale, found, steps[0].reshape(-1))
    number = params[0].dtype.type
    numbers = tuple(map(number, (lr, 1 - beta1, beta2, 1 - beta2, eps, weight_decay)))
    kernel = adam_kernel(max_exp_avg_sqs is not None, decoupled, maximize, *flags)
    lists = (params, grads, exp_avgs, exp_avg_sqs, steps, *([max_exp_avg_sqs] if max_exp_avg_sqs else []))
    if max_exp_avg_sqs is None:
        kernel = without_maxima(kernel)
    multi_tensor_apply(kernel, lists, numbers, (f64(beta1), f64(beta2)), *given)


@functools.cache
def adam_kernel(amsgrad, decoupled, maximize, scaled, checked):
    def adam(ends, params, grads, exp_avgs, exp_avg_sqs, steps, max_exp_avg_sqs, numbers, betas, scale, found):
        lr, new_1, beta2, new_2, eps, weight_decay = numbers
        if checked and found[0] == 1:
            return
        t, first = chunk_of(ends)
        param, grad, largest = params[t], grads[t], max_exp_avg_sqs[t]
        exp_avg, exp_avg_sq = exp_avgs[t], exp_avg_sqs[t]
        step = f64(steps[t][0])
        step_size = type(lr)(f64(lr) / (1 - math.pow(betas[0], step)))
        correction_2_root = type(lr)(math.sqrt(1 - math.pow(betas[1], step)))
        for i in range(first + cuda.threadIdx.x, min(first + CHUNK, param.size), cuda.blockDim.x):
            p, g = param[i], gradient_at(grad, i, scaled, scale, maximize)
            if decoupled:
                p -= lr * weight_decay * p
            else:
                g += weight_decay * p
            m = exp_avg[i] + new_1 * (g - exp_avg[i])
            v = beta2 * exp_avg_sq[i] + new_2 * g * g
            exp_avg[i], exp_avg_sq[i] = m, v
            if amsgrad:
                v = max(v, largest[i])
                largest[i] = v
            param[i] = p - step_size * m / (math.sqrt(v) / correction_2_root + eps)

    return adam


@functools.cache
def without_maxima(kernel):
    """The kernel without that list: the second moments stand in for it, and are not written to."""

    def adam(ends, params, grads, exp_avgs, exp_avg_sqs, steps, numbers, betas, scale, found):
        kernel(ends, params, grads, exp_avgs, exp_avg_sqs, steps, exp_avg_sqs, numbers, betas, scale, found)

    return adam


def fused_adam(decoupled):
    def kernel(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        lr,
        beta1,
        beta2,
        weight_decay,
        eps,
        amsgrad,
        maximize,
        grad_scale,
        found_inf,
    ):
        maxima = max_exp_avg_sqs if amsgrad else []

        def apply(p, g, m, v, largest, steps, scale, found):
            numbers = lr, beta1, beta2, eps, weight_decay, decoupled, maximize
            adam(p, g, m, v, largest or None, steps, *numbers, scale, found)

        lists = params, grads, exp_avgs, exp_avg_sqs, maxima
        multi_tensor_apply_for_fused_optimizer(apply, lists, state_steps, grad_scale, found_inf)
        changed(params, exp_avgs, exp_avg_sqs, maxima, grads if grad_scale is not None else [])

    return kernel


cuda_kernel(operator_named("_fused_adam_"))(fused_adam(decoupled=False))
cuda_kernel(operator_named("_fused_adamw_"))(fused_adam(decoupled=True))
