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
from readtorch.optim._common import (
    _as_real,
    _check_capturable,
    _check_foreach,
    _check_lr,
    _check_not_negative,
    _count,
    _get_scalar_dtype,
    _get_value,
    _loss_of,
    _to_scalar,
    _use_grad_for_differentiable,
    _zeros_for,
)
from readtorch.optim.optimizer import Optimizer

__all__ = ["ASGD", "asgd"]


class ASGD(Optimizer):
    """SGD with fading steps, which also averages where it has been."""

    _no_sparse_gradients = "ASGD does not support sparse gradients"

    def __init__(
        self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
        differentiable=False, capturable=False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        added_later = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
        self._set_missing(added_later, ("step", "eta", "mu"))

    def _init_state(self, group, p, state):
        lr = _to_scalar(group["lr"])
        state["step"] = _count()
        state["eta"] = readtorch.as_tensor(lr, dtype=_get_scalar_dtype()).clone().detach()
        state["mu"] = _count(1.0)
        state["ax"] = _zeros_for(p)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _loss_of(closure)
        for group in self.param_groups:
            asgd(
                *self._with_grad(group, "ax", "mu", "eta", "step"), lambd=group["lambd"], lr=group["lr"],
                t0=group["t0"], alpha=group["alpha"], weight_decay=group["weight_decay"],
                foreach=group["foreach"], maximize=group["maximize"], differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


def asgd(
    params, grads, axs, mus, etas, state_steps, foreach=None, maximize=False, differentiable=False,
    capturable=False, has_complex=False, *, lambd, lr, t0, alpha, weight_decay,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    for i, param in enumerate(params):
        state = mus[i], etas[i], state_steps[i]
        _check_capturable(capturable, param, *state, names="params, mus, etas, and state_steps")
        _single_tensor_asgd(
            *_as_real(param, grads[i], axs[i]), *state, lambd=lambd, lr=lr, t0=t0, alpha=alpha,
            weight_decay=weight_decay, maximize=maximize,
        )


def _single_tensor_asgd(
    param, grad, ax, mu, eta, step_t, *, lambd, lr, t0, alpha, weight_decay, maximize
):
    step_t += 1
    step = _get_value(step_t)
    grad = -grad if maximize else grad
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    eta_value = _get_value(eta)
    param.mul_(1 - lambd * eta_value)
    param.add_(grad, alpha=-eta_value)
    if mu.item() == 1:
        ax.copy_(param)
    else:
        ax.add_(param.sub(ax).mul_(mu))
    eta.copy_(readtorch.as_tensor(lr / (1 + lambd * lr * step) ** alpha))
    mu.copy_(readtorch.as_tensor(1 / max(1, step - t0)))
