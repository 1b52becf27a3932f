r"""Adadelta. In PyTorch: `torch/optim/adadelta.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    v ← ρ v + (1 - ρ) g²          mean of the squared gradient
    Δ ← √(u + ε) / √(v + ε) · g   steps in units of the parameter: u in the numerator, v below it
    u ← ρ u + (1 - ρ) Δ²          mean of the squared step
    θ ← θ - γ Δ                   lr γ

M. D. Zeiler: ADADELTA: an adaptive learning rate method (2012). There γ = 1.
"""
from readtorch.optim._common import (
    _as_real,
    _check_capturable,
    _check_foreach,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _count,
    _loss_of,
    _to_scalar,
    _use_grad_for_differentiable,
    _zeros_for,
)
from readtorch.optim.optimizer import Optimizer

__all__ = ["Adadelta", "adadelta"]


class Adadelta(Optimizer):
    """A step size for each element that needs no tuning: as large as the steps of late."""

    _no_sparse_gradients = "Adadelta does not support sparse gradients"

    def __init__(
        self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False,
        maximize=False, differentiable=False,
    ) -> None:
        _check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_not_negative("epsilon value", eps)
        _check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        self._set_missing({"foreach": None, "maximize": False, "differentiable": False, "capturable": False})

    def _init_state(self, group, p, state):
        state["step"] = _count()
        state["square_avg"] = _zeros_for(p)
        state["acc_delta"] = _zeros_for(p)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _loss_of(closure)
        for group in self.param_groups:
            adadelta(
                *self._with_grad(group, "square_avg", "acc_delta", "step"), lr=group["lr"], rho=group["rho"],
                eps=group["eps"], weight_decay=group["weight_decay"], foreach=group["foreach"],
                maximize=group["maximize"], differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


def adadelta(
    params, grads, square_avgs, acc_deltas, state_steps, capturable=False, foreach=None, differentiable=False,
    has_complex=False, *, lr, rho, eps, weight_decay, maximize,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    for i, param in enumerate(params):
        _check_capturable(capturable, param, state_steps[i], supports_xla=False)
        state_steps[i] += 1
        _single_tensor_adadelta(
            *_as_real(param, grads[i], square_avgs[i], acc_deltas[i]), lr=lr, rho=rho, eps=eps,
            weight_decay=weight_decay, maximize=maximize,
        )


def _single_tensor_adadelta(param, grad, square_avg, acc_delta, *, lr, rho, eps, weight_decay, maximize):
    grad = -grad if maximize else grad
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
    std = square_avg.add(eps).sqrt_()
    delta = acc_delta.add(eps).sqrt() / std * grad
    acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
    param.add_(delta, alpha=-lr)
