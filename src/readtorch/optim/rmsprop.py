r"""RMSprop. In PyTorch: `torch/optim/rmsprop.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    v ← α v + (1 - α) g²          mean of the squared gradient
    ḡ ← α ḡ + (1 - α) g           mean of the gradient, if centered
    s ← √v + ε                    √(v - ḡ²) + ε if centered: the deviation
    b ← μ b + g / s               momentum μ; 0 means none
    θ ← θ - γ b                   lr γ; without momentum θ ← θ - γ g / s

G. Hinton: Neural networks for machine learning, lecture 6 (2012). Centered: A. Graves: Generating sequences
with recurrent neural networks (2013).
"""

from functools import partial

import readtorch
from readtorch._tensor import Tensor

from .optimizer import (
    Optimizer,
    _check_settings,
    _check_steps,
    _count,
    _device_of_counts,
    _to_scalar,
    _update,
    _use_grad_for_differentiable,
    _zeros_for,
)

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Optimizer):
    """The gradient in units of its own recent size."""

    _state_names = ("square_avg", "grad_avg", "momentum_buffer", "step")
    _added_later = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    _no_sparse_gradients = "RMSprop does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ) -> None:
        _check_settings(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            capturable=capturable,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def _init_state(self, group, p, state):
        state["step"] = _count(_device_of_counts(group, p))
        state["square_avg"] = _zeros_for(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = _zeros_for(p)
        if group["centered"]:
            state["grad_avg"] = _zeros_for(p)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(rmsprop, closure)


def rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
) -> None:
    """One step for lists of parameters, gradients and state. What the settings do not need may be empty."""
    _check_steps(state_steps)
    tensors = (
        params,
        grads,
        square_avgs,
        grad_avgs if centered else None,
        momentum_buffer_list if momentum > 0 else None,
    )
    settings = {
        "lr": _to_scalar(lr),
        "alpha": alpha,
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "centered": centered,
    }
    _update(
        (_single_tensor_rmsprop, partial(_multi_tensor_rmsprop, capturable=capturable)),
        tensors,
        (state_steps,),
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
        supports_xla=(True, True),
    )


def _single_tensor_rmsprop(
    param, grad, square_avg, grad_avg, buf, step, *, lr, alpha, eps, weight_decay, momentum, centered
):
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
    if centered:
        grad_avg.lerp_(grad, 1 - alpha)
        avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
    else:
        avg = square_avg.sqrt()
    avg = avg.add(eps)
    if momentum > 0:
        buf.mul_(momentum).addcdiv_(grad, avg)
        param.add_(buf, alpha=-lr)
    else:
        param.addcdiv_(grad, avg, value=-lr)


def _multi_tensor_rmsprop(
    params, grads, square_avgs, grad_avgs, bufs, steps, *, lr, alpha, eps, weight_decay, momentum, centered, capturable
):
    if weight_decay != 0:
        grads = readtorch._foreach_add(grads, params, alpha=weight_decay)
    readtorch._foreach_mul_(square_avgs, alpha)
    readtorch._foreach_addcmul_(square_avgs, grads, grads, value=1 - alpha)
    if centered:
        readtorch._foreach_lerp_(grad_avgs, grads, 1 - alpha)
        avgs = readtorch._foreach_addcmul(square_avgs, grad_avgs, grad_avgs, value=-1)
        readtorch._foreach_sqrt_(avgs)
    else:
        avgs = readtorch._foreach_sqrt(square_avgs)
    readtorch._foreach_add_(avgs, eps)
    on_device = capturable and isinstance(lr, Tensor)  # as `alpha` or `value` it would be fetched from the device
    if momentum > 0:
        readtorch._foreach_mul_(bufs, momentum)
        readtorch._foreach_addcdiv_(bufs, grads, avgs)
        if on_device:
            readtorch._foreach_add_(params, readtorch._foreach_mul(bufs, -lr))
        else:
            readtorch._foreach_add_(params, bufs, alpha=-lr)
    elif on_device:
        readtorch._foreach_div_(avgs, -lr)
        readtorch._foreach_addcdiv_(params, grads, avgs)
    else:
        readtorch._foreach_addcdiv_(params, grads, avgs, value=-lr)
