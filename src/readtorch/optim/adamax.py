r"""Adamax. In PyTorch: `torch/optim/adamax.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    m ← β₁ m + (1 - β₁) g         mean of the gradient
    u ← max(β₂ u, |g| + ε)        its size: a maximum that fades
    θ ← θ - γ m / ((1 - β₁ᵗ) u)   lr γ; m starts at 0, step t = 1, 2, … corrects for it

D. P. Kingma, J. Ba: Adam: a method for stochastic optimization (2014), section 7.1: Adam with the infinity
norm.
"""
import readtorch
from readtorch.optim._common import (
    _as_real,
    _check_betas,
    _check_capturable,
    _check_foreach,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _count,
    _get_value,
    _loss_of,
    _to_scalar,
    _use_grad_for_differentiable,
    _zeros_for,
)
from readtorch.optim.optimizer import Optimizer

__all__ = ["Adamax", "adamax"]


class Adamax(Optimizer):
    """Adam with a maximum in place of the mean square."""

    _no_sparse_gradients = "Adamax does not support sparse gradients"

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
        differentiable=False, capturable=False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative("epsilon value", eps)
        _check_betas(betas)
        _check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        self._set_missing({"foreach": None, "maximize": False, "differentiable": False, "capturable": False})

    def _init_state(self, group, p, state):
        state["step"] = _count()
        state["exp_avg"] = _zeros_for(p)
        state["exp_inf"] = _zeros_for(p)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _loss_of(closure)
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            adamax(
                *self._with_grad(group, "exp_avg", "exp_inf", "step"), eps=group["eps"], beta1=beta1,
                beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"], foreach=group["foreach"],
                maximize=group["maximize"], differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


def adamax(
    params, grads, exp_avgs, exp_infs, state_steps, foreach=None, maximize=False, differentiable=False,
    capturable=False, has_complex=False, *, eps, beta1, beta2, lr, weight_decay,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    for i, param in enumerate(params):
        _check_capturable(capturable, param, state_steps[i])
        state_steps[i] += 1
        _single_tensor_adamax(
            *_as_real(param, grads[i], exp_avgs[i], exp_infs[i]), _get_value(state_steps[i]), eps=eps,
            beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, maximize=maximize,
            differentiable=differentiable,
        )


def _single_tensor_adamax(
    param, grad, exp_avg, exp_inf, step, *, eps, beta1, beta2, lr, weight_decay, maximize, differentiable
):
    grad = -grad if maximize else grad
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    exp_avg.lerp_(grad, 1 - beta1)
    size = grad.abs().add_(eps)
    if differentiable:
        # `amax` shares the derivative among equal numbers
        exp_inf.copy_(readtorch.stack([exp_inf.mul_(beta2), size]).amax(0))
    else:
        readtorch.maximum(exp_inf.mul_(beta2), size, out=exp_inf)
    param.addcdiv_(exp_avg, exp_inf, value=-(lr / (1 - beta1**step)))
