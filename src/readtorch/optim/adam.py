r"""Adam. In PyTorch: `torch/optim/adam.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                             -∇f(θ) if maximize
    g ← g + λ θ                           weight_decay λ
    θ ← θ - γ λ θ                         instead of the line above if decoupled_weight_decay (AdamW)
    m ← β₁ m + (1 - β₁) g                 mean of the gradient
    v ← β₂ v + (1 - β₂) g²                mean of its square
    v ← max of all v so far               if amsgrad
    m̂ ← m / (1 - β₁ᵗ),  v̂ ← v / (1 - β₂ᵗ)   both means start at 0: step t = 1, 2, … corrects for it
    θ ← θ - γ m̂ / (√v̂ + ε)                lr γ

D. P. Kingma, J. Ba: Adam: a method for stochastic optimization (2014). AMSGrad: S. J. Reddi and others: On
the convergence of Adam and beyond (2018).
"""

from functools import partial

import readtorch
from readtorch._tensor import Tensor
from readtorch.aten.native.foreach_ops_kernels import _foreach_add_
from readtorch.aten.native.fused_adam import _fused_adam_, _fused_adamw_

from .optimizer import (
    Optimizer,
    _add_weight_decay,
    _check_fused,
    _check_settings,
    _check_steps,
    _count,
    _default_to_foreach,
    _device_dtype_check_for_fused,
    _device_of_counts,
    _foreach_means,
    _fused_groups,
    _get_value,
    _kernel_serves,
    _refuse_scaling,
    _to_scalar,
    _update,
    _use_grad_for_differentiable,
    _zeros_for,
)

__all__ = ["Adam", "adam"]


class Adam(Optimizer):
    """The recent mean of the gradient in units of the root of its recent mean square.

    With AMSGrad, and with coupled or decoupled weight decay, if wanted.

    fused: None lets a compiled kernel do the step where it can, False never, True always. See `adam`.
    """

    _state_names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")
    _pairs = {"betas": ("beta1", "beta2")}
    _added_later = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }
    _no_sparse_gradients = "Adam does not support sparse gradients, please consider SparseAdam instead"

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ) -> None:
        _check_tensor_setting(lr, "lr", foreach and not capturable)
        _check_settings(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        if not any(all(isinstance(beta, kind) for beta in betas[:2]) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i in range(2):
            _check_tensor_setting(betas[i], f"betas[{i}]", foreach and not capturable)
        defaults = dict(
            lr=lr,
            betas=tuple(map(_to_scalar, betas)),
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        super().__init__(params, defaults)
        _check_fused(fused, foreach, differentiable)

    def _init_state(self, group, p, state):
        if group["fused"]:
            _device_dtype_check_for_fused(p)
        state["step"] = _count(_device_of_counts(group, p), is_fused=group["fused"])
        state["exp_avg"] = _zeros_for(p)
        state["exp_avg_sq"] = _zeros_for(p)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = _zeros_for(p)

    def _init_group(self, group):
        lists = super()._init_group(group)
        _check_group(group, state_steps=lists[-1])
        return lists

    @_use_grad_for_differentiable
    def step(self, closure=None):
        return self._step_with(adam, closure)


def _check_tensor_setting(value, name, forbidden):
    if not isinstance(value, Tensor):
        return
    if forbidden:
        raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
    if value.numel() != 1:
        raise ValueError(f"Tensor {name} must be 1-element")


def _refuse_tensors(capturable, **settings):
    """The formula for lists wants numbers, or tensors of one element that stay on the device of a recorded graph."""
    for name, value in settings.items():
        if isinstance(value, Tensor) and not capturable:
            error = RuntimeError if name == "lr" else ValueError
            raise error(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")


def _check_group(group, state_steps):
    """Settings may have changed since `__init__`: a scheduler's lr, a loaded state."""
    if group["differentiable"] and any([step.requires_grad for step in state_steps]):
        raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
    if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
        raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")


def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    foreach=None,
    capturable=False,
    differentiable=False,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    decoupled_weight_decay=False,
    *,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _check_steps(state_steps)
    lr, beta1, beta2 = _to_scalar(lr), _to_scalar(beta1), _to_scalar(beta2)
    settings = dict(lr=lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=eps)
    settings["decoupled_weight_decay"] = decoupled_weight_decay
    others = [grads, exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else [])]
    if fused is None and foreach is None:
        # in PyTorch: the loop for the CPU. The kernel does the loop's arithmetic.
        foreach = (capturable or not isinstance(lr, Tensor)) and _default_to_foreach(params, differentiable)
        plain = not (foreach or capturable or differentiable)
        fused = plain and _kernel_serves(params, (lr, beta1, beta2, weight_decay), *others)
    if fused:
        lists = params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else [], state_steps
        _fused_adam(*lists, grad_scale, found_inf, amsgrad=amsgrad, maximize=maximize, **settings)
        return
    _refuse_scaling(grad_scale, found_inf)
    if foreach:
        _refuse_tensors(capturable, lr=lr, beta1=beta1, beta2=beta2)
    single_tensor = _differentiable_adam if differentiable or capturable else _single_tensor_adam
    _update(
        (single_tensor, partial(_multi_tensor_adam, capturable=capturable)),
        (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else None),
        (state_steps,),
        settings,
        foreach=bool(foreach),
        differentiable=differentiable,
        capturable=capturable,
        maximize=maximize,
    )


def _single_tensor_adam(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    max_exp_avg_sq,
    step_t,
    *,
    lr,
    beta1,
    beta2,
    weight_decay,
    eps,
    decoupled_weight_decay,
):
    """The formula, line by line; numbers that are the same for all elements are Python numbers."""
    if weight_decay != 0:
        if decoupled_weight_decay:
            param.mul_(1 - lr * weight_decay)
        else:
            grad = grad.add(param, alpha=weight_decay)
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    if max_exp_avg_sq is not None:
        exp_avg_sq = readtorch.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)
    step = _get_value(step_t)
    step_size = lr / (1 - beta1**step)
    bias_correction2_sqrt = (1 - beta2**step) ** 0.5
    denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps)
    param.addcdiv_(exp_avg, denom, value=-step_size)


def _differentiable_adam(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    max_exp_avg_sq,
    step_t,
    *,
    lr,
    beta1,
    beta2,
    weight_decay,
    eps,
    decoupled_weight_decay,
):
    """The same with tensors for all numbers that depend on the step, and copies of what autograd saves before it is written again.

    So it can be differentiated, and recorded as a graph in which the step, on its device, grows (`capturable`).
    """
    step = step_t.clone()
    if weight_decay != 0:
        if decoupled_weight_decay:
            param.mul_(1 - lr * weight_decay)
        else:
            grad = _add_weight_decay(grad, param, weight_decay)
    exp_avg.lerp_(grad, 1 - beta1)
    if isinstance(beta2, Tensor) and beta2.requires_grad:
        # v + (1 - β₂)(g² - v): `addcmul_` takes no tensor as its factor
        exp_avg_sq.lerp_(readtorch.square(grad), weight=1 - beta2)
    else:
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    if max_exp_avg_sq is not None:
        exp_avg_sq = max_exp_avg_sq.copy_(readtorch.maximum(max_exp_avg_sq.clone(), exp_avg_sq))
    step_size_neg = -(lr / (1 - beta1**step))
    bias_correction2_sqrt = (1 - beta2**step).sqrt()
    # The step size goes into the denominator: `addcdiv_` takes no tensor as its factor either.
    denom = (exp_avg_sq.sqrt() / (bias_correction2_sqrt * step_size_neg)).add_(eps / step_size_neg)
    param.addcdiv_(exp_avg.clone(), denom)


def _multi_tensor_adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    steps,
    *,
    lr,
    beta1,
    beta2,
    weight_decay,
    eps,
    decoupled_weight_decay,
    capturable,
):
    """The formula, each line for all parameters."""
    _foreach_means(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
        decoupled_weight_decay=decoupled_weight_decay,
    )
    if max_exp_avg_sqs:
        readtorch._foreach_maximum_(max_exp_avg_sqs, exp_avg_sqs)
    denoms = readtorch._foreach_sqrt(max_exp_avg_sqs or exp_avg_sqs)
    if capturable:
        # (β₁ᵗ - 1) / γ is the negative of 1 / step size: an operator for lists takes no number first
        step_sizes = readtorch._foreach_pow(beta1, steps)
        readtorch._foreach_sub_(step_sizes, 1)
        readtorch._foreach_div_(step_sizes, lr)
        readtorch._foreach_reciprocal_(step_sizes)
        corrections = readtorch._foreach_pow(beta2, steps)
        readtorch._foreach_sub_(corrections, 1)
        readtorch._foreach_neg_(corrections)
        readtorch._foreach_sqrt_(corrections)
    else:
        counts = [_get_value(step) for step in steps]
        step_sizes = [-(lr / (1 - beta1**step)) for step in counts]
        corrections = [(1 - beta2**step) ** 0.5 for step in counts]
    readtorch._foreach_div_(denoms, corrections)
    readtorch._foreach_add_(denoms, eps)
    if capturable:
        readtorch._foreach_div_(denoms, step_sizes)
        readtorch._foreach_addcdiv_(params, exp_avgs, denoms)
    else:
        readtorch._foreach_addcdiv_(params, exp_avgs, denoms, step_sizes)


def _fused_adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    grad_scale,
    found_inf,
    *,
    amsgrad,
    lr,
    beta1,
    beta2,
    weight_decay,
    eps,
    maximize,
    decoupled_weight_decay,
):
    if not params:
        return
    operator = _fused_adamw_ if decoupled_weight_decay else _fused_adam_
    numbers = _get_value(lr), _get_value(beta1), _get_value(beta2), weight_decay, eps, amsgrad, maximize
    lists = params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps
    for lists, scale, found in _fused_groups(lists, grad_scale, found_inf):
        counts = lists[-1]
        # `call` goes straight to the dispatcher, past the argument parser: all is as the schema wants it.
        _foreach_add_.call(counts, 1)
        operator.call(*lists, *numbers, scale, found)
        if found is not None:  # a step that is left out does not count
            readtorch._foreach_sub_(counts, [found] * len(counts))
