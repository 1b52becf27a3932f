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
from readtorch.optim._common import (
    _as_real,
    _check_capturable,
    _check_foreach,
    _check_lr,
    _check_steps,
    _count,
    _loss_of,
    _to_scalar,
    _use_grad_for_differentiable,
    _zeros_for,
)
from readtorch.optim.optimizer import Optimizer

__all__ = ["Rprop", "rprop"]


class Rprop(Optimizer):
    """Steps that grow while the sign of the gradient stays, for gradients of the whole data set.

    etas: (etaminus, etaplus).
    """

    _no_sparse_gradients = "Rprop does not support sparse gradients"

    def __init__(
        self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
        maximize=False, differentiable=False,
    ) -> None:
        _check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        self._set_missing({"foreach": None, "maximize": False, "differentiable": False, "capturable": False})

    def _init_state(self, group, p, state):
        lr = group["lr"]
        state["step"] = _count()
        state["prev"] = _zeros_for(p)
        first = complex(lr, lr) if p.is_complex() else _to_scalar(lr)
        state["step_size"] = readtorch.full_like(p.grad, first)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _loss_of(closure)
        for group in self.param_groups:
            etaminus, etaplus = group["etas"]
            step_size_min, step_size_max = group["step_sizes"]
            rprop(
                *self._with_grad(group, "prev", "step_size", "step"), step_size_min=step_size_min,
                step_size_max=step_size_max, etaminus=etaminus, etaplus=etaplus, foreach=group["foreach"],
                maximize=group["maximize"], differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


def rprop(
    params, grads, prevs, step_sizes, state_steps, foreach=None, capturable=False, maximize=False,
    differentiable=False, has_complex=False, *, step_size_min, step_size_max, etaminus, etaplus,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable)
    for i, param in enumerate(params):
        _check_capturable(capturable, param, state_steps[i])
        state_steps[i] += 1
        _single_tensor_rprop(
            *_as_real(param, grads[i], prevs[i], step_sizes[i]), step_size_min=step_size_min,
            step_size_max=step_size_max, etaminus=etaminus, etaplus=etaplus, maximize=maximize,
        )


def _single_tensor_rprop(
    param, grad, prev, step_size, *, step_size_min, step_size_max, etaminus, etaplus, maximize
):
    grad = -grad if maximize else grad
    eta = grad.mul(prev.clone()).sign()  # a copy: autograd saves it, and `prev` is written below
    turned = eta.lt(0)
    eta[eta.gt(0)] = etaplus
    eta[turned] = etaminus
    eta[eta.eq(0)] = 1
    step_size.mul_(eta).clamp_(step_size_min, step_size_max)
    grad = grad.clone(memory_format=readtorch.preserve_format)
    grad[turned] = 0
    param.addcmul_(grad.sign(), step_size, value=-1)
    prev.copy_(grad)
