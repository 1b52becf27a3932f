"""The step of stochastic gradient descent for lists of parameters as one loop.

In PyTorch: `aten/src/ATen/native/cpu/FusedSGDKernel.cpp`. As in `fused_adam_kernel.py`, the arithmetic is
that of the step written in operators (`optim/sgd.py`), whose `add(…, alpha)` is a fused multiply-add in
PyTorch.
"""

from readtorch.aten.cpu.compile import kernel
from readtorch.aten.cpu.vec.multiply_add import fma

from .multi_tensor_apply import elements, piece


@kernel
def sgd(addresses, ends, like, lr_neg, weight_decay, sign, begin, end):
    """addresses: of params and grads."""
    for i in range(ends.size):
        b, e = piece(ends, i, begin, end)
        if b < e:
            sgd_step(
                elements(addresses[0, i], b, e, like), elements(addresses[1, i], b, e, like), lr_neg, weight_decay, sign
            )


@kernel
def sgd_step(param, grad, lr_neg, weight_decay, sign):
    """One-dimensional arrays and numbers of one dtype; changes param. sign: -1 to maximize, else 1."""
    for i in range(param.size):
        g = sign * grad[i]
        if weight_decay != 0:
            g = fma(param[i], weight_decay, g)
        param[i] = fma(g, lr_neg, param[i])


@kernel
def momentum(addresses, ends, like, lr_neg, weight_decay, sign, momentum, weight, nesterov, is_first_step, begin, end):
    """addresses: of params, grads and momentum buffers."""
    for i in range(ends.size):
        b, e = piece(ends, i, begin, end)
        if b < e:
            momentum_step(
                elements(addresses[0, i], b, e, like),
                elements(addresses[1, i], b, e, like),
                elements(addresses[2, i], b, e, like),
                lr_neg,
                weight_decay,
                sign,
                momentum,
                weight,
                nesterov,
                is_first_step,
            )


@kernel
def momentum_step(param, grad, buf, lr_neg, weight_decay, sign, momentum, weight, nesterov, is_first_step):
    """Also changes buf, the momentum, which the first step sets. weight: 1 - dampening."""
    for i in range(param.size):
        g = sign * grad[i]
        if weight_decay != 0:
            g = fma(param[i], weight_decay, g)
        b = g if is_first_step else fma(g, weight, buf[i] * momentum)
        buf[i] = b
        g = fma(b, momentum, g) if nesterov else b
        param[i] = fma(g, lr_neg, param[i])
