r"""RMSprop. In PyTorch: `torch/optim/rmsprop.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    v ← α v + (1 - α) g²          mean of the squared gradient
    ḡ ← α ḡ + (1 - α) g           mean of the gradient, if centered
    s ← √v + ε                    √(v - ḡ²) + ε if centered: the deviation
    b ← μ b + g / s               momentum μ; 0 means none
    θ ← θ - γ b                   lr γ; without momentum θ ← θ - γ g / s

G. Hinton: Neural networks for machine learning, lecture 6 (2012). Centered: A. Graves: Generating sequences
with recurrent neural networks (2013).
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

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Optimizer):
    """The gradient in units of its own size of late."""

    _no_sparse_gradients = "RMSprop does not support sparse gradients"

    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
        capturable=False, foreach=None, maximize=False, differentiable=False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative("epsilon value", eps)
        _check_not_negative("momentum value", momentum)
        _check_not_negative("weight_decay value", weight_decay)
        _check_not_negative("alpha value", alpha)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        self._set_missing({
            "momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False,
            "capturable": False,
        })

    def _init_state(self, group, p, state):
        state["step"] = _count()
        state["square_avg"] = _zeros_for(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = _zeros_for(p)
        if group["centered"]:
            state["grad_avg"] = _zeros_for(p)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _loss_of(closure)
        for group in self.param_groups:
            rmsprop(
                *self._with_grad(group, "square_avg", "grad_avg", "momentum_buffer", "step"), lr=group["lr"],
                alpha=group["alpha"], eps=group["eps"], weight_decay=group["weight_decay"],
                momentum=group["momentum"], centered=group["centered"], foreach=group["foreach"],
                maximize=group["maximize"], differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


def rmsprop(
    params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, foreach=None, maximize=False,
    differentiable=False, capturable=False, has_complex=False, *, lr, alpha, eps, weight_decay, momentum,
    centered,
) -> None:
    """One step for lists of parameters, gradients and state. What the settings do not need may be empty."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    for i, param in enumerate(params):
        _check_capturable(capturable, param, state_steps[i])
        state_steps[i] += 1
        grad_avg = grad_avgs[i] if centered else None
        buf = momentum_buffer_list[i] if momentum > 0 else None
        _single_tensor_rmsprop(
            *_as_real(param, grads[i], square_avgs[i], grad_avg, buf), lr=lr, alpha=alpha, eps=eps,
            weight_decay=weight_decay, momentum=momentum, maximize=maximize,
        )


def _single_tensor_rmsprop(
    param, grad, square_avg, grad_avg, buf, *, lr, alpha, eps, weight_decay, momentum, maximize
):
    grad = -grad if maximize else grad
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
    if grad_avg is None:
        avg = square_avg.sqrt()
    else:
        grad_avg.lerp_(grad, 1 - alpha)
        avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
    avg = avg.add(eps)
    if buf is None:
        param.addcdiv_(grad, avg, value=-lr)
    else:
        buf.mul_(momentum).addcdiv_(grad, avg)
        param.add_(buf, alpha=-lr)
