"""Keeping gradients small. In PyTorch: `torch/nn/utils/clip_grad.py`. See the chapter "torch.optim"."""

import types
import warnings

import readtorch
from readtorch import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


def _as_list(tensors):
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters):
    return [p.grad for p in parameters if p.grad is not None]


@readtorch.no_grad()
def _get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The `norm_type`-norm of all elements of all tensors together: the norm of their norms. A 0-dimensional tensor.

    Raises RuntimeError if it is nan or infinite and `error_if_nonfinite` is set.
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return readtorch.tensor(0.0)
    device = tensors[0].device
    # in PyTorch: tensors are grouped by device and dtype first, and foreach=False takes them one by one
    norms = [norm.to(device) for norm in readtorch._foreach_norm(tensors, norm_type)]
    total_norm = readtorch.linalg.vector_norm(readtorch.stack(norms), norm_type)
    if error_if_nonfinite and not total_norm.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from "
            "`parameters` is non-finite, so it cannot be clipped. To disable "
            "this error and scale the gradients by the non-finite norm anyway, "
            "set `error_if_nonfinite=False`"
        )
    return total_norm


@readtorch.no_grad()
def _clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients so that a total norm of `total_norm` becomes at most `max_norm`.

    The factor is clamped to 1 rather than compared with it: a device's value need not be brought to the host.
    """
    factor = readtorch.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    for grad in _gradients(_as_list(parameters)):
        grad.mul_(factor.to(grad.device))


@readtorch.no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients of `parameters`, in place, to a total norm of at most `max_norm`. Returns the norm they had.

    norm_type: the order of the norm; inf for the largest absolute value. foreach: accepted and ignored.
    """
    if isinstance(parameters, types.GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    parameters = _as_list(parameters)
    total_norm = _get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    _clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@readtorch.no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamp every element of the gradients of `parameters`, in place, to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    grads = _gradients(_as_list(parameters))
    if foreach is not False and grads:
        readtorch._foreach_clamp_min_(grads, -clip_value)
        readtorch._foreach_clamp_max_(grads, clip_value)
        return
    for grad in grads:
        grad.clamp_(min=-clip_value, max=clip_value)
