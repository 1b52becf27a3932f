"""Activation functions and their gradients over flat float32 arrays, in one pass. All arrays have one size;
`out` is last.

In PyTorch: `aten/src/ATen/native/cpu/Activation.cpp`.
"""

import math

import numpy as np

from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import kernel, scalar

f32 = np.float32
ZERO, HALF, ONE, THREE, SIX = f32(0), f32(0.5), f32(1), f32(3), f32(6)


# -------------------------------------------------------------------------------------------- straight pieces


@kernel
def relu(x, out):
    """max(x, 0); a nan stays, and so does -0."""
    for i in range(x.size):
        out[i] = ZERO if x[i] < ZERO else x[i]


@kernel
def threshold_backward(grad, x, threshold, out):
    """`grad` where x is above the threshold, else 0."""
    for i in range(x.size):
        out[i] = ZERO if x[i] <= threshold else grad[i]


@kernel
def leaky_relu(x, slope, out):
    for i in range(x.size):
        out[i] = x[i] if x[i] > ZERO else x[i] * slope


@kernel
def leaky_relu_backward(grad, x, slope, out):
    for i in range(x.size):
        out[i] = grad[i] if x[i] > ZERO else grad[i] * slope


@kernel
def hardtanh(x, low, high, out):
    for i in range(x.size):
        y = low if x[i] < low else x[i]
        out[i] = high if y > high else y


@kernel
def hardtanh_backward(grad, x, low, high, out):
    for i in range(x.size):
        out[i] = grad[i] if x[i] > low and x[i] < high else ZERO


@kernel
def hardswish(x, out):
    """x · min(max(x + 3, 0), 6) / 6; a nan stays."""
    for i in range(x.size):
        y = x[i] + THREE
        y = ZERO if y < ZERO else y
        out[i] = x[i] * (SIX if y > SIX else y) / SIX


@kernel
def hardswish_backward(grad, x, out):
    for i in range(x.size):
        y = grad[i] * (x[i] / THREE + HALF)
        y = grad[i] if x[i] >= THREE else y
        out[i] = ZERO if x[i] <= -THREE else y


# --------------------------------------------------------------------------------------------------- sigmoids


@kernel
def sigmoid_backward(grad, y, out):
    for i in range(y.size):
        out[i] = grad[i] * (ONE - y[i]) * y[i]


@kernel
def tanh_backward(grad, y, out):
    for i in range(y.size):
        out[i] = grad[i] * (ONE - y[i] * y[i])


@kernel
def sigmoid(x, out):
    for i in range(x.size):
        out[i] = vec.sigmoid(x[i])


@kernel
def silu(x, out):
    for i in range(x.size):
        out[i] = x[i] / (ONE + vec.exp_normal(-x[i]))


@kernel
def silu_backward(grad, x, out):
    for i in range(x.size):
        s = vec.sigmoid(x[i])
        out[i] = grad[i] * s * (ONE + x[i] * (ONE - s))


# ------------------------------------------------------------------------------------------------------- gelu

SQRT_HALF = f32(math.sqrt(0.5))
DENSITY = f32(1 / math.sqrt(2 * math.pi))  # of the normal distribution at 0
SQRT_2_OVER_PI, CUBIC = f32(math.sqrt(2 / math.pi)), f32(0.044715)


@scalar
def normal_cdf(x):
    return HALF * (ONE + vec.erf(x * SQRT_HALF))


@kernel
def gelu(x, out):
    for i in range(x.size):
        out[i] = x[i] * normal_cdf(x[i])


@kernel
def gelu_backward(grad, x, out):
    for i in range(x.size):
        density = DENSITY * vec.exp(-HALF * x[i] * x[i])
        out[i] = grad[i] * (normal_cdf(x[i]) + x[i] * density)


@scalar
def inner(x):
    return SQRT_2_OVER_PI * (x + CUBIC * x * x * x)


@kernel
def gelu_tanh(x, out):
    for i in range(x.size):
        out[i] = HALF * x[i] * (ONE + vec.tanh(inner(x[i])))


@kernel
def gelu_tanh_backward(grad, x, out):
    for i in range(x.size):
        v = x[i]
        t = vec.tanh(inner(v))
        slope = SQRT_2_OVER_PI * (ONE + THREE * CUBIC * v * v)
        out[i] = grad[i] * HALF * ((ONE + t) + v * (ONE - t * t) * slope)


# ------------------------------------------------------------------------------------- elu, softplus and mish


@kernel
def elu(x, negative, positive, inside, out):
    """positive · x from 0 on, negative · (exp(inside · x) - 1) below."""
    for i in range(x.size):
        below = negative * vec.expm1(inside * x[i])
        out[i] = below if x[i] < ZERO else x[i] * positive


@kernel
def elu_backward(grad, x, negative, positive, inside, out):
    for i in range(x.size):
        slope = negative * inside * vec.exp(inside * x[i])
        out[i] = grad[i] * (positive if x[i] > ZERO else slope)


@scalar
def log1p(x):
    """log(1 + x) for x >= 0, exact for small x: what 1 + x lost is put back by the factor (W. Kahan)."""
    y = ONE + x
    lost = y - ONE
    return x if lost == ZERO else vec.log(y) * (x / lost)


@kernel
def softplus(x, beta, threshold, out):
    """log(1 + exp(beta · x)) / beta, and x itself above the threshold."""
    for i in range(x.size):
        y = x[i] * beta
        out[i] = x[i] if y > threshold else log1p(vec.exp(y)) / beta


@kernel
def softplus_backward(grad, x, beta, threshold, out):
    for i in range(x.size):
        y = x[i] * beta
        out[i] = grad[i] if y > threshold else grad[i] * vec.sigmoid(y)


TWENTY = f32(20)  # from here on tanh(softplus(x)) rounds to 1


@scalar
def tanh_softplus(x):
    """With e = exp(x): tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2)."""
    e = vec.exp(TWENTY if x > TWENTY else x)
    n = e * (e + f32(2))
    return n / (n + f32(2))


@kernel
def mish(x, out):
    for i in range(x.size):
        out[i] = x[i] * tanh_softplus(x[i])


@kernel
def mish_backward(grad, x, out):
    for i in range(x.size):
        t = tanh_softplus(x[i])
        out[i] = grad[i] * (t + x[i] * vec.sigmoid(x[i]) * (ONE - t * t))
