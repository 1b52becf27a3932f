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

import readtorch

from .optimizer import (
    Optimizer,
    _check_settings,
    _check_steps,
    _foreach_means,
    _get_value,
    _to_scalar,
    _update,
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
    settings = {
        "beta1": beta1,
        "beta2": beta2,
        "lr": _to_scalar(lr),
        "weight_decay": weight_decay,
        "eps": eps,
        "decoupled_weight_decay": decoupled_weight_decay,
        "capturable": capturable,
    }
    _update(
        (_single_tensor_radam, _multi_tensor_radam),
        (params, grads, exp_avgs, exp_avg_sqs),
        (state_steps,),
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
    )


def _single_tensor_radam(
    param, grad, exp_avg, exp_avg_sq, step_t, *, beta1, beta2, lr, weight_decay, eps, decoupled_weight_decay, capturable
):
    step = step_t if capturable else _get_value(step_t)
    if weight_decay != 0:
        if decoupled_weight_decay:
            param.mul_(1 - lr * weight_decay)
        else:
            grad = grad.add(param, alpha=weight_decay)
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    update = exp_avg / (1 - beta1**step) * lr
    bias_correction2 = 1 - beta2**step
    rho_inf = _rho_inf(beta2)
    rho_t = rho_inf - 2 * step * (beta2**step) / bias_correction2
    if capturable:
        adaptive_lr = bias_correction2**0.5 / exp_avg_sq.sqrt().add_(eps)
        update = update * readtorch.where(rho_t > 5.0, _rectification(rho_t, rho_inf) * adaptive_lr, 1.0)
        param.add_(update, alpha=-1.0)
    else:
        _add_rectified_(param, update, exp_avg_sq, rho_t, rho_inf, bias_correction2, eps)


def _add_rectified_(param, update, exp_avg_sq, rho_t, rho_inf, bias_correction2, eps):
    """θ ← θ - update r l if ρ > 5, else θ ← θ - update. In a captured graph one node: Python decides by the count."""
    if rho_t > 5.0:
        adaptive_lr = bias_correction2**0.5 / exp_avg_sq.sqrt().add(eps)
        update = update * adaptive_lr * _rectification(rho_t, rho_inf)
    return param.add_(update, alpha=-1.0)


def _rho_inf(beta2):
    return 2 / (1 - beta2) - 1


def _rectification(rho_t, rho_inf):
    """The adaptive rate varies more at step t than in the end: a factor that makes up for it."""
    return ((rho_t - 4) * (rho_t - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho_t)) ** 0.5


def _multi_tensor_radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    steps,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    decoupled_weight_decay,
    capturable,
):
    """θ ← θ + m x, where x is -γ r l / (1 - β₁ᵗ) or -γ / (1 - β₁ᵗ): one of the two is 0."""
    _foreach_means(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
        decoupled_weight_decay=decoupled_weight_decay,
    )
    if capturable:
        rectified, unrectified = _step_sizes_on_device(steps, lr, beta1, beta2)
    else:
        rectified, unrectified = zip(*[_step_sizes(_get_value(step), lr, beta1, beta2) for step in steps])
    factors = readtorch._foreach_sqrt(exp_avg_sqs)
    readtorch._foreach_add_(factors, eps)
    readtorch._foreach_div_(factors, rectified)
    readtorch._foreach_reciprocal_(factors)
    readtorch._foreach_add_(factors, unrectified)
    readtorch._foreach_addcmul_(params, exp_avgs, factors)


def _step_sizes(step, lr, beta1, beta2):
    """-γ r √(1 - β₂ᵗ) / (1 - β₁ᵗ) and -γ / (1 - β₁ᵗ); the one that is not wanted is 0."""
    rho_inf = _rho_inf(beta2)
    bias_correction1, bias_correction2 = 1 - beta1**step, 1 - beta2**step
    rho_t = rho_inf - 2 * step * (beta2**step) / bias_correction2
    rect = _rectification(rho_t, rho_inf) if rho_t > 5 else 0
    return bias_correction2**0.5 * (lr * rect / bias_correction1) * -1, lr * (
        0 if rect > 0 else 1.0
    ) / bias_correction1 * -1


def _step_sizes_on_device(steps, lr, beta1, beta2):
    """The same for counts that lie on a device: nothing is fetched from it, so `where` chooses."""
    rho_inf = _rho_inf(beta2)
    bias_correction1, bias_correction2 = _one_minus_power(beta1, steps), _one_minus_power(beta2, steps)
    rho_ts = readtorch._foreach_pow(beta2, steps)
    readtorch._foreach_mul_(rho_ts, steps)
    readtorch._foreach_mul_(rho_ts, 2)
    readtorch._foreach_div_(rho_ts, bias_correction2)
    readtorch._foreach_neg_(rho_ts)
    readtorch._foreach_add_(rho_ts, rho_inf)
    rects = readtorch._foreach_sub(rho_ts, 4)
    readtorch._foreach_mul_(rects, readtorch._foreach_sub(rho_ts, 2))
    readtorch._foreach_mul_(rects, rho_inf)
    readtorch._foreach_div_(rects, readtorch._foreach_mul(rho_ts, (rho_inf - 4) * (rho_inf - 2)))
    readtorch._foreach_sqrt_(rects)
    rects = [readtorch.where(rho_t > 5.0, rect, 0.0) for rect, rho_t in zip(rects, rho_ts)]
    unrectified = [readtorch.where(rect > 0, 0.0, 1.0) for rect in rects]
    readtorch._foreach_mul_(unrectified, lr)
    readtorch._foreach_div_(unrectified, bias_correction1)
    readtorch._foreach_neg_(unrectified)
    rectified = readtorch._foreach_sqrt(bias_correction2)
    readtorch._foreach_mul_(rectified, lr)
    readtorch._foreach_mul_(rectified, rects)
    readtorch._foreach_neg_(rectified)
    readtorch._foreach_div_(rectified, bias_correction1)
    return rectified, unrectified


def _one_minus_power(beta, steps):
    """1 - βᵗ"""
    powers = readtorch._foreach_pow(beta, steps)
    readtorch._foreach_neg_(powers)
    readtorch._foreach_add_(powers, 1)
    return powers
