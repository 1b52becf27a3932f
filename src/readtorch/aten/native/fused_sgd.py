"""The whole step of stochastic gradient descent for lists of parameters as one operator.

In PyTorch: `aten/src/ATen/native/FusedSGD.cpp`. The chapter "torch.optim" shows when `optim.SGD` calls it.
"""

from readtorch.aten.native_function import native_function
from readtorch.c10.dispatch_key import META

from .multi_tensor_apply import multi_tensor_apply, only_counted, unscale

_fused_sgd_ = native_function(
    "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, "
    "float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, "
    "bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()"
)


@_fused_sgd_.kernel
def fused_sgd_cpu_(
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
    if not unscale(grads, grad_scale, found_inf):
        return
    from .cpu import fused_sgd_kernel

    numbers = (-lr, weight_decay, -1.0 if maximize else 1.0)
    if not momentum_buffer_list:
        multi_tensor_apply(fused_sgd_kernel.sgd, [params, grads], numbers, read_only=[1])
        return
    multi_tensor_apply(
        fused_sgd_kernel.momentum,
        [params, grads, momentum_buffer_list],
        (*numbers, momentum, 1 - dampening),
        flags=(nesterov, is_first_step),
        read_only=[1],
    )


_fused_sgd_.kernel(only_counted(read_only=(1,)), META)
