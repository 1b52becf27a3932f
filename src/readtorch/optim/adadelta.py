r"""Adadelta. In PyTorch: `torch/optim/adadelta.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    v ← ρ v + (1 - ρ) g²          mean of the squared gradient
    Δ ← √(u + ε) / √(v + ε) · g   steps in units of the parameter: u in the numerator, v below it
    u ← ρ u + (1 - ρ) Δ²          mean of the squared step
    θ ← θ - γ Δ                   lr γ

M. D. Zeiler: ADADELTA: an adaptive learning rate method (2012). There γ = 1.
"""

from functools import partial

import readtorch
from readtorch._tensor import Tensor

from .optimizer import Optimizer, _check_settings, _check_steps, _to_scalar, _update, _use_grad_for_differentiable

__all__ = ["Adadelta", "adadelta"]


class Adadelta(Optimizer):
    """A step size for each element that needs no tuning: it is as large as the recent steps."""

    _state_names = ("square_avg", "acc_delta", "step")
    _added_later = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _no_sparse_gradients = "Adadelta does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ) -> None:
        _check_settings(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_settings(eps=eps, weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            capturable=capturable,
            foreach=foreach,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(adadelta, closure)


def adadelta(
    params,
    grads,
    square_avgs,
    acc_deltas,
    state_steps,
    capturable=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    rho,
    eps,
    weight_decay,
    maximize,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    _update(
        (_single_tensor_adadelta, partial(_multi_tensor_adadelta, capturable=capturable)),
        (params, grads, square_avgs, acc_deltas),
        (state_steps,),
        {"lr": _to_scalar(lr), "rho": rho, "eps": eps, "weight_decay": weight_decay},
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
        supports_xla=(False, False),
    )


def _single_tensor_adadelta(param, grad, square_avg, acc_delta, step, *, lr, rho, eps, weight_decay):
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
    std = square_avg.add(eps).sqrt_()
    delta = acc_delta.add(eps).sqrt() / std * grad
    acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
    param.add_(delta, alpha=-lr)


def _multi_tensor_adadelta(params, grads, square_avgs, acc_deltas, steps, *, lr, rho, eps, weight_decay, capturable):
    if weight_decay != 0:
        grads = readtorch._foreach_add(grads, params, alpha=weight_decay)
    readtorch._foreach_mul_(square_avgs, rho)
    readtorch._foreach_addcmul_(square_avgs, grads, grads, value=1 - rho)
    std = readtorch._foreach_add(square_avgs, eps)
    readtorch._foreach_sqrt_(std)
    deltas = readtorch._foreach_add(acc_deltas, eps)
    readtorch._foreach_sqrt_(deltas)
    readtorch._foreach_div_(deltas, std)
    readtorch._foreach_mul_(deltas, grads)
    readtorch._foreach_mul_(acc_deltas, rho)
    readtorch._foreach_addcmul_(acc_deltas, deltas, deltas, value=1 - rho)
    if capturable and isinstance(lr, Tensor):  # as `alpha` it would be fetched from the device
        readtorch._foreach_mul_(deltas, -lr)
        readtorch._foreach_add_(params, deltas)
    else:
        readtorch._foreach_add_(params, deltas, alpha=-lr)
