"""Bessel functions of single elements, for `pointwise` (loops.py): the modified ones, I and K, of order 0
and 1, and the spherical j0. (oscillating.py: J and Y.)

Each computes in the width of its argument from one formula for both orders. "DLMF" numbers are those of the
Digital Library of Mathematical Functions, dlmf.nist.gov.

In PyTorch: `aten/src/ATen/native/cuda/{UnarySpecialOpsKernel,modified_bessel_k0,…}.cu`, with the Chebyshev
coefficients of the Cephes library.
"""
import math

FAR, LAST = 20, 40  # from where on I is computed by its asymptotic series, and how many terms that has


# ------------------------------------------------------------------------------------------------- growing: I


def scaled_i(x, order):
    """exp(-x) · I(x) for x >= 0."""
    return near_i(x, order) if x < type(x)(FAR) else far_i(x, order)


def near_i(x, order):
    """The power series DLMF 10.25.2. All its terms are positive: nothing is lost."""
    z = x * x * type(x)(0.25)
    term = type(x)(0.5) * x if order else type(x)(1)
    total, k = type(x)(0), 1
    while total + term != total:
        total += term
        term *= z / type(x)(k * (k + order))
        k += 1
    return total * math.exp(-x)


def far_i(x, order):
    """The asymptotic series DLMF 10.40.1, which is good to exp(-2x)."""
    term, total = type(x)(1), type(x)(1)
    for k in range(1, LAST):
        term *= type(x)((2 * k - 1) * (2 * k - 1) - 4 * order) / (type(x)(8 * k) * x)
        total += term
    return total / math.sqrt(type(x)(2 * math.pi) * x)


def i0e(x, scalars):
    return scaled_i(abs(x), 0)


def i1e(x, scalars):
    return math.copysign(scaled_i(abs(x), 1), x)


def unscaled(value, x):
    """value · exp|x|, in two steps: exp|x| alone may be too large for a number. At infinity it is nan."""
    root = math.exp(abs(x) * type(x)(0.5))
    return value * root * root


def i0(x, scalars):
    return unscaled(scaled_i(abs(x), 0), x)


def i1(x, scalars):
    return unscaled(math.copysign(scaled_i(abs(x), 1), x), x)


# ----------------------------------------------------------------------------------------------- shrinking: K


def scaled_k(x, order):
    """exp(x) · K(x) = ∫ exp(-x (cosh t - 1)) cosh(order · t) dt from 0 on, DLMF 10.32.9, by trapezoids.

    For such a function, smooth and with tails that fall so fast, trapezoids of width h are wrong by about
    exp(-π²/h), or exp(-2π² / (h²x)) where x is large: a few dozens of them are exact.
    """
    zero = type(x)(0)
    if not x > zero:
        return type(x)(math.inf) if x == zero else type(x)(math.nan)
    h = type(x)(0.25) if x < type(x)(8) else type(x)(0.7) / math.sqrt(x)
    if h == zero:
        return zero
    part, total, k = type(x)(0.5), zero, 0
    while total + part != total:
        total += part
        k += 1
        t = h * type(x)(k)
        s = math.sinh(t * type(x)(0.5))
        fall, lift = (x + x) * s * s, t if order else zero
        part = (math.exp(lift - fall) + math.exp(-lift - fall)) * type(x)(0.5)
    return total * h


def k0(x, scalars):
    return scaled_k(x, 0) * math.exp(-x)


def k1(x, scalars):
    return scaled_k(x, 1) * math.exp(-x)


def k0e(x, scalars):
    return scaled_k(x, 0)


def k1e(x, scalars):
    return scaled_k(x, 1)


# -------------------------------------------------------------------------------------------------- spherical


def spherical_j0(x, scalars):
    """sin(x) / x"""
    if x == type(x)(0):
        return type(x)(1)
    return math.sin(x) / x if abs(x) < type(x)(math.inf) else x - x if x != x else type(x)(0)
