r"""Stochastic gradient descent. In PyTorch: `torch/optim/sgd.py`. See the chapter "torch.optim".

    g ← ∇f(θ)                     -∇f(θ) if maximize
    g ← g + λ θ                   weight_decay λ
    b ← g                         momentum μ, first step
    b ← μ b + (1 - τ) g           momentum μ, later steps; dampening τ
    g ← g + μ b                   if nesterov, else g ← b
    θ ← θ - γ g                   lr γ

H. Robbins, S. Monro: A stochastic approximation method (1951). Nesterov's form: I. Sutskever and others: On
the importance of initialization and momentum in deep learning (2013); there the rate multiplies b's
increment, here b.
"""

import readtorch
from readtorch._tensor import Tensor
from readtorch.aten.native.fused_sgd import _fused_sgd_
from readtorch.utils._foreach_utils import _group_tensors_by_device_and_dtype

from .optimizer import (
    Optimizer,
    _add_weight_decay,
    _check_fused,
    _default_to_foreach,
    _fused_groups,
    _get_value,
    _has_sparse,
    _kernel_serves,
    _loss_of,
    _refuse_scaling,
    _to_scalar,
    _use_grad_for_differentiable,
)

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum, Nesterov's momentum and weight decay if wanted.

    fused: None lets a compiled kernel do the step where it can and where it pays, False never, True always.
    """

    _added_later = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = dict(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            foreach=foreach,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, defaults)
        _check_fused(fused, foreach, differentiable)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _loss_of(closure)
        for group in self.param_groups:
            params, grads = self._init_group(group)
            if group["fused"]:
                self._check_fused_params(params)
            if group["momentum"] == 0:  # there is no state, not even an empty one
                sgd(params, grads, [], **self._settings(sgd, group))
                continue
            states = [self.state[p] for p in params]
            momentum_buffer_list = [state.get("momentum_buffer") for state in states]
            sgd(params, grads, momentum_buffer_list, **self._settings(sgd, group))
            for state, momentum_buffer in zip(states, momentum_buffer_list):
                state["momentum_buffer"] = momentum_buffer
        return loss


def sgd(
    params,
    d_p_list,
    momentum_buffer_list,
    has_sparse_grad=False,
    foreach=None,
    fused=None,
    grad_scale=None,
    found_inf=None,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
) -> None:
    """One step for lists of parameters, gradients and momentum buffers (None where there is none yet)."""
    settings = dict(weight_decay=weight_decay, momentum=momentum, lr=_to_scalar(lr), dampening=dampening)
    settings.update(nesterov=nesterov, maximize=maximize)
    has_sparse_grad = has_sparse_grad or _has_sparse(d_p_list)
    if fused is None and foreach is None:
        foreach = _default_to_foreach(params, differentiable=False)
        if not (foreach or has_sparse_grad) and _kernel_pays(params):  # in PyTorch: the loop, whose arithmetic it does
            others = d_p_list, *_buffers(params, momentum_buffer_list, momentum)
            fused = _kernel_serves(params, (lr, weight_decay), *others)
    elif fused and not foreach and has_sparse_grad:
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    if fused and not foreach:
        _fused_sgd(params, d_p_list, momentum_buffer_list, grad_scale, found_inf, **settings)
    else:
        _refuse_scaling(grad_scale, found_inf)
        (_multi_tensor_sgd if foreach else _single_tensor_sgd)(params, d_p_list, momentum_buffer_list, **settings)


def _buffers(params, momentum_buffer_list, momentum):
    """The lists of buffers that a kernel reads: one or none. A buffer that the first step will make has its parameter's shape."""
    return [[p if buf is None else buf for p, buf in zip(params, momentum_buffer_list)]] if momentum else []


def _kernel_pays(params):
    """The first call loads the compiler's library: a third of a second. Tiny networks do not wait."""
    return len(params) > 30 or sum([p.numel() for p in params]) > 20_000


def _single_tensor_sgd(
    params, grads, momentum_buffer_list, *, weight_decay, momentum, lr, dampening, nesterov, maximize
):
    """The formula, line by line."""
    for i, param in enumerate(params):
        grad = grads[i] if not maximize else -grads[i]
        if weight_decay != 0:
            grad = _add_weight_decay(grad, param, weight_decay)
        if momentum != 0:
            buf = momentum_buffer_list[i]
            if buf is None:
                buf = momentum_buffer_list[i] = grad.detach().clone()
            else:
                buf.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buf, alpha=momentum) if nesterov else buf
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)


def _multi_tensor_sgd(
    params, grads, momentum_buffer_list, *, weight_decay, momentum, lr, dampening, nesterov, maximize
):
    """The formula, each line for all parameters of a device and dtype."""
    if not params:
        return
    lists = [params, grads, momentum_buffer_list]
    for (params, grads, bufs), places in _group_tensors_by_device_and_dtype(lists, with_indices=True).values():
        if maximize:
            grads = readtorch._foreach_neg(grads)
        if weight_decay != 0:
            grads = readtorch._foreach_add(grads, params, alpha=weight_decay)
        if momentum != 0:
            if all([buf is not None for buf in bufs]):
                readtorch._foreach_mul_(bufs, momentum)
                readtorch._foreach_add_(bufs, grads, alpha=1 - dampening)
            else:
                bufs = [_moved(buf, grad, momentum, dampening) for buf, grad in zip(bufs, grads)]
                for place, buf in zip(places, bufs):
                    momentum_buffer_list[place] = buf
            if (
                nesterov
            ):  # in place: in PyTorch, too, this changes the parameters' gradients if nothing above has made new ones
                readtorch._foreach_add_(grads, bufs, alpha=momentum)
            else:
                grads = bufs
        if _has_sparse(grads):
            for param, grad in zip(params, grads):
                param.add_(grad, alpha=-lr)
        else:
            readtorch._foreach_add_(params, grads, alpha=-lr)


def _moved(buf, grad, momentum, dampening):
    """The buffer after the step."""
    return grad.detach().clone() if buf is None else buf.mul_(momentum).add_(grad, alpha=1 - dampening)


def _fused_sgd(
    params,
    grads,
    momentum_buffer_list,
    grad_scale,
    found_inf,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
):
    if not params or found_inf is not None and found_inf.item() == 1.0:
        return  # in PyTorch: momentum's buffers, if there are none yet, become what lies in memory
    first = [i for i, buf in enumerate(momentum_buffer_list) if buf is None] if momentum != 0 else []
    for i in first:
        momentum_buffer_list[i] = readtorch.empty_like(params[i])
    numbers = weight_decay, momentum, _get_value(lr), dampening, nesterov, maximize
    lists = params, grads, momentum_buffer_list if momentum != 0 else []

    def step(lists, is_first_step):
        for of_device, scale, _ in _fused_groups(lists, grad_scale, None):
            # `call` goes straight to the dispatcher, past the argument parser: all is as the schema wants it.
            _fused_sgd_.call(*of_device, *numbers, is_first_step, scale, None)

    if not first or len(first) == len(params):
        step(lists, bool(first))
        return
    later = [i for i in range(len(params)) if i not in first]
    for chosen, is_first_step in ((first, True), (later, False)):
        step([[tensors[i] for i in chosen] for tensors in lists], is_first_step)
