r"""Muon, momentum orthogonalized. In PyTorch: `torch/optim/_muon.py`. See the chapter "torch.optim".

    G ← ∇f(θ)                               θ is a matrix, A × B
    M ← μ M + (1 - μ) G                     momentum μ
    N ← (1 - μ) G + μ M                     if nesterov, else N ← M
    O ← N with all singular values near 1   by the Newton–Schulz iteration below
    θ ← θ - γ λ θ                           lr γ, weight_decay λ
    θ ← θ - γ √max(1, A / B) O              adjust_lr_fn "original"; with "match_rms_adamw" 0.2 √max(A, B)

The iteration starts from X = N / (‖N‖ + …) and applies X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X, an odd polynomial,
to the singular values of X without computing them. It needs no more than bfloat16.

K. Jordan and others: Muon: an optimizer for hidden layers in neural networks (2024). J. Liu and others: Muon
is scalable for LLM training (2025).
"""

import math

import readtorch
from readtorch._tensor import Tensor

from .optimizer import Optimizer, _to_scalar, _zeros_for

__all__ = ["Muon"]

EPS = 1e-7
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315  # steep at 0: small singular values grow fast
DEFAULT_NS_STEPS = 5


class Muon(Optimizer):
    """For the matrices of hidden layers. Vectors, and the first and last layer, are left to AdamW.

    ns_coefficients: (a, b, c) of the iteration; ns_steps: how often.
    """

    _state_names = ("momentum_buffer",)
    _no_sparse_gradients = "Muon does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps=EPS,
        ns_steps=DEFAULT_NS_STEPS,
        adjust_lr_fn=None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = dict(
            lr=lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_coefficients=ns_coefficients,
            eps=eps,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
        )
        super().__init__(params, defaults)
        for p in [p for group in self.param_groups for p in group["params"]]:
            if p.ndim != 2:
                raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _init_state(self, group, p, state):
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        state["momentum_buffer"] = _zeros_for(p.grad)

    @readtorch.no_grad()
    def step(self, closure=None):
        return self._step_with(muon, closure, has_complex=False)


def muon(
    params,
    grads,
    muon_momentum_bufs,
    *,
    foreach=None,
    lr,
    weight_decay,
    momentum,
    nesterov,
    ns_coefficients,
    ns_steps,
    eps,
    adjust_lr_fn,
    has_complex,
) -> None:
    """One step for lists of parameters, gradients and momentum buffers."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    lr = _to_scalar(lr)
    for param, grad, buf in zip(params, grads, muon_momentum_bufs):
        if grad.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        buf.lerp_(grad, 1 - momentum)
        update = grad.lerp(buf, momentum) if nesterov else buf
        update = _zeropower_via_newtonschulz(update, ns_coefficients, ns_steps, eps)
        param.mul_(1 - lr * weight_decay)
        param.add_(update, alpha=-_adjust_lr(lr, adjust_lr_fn, param.shape))


def _zeropower_via_newtonschulz(grad, ns_coefficients, ns_steps, eps):
    """U Vᵀ of the matrix U S Vᵀ, roughly: the singular values end between 0.7 and 1.2. In bfloat16."""
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(grad.shape) != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    tall = grad.size(0) > grad.size(1)  # then X Xᵀ would be the larger of the two products
    x = grad.bfloat16().T if tall else grad.bfloat16()
    x.div_(x.norm().clamp(min=eps))  # no singular value is above 1
    for _ in range(ns_steps):
        gram = x @ x.T
        polynomial = readtorch.addmm(gram, gram, gram, beta=b, alpha=c)
        x = readtorch.addmm(x, polynomial, x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr, adjust_lr_fn, param_shape):
    """So that the step's size is the same for all shapes; "match_rms_adamw": the size of AdamW's."""
    rows, columns = param_shape[:2]
    if adjust_lr_fn == "match_rms_adamw":
        return lr * (0.2 * math.sqrt(max(rows, columns)))
    return lr * math.sqrt(max(1, rows / columns))
