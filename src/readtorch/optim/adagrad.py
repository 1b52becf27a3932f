r"""Adagrad. In PyTorch: `torch/optim/adagrad.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    γ̃ ← γ / (1 + (t - 1) η)       lr γ, lr_decay η, step t = 1, 2, …
    s ← s + g²                    sum of the squared gradients, at first initial_accumulator_value
    θ ← θ - γ̃ g / (√s + ε)

J. Duchi, E. Hazan, Y. Singer: Adaptive subgradient methods for online learning and stochastic optimization
(2011).
"""

import readtorch
from readtorch.aten.native.fused_adagrad import _fused_adagrad_

from .optimizer import (
    Optimizer,
    _check_fused,
    _check_settings,
    _check_steps,
    _count,
    _default_to_foreach,
    _device_of_counts,
    _each_group,
    _each_parameter,
    _fused_groups,
    _get_value,
    _has_sparse,
    _make_sparse,
    _refuse_scaling,
    _to_scalar,
    _use_grad_for_differentiable,
)

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Optimizer):
    """Elements that have moved much move less. Its state exists from the start, not from the first step."""

    _state_names = ("sum", "step")
    _added_later = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ) -> None:
        _check_settings(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = dict(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, defaults)
        _check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self._init_state(group, p, self.state[p])

    def share_memory(self) -> None:
        """Move the sums to memory that other processes see."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _init_state(self, group, p, state):
        start = self.defaults["initial_accumulator_value"]
        state["step"] = _count(_device_of_counts(group, p), is_fused=group["fused"])
        state["sum"] = readtorch.full_like(
            p, complex(start, start) if p.is_complex() else start, memory_format=readtorch.preserve_format
        )

    def _init_group(self, group):
        params, *lists = super()._init_group(group)
        if group["fused"]:
            self._check_fused_params(params)
        return params, *lists

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(adagrad, closure)


def adagrad(
    params,
    grads,
    state_sums,
    state_steps,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_sparse_grad=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    weight_decay,
    lr_decay,
    eps,
    maximize,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    settings = {"lr": _to_scalar(lr), "weight_decay": weight_decay, "lr_decay": lr_decay, "eps": eps}
    tensors = params, grads, state_sums
    if fused:
        if has_complex or has_sparse_grad or _has_sparse(grads) or any([p.is_complex() for p in params]):
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if differentiable:
            raise RuntimeError("adagrad with fused=True does not support differentiable=True")
        _fused_adagrad(*tensors, state_steps, grad_scale, found_inf, maximize=maximize, **settings)
        return
    _refuse_scaling(grad_scale, found_inf)
    if fused is None and foreach is None:
        foreach = _default_to_foreach(params, differentiable)
    if foreach:
        groups = _each_group(tensors, (state_steps,), maximize=maximize, differentiable=differentiable)
        for of_group in groups:
            _multi_tensor_adagrad(*of_group, **settings)
        return
    for of_param in _each_parameter(tensors, (state_steps,), maximize=maximize):
        _single_tensor_adagrad(*of_param, **settings)


def _single_tensor_adagrad(param, grad, state_sum, step_t, *, lr, weight_decay, lr_decay, eps):
    lr = lr / (1 + (_get_value(step_t) - 1) * lr_decay)
    if grad.is_sparse:
        _sparse_adagrad(param, grad, state_sum, lr=lr, weight_decay=weight_decay, eps=eps)
        return
    if weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    state_sum.addcmul_(grad, grad, value=1)
    std = state_sum.sqrt() + eps
    param.addcdiv_(grad, std, value=-lr)


def _multi_tensor_adagrad(params, grads, state_sums, steps, *, lr, weight_decay, lr_decay, eps):
    if _has_sparse(grads):
        for of_param in zip(params, grads, state_sums, steps):
            _single_tensor_adagrad(*of_param, lr=lr, weight_decay=weight_decay, lr_decay=lr_decay, eps=eps)
        return
    if weight_decay != 0:
        grads = readtorch._foreach_add(grads, params, alpha=weight_decay)
    readtorch._foreach_addcmul_(state_sums, grads, grads, value=1)
    stds = readtorch._foreach_sqrt(state_sums)
    readtorch._foreach_add_(stds, eps)
    minus_lrs = [-lr / (1 + (_get_value(step) - 1) * lr_decay) for step in steps]
    readtorch._foreach_addcdiv_(params, readtorch._foreach_mul(grads, minus_lrs), stds)


def _fused_adagrad(
    params, grads, state_sums, state_steps, grad_scale, found_inf, *, lr, weight_decay, lr_decay, eps, maximize
):
    if not params:
        return
    lists = params, grads, state_sums, state_steps
    for lists, scale, found in _fused_groups(lists, grad_scale, found_inf):
        counts = lists[-1]
        readtorch._foreach_add_(counts, 1)
        _fused_adagrad_.call(*lists, _get_value(lr), lr_decay, weight_decay, eps, maximize, scale, found)
        if found is not None:  # a step that is left out does not count
            readtorch._foreach_sub_(counts, [found] * len(counts))


def _sparse_adagrad(param, grad, state_sum, *, lr, weight_decay, eps):
    """The same for the elements that `grad` lists; for all others it would change nothing."""
    if weight_decay != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    grad = grad.coalesce()  # squares: each index must be listed once
    state_sum.add_(_make_sparse(grad, grad._values().pow(2)))
    std = state_sum.sparse_mask(grad)._values().sqrt() + eps
    param.add_(_make_sparse(grad, grad._values() / std), alpha=-lr)
