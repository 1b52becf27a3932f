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

from .optimizer import (
    Optimizer,
    _check_foreach,
    _check_settings,
    _check_steps,
    _count,
    _each_parameter,
    _to_scalar,
    _use_grad_for_differentiable,
    _zeros_for,
)

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Optimizer):
    """The gradient in units of its own recent size."""

    _state_names = ("square_avg", "grad_avg", "momentum_buffer", "step")
    _added_later = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    _no_sparse_gradients = "RMSprop does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ) -> None:
        _check_settings(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            capturable=capturable,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def _init_state(self, group, p, state):
        state["step"] = _count()
        state["square_avg"] = _zeros_for(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = _zeros_for(p)
        if group["centered"]:
            state["grad_avg"] = _zeros_for(p)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(rmsprop, closure)


def rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
) -> None:
    """One step for lists of parameters, gradients and state. What the settings do not need may be empty."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable)
    lr = _to_scalar(lr)
    tensors = (
        params,
        grads,
        square_avgs,
        grad_avgs if centered else None,
        momentum_buffer_list if momentum > 0 else None,
    )
    for param, grad, square_avg, grad_avg, buf, _ in _each_parameter(
        tensors, (state_steps,), maximize=maximize, capturable=capturable
    ):
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if centered:
            grad_avg.lerp_(grad, 1 - alpha)
            avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            avg = square_avg.sqrt()
        avg = avg.add(eps)
        if momentum > 0:
            buf.mul_(momentum).addcdiv_(grad, avg)
            param.add_(buf, alpha=-lr)
        else:
            param.addcdiv_(grad, avg, value=-lr)
