r"""Rprop, resilient backpropagation. In PyTorch: `torch/optim/rprop.py`. See the chapter "torch.optim".

For each element, with a step size η of its own (at first lr) and the gradient g′ of the step before:

    g ← ∇f(θ)                     -∇f(θ) if maximize
    η ← η · etaplus               if g g′ > 0: the same direction again,
    η ← η · etaminus, g ← 0       if g g′ < 0: it went too far, and waits a step
    η ← min(max(η, min), max)     step_sizes (min, max)
    θ ← θ - η sign(g)             only the sign of the gradient counts
    g′ ← g

M. Riedmiller, H. Braun: A direct adaptive method for faster backpropagation learning: the RPROP algorithm
(1993).
"""

import readtorch

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

__all__ = ["Rprop", "rprop"]


class Rprop(Optimizer):
    """Steps that grow while the sign of the gradient stays, for gradients of the whole data set.

    etas: (etaminus, etaplus).
    """

    _state_names = ("prev", "step_size", "step")
    _pairs = {"etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}
    _added_later = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _no_sparse_gradients = "Rprop does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ) -> None:
        _check_settings(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = dict(
            lr=lr,
            etas=etas,
            step_sizes=step_sizes,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def _init_state(self, group, p, state):
        lr = group["lr"]
        state["step"] = _count()
        state["prev"] = _zeros_for(p)
        state["step_size"] = readtorch.full_like(p.grad, complex(lr, lr) if p.is_complex() else _to_scalar(lr))

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(rprop, closure)


def rprop(
    params,
    grads,
    prevs,
    step_sizes,
    state_steps,
    foreach=None,
    capturable=False,
    maximize=False,
    differentiable=False,
    has_complex=False,
    *,
    step_size_min,
    step_size_max,
    etaminus,
    etaplus,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable)
    tensors = params, grads, prevs, step_sizes
    for param, grad, prev, step_size, _ in _each_parameter(
        tensors, (state_steps,), maximize=maximize, capturable=capturable
    ):
        eta = grad.mul(prev.clone()).sign()  # a copy: autograd saves it, and `prev` is written below
        flipped = eta.lt(0)
        eta[eta.gt(0)] = etaplus
        eta[flipped] = etaminus
        eta[eta.eq(0)] = 1
        step_size.mul_(eta).clamp_(step_size_min, step_size_max)
        grad = grad.clone(memory_format=readtorch.preserve_format)
        grad[flipped] = 0
        param.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)
