r"""Adadelta. In PyTorch: `torch/optim/adadelta.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    v ← ρ v + (1 - ρ) g²          mean of the squared gradient
    Δ ← √(u + ε) / √(v + ε) · g   steps in units of the parameter: u in the numerator, v below it
    u ← ρ u + (1 - ρ) Δ²          mean of the squared step
    θ ← θ - γ Δ                   lr γ

M. D. Zeiler: ADADELTA: an adaptive learning rate method (2012). There γ = 1.
"""

from .optimizer import (
    Optimizer,
    _check_foreach,
    _check_settings,
    _check_steps,
    _each_parameter,
    _to_scalar,
    _use_grad_for_differentiable,
)

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
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    for param, grad, square_avg, acc_delta, _ in _each_parameter(
        (params, grads, square_avgs, acc_deltas),
        (state_steps,),
        maximize=maximize,
        capturable=capturable,
        supports_xla=False,
    ):
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        std = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt() / std * grad
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-lr)
