"""The distributions that throw numbers away: how many words one sample takes is not known beforehand.

Each loop reads its parameters from arrays as long as `out` and keeps the order of PyTorch's arithmetic, so
that it accepts and rejects the same candidates. These functions are not compiled for AVX2 in PyTorch: no
fused multiply-add here.

Note [Precision of parameters]
C++ computes with float32 parameters in float32 until a float64 number joins in, and some constants are
float32 even beside float64. `type(p)(1)` is a 1 of the parameter's type: it keeps numba from going to float64
earlier than C++ does. In PyTorch: `aten/src/ATen/native/Distributions.h`.
"""

import math

import numpy as np

from readtorch.aten.native.cpu.distribution_templates import next_normal, next_uniform
from readtorch.c10.codecache import cached


@cached(error_model="numpy")
def one_poisson(state, rate):
    """Below 10: multiply uniforms until the product is below exp(-rate). Else rejection (Hörmann 1993)."""
    if rate == 0:
        return 0.0
    if rate < 10:
        limit = math.exp(-rate)
        count, product = 0.0, next_uniform(state)
        while product > limit:
            count += 1
            product *= next_uniform(state)
        return count
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    surely = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = next_uniform(state) - 0.5
        v = next_uniform(state)
        distance = 0.5 - abs(u)
        k = math.floor((2 * a / distance + b) * u + rate + 0.43)
        if distance >= 0.07 and v <= surely:
            return float(k)
        if k < 0 or (distance < 0.013 and v > distance):
            continue
        drawn = math.log(v) + math.log(inverse_alpha) - math.log(a / (distance * distance) + b)
        if drawn <= -rate + k * log_rate - math.lgamma(k + 1.0):
            return float(k)


@cached(error_model="numpy")
def poisson(state, out, rate):
    """Counts of mean `rate`."""
    for i in range(out.size):
        out[i] = one_poisson(state, rate[i])


# How far Stirling's formula is off for k! with k = 0 … 9.
STIRLING_TAIL = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)


@cached(error_model="numpy")
def stirling_tail(k):
    """The same for any k: the next terms of the series beyond 9."""
    if k <= 9:
        return STIRLING_TAIL[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


@cached(error_model="numpy")
def binomial_by_inversion(state, count, p):
    """Few successes: leap from success to success by geometric steps."""
    log_failure = math.log1p(-p)
    reached, successes = 0.0, 0.0
    while True:
        reached += np.ceil(math.log(next_uniform(state)) / log_failure)
        if reached > count:
            return successes
        successes += 1


@cached(error_model="numpy")
def binomial_by_rejection(state, count, p):
    """Many successes: transformed rejection with squeeze (Hörmann 1993, "BTRS")."""
    one = type(p)(1)
    deviation = math.sqrt(count * p * (one - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    center = count * p + 0.5
    surely = 0.92 - 4.2 / b
    odds = p / (one - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = float(np.floor((count + one) * p))
    while True:
        u = next_uniform(state) - 0.5
        v = next_uniform(state)
        distance = 0.5 - abs(u)
        k = type(p)(np.floor((2 * a / distance + b) * u + center))  # not math.floor, whose int64 ends at 2**63
        if k < 0 or k > count:
            continue
        if distance >= 0.07 and v <= surely:
            return float(k)
        v = math.log(v * alpha / (a / (distance * distance) + b))
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * math.log((count - mode + 1) / (count - k + one))
            + (k + 0.5) * math.log(odds * (count - k + one) / (k + one))
            + stirling_tail(mode)
            + stirling_tail(count - mode)
            - stirling_tail(k)
            - stirling_tail(count - k)
        )
        if v <= bound:
            return float(k)


@cached(error_model="numpy")
def one_binomial(state, count, p):
    """Successes in `count` trials of probability `p` <= 1/2."""
    if count * p >= 10.0:
        return binomial_by_rejection(state, count, p)
    return binomial_by_inversion(state, count, p)


@cached(error_model="numpy")
def binomial(state, out, count, p):
    """Successes in `count` trials of probability `p`; above 1/2 the failures are counted."""
    for i in range(out.size):
        if count[i] <= 0.0 or p[i] <= 0.0:
            out[i] = 0.0
        elif p[i] >= 1.0 or count[i] != count[i]:  # (in PyTorch: nobody ever counts up to nan)
            out[i] = count[i]
        elif p[i] <= 0.5:
            out[i] = one_binomial(state, count[i], p[i])
        elif p[i] > 0.5:
            out[i] = count[i] - one_binomial(state, count[i], type(p[i])(1.0 - p[i]))
        else:
            out[i] = np.nan


THIRD, SQUEEZE = np.float32(1) / np.float32(3), np.float32(0.0331)  # float32 for any parameter type


@cached(error_model="numpy")
def one_gamma(state, spare, shape):
    """Marsaglia and Tsang (2000); a shape below 1 is raised by 1 and the sample scaled down again."""
    one = type(shape)(1)
    scale = 1.0
    if shape < one:
        if shape == 0:
            return 0.0
        scale = math.pow(1.0 - next_uniform(state), one / shape)
        shape += one
    d = np.float64(shape - THIRD)
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = next_normal(state, spare)
        y = 1.0 + c * x
        while y <= 0:
            x = next_normal(state, spare)
            y = 1.0 + c * x
        v = y * y * y
        u = 1.0 - next_uniform(state)
        square = x * x
        if u < 1.0 - SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


@cached(error_model="numpy")
def standard_gamma(state, out, spare, shape):
    """Gamma numbers of scale 1."""
    for i in range(out.size):
        out[i] = one_gamma(state, spare, shape[i])
