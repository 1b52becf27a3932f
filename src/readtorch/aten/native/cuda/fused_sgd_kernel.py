"""The SGD step of many tensors in one launch.

In PyTorch: `aten/src/ATen/native/cuda/FusedSgdKernel.cu`. Explained in the chapter "torch.optim".
"""

import functools

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
    scale=None,
    found=None,
):
    """buffers: momentum's, or None; `first`: they hold nothing yet and begin as the gradient. scale, found: arrays of one
    number, or None."""
    flags, given = flags_of(scale, found, params[0].reshape(-1))
    kernel = sgd_kernel(buffers is not None, first, nesterov, maximize, *flags)
    numbers = tuple(map(params[0].dtype.type, (lr, weight_decay, momentum, 1 - dampening)))
    multi_tensor_apply(kernel, (params, grads, params if buffers is None else buffers), numbers, *given)


@functools.cache
def sgd_kernel(has_buffers, starts, nesterov, maximize, scaled, checked):
    def sgd(ends, params, grads, buffers, numbers, scale, found):
        lr, weight_decay, momentum, undamped = numbers
        if checked and found[0] == 1:
            return
        t, first = chunk_of(ends)
        param, grad, buffer = params[t], grads[t], buffers[t]
        for i in range(first + cuda.threadIdx.x, min(first + CHUNK, param.size), cuda.blockDim.x):
            p, g = param[i], gradient_at(grad, i, scaled, scale, maximize)
            g += weight_decay * p
            if has_buffers:
                b = g if starts else momentum * buffer[i] + undamped * g
                buffer[i] = b
                g = g + momentum * b if nesterov else b
            param[i] = p - lr * g

    return sgd


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
    def apply(p, g, buffers, _, scale, found):
        numbers = lr, weight_decay, momentum, dampening, nesterov, maximize, is_first_step
        sgd(p, g, buffers or None, *numbers, scale, found)

    lists = params, grads, momentum_buffer_list
    multi_tensor_apply_for_fused_optimizer(apply, lists, [], grad_scale, found_inf)
    changed(params, momentum_buffer_list, grads if grad_scale is not None else [])
