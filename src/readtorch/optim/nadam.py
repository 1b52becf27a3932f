r"""NAdam. In PyTorch: `torch/optim/nadam.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                               -∇f(θ) if maximize
    g ← g + λ θ                             weight_decay λ
    θ ← θ - γ λ θ                           instead of the line above if decoupled_weight_decay
    μₜ = β₁ (1 - ½ · 0.96^(t ψ))            momentum of step t, grows to β₁; momentum_decay ψ
    m ← β₁ m + (1 - β₁) g                   mean of the gradient
    v ← β₂ v + (1 - β₂) g²                  mean of its square
    m̂ ← μₜ₊₁ m / (1 - μ₁ ⋯ μₜ₊₁) + (1 - μₜ) g / (1 - μ₁ ⋯ μₜ)
    v̂ ← v / (1 - β₂ᵗ)
    θ ← θ - γ m̂ / (√v̂ + ε)                  lr γ

T. Dozat: Incorporating Nesterov momentum into Adam (2016): m̂ looks one step of momentum ahead.
"""

from functools import partial

import readtorch

from .optimizer import (
    Optimizer,
    _check_settings,
    _check_steps,
    _count,
    _device_of_counts,
    _foreach_means,
    _get_value,
    _to_scalar,
    _update,
    _use_grad_for_differentiable,
    _zeros_for,
)

__all__ = ["NAdam", "nadam"]


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, and weight decay in both forms."""

    _state_names = ("exp_avg", "exp_avg_sq", "mu_product", "step")
    _pairs = {"betas": ("beta1", "beta2")}
    _added_later = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _counts = ("step", "mu_product")
    _no_sparse_gradients = "NAdam does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ) -> None:
        _check_settings(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def _init_state(self, group, p, state):
        state["step"] = _count(_device_of_counts(group, p))
        state["mu_product"] = _count(_device_of_counts(group, p), 1.0)
        state["exp_avg"] = _zeros_for(p)
        state["exp_avg_sq"] = _zeros_for(p)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(nadam, closure)


def nadam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    mu_products,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    capturable=False,
    differentiable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    momentum_decay,
    eps,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    _check_steps(mu_products, "API has changed, `mu_products`")
    settings = {
        "beta1": beta1,
        "beta2": beta2,
        "lr": _to_scalar(lr),
        "weight_decay": weight_decay,
        "momentum_decay": momentum_decay,
        "eps": eps,
        "decoupled_weight_decay": decoupled_weight_decay,
        "capturable": capturable,
    }
    _update(
        (partial(_single_tensor_nadam, differentiable=differentiable), _multi_tensor_nadam),
        (params, grads, exp_avgs, exp_avg_sqs),
        (mu_products, state_steps),
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
        names=("params, mu_products and state_steps", "params, mu_products, and state_steps"),
    )


def _single_tensor_nadam(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    mu_product,
    step_t,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    momentum_decay,
    eps,
    decoupled_weight_decay,
    capturable,
    differentiable,
):
    step = step_t if capturable else _get_value(step_t)
    if weight_decay != 0:
        if decoupled_weight_decay:
            param.mul_(1 - lr * weight_decay)
        else:
            grad = grad.add(param, alpha=weight_decay)
    mu = _mu(step, beta1, momentum_decay)
    mu_next = _mu(step + 1, beta1, momentum_decay)
    mu_product *= mu
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    denom = exp_avg_sq.div(1 - beta2**step).sqrt().add(eps)
    if differentiable or capturable:  # tensors for all numbers
        param.addcdiv_(grad * (-lr * (1.0 - mu) / (1.0 - mu_product)), denom)
        param.addcdiv_(exp_avg * (-lr * mu_next / (1.0 - mu_product * mu_next)), denom)
    else:
        product = _get_value(mu_product)
        param.addcdiv_(grad, denom, value=-lr * (1.0 - mu) / (1.0 - product))
        param.addcdiv_(exp_avg, denom, value=-lr * mu_next / (1.0 - product * mu_next))


def _mu(step, beta1, momentum_decay):
    return beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))


def _multi_tensor_nadam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    mu_products,
    steps,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    momentum_decay,
    eps,
    decoupled_weight_decay,
    capturable,
):
    grads = _foreach_means(
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
    denoms = readtorch._foreach_sqrt(exp_avg_sqs)
    if capturable:
        exponents = readtorch._foreach_mul(steps, momentum_decay)
        mus = _mus(exponents, beta1)
        mu_nexts = _mus(readtorch._foreach_add(exponents, momentum_decay), beta1)
        corrections = readtorch._foreach_pow(beta2, steps)
        readtorch._foreach_sub_(corrections, 1.0)
        readtorch._foreach_neg_(corrections)
        readtorch._foreach_sqrt_(corrections)
    else:
        counts = [_get_value(step) for step in steps]
        mus = [_mu(step, beta1, momentum_decay) for step in counts]
        mu_nexts = [_mu(step + 1, beta1, momentum_decay) for step in counts]
        corrections = [(1 - beta2**step) ** 0.5 for step in counts]
    readtorch._foreach_mul_(mu_products, mus)
    readtorch._foreach_div_(denoms, corrections)
    readtorch._foreach_add_(denoms, eps)
    if capturable:
        numerators = readtorch._foreach_mul(_grad_factors(mus, mu_products, lr), grads)
        readtorch._foreach_addcmul_(numerators, _exp_avg_factors(mu_nexts, mu_products, lr), exp_avgs)
        readtorch._foreach_addcdiv_(params, numerators, denoms)
    else:
        lr, products = _get_value(lr), [_get_value(product) for product in mu_products]
        of_grads = [-(lr * (1.0 - mu) / (1.0 - product)) for product, mu in zip(products, mus)]
        of_exp_avgs = [-(lr * mu_next / (1.0 - product * mu_next)) for product, mu_next in zip(products, mu_nexts)]
        readtorch._foreach_addcdiv_(params, grads, denoms, of_grads)
        readtorch._foreach_addcdiv_(params, exp_avgs, denoms, of_exp_avgs)


def _mus(exponents, beta1):
    """`_mu` of counts that lie on a device, from t ψ."""
    mus = readtorch._foreach_pow(0.96, exponents)
    readtorch._foreach_mul_(mus, -0.5)
    readtorch._foreach_add_(mus, 1.0)
    readtorch._foreach_mul_(mus, beta1)
    return mus


def _grad_factors(mus, mu_products, lr):
    """-γ (1 - μₜ) / (1 - μ₁ ⋯ μₜ); an operator for lists takes no number first, hence the signs."""
    factors = readtorch._foreach_sub(mus, 1.0)
    readtorch._foreach_mul_(factors, lr)
    rest = readtorch._foreach_sub(mu_products, 1.0)
    readtorch._foreach_neg_(rest)
    readtorch._foreach_div_(factors, rest)
    return factors


def _exp_avg_factors(mu_nexts, mu_products, lr):
    """-γ μₜ₊₁ / (1 - μ₁ ⋯ μₜ₊₁)"""
    rest = readtorch._foreach_mul(mu_products, mu_nexts)
    readtorch._foreach_sub_(rest, 1.0)
    factors = readtorch._foreach_mul(mu_nexts, lr)
    readtorch._foreach_div_(factors, rest)
    return factors
