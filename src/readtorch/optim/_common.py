"""What several algorithms share: checks of their settings, the count of steps, and how a step begins.

In PyTorch: the end of `torch/optim/optimizer.py`, which exports these names here too.
"""
import functools

import readtorch
from readtorch._tensor import Tensor
from readtorch.c10.dispatch_key import CPU, SPARSE_CPU
from readtorch.nn.parameter import Parameter


def _use_grad_for_differentiable(step):
    """Run `step` without autograd, unless the optimizer is to be differentiated itself."""

    @functools.wraps(step)
    def _use_grad(self, *args, **kwargs):
        prev_grad = readtorch.is_grad_enabled()
        try:
            readtorch.set_grad_enabled(self.defaults["differentiable"])
            return step(self, *args, **kwargs)
        finally:
            readtorch.set_grad_enabled(prev_grad)

    return _use_grad


def _loss_of(closure):
    """What `step(closure)` returns: the loss, computed with gradients; None without a closure."""
    if closure is None:
        return None
    with readtorch.enable_grad():
        return closure()


def _params_and_grads(group):
    """The parameters that have a gradient, and the gradients."""
    pairs = [(p, grad) for p in group["params"] if (grad := p.grad) is not None]
    return [p for p, _ in pairs], [grad for _, grad in pairs]


def _has_sparse(grads):
    return any([grad._keys & SPARSE_CPU for grad in grads])


def _make_sparse(grad, values):
    """`values` in the places of the elements of the coalesced `grad`."""
    parts = grad._indices(), values, grad.shape
    return readtorch.sparse_coo_tensor(*parts, check_invariants=False, is_coalesced=True)


# Settings


def _check_lr(lr):
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    _check_not_negative("learning rate", lr)


def _check_not_negative(what, value):
    if not 0.0 <= value:
        raise ValueError(f"Invalid {what}: {value}")


def _check_betas(betas):
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def _check_fused(fused, foreach, differentiable):
    """RuntimeError for settings that contradict `fused`."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _check_foreach(foreach, differentiable):
    # in PyTorch: `foreach=True` runs each line of the formula for all parameters at once, here the loop
    if foreach and differentiable:
        raise AssertionError("_foreach ops don't support autograd")


def _check_capturable(capturable, *tensors, names="params and state_steps", supports_xla=True):
    """Recording a step as a graph is for accelerators, and `tensors`, which it changes, must be there."""
    supported = _get_capturable_supported_devices(supports_xla)
    places = {t.device.type for t in tensors}
    if capturable and not (len(places) == 1 and places.issubset(supported)):
        raise AssertionError(f"If capturable=True, {names} must be on supported devices: {supported}.")


def _get_capturable_supported_devices(supports_xla=True):
    return ["cuda", "xpu", "hpu", "privateuseone"] + ["xla"] * supports_xla


def _device_dtype_check_for_fused(p):
    if p._keys & CPU and p.dtype.is_floating_point:  # the common case, asked quickly
        return
    # in PyTorch: also mps, xpu, hpu, mtia and private backends
    supported = ["cuda", "cpu"]
    if not (p.device.type in supported and p.is_floating_point()):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of "
            f"supported devices: {supported} but {p.dtype} and {p.device.type}"
        )


def _get_value(x):
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x):
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


# State


def _count(value=0.0, is_fused=None):
    """A number of the state, such as the count of steps, as a 0-dimensional tensor on the host."""
    # in PyTorch: with capturable=True beside the parameter, where the recorded graph changes it
    return readtorch.tensor(value, dtype=_get_scalar_dtype(is_fused))


def _get_scalar_dtype(is_fused=None):
    """The dtype in which steps are counted."""
    is_double = not is_fused and readtorch.get_default_dtype() == readtorch.float64
    return readtorch.float64 if is_double else readtorch.float32


def _zeros_for(p):
    return readtorch.zeros_like(p, memory_format=readtorch.preserve_format)


def _check_steps(state_steps, what="API has changed, `state_steps`"):
    if not all([isinstance(t, Tensor) for t in state_steps]):
        raise RuntimeError(f"{what} argument must contain a list of singleton tensors")


def _as_real(*tensors):
    """Complex numbers are optimized as pairs of real ones. The first tensor is the parameter."""
    if not tensors[0].is_complex():
        return tensors
    return tuple(t if t is None else readtorch.view_as_real(t) for t in tensors)


# Kernels


def _kernel_serves(params, numbers):
    """Whether a compiled kernel (`aten/native/fused_*.py`) can do it: plain tensors and numbers, no graph."""
    if readtorch.is_grad_enabled() or any([isinstance(number, Tensor) for number in numbers]):
        return False
    return all([type(p) in _PLAIN and p.dtype in _KERNEL_TYPES and p._keys & CPU for p in params])


_PLAIN = (Parameter, Tensor)
_KERNEL_TYPES = (readtorch.float32, readtorch.float64)
