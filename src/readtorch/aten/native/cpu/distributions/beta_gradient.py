"""How a part of a Dirichlet number moves with its concentration: the derivative that lets gradients pass through the
sampling.

Each part x alone is a beta number, with shapes a and b = total - a. It stays at the same quantile when a changes, so
dx/da = -(dF/da) / (dF/dx) with F the beta distribution's function; what is computed here is that, over 1 - x. No
closed form: four approximations share the plane, as in PyTorch, and their numbers are its own. In PyTorch:
`dirichlet_grad_one` (`aten/src/ATen/native/Distributions.h`).
"""

import math

import numpy as np

from readtorch.c10.codecache import cached

from .gamma_gradient import digamma  # of any number: a shape, or what is left for the other, may be below zero

# The coefficients of a ratio of polynomials, fitted beforehand: [log(x) down][log(a / x) down][log(total x / a) along].
NUMERATOR = np.array(
    [
        [
            [1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
            [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
            [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013],
        ],
        [
            [0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
            [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
            [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05],
        ],
        [
            [-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565],
            [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
            [0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05],
        ],
    ]
)
DENOMINATOR = np.array(
    [
        [
            [1, -0.02924021934, -0.04438342661, 0.007285809825],
            [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
            [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149],
        ],
        [
            [0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
            [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
            [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05],
        ],
        [
            [0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05],
            [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05],
            [-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06],
        ],
    ]
)


@cached(error_model="numpy")
def near_zero(x, a, b):
    """Small x, by its own shape: the first terms of the distribution function's power series."""
    slope = digamma(a) - digamma(a + b) - math.log(x)
    term = 1.0
    total = (slope + 1 / a) / a
    for i in range(1, 11):
        term *= (i - b) * x / i
        total += term / (a + i) * (slope + 1 / (a + i))
    result = x * math.pow(1 - x, -b) * total
    return 0.0 if math.isnan(result) else result


@cached(error_model="numpy")
def near_zero_by_other(x, a, b):
    """Small x, by the other shape; the derivative of each term's product (b - 1)(b - 2)… is carried along."""
    slope = digamma(a + b) - digamma(b)
    term, product, derivative = 1.0, 1.0, 0.0
    total = slope / a
    for i in range(1, 9):
        term *= -x / i
        derivative = derivative * (b - i) + product
        product *= b - i
        total += term / (a + i) * (derivative + slope * product)
    result = -math.pow(1 - x, 1 - b) * total
    return 0.0 if math.isnan(result) else result


@cached(error_model="numpy")
def at_the_mean(x, a, b):
    """Both shapes large and x near the mean, where the expansion below divides nothing by nothing: a polynomial."""
    total, y = a + b, 1 - x
    nested = (453 + 1620 * b * y - 455 * x) * b + a * (8 * y * (135 * b - 11))
    nested = 3 * (59 + 180 * b - 90 * x) * b**2 + a * nested
    nested = (43 + 20 * (16 + 27 * b) * x) * b**3 + a * nested
    nested = 47 * x * b**4 + a * nested
    scale = (1 + 12 * a) * (1 + 12 * b) / total**2
    return scale / y * nested / (12960 * a**3 * b**2 * (1 + 12 * total))


@cached(error_model="numpy")
def stirling(n):
    return 1 + 1 / (12 * n) + 1 / (288 * n * n)


@cached(error_model="numpy")
def by_saddle_point(x, a, b):
    """Both shapes large: Rice's expansion."""
    total = a + b
    mean, std = a / total, math.sqrt(a * b / (total + 1)) / total
    if abs(x - mean) <= 0.1 * std:
        return at_the_mean(x, a, b)
    distance = b * x - a * (1 - x)
    entropy = b * math.log(b / (total * (1 - x))) + a * math.log(a / (total * x))
    cusp = math.pow(entropy, -1.5)
    pole = math.sqrt(8 * a * b / total) / distance
    first = -(2 * a * a * (1 - x) + a * b * (1 - x) + x * b * b)
    first /= math.sqrt(2 * a / b) * math.pow(total, 1.5) * distance * distance
    both = pole + cusp if x < mean else pole - cusp
    main = first + 0.5 * math.log(a / (total * x)) * both
    return -x / math.sqrt(2 * a * b / total) * stirling(a) * stirling(b) / stirling(total) * main


@cached(error_model="numpy")
def polynomial(coefficients, u, v, w):
    """Of second degree in u and in v, third in w."""
    result = 0.0
    for i in range(2, -1, -1):
        inner = 0.0
        for j in range(2, -1, -1):
            c = coefficients[i, j]
            inner = inner * v + c[0] + w * (c[1] + w * (c[2] + w * c[3]))
        result = result * u + inner
    return result


@cached(error_model="numpy")
def by_fit(x, a, total):
    """Everything else: an analytic approximation, corrected by a ratio of polynomials."""
    u = math.log(x)
    v = math.log(a) - u
    w = math.log(total) - v
    approximate = x * (digamma(total) - digamma(a)) / (total - a)
    return polynomial(NUMERATOR, u, v, w) / polynomial(DENOMINATOR, u, v, w) * approximate


@cached(error_model="numpy")
def dirichlet_grad(parts, shapes, totals, out):
    """The derivative for each triple of three float64 arrays, into a fourth."""
    for i in range(out.size):
        x, a, total = parts[i], shapes[i], totals[i]
        b, edge = total - a, total * x * (1 - x)
        if x <= 0.5 and edge < 2.5:
            out[i] = near_zero(x, a, b)
        elif x >= 0.5 and edge < 0.75:
            out[i] = -near_zero_by_other(1 - x, b, a)
        elif a > 6 and b > 6:
            out[i] = by_saddle_point(x, a, b)
        else:
            out[i] = by_fit(x, a, total)
