"""The Adam step for lists of parameters as one loop: every element is read once and written once.

In PyTorch: `aten/src/ATen/native/cpu/FusedAdamKernel.cpp`. The chapter "torch.optim" compares it with the
step that is written in operators (`optim/adam.py`). The arithmetic is that of PyTorch's operators, with a
fused multiply-add where they have one, so that both give the same numbers; PyTorch's own fused kernel
rounds a little differently.
"""

import math

from readtorch.aten.cpu.compile import kernel, scalar
from readtorch.aten.cpu.vec.multiply_add import fma

from .multi_tensor_apply import elements, piece

# The operands of one call stand in a line or two; one a line, they would be pages.
# fmt: off

@kernel
def adam(
    addresses, ends, like, weight1, beta2, weight2, eps, weight_decay, keep, sign, step_size_neg,
    bias_correction2_sqrt, begin, end,
):
    """addresses: of params, grads, exp_avgs, exp_avg_sqs. step_size_neg, bias_correction2_sqrt: of each."""
    for i in range(ends.size):
        b, e = piece(ends, i, begin, end)
        if b < e:
            adam_step(
                elements(addresses[0, i], b, e, like), elements(addresses[1, i], b, e, like),
                elements(addresses[2, i], b, e, like), elements(addresses[3, i], b, e, like), weight1, beta2,
                weight2, step_size_neg[i], bias_correction2_sqrt[i], eps, weight_decay, keep, sign,
            )


@kernel
def amsgrad(
    addresses, ends, like, weight1, beta2, weight2, eps, weight_decay, keep, sign, step_size_neg,
    bias_correction2_sqrt, begin, end,
):
    """`adam`, also with max_exp_avg_sqs."""
    for i in range(ends.size):
        b, e = piece(ends, i, begin, end)
        if b < e:
            amsgrad_step(
                elements(addresses[0, i], b, e, like), elements(addresses[1, i], b, e, like),
                elements(addresses[2, i], b, e, like), elements(addresses[3, i], b, e, like),
                elements(addresses[4, i], b, e, like), weight1, beta2, weight2, step_size_neg[i],
                bias_correction2_sqrt[i], eps, weight_decay, keep, sign,
            )


@kernel
def adam_step(
    param, grad, exp_avg, exp_avg_sq, weight1, beta2, weight2, step_size_neg, bias_correction2_sqrt, eps,
    weight_decay, keep, sign,
):
    """One-dimensional arrays and numbers of one dtype; changes param, exp_avg and exp_avg_sq.

    weight1, weight2: 1 - β₁, 1 - β₂; keep: 1 - lr · decay if decoupled, else 1; sign: -1 to maximize, else 1.
    """
    for i in range(param.size):
        p = param[i] * keep
        g = sign * grad[i]
        if weight_decay != 0:
            g = fma(weight_decay, p, g)
        m = lerp(exp_avg[i], g, weight1)
        v = fma(weight2 * g, g, exp_avg_sq[i] * beta2)
        exp_avg[i] = m
        exp_avg_sq[i] = v
        param[i] = p + step_size_neg * m / (math.sqrt(v) / bias_correction2_sqrt + eps)


@kernel
def amsgrad_step(
    param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, weight1, beta2, weight2, step_size_neg,
    bias_correction2_sqrt, eps, weight_decay, keep, sign,
):
    """`adam_step` with the largest v so far in the denominator."""
    for i in range(param.size):
        p = param[i] * keep
        g = sign * grad[i]
        if weight_decay != 0:
            g = fma(weight_decay, p, g)
        m = lerp(exp_avg[i], g, weight1)
        v = fma(weight2 * g, g, exp_avg_sq[i] * beta2)
        largest = max_exp_avg_sq[i]
        if not largest >= v:  # in PyTorch too: what is not a number stays
            largest = v
        exp_avg[i] = m
        exp_avg_sq[i] = v
        max_exp_avg_sq[i] = largest
        param[i] = p + step_size_neg * m / (math.sqrt(largest) / bias_correction2_sqrt + eps)


@scalar
def lerp(start, end, weight):
    """start + weight · (end - start), computed from the nearer end."""
    if weight < 0.5:
        return fma(weight, end - start, start)
    return fma(weight - type(weight)(1), end - start, end)
