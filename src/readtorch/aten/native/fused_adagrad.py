"""The whole Adagrad step for lists of parameters as one operator.

In PyTorch: `aten/src/ATen/native/FusedAdagrad.cpp`. The chapter "torch.optim" shows when an optimizer takes such a step.
"""

from readtorch.aten.native_function import native_function
from readtorch.c10.dispatch_key import META

from .multi_tensor_apply import multi_tensor_apply, only_counted, unscale

_fused_adagrad_ = native_function(
    "_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, "
    "float lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, "
    "Tensor? found_inf=None) -> ()"
)


@_fused_adagrad_.kernel
def fused_adagrad_cpu_(
    params, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf
):
    if not unscale(grads, grad_scale, found_inf):
        return
    from .cpu import fused_adagrad_kernel

    rates = [rate_at(step.item(), lr, lr_decay) for step in state_steps]
    numbers = weight_decay, eps, -1.0 if maximize else 1.0
    lists = [params, grads, state_sums]
    multi_tensor_apply(fused_adagrad_kernel.adagrad, lists, numbers, [rates], read_only=[1])


def rate_at(step, lr, lr_decay):
    """The learning rate of a step, the first being 1."""
    return lr / (1 + (step - 1) * lr_decay)


# The gradients, and the counts of steps, which the optimizer moves on itself, are only read.
_fused_adagrad_.kernel(only_counted(read_only=(1, 3)), META)
