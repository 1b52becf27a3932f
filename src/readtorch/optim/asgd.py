r"""Averaged stochastic gradient descent. In PyTorch: `torch/optim/asgd.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ′ θ                  weight_decay λ′
    θ ← (1 - λ η) θ - η g         lambd λ; step size η, at first lr γ
    ā ← ā + μ (θ - ā)             the average, state "ax"; with μ = 1 it is θ itself
    η ← γ / (1 + λ γ t)ᵅ          for the next step; alpha α
    μ ← 1 / max(1, t - t₀)        from step t₀ on ā is the mean of the parameters since

B. T. Polyak, A. B. Juditsky: Acceleration of stochastic approximation by averaging (1992). The steps change
θ; the average must be fetched from the state.
"""

import readtorch

from .optimizer import (
    Optimizer,
    _check_settings,
    _count,
    _get_value,
    _to_scalar,
    _update,
    _use_grad_for_differentiable,
    _zeros_for,
)

__all__ = ["ASGD", "asgd"]


class ASGD(Optimizer):
    """SGD with decreasing steps, which also averages the parameters."""

    _state_names = ("ax", "mu", "eta", "step")
    _added_later = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _counts = ("step", "eta", "mu")
    _no_sparse_gradients = "ASGD does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ) -> None:
        _check_settings(lr=lr, weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def _init_state(self, group, p, state):
        state["step"] = _count(p.device)
        lr = _to_scalar(group["lr"])
        state["eta"] = _count(p.device, _get_value(lr))
        state["mu"] = _count(p.device, 1.0)
        state["ax"] = _zeros_for(p)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(asgd, closure)


def asgd(
    params,
    grads,
    axs,
    mus,
    etas,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lambd,
    lr,
    t0,
    alpha,
    weight_decay,
) -> None:
    """One step for lists of parameters, gradients and state."""
    settings = {
        "lambd": lambd,
        "lr": _to_scalar(lr),
        "t0": t0,
        "alpha": alpha,
        "weight_decay": weight_decay,
        "capturable": capturable,
    }
    _update(
        (_single_tensor_asgd, _multi_tensor_asgd),
        (params, grads, axs),
        (mus, etas, state_steps),
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
        names=("params, mus, etas, and state_steps",) * 2,
    )


def _single_tensor_asgd(param, grad, ax, mu, eta, step_t, *, lambd, lr, t0, alpha, weight_decay, capturable):
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    if capturable:
        param.mul_(1 - lambd * eta)
        param.addcmul_(grad, eta, value=-1)
    else:
        eta_value = _get_value(eta)
        param.mul_(1 - lambd * eta_value)
        param.add_(grad, alpha=-eta_value)
    _average_(ax, param, mu, None if capturable else _get_value(mu))
    if capturable:
        eta.copy_(lr / (1 + lambd * lr * step_t) ** alpha)
        mu.copy_(1 / readtorch.maximum(step_t - t0, readtorch.ones_like(step_t)))
    else:
        step = _get_value(step_t)
        eta.copy_(readtorch.tensor(lr / (1 + lambd * lr * step) ** alpha))
        mu.copy_(readtorch.tensor(_weight_of_step(step, t0)))


def _average_(ax, param, mu, weight):
    """ax ← ax + μ (θ - ax). weight: μ as a number, or None. In a captured graph one node: Python decides by the number."""
    if weight == 1:
        return ax.copy_(param)
    return ax.add_(param.sub(ax).mul_(mu))


def _weight_of_step(step, t0):
    return 1 / max(1, step - t0)


def _multi_tensor_asgd(params, grads, axs, mus, etas, steps, *, lambd, lr, t0, alpha, weight_decay, capturable):
    if weight_decay != 0:
        grads = readtorch._foreach_add(grads, params, alpha=weight_decay)
    # θ - η (g + λ θ): the two lines of the formula as one
    readtorch._foreach_addcmul_(params, readtorch._foreach_add(grads, params, alpha=lambd), etas, value=-1)
    readtorch._foreach_addcmul_(axs, readtorch._foreach_sub(params, axs), mus)
    if capturable:
        new_mus = readtorch._foreach_sub(steps, t0)
        readtorch._foreach_maximum_(new_mus, 1.0)
        readtorch._foreach_reciprocal_(new_mus)
        new_etas = readtorch._foreach_mul(steps, lambd)
        readtorch._foreach_mul_(new_etas, lr)
        readtorch._foreach_add_(new_etas, 1)
        readtorch._foreach_pow_(new_etas, alpha)
        readtorch._foreach_reciprocal_(new_etas)
        readtorch._foreach_mul_(new_etas, lr)
    else:
        device = params[0].device
        new_etas = [(lr / (1 + lambd * lr * step) ** alpha).to(device) for step in steps]
        new_mus = [readtorch.tensor(_weight_of_step(_get_value(step), t0), device=device) for step in steps]
    readtorch._foreach_copy_(etas, new_etas)
    readtorch._foreach_copy_(mus, new_mus)
