r"""SparseAdam: Adam for sparse gradients. In PyTorch: `torch/optim/sparse_adam.py`. See the chapter
"torch.optim".

    g ← ∇f(θ)                                 -∇f(θ) if maximize
    R ← the rows (or elements) that g lists    all that follows is for these only
    m_R ← m_R + (1 - β₁) (g_R - m_R)           mean of the gradient
    v_R ← v_R + (1 - β₂) (g_R² - v_R)          mean of its square
    γ̃ ← γ √(1 - β₂ᵗ) / (1 - β₁ᵗ)               lr γ, step t = 1, 2, …
    θ_R ← θ_R - γ̃ m_R / (√v_R + ε)

Adam would go on with the other rows: a mean decays also when its gradient is 0, and a parameter moves as long
as its mean is not 0. So SparseAdam is not Adam, computed faster, but another algorithm, in which a row and
its means stand still until the row is used again.

D. P. Kingma, J. Ba: Adam: a method for stochastic optimization (2014).
"""

import math

import readtorch
from readtorch._tensor import Tensor

from .optimizer import Optimizer, _check_settings, _loss_of, _make_sparse, _to_scalar, _zeros_for

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam on the rows that a sparse gradient lists. Parameters must be dense and real, gradients sparse."""

    _state_names = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_settings(betas=betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        sparse, complex_ = self._indices(lambda p: p.is_sparse), self._indices(lambda p: p.is_complex())
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if complex_:
            raise ValueError(f"Complex params at indices {complex_}: SparseAdam does not support complex parameters")

    def _indices(self, condition):
        """[group, index] of each parameter for which `condition` holds."""
        groups = enumerate(self.param_groups)
        return [[i, j] for i, group in groups for j, p in enumerate(group["params"]) if condition(p)]

    def _init_state(self, group, p, state):
        state["step"] = 0
        state["exp_avg"] = _zeros_for(p)
        state["exp_avg_sq"] = _zeros_for(p)

    @readtorch.no_grad()
    def step(self, closure=None):
        loss = _loss_of(closure)
        for group in self.param_groups:
            params, grads, exp_avgs, exp_avg_sqs = self._init_group(group)
            if not all([grad.is_sparse for grad in grads]):
                raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
            for p in params:
                self.state[p]["step"] += 1
            beta1, beta2 = group["betas"]
            sparse_adam(
                params,
                grads,
                exp_avgs,
                exp_avg_sqs,
                [self.state[p]["step"] for p in params],
                eps=group["eps"],
                beta1=beta1,
                beta2=beta2,
                lr=_to_scalar(group["lr"]),
                maximize=group.get("maximize", False),
            )
        return loss


def sparse_adam(params, grads, exp_avgs, exp_avg_sqs, state_steps, *, eps, beta1, beta2, lr, maximize) -> None:
    """One step for lists of parameters, sparse gradients and state; `state_steps` are numbers."""
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        grad = grad.coalesce()  # a square of a sum is no sum of squares: each row must be listed once
        if grad._values().numel() == 0:
            continue
        exp_avg = _move(exp_avgs[i], grad, grad._values(), 1 - beta1)
        exp_avg_sq = _move(exp_avg_sqs[i], grad, grad._values() ** 2, 1 - beta2)
        step = state_steps[i]
        step_size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        _add_at(param, grad, -step_size * (exp_avg / (exp_avg_sq.sqrt() + eps)))


def _move(mean, grad, values, weight):
    """Move `mean` toward `values`, in place and only where `grad` has elements; what it is there now."""
    old = mean.sparse_mask(grad)._values()
    change = (values - old) * weight
    _add_at(mean, grad, change)
    return old + change


def _add_at(target, grad, values):
    """target += values, which belong to the elements of the coalesced `grad`."""
    target.add_(_make_sparse(grad, values))
