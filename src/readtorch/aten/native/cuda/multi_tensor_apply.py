"""Optimizer steps over many tensors in one launch.

A launch takes 16 tensors: a tuple of 16 parameters, of 16 gradients and so on, filled up with empty ones.
Grid: (blocks, 16), the second index being the tensor's; block: 256 threads, grid-stride loop. Each element
is read and written once for the whole step.

In PyTorch: `aten/src/ATen/native/cuda/MultiTensorApply.cuh`, `aten/src/ATen/native/cuda/FusedAdamKernel.cu`,
`aten/src/ATen/native/cuda/FusedSgdKernel.cu`, `aten/src/ATen/native/cuda/FusedAdagradKernel.cu`,
`aten/src/ATen/native/cuda/ForeachBinaryOpScalar.cu`.
"""

import functools
import math
from collections import defaultdict

from numba import cuda

from readtorch.aten.native.fused_adagrad import rate_at
from readtorch.aten.native.multi_tensor_apply import unscale
from readtorch.c10.cuda.launch import blocks_of, launch, scratch
from readtorch.c10.memory_format import contiguous_format

from .copy import clone_cuda, copy_elements
from .register_dispatch_key import cuda_kernel, operator_named
from .rows import flat

THREADS, AT_ONCE = 256, 16


def sgd(
    params,
    grads,
    buffers,
    lr,
    weight_decay=0.0,
    momentum=0.0,
    dampening=0.0,
    nesterov=False,
    maximize=False,
    first=False,
):
    """buffers: momentum's, or None; `first`: they hold nothing yet and begin as the gradient."""
    lists = (params, grads, params if buffers is None else buffers)
    kernel = sgd_kernel(buffers is not None, first, nesterov, maximize)
    for_each(kernel, lists, (lr, weight_decay, momentum, 1 - dampening))


def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    step,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay=0.0,
    decoupled=False,
    maximize=False,
):
    """max_exp_avg_sqs: for amsgrad, or None. decoupled: AdamW's weight decay. step: 1 for the first."""
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs or params)
    kernel = adam_kernel(max_exp_avg_sqs is not None, decoupled, maximize)
    for_each(
        kernel, lists, (lr, 1 - beta1, beta2, 1 - beta2, eps, weight_decay, 1 - beta1**step, math.sqrt(1 - beta2**step))
    )


def for_each(kernel, lists, scalars):
    """Launch for 16 tensors at a time. All arrays are contiguous and of one dtype; there is at least one."""
    empty = flat(scratch(lists[0][0], (0,), lists[0][0].dtype))
    for begin in range(0, len(lists[0]), AT_ONCE):
        groups = [[x.reshape(-1) for x in arrays[begin : begin + AT_ONCE]] for arrays in lists]
        most = max(x.size for x in groups[0])
        if most:
            filled = [tuple(group + [empty] * (AT_ONCE - len(group))) for group in groups]
            launch(
                kernel,
                (blocks_of(most, THREADS, 512), AT_ONCE),
                THREADS,
                *filled,
                tuple(map(empty.dtype.type, scalars)),
            )


@functools.cache
def sgd_kernel(has_buffers, first, nesterov, maximize):
    def sgd(params, grads, buffers, scalars):
        lr, weight_decay, momentum, undamped = scalars
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
    def adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, scalars):
        lr, new_1, beta2, new_2, eps, weight_decay, correction_1, correction_2_root = scalars
        t = cuda.blockIdx.y
        param, grad, largest = params[t], grads[t], max_exp_avg_sqs[t]
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
                v = max(v, largest[i])
                largest[i] = v
            param[i] = p - lr / correction_1 * m / (math.sqrt(v) / correction_2_root + eps)

    return adam


def adagrad(params, grads, state_sums, rate, eps, weight_decay=0.0, maximize=False):
    """rate: the learning rate of this step."""
    for_each(adagrad_kernel(maximize), (params, grads, state_sums), (rate, eps, weight_decay))


@functools.cache
def adagrad_kernel(maximize):
    def adagrad(params, grads, state_sums, scalars):
        rate, eps, weight_decay = scalars
        t = cuda.blockIdx.y
        param, grad, state_sum = params[t], grads[t], state_sums[t]
        for i in range(cuda.grid(1), param.size, cuda.gridsize(1)):
            p, g = param[i], -grad[i] if maximize else grad[i]
            g += weight_decay * p
            s = state_sum[i] + g * g
            state_sum[i] = s
            param[i] = p - rate * g / (math.sqrt(s) + eps)

    return adagrad


class InOrder:
    """Lists of tensors as contiguous arrays; what had to be laid out is written back when the step is
    done."""

    def __init__(self, *lists):
        self.originals = lists
        self.laid_out = [[self._laid_out(t) for t in tensors] for tensors in lists]

    @staticmethod
    def _laid_out(t):
        return t if t._array.flags.c_contiguous else clone_cuda(t, contiguous_format)

    def __enter__(self):
        return [[t._array for t in tensors] for tensors in self.laid_out]

    def __exit__(self, kind, *exception):
        if kind is not None:
            return
        for tensors, laid_out in zip(self.originals, self.laid_out):
            for t, copy in zip(tensors, laid_out):
                if t is not copy:
                    copy_elements(copy, t)


def changed(*lists):
    for tensors in lists:
        for t in tensors:
            t._counter[0] += 1


@cuda_kernel(operator_named("_foreach_add_.Scalar"))
def foreach_add_cuda_(tensors, scalar):
    for t in tensors:
        t.add_(scalar)


def divide_on_device(grad, scale):
    grad.div_(scale)


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
        if not unscale(grads, grad_scale, found_inf, divide_on_device):
            return
        lists = [params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else []]
        for step, places in by_step(params, state_steps).items():
            chosen = [[tensors[i] for i in places] if tensors else [] for tensors in lists]
            with InOrder(*chosen) as (p, g, m, v, largest):
                adam(p, g, m, v, largest or None, step[0], lr, beta1, beta2, eps, weight_decay, decoupled, maximize)
        changed(params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else [])

    return kernel


def by_step(params, state_steps):
    """(step, dtype) -> which tensors are at it: usually all at one. A step on the device is fetched."""
    places = defaultdict(list)
    for i, (param, step) in enumerate(zip(params, state_steps)):
        places[step.item(), param._array.dtype].append(i)
    return places


cuda_kernel(operator_named("_fused_adam_"))(fused_adam(decoupled=False))
cuda_kernel(operator_named("_fused_adamw_"))(fused_adam(decoupled=True))


@cuda_kernel(operator_named("_fused_sgd_"))
def fused_sgd_cuda_(
    params,
    grads,
    momentum_buffer_list,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale,
    found_inf,
):
    if not unscale(grads, grad_scale, found_inf, divide_on_device):
        return
    kinds = defaultdict(list)
    for i, param in enumerate(params):
        kinds[param._array.dtype].append(i)
    for places in kinds.values():
        chosen = [[tensors[i] for i in places] if tensors else [] for tensors in (params, grads, momentum_buffer_list)]
        with InOrder(*chosen) as (p, g, buffers):
            sgd(p, g, buffers or None, lr, weight_decay, momentum, dampening, nesterov, maximize, is_first_step)
    changed(params, momentum_buffer_list)


@cuda_kernel(operator_named("_fused_adagrad_"))
def fused_adagrad_cuda_(
    params, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf
):
    if not unscale(grads, grad_scale, found_inf, divide_on_device):
        return
    for (step, _), places in by_step(params, state_steps).items():
        chosen = [[tensors[i] for i in places] for tensors in (params, grads, state_sums)]
        with InOrder(*chosen) as lists:
            adagrad(*lists, rate_at(step, lr, lr_decay), eps, weight_decay, maximize)
    changed(params, state_sums)
