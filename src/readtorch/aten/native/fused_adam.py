"""The whole Adam step for lists of parameters as one operator.

In PyTorch: `aten/src/ATen/native/FusedAdam.cpp`. Chapter 11 shows when `optim.Adam` calls it.
"""
from ..native_function import native_function
from .tensor_iterator import F4, F8

_ARGUMENTS = (
    "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, "
    "Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, "
    "float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, "
    "Tensor? found_inf=None"
)

_fused_adam_ = native_function(f"_fused_adam_({_ARGUMENTS}) -> ()")
_fused_adamw_ = native_function(f"_fused_adamw_({_ARGUMENTS}) -> ()")


@_fused_adam_.kernel
def fused_adam_cpu_(*arguments):
    _step(*arguments, decoupled_weight_decay=False)


@_fused_adamw_.kernel
def fused_adamw_cpu_(*arguments):
    _step(*arguments, decoupled_weight_decay=True)


def _step(
    params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps,
    amsgrad, maximize, grad_scale, found_inf, decoupled_weight_decay,
):
    if grad_scale is not None or found_inf is not None:
        raise RuntimeError("_fused_adam_: grad_scale and found_inf are not supported on the CPU")
    from .cpu import fused_adam_kernel
    kernel = fused_adam_kernel.amsgrad_step if amsgrad else fused_adam_kernel.adam_step
    lists = [params, grads, exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else [])]
    for *tensors, step_t in zip(*lists, state_steps):
        step = step_t._array.item()
        numbers = (
            1 - beta1, beta2, 1 - beta2, -(lr / (1 - beta1**step)), (1 - beta2**step) ** 0.5, eps,
            0.0 if decoupled_weight_decay else weight_decay,
            1 - lr * weight_decay if decoupled_weight_decay else 1.0,
            -1.0 if maximize else 1.0,
        )
        run_flat(kernel, tensors, numbers)


def run_flat(kernel, tensors, numbers, *flags):
    """Run `kernel` on the tensors' elements as flat arrays; it changes all but the second, the gradient.

    An array that has no flat view, or too few bits to compute in, is copied, and written back.
    """
    dtype = tensors[0]._array.dtype
    wide = dtype if dtype is F4 or dtype is F8 else F4
    flat = [as_flat(t._array, wide) for t in tensors]
    number = wide.type
    kernel(*flat, *[number(n) for n in numbers], *flags)
    for i, (t, result) in enumerate(zip(tensors, flat)):
        if i == 1:
            continue
        if not has_flat_view(t._array, wide):
            t._array[...] = result.reshape(t._array.shape)
        t._counter[0] += 1


def has_flat_view(array, dtype):
    return array.dtype is dtype and array.flags.c_contiguous


def as_flat(array, dtype):
    """The elements of `array` in one row: a view if there is one, else a copy."""
    return array.reshape(-1) if has_flat_view(array, dtype) else array.ravel().astype(dtype)
