"""Orthogonal polynomials of single elements, for `pointwise` (loops.py): each from the two before it.

The steps are those of the CPU's kernels (../binary_ops/polynomials.py).

In PyTorch: a file for each family,
`aten/src/ATen/native/cuda/{chebyshev_polynomial_t,hermite_polynomial_h,…}.cu`.
"""
import functools
import math

from ..binary_ops.polynomials import POLYNOMIALS

UNLIMITED = 2.0**63


def limit_of(name, itemsize):
    """The number of a polynomial above which it is nan, or 2**63: see Note [ The number of a polynomial ]."""
    highest = POLYNOMIALS[name]["highest"]
    return UNLIMITED if highest is None else float(highest[itemsize > 4])


@functools.cache
def value(name):
    """The function of x and a polynomial's number; numbers: the highest one."""
    settings = POLYNOMIALS[name]
    polynomial = steps(settings["first"], settings["step"])
    if settings["beyond"] is not None:
        polynomial = by_angle(polynomial, settings["beyond"], *CHEBYSHEV[name[-1]])
    return shifted(polynomial) if settings["shifted"] else polynomial


def steps(first, step):
    """From number 1 up to n; a nan stays one."""

    def polynomial(x, n, scalars):
        one = type(x)(1)
        if not -UNLIMITED < n < UNLIMITED or n <= -one:
            return type(x)(0)
        if n < one:
            return one
        if n >= scalars[0] + one:
            return type(x)(math.nan)
        before, last = one, type(x)(first(x))
        k = 2
        while k <= int(n) and last == last:
            before, last = last, type(x)(step(k, x, last, before))
            k += 1
        return last

    return polynomial


def by_angle(few, beyond, inside, right, left):
    """few(x, n), but above a number by the angle whose cosine x is, and by formulas of n where x is 1 or -1."""

    def polynomial(x, n, scalars):
        if beyond + 1 <= n < UNLIMITED and abs(x) <= type(x)(1):
            whole = type(x)(int(n))
            if abs(x) < type(x)(1):
                return type(x)(inside(whole, math.acos(x)))
            return type(x)(right(whole) if x > 0 else left(whole) if int(n) % 2 == 0 else -left(whole))
        return few(x, n, scalars)

    return polynomial


def shifted(polynomial):
    def of_shifted(x, n, scalars):
        return polynomial(type(x)(2 * x - 1), n, scalars)

    return of_shifted


# In terms of x's angle; at x = 1; at x = -1, but for the sign.
CHEBYSHEV = {
    "t": (lambda n, a: math.cos(n * a), lambda n: 1.0, lambda n: 1.0),
    "u": (lambda n, a: math.sin((n + 1) * a) / math.sin(a), lambda n: n + 1, lambda n: n + 1),
    "v": (lambda n, a: math.cos((n + 0.5) * a) / math.cos(a / 2), lambda n: 1.0, lambda n: 2 * n + 1),
    "w": (lambda n, a: math.sin((n + 0.5) * a) / math.sin(a / 2), lambda n: 2 * n + 1, lambda n: 1.0),
}
