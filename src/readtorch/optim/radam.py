r"""RAdam. In PyTorch: `torch/optim/radam.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                               -∇f(θ) if maximize
    g ← g + λ θ                             weight_decay λ
    θ ← θ - γ λ θ                           instead of the line above if decoupled_weight_decay
    m ← β₁ m + (1 - β₁) g                   mean of the gradient
    v ← β₂ v + (1 - β₂) g²                  mean of its square
    m̂ ← m / (1 - β₁ᵗ)
    ρ∞ = 2 / (1 - β₂) - 1                   how many gradients v averages over in the end,
    ρ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ)            and at step t
    l ← √(1 - β₂ᵗ) / (√v + ε)               if ρ > 5, when v can be trusted;
    r ← √((ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρ))
    θ ← θ - γ m̂ r l                         otherwise θ ← θ - γ m̂; lr γ

L. Liu and others: On the variance of the adaptive learning rate and beyond (2019).
"""

from .optimizer import (
    Optimizer,
    _check_foreach,
    _check_settings,
    _check_steps,
    _each_parameter,
    _get_value,
    _to_scalar,
    _use_grad_for_differentiable,
)

__all__ = ["RAdam", "radam"]


class RAdam(Optimizer):
    """Adam that warms up by itself, and weight decay in both forms."""

    _state_names = ("exp_avg", "exp_avg_sq", "step")
    _pairs = {"betas": ("beta1", "beta2")}
    _added_later = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }
    _no_sparse_gradients = "RAdam does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ) -> None:
        _check_settings(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            decoupled_weight_decay=decoupled_weight_decay,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(radam, closure)


def radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    differentiable=False,
    capturable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    rho_inf = 2 / (1 - beta2) - 1
    tensors = params, grads, exp_avgs, exp_avg_sqs
    for param, grad, exp_avg, exp_avg_sq, step in _each_parameter(
        tensors, (state_steps,), maximize=maximize, capturable=capturable
    ):
        step = _get_value(step)
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        bias_correction2 = 1 - beta2**step
        update = exp_avg / (1 - beta1**step) * lr
        rho_t = rho_inf - 2 * step * (beta2**step) / bias_correction2
        if rho_t > 5.0:
            adaptive_lr = bias_correction2**0.5 / exp_avg_sq.sqrt().add(eps)
            update = update * adaptive_lr * _rectification(rho_t, rho_inf)
        param.add_(update, alpha=-1.0)


def _rectification(rho_t, rho_inf):
    """The adaptive rate varies more at step t than in the end: a factor that makes up for it."""
    return ((rho_t - 4) * (rho_t - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho_t)) ** 0.5
