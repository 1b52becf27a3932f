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

from .optimizer import (
    Optimizer,
    _check_foreach,
    _check_settings,
    _check_steps,
    _count,
    _each_parameter,
    _get_value,
    _to_scalar,
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
        state["step"] = _count()
        state["mu_product"] = _count(1.0)
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
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    for param, grad, exp_avg, exp_avg_sq, mu_product, step in _each_parameter(
        (params, grads, exp_avgs, exp_avg_sqs),
        (mu_products, state_steps),
        maximize=maximize,
        capturable=capturable,
        names="params, mu_products and state_steps",
    ):
        step = _get_value(step)
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
        mu_product *= mu
        product = _get_value(mu_product)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denom = exp_avg_sq.div(1 - beta2**step).sqrt().add(eps)
        param.addcdiv_(grad, denom, value=-lr * (1.0 - mu) / (1.0 - product))
        param.addcdiv_(exp_avg, denom, value=-lr * mu_next / (1.0 - product * mu_next))
