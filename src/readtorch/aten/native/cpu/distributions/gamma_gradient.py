"""How a gamma number moves with its shape parameter: the derivative that lets gradients pass through the
sampling.

A number x drawn for the shape a stays at the same quantile when a changes, so dx/da = -(dF/da) / (dF/dx) with
F the distribution function. No closed form: three approximations share the plane, as in PyTorch. In PyTorch:
`standard_gamma_grad_one` (`aten/src/ATen/native/Distributions.h`).
"""

import math

import numpy as np

from readtorch.c10.codecache import cached

# The coefficients of the rational approximation: powers of log(x / a) down, powers of log(a) along.
NUMERATOR = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758),
    (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777),
)
DENOMINATOR = (
    (1.0, 0.32668115, 0.10406089, 0.0014179084),
    (0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07),
)
# Bernoulli numbers over their index: the asymptotic series of the digamma function.
DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


@cached(error_model="numpy")
def digamma(x):
    """The derivative of log gamma: step up to 10, then the asymptotic series. Below 0 by reflection (the steps from far down
    would never arrive); infinite at its poles."""
    if x <= 0 and x == np.floor(x):
        return math.inf
    result = 0.0
    if x < 0:
        result = -math.pi / math.tan(math.pi * x)
        x = 1 - x
    while x < 10:
        result -= 1 / x
        x += 1
    square = 1 / (x * x)
    series, power = 0.0, square
    for coefficient in DIGAMMA_SERIES:
        series += coefficient * power
        power *= square
    return result + math.log(x) - 0.5 / x - series


@cached(error_model="numpy")
def by_series(a, x):
    """Small x: the first terms of the distribution function's power series, and of its derivative by a."""
    term, base = 1.0, a
    first, second = term / base, term / (base * base)
    for i in range(1, 6):
        term *= -x / i
        base += 1
        first += term / base
        second += term / (base * base)
    power = math.pow(x, a)
    density = math.pow(x, a - 1) * math.exp(-x)
    slope = (math.log(x) - digamma(a)) * power * first - power * second
    result = -slope / density
    return 0.0 if math.isnan(result) else result


@cached(error_model="numpy")
def by_saddle_point(a, x):
    """Large a: Rice's expansion; near x = a, where it divides nothing by nothing, a polynomial."""
    if 0.9 * a <= x <= 1.1 * a:
        first = 1 + 24 * a * (1 + 12 * a)
        second = 1440 * (a * a) + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x)
        return first * second / (1244160 * (a * a) * (a * a))
    root = math.sqrt(8 * a)
    ratio = math.log(x / a)
    pole = root / (a - x)
    cusp = math.pow(x - a - a * ratio, -1.5)
    both = pole - cusp if x < a else pole + cusp
    main = ratio * both - math.sqrt(2 / a) * (a + x) / ((a - x) * (a - x))
    stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a))
    return -stirling * x * main / root


@cached(error_model="numpy")
def horner(coefficients, u, v):
    """A polynomial of second degree in u and third in v."""
    result = 0.0
    for i in range(3, -1, -1):
        result = result * v + coefficients[0][i] + u * (coefficients[1][i] + u * coefficients[2][i])
    return result


@cached(error_model="numpy")
def by_fit(a, x):
    """Everything else: exp of a ratio of polynomials in log(x / a) and log(a), fitted beforehand."""
    u, v = math.log(x / a), math.log(a)
    return math.exp(horner(NUMERATOR, u, v) / horner(DENOMINATOR, u, v))


@cached(error_model="numpy")
def standard_gamma_grad(shape, sample, out):
    """The derivative for each pair of two float64 arrays, into a third."""
    for i in range(out.size):
        a, x = shape[i], sample[i]
        if x < np.float32(0.8):
            out[i] = by_series(a, x)
        elif a > 8:
            out[i] = by_saddle_point(a, x)
        else:
            out[i] = by_fit(a, x)
