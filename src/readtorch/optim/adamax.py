r"""Adamax. In PyTorch: `torch/optim/adamax.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    m ← β₁ m + (1 - β₁) g         mean of the gradient
    u ← max(β₂ u, |g| + ε)        its size: a maximum that fades
    θ ← θ - γ m / ((1 - β₁ᵗ) u)   lr γ; m starts at 0, step t = 1, 2, … corrects for it

D. P. Kingma, J. Ba: Adam: a method for stochastic optimization (2014), section 7.1: Adam with the infinity
norm.
"""

from functools import partial

import readtorch

from .optimizer import (
    Optimizer,
    _check_settings,
    _check_steps,
    _get_value,
    _to_scalar,
    _update,
    _use_grad_for_differentiable,
)

__all__ = ["Adamax", "adamax"]


class Adamax(Optimizer):
    """Adam with a maximum in place of the mean square."""

    _state_names = ("exp_avg", "exp_inf", "step")
    _pairs = {"betas": ("beta1", "beta2")}
    _added_later = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _no_sparse_gradients = "Adamax does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ) -> None:
        _check_settings(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(adamax, closure)


def adamax(
    params,
    grads,
    exp_avgs,
    exp_infs,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    eps,
    beta1,
    beta2,
    lr,
    weight_decay,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    settings = {
        "lr": _to_scalar(lr),
        "beta1": beta1,
        "beta2": beta2,
        "eps": eps,
        "weight_decay": weight_decay,
        "capturable": capturable,
    }
    _update(
        (partial(_single_tensor_adamax, differentiable=differentiable), _multi_tensor_adamax),
        (params, grads, exp_avgs, exp_infs),
        (state_steps,),
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
    )


def _single_tensor_adamax(
    param, grad, exp_avg, exp_inf, step_t, *, lr, beta1, beta2, eps, weight_decay, capturable, differentiable
):
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    exp_avg.lerp_(grad, 1 - beta1)
    size = grad.abs().add_(eps)
    if differentiable:
        # `amax` shares the derivative among equal numbers
        exp_inf.copy_(readtorch.stack([exp_inf.mul_(beta2), size]).amax(0))
    else:
        readtorch.maximum(exp_inf.mul_(beta2), size, out=exp_inf)
    if capturable:
        # The step size goes into the denominator: `addcdiv_` takes no tensor as its factor.
        param.addcdiv_(exp_avg, exp_inf * (beta1**step_t - 1).div_(lr))
    else:
        param.addcdiv_(exp_avg, exp_inf, value=-(lr / (1 - beta1 ** _get_value(step_t))))


def _multi_tensor_adamax(params, grads, exp_avgs, exp_infs, steps, *, lr, beta1, beta2, eps, weight_decay, capturable):
    if weight_decay != 0:
        grads = readtorch._foreach_add(grads, params, alpha=weight_decay)
    readtorch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    readtorch._foreach_mul_(exp_infs, beta2)
    sizes = readtorch._foreach_abs(grads)
    readtorch._foreach_add_(sizes, eps)
    readtorch._foreach_maximum_(exp_infs, sizes)
    if capturable:
        corrections = readtorch._foreach_pow(beta1, steps)
        readtorch._foreach_sub_(corrections, 1)
        readtorch._foreach_div_(corrections, lr)
        readtorch._foreach_addcdiv_(params, exp_avgs, readtorch._foreach_mul(exp_infs, corrections))
    else:
        step_sizes = [-(_get_value(lr) / (1 - beta1 ** _get_value(step))) for step in steps]
        readtorch._foreach_addcdiv_(params, exp_avgs, exp_infs, step_sizes)
