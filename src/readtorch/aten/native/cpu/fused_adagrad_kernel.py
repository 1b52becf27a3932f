"""The Adagrad step for lists of parameters as one loop: every element is read once and written once.

In PyTorch: `aten/src/ATen/native/cpu/FusedAdagradKernel.cpp`, with whose numbers it agrees.
"""

import math

from readtorch.aten.cpu.compile import kernel
from readtorch.aten.cpu.vec.multiply_add import fma

from .multi_tensor_apply import elements, piece


@kernel
def adagrad(addresses, ends, like, weight_decay, eps, sign, rates, begin, end):
    """addresses: of params, grads and state_sums. rates: the learning rate of each."""
    for i in range(ends.size):
        b, e = piece(ends, i, begin, end)
        if b < e:
            adagrad_step(
                elements(addresses[0, i], b, e, like),
                elements(addresses[1, i], b, e, like),
                elements(addresses[2, i], b, e, like),
                rates[i],
                weight_decay,
                eps,
                sign,
            )


@kernel
def adagrad_step(param, grad, state_sum, rate, weight_decay, eps, sign):
    """One-dimensional arrays and numbers of one dtype; changes param and state_sum. sign: -1 to maximize, else 1."""
    for i in range(param.size):
        g = sign * grad[i]
        if weight_decay != 0:
            g = fma(param[i], weight_decay, g)
        s = fma(g, g, state_sum[i])
        state_sum[i] = s
        param[i] -= rate * g / (math.sqrt(s) + eps)
