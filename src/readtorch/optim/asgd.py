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
    _check_foreach,
    _check_settings,
    _count,
    _each_parameter,
    _get_scalar_dtype,
    _get_value,
    _to_scalar,
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
        state["step"] = _count()
        state["eta"] = readtorch.as_tensor(_to_scalar(group["lr"]), dtype=_get_scalar_dtype()).clone().detach()
        state["mu"] = _count(1.0)
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
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    for param, grad, ax, mu, eta, step in _each_parameter(
        (params, grads, axs),
        (mus, etas, state_steps),
        maximize=maximize,
        capturable=capturable,
        names="params, mus, etas, and state_steps",
    ):
        step, eta_value = _get_value(step), _get_value(eta)
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        param.mul_(1 - lambd * eta_value)
        param.add_(grad, alpha=-eta_value)
        if mu.item() == 1:
            ax.copy_(param)
        else:
            ax.add_(param.sub(ax).mul_(mu))
        eta.copy_(readtorch.as_tensor(lr / (1 + lambd * lr * step) ** alpha))
        mu.copy_(readtorch.as_tensor(1 / max(1, step - t0)))
