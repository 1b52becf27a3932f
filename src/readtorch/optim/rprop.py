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
    _check_settings,
    _check_steps,
    _count,
    _device_of_counts,
    _to_scalar,
    _update,
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
        state["step"] = _count(_device_of_counts(group, p))
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
    settings = {
        "step_size_min": step_size_min,
        "step_size_max": step_size_max,
        "etaminus": etaminus,
        "etaplus": etaplus,
        "capturable": capturable,
    }
    _update(
        (_single_tensor_rprop, _multi_tensor_rprop),
        (params, grads, prevs, step_sizes),
        (state_steps,),
        settings,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
        supports_xla=(True, True),
    )


def _single_tensor_rprop(
    param, grad, prev, step_size, step, *, step_size_min, step_size_max, etaminus, etaplus, capturable
):
    sign = grad.mul(prev.clone()).sign()  # a copy: autograd saves it, and `prev` is written below
    _signs_to_factors(sign, etaminus, etaplus, capturable)
    step_size.mul_(sign).clamp_(step_size_min, step_size_max)
    grad = grad.clone(memory_format=readtorch.preserve_format)
    if capturable:
        grad.copy_(readtorch.where(sign.eq(etaminus), 0, grad))
    else:
        grad[sign.eq(etaminus)] = 0
    param.addcmul_(grad.sign(), step_size, value=-1)
    prev.copy_(grad)


def _multi_tensor_rprop(
    params, grads, prevs, step_sizes, steps, *, step_size_min, step_size_max, etaminus, etaplus, capturable
):
    signs = readtorch._foreach_mul(grads, prevs)
    readtorch._foreach_sign_(signs)
    for sign in signs:
        _signs_to_factors(sign, etaminus, etaplus, capturable)
    readtorch._foreach_mul_(step_sizes, signs)
    for step_size in step_sizes:
        step_size.clamp_(step_size_min, step_size_max)
    for prev, grad, sign in zip(prevs, grads, signs):
        prev.copy_(readtorch.where(sign.eq(etaminus), 0, grad))
    readtorch._foreach_addcmul_(params, [prev.sign() for prev in prevs], step_sizes, value=-1)


def _signs_to_factors(sign, etaminus, etaplus, capturable):
    """1, -1 and 0 become etaplus, etaminus and 1: in place, and if `capturable` without asking a device how many there are."""
    if capturable:
        sign.copy_(readtorch.where(sign.gt(0), etaplus, sign))
        sign.copy_(readtorch.where(sign.lt(0), etaminus, sign))
        sign.copy_(readtorch.where(sign.eq(0), 1, sign))
    else:
        sign[sign.gt(0)] = etaplus
        sign[sign.lt(0)] = etaminus
        sign[sign.eq(0)] = 1
