"""Orthogonal polynomials by their recurrences: Chebyshev, Hermite, Laguerre, Legendre.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp`; `chebyshev_polynomial_t_forward` … in `aten/src/ATen/native/Math.h`.
"""

import functools

import numpy as np

from readtorch.aten.native.math_special import POLYNOMIALS, limit_of
from readtorch.aten.native.math_special import value as value_of

from .special import pairs

# Note [ The number of a polynomial ]
# It is a float that is cut to an int64; what does not fit in one counts as negative, as on x86. 2**40 steps would take
# too long: for large numbers there are closed forms (a Chebyshev polynomial is a cosine; the value at an edge), and the
# recurrence ends at the first nan, for all that follow are nan, too.

FAR = 1 << 12  # up to this degree the recurrence runs on all elements at once, above on each alone


def polynomials(name, first, step, highest=None, shifted=False, angles=None, edge=None):
    """Declare a family of polynomials: number 0 is 1, number 1 is `first(y)`, and each further one comes from
    the two before it: P[k] = step(k, y, P[k-1], P[k-2]), with y = 2x - 1 if it is shifted, else x. Below 0 all are 0.

    highest: the numbers above which it is nan, for float32 and float64.
    angles: (number, function): above this number, where |y| < 1, it is function(n, arccos(y)).
    edge: (place, function): where |y| is that, it is function(n, y).
    """
    POLYNOMIALS[name] = {
        "first": first,
        "step": step,
        "highest": highest,
        "shifted": shifted,
        "beyond": angles and angles[0],
    }

    def value(x, n):
        y, n = np.broadcast_arrays(2 * x - 1 if shifted else x, whole(n))
        result = np.where(n < 0, y.dtype.type(0), y.dtype.type(1))
        left = n > 0

        def settle(where, function, *arguments):
            nonlocal left
            result[where] = function(*[a[where] for a in arguments])
            left &= ~where

        if highest is not None:
            settle(left & (n > highest[y.dtype.itemsize > 4]), lambda n: np.nan, n)
        if edge is not None:
            settle(left & (abs(y) == edge[0]), edge[1], n, y)
        if angles is not None:
            settle(left & (n > angles[0]) & (abs(y) < 1), lambda n, y: angles[1](n.astype(y.dtype), np.arccos(y)), n, y)
        settle(left & (n <= FAR), functools.partial(walk, first, step), n, y)
        if left.any():
            settle(left, lambda n, y: walk_far(step)(n, y, first(y)), n, y)
        return result

    return pairs(name, value, value_of(name), "x", "n", lambda dtype: (limit_of(name, dtype.itemsize),))


def whole(n):
    """See Note [ The number of a polynomial ]."""
    return np.where(abs(n) < 2.0**63, n, -1).astype(np.int64)


def walk(first, step, n, y):
    """The polynomials n (all above 0) of all elements, in as many steps as the longest way has."""
    before, last = np.ones_like(y), np.asarray(first(y), y.dtype)
    result, under_way = last.copy(), n > 1
    k = 2
    while under_way.any():
        before, last = last, np.asarray(step(k, y, last, before), y.dtype)
        result = np.where(under_way, last, result)
        under_way &= (n > k) & (last == last)
        k += 1
    return result


@functools.cache
def walk_far(step):
    """The same as a compiled loop, one element after another."""
    from numba import njit

    step = njit(step)

    @njit(error_model="numpy")
    def walk_each(n, y, results):
        for i in range(y.size):
            before, last = type(y[i])(1), results[i]
            k = 2
            while k <= n[i] and last == last:
                before, last = last, type(y[i])(step(k, y[i], last, before))
                k += 1
            results[i] = last
        return results

    return walk_each


def sign(n):
    """-1 to the power of n."""
    return 1 - 2 * (n % 2)


def doubled(k, y, last, before):
    return 2 * y * last - before


# The four kinds of Chebyshev polynomials: what number 1 is, the polynomial in terms of y's angle, and at y = 1 and -1.
CHEBYSHEV = {
    "t": (lambda y: y, lambda n, a: np.cos(n * a), lambda n, y: np.where(y > 0, 1.0, sign(n))),
    "u": (
        lambda y: 2 * y,
        lambda n, a: np.sin((n + 1) * a) / np.sin(a),
        lambda n, y: (n + 1.0) * np.where(y > 0, 1, sign(n)),
    ),
    "v": (
        lambda y: 2 * y - 1,
        lambda n, a: np.cos((n + a.dtype.type(0.5)) * a) / np.cos(a / 2),
        lambda n, y: np.where(y > 0, 1.0, sign(n) * (2.0 * n + 1)),
    ),
    "w": (
        lambda y: 2 * y + 1,
        lambda n, a: np.sin((n + a.dtype.type(0.5)) * a) / np.sin(a / 2),
        lambda n, y: np.where(y > 0, 2.0 * n + 1, sign(n)),
    ),
}
for _kind, (_first, _angles, _edge) in CHEBYSHEV.items():
    polynomials(
        f"chebyshev_polynomial_{_kind}", _first, doubled, angles=(6 if _kind == "t" else 8, _angles), edge=(1, _edge)
    )
    polynomials(
        f"shifted_chebyshev_polynomial_{_kind}",
        _first,
        doubled,
        shifted=True,
        angles=(4 if _kind == "w" else 6, _angles),
        edge=(1, _edge),
    )
polynomials(
    "hermite_polynomial_h",
    lambda x: 2 * x,
    lambda k, x, last, before: 2 * (x * last - (k - 1) * before),
    highest=(128, 512),
)
polynomials(
    "hermite_polynomial_he", lambda x: x, lambda k, x, last, before: x * last - (k - 1) * before, highest=(128, 512)
)
polynomials(
    "laguerre_polynomial_l",
    lambda x: 1 - x,
    lambda k, x, last, before: ((2 * k - 1 - x) * last - (k - 1) * before) / k,
    edge=(0, lambda n, x: np.ones_like(x)),
)
polynomials(
    "legendre_polynomial_p",
    lambda x: x,
    lambda k, x, last, before: ((2 * k - 1) * x * last - (k - 1) * before) / k,
    edge=(1, CHEBYSHEV["t"][2]),
)
