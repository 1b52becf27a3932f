r"""Adafactor. In PyTorch: `torch/optim/_adafactor.py`. See the chapter "torch.optim".

    G ← ∇f(θ)                               -∇f(θ) if maximize
    β̂ = 1 - t^τ,  ρ = min(γ, 1/√t)          beta2_decay τ, lr γ, step t = 1, 2, …
    α ← max(ε₂, RMS(θ)) ρ                   steps in units of the parameter
    θ ← θ - γ λ θ                           weight_decay λ
    R ← β̂ R + (1 - β̂) · mean of G² in each row       a matrix remembers only rows and columns
    C ← β̂ C + (1 - β̂) · mean of G² in each column
    V ← R C / mean(R)                       what they say of the squares; a vector has V itself, a mean of G²
    U ← G / √max(V, ε₁²)
    θ ← θ - α U / max(1, RMS(U) / d)        no step larger than d

RMS(x) is the root of the mean of x². N. Shazeer, M. Stern: Adafactor: adaptive learning rates with sublinear
memory cost (2018). As in PyTorch, and unlike the paper, V has ε₁² as a lower bound instead of as a term.
"""

import readtorch
from readtorch._tensor import Tensor

from .optimizer import Optimizer, _check_steps, _count, _each_group, _each_parameter, _to_scalar, _zeros_for

__all__ = ["Adafactor", "adafactor"]


class Adafactor(Optimizer):
    """For parameters so large that a second array would not fit: one number per row and per column is kept.

    eps: (ε₁, ε₂); None for ε₁ is the dtype's `eps`.
    """

    _state_names = ("row_var", "col_var", "variance", "step")
    _pairs = {"eps": ("eps1", "eps2")}
    _added_later = {"foreach": None}
    _no_sparse_gradients = "Adafactor does not support sparse gradients"

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = dict(
            lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach, maximize=maximize
        )
        super().__init__(params, defaults)

    def _init_state(self, group, p, state):
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state["step"] = _count()
        if p.grad.dim() > 1:
            *rest, rows, columns = p.grad.shape
            state["row_var"] = p.grad.new_zeros([*rest, rows, 1])
            state["col_var"] = p.grad.new_zeros([*rest, 1, columns])
        else:
            state["variance"] = _zeros_for(p.grad)

    @readtorch.no_grad()
    def step(self, closure=None):
        return self._step_with(adafactor, closure)


def adafactor(
    params,
    grads,
    row_vars,
    col_vars,
    variances,
    state_steps,
    foreach=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    *,
    d,
    lr,
    beta2_decay,
    weight_decay,
    eps1,
    eps2,
    maximize,
) -> None:
    """One step for lists of parameters, gradients and state: row_var and col_var, a vector has variance."""
    _check_steps(state_steps, "`state_steps`")
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Grad scaling should occur outside of optimizer.step()")
    settings = {"d": d, "lr": _to_scalar(lr), "beta2_decay": beta2_decay, "weight_decay": weight_decay, "eps2": eps2}
    tensors = params, grads, row_vars, col_vars, variances
    if foreach:
        for of_group in _each_group(tensors, (state_steps,), maximize=maximize):
            for of_kind in _matrices_and_vectors(of_group):
                if eps1 is None:
                    eps1 = readtorch.finfo(of_kind[0][0].dtype).eps
                _multi_tensor_adafactor(*of_kind, eps1=eps1, **settings)
        return
    for of_param in _each_parameter(tensors, (state_steps,), maximize=maximize):
        if eps1 is None:
            eps1 = readtorch.finfo(of_param[0].dtype).eps  # the first parameter's, for all of the group
        _single_tensor_adafactor(*of_param, eps1=eps1, **settings)


def _single_tensor_adafactor(
    param, grad, row_var, col_var, variance, step_t, *, d, lr, beta2_decay, weight_decay, eps1, eps2
):
    step = step_t.item()
    one_minus_beta2 = step**beta2_decay
    alpha = max(eps2, _rms(param)) * min(lr, 1 / (step**0.5))
    if weight_decay != 0:
        param.mul_(1 - lr * weight_decay)
    if variance is None:
        var_estimate = _factored_variance(grad, row_var, col_var, one_minus_beta2, eps1)
    else:
        var_estimate = variance.lerp_(grad * grad, one_minus_beta2).clone()
    update = var_estimate.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
    param.add_(update, alpha=-alpha / max(1.0, _rms(update, d)))


def _multi_tensor_adafactor(
    params, grads, row_vars, col_vars, variances, steps, *, d, lr, beta2_decay, weight_decay, eps1, eps2
):
    counts = [step.item() for step in steps]
    one_minus_beta2s = [step**beta2_decay for step in counts]
    alphas = [max(eps2, _rms(p)) * min(lr, 1 / (step**0.5)) for p, step in zip(params, counts)]
    if weight_decay != 0:
        readtorch._foreach_mul_(params, 1 - lr * weight_decay)
    if variances[0] is None:
        factors = zip(grads, row_vars, col_vars, one_minus_beta2s)
        updates = [_factored_variance(*of_param, eps1) for of_param in factors]
    else:
        readtorch._foreach_lerp_(variances, readtorch._foreach_mul(grads, grads), one_minus_beta2s)
        updates = readtorch._foreach_clone(variances)
    readtorch._foreach_clamp_min_(updates, eps1 * eps1)
    readtorch._foreach_rsqrt_(updates)
    readtorch._foreach_mul_(updates, grads)
    readtorch._foreach_mul_(updates, [-a / max(1.0, _rms(update, d)) for a, update in zip(alphas, updates)])
    readtorch._foreach_add_(params, updates)


def _matrices_and_vectors(lists):
    """The lists cut in two: parameters whose variance is kept by rows and columns, and those with a whole one."""
    grads = lists[1]
    for is_matrix in (True, False):
        places = [i for i, grad in enumerate(grads) if (grad.dim() > 1) == is_matrix]
        if places:
            yield [[tensors[i] for i in places] for tensors in lists]


def _rms(x, d=1.0):
    """The root of the mean square, in units of `d`."""
    return x.norm(2).item() / ((x.numel() ** 0.5) * d)


def _factored_variance(grad, row_var, col_var, weight, eps1):
    """Bring the means of the rows and columns up to date, and multiply them to a matrix with these means."""
    row_mean = grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1))
    row_var.lerp_(row_mean, weight)
    col_mean = grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2))
    col_var.lerp_(col_mean, weight)
    return (row_var @ col_var).div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps1))
