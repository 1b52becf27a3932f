"""The whole Adam step for lists of parameters as one operator.

In PyTorch: `aten/src/ATen/native/FusedAdam.cpp`. The chapter "torch.optim" shows when `optim.Adam` calls it.
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.c10.dispatch_key import META

from .multi_tensor_apply import multi_tensor_apply, only_counted, unscale

_ARGUMENTS = (
    "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] "
    "max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool "
    "amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None"
)

_fused_adam_ = native_function(f"_fused_adam_({_ARGUMENTS}) -> ()")
_fused_adamw_ = native_function(f"_fused_adamw_({_ARGUMENTS}) -> ()")


@_fused_adam_.kernel
def fused_adam_cpu_(*arguments):
    _step(*arguments, decoupled_weight_decay=False)


@_fused_adamw_.kernel
def fused_adamw_cpu_(*arguments):
    _step(*arguments, decoupled_weight_decay=True)


# The gradients, and the counters of steps, which the optimizer moves on itself, are only read.
_fused_adam_.kernel(only_counted(read_only=(1, 5)), META)
_fused_adamw_.kernel(only_counted(read_only=(1, 5)), META)


def _step(
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
    decoupled_weight_decay,
):
    if not unscale(grads, grad_scale, found_inf):
        return
    from .cpu import fused_adam_kernel

    lists = [params, grads, exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else [])]
    numbers = (
        1 - beta1,
        beta2,
        1 - beta2,
        eps,
        0.0 if decoupled_weight_decay else weight_decay,
        1 - lr * weight_decay if decoupled_weight_decay else 1.0,
        -1.0 if maximize else 1.0,
    )
    steps = [t._array.item() for t in state_steps]
    corrections = {step: (-(lr / (1 - beta1**step)), (1 - beta2**step) ** 0.5) for step in set(steps)}
    if len(corrections) == 1:  # as usual, all are at the same step
        numbers_of_each = [np.full(len(steps), number) for number in corrections[steps[0]]]
    else:
        numbers_of_each = list(zip(*[corrections[step] for step in steps]))
    kernel = fused_adam_kernel.amsgrad if amsgrad else fused_adam_kernel.adam
    multi_tensor_apply(kernel, lists, numbers, numbers_of_each, read_only=[1])
