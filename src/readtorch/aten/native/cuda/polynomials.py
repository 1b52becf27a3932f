"""Orthogonal polynomials of single elements, for `pointwise` (loops.py): each from the two before it.

The steps are those of the CPU's kernels (../special_pairs.py).

In PyTorch: a file for each family,
`aten/src/ATen/native/cuda/{chebyshev_polynomial_t,hermite_polynomial_h,…}.cu`.
"""
import functools
import math

UNLIMITED = 1 << 30


def limit_of(highest, itemsize):
    """The number of a polynomial above which it is nan. highest: for float32 and for float64, or None."""
    return UNLIMITED if highest is None else highest[itemsize > 4]


@functools.cache
def value(first, step):
    """The function of x and a polynomial's number; numbers: the highest one."""

    def polynomial(x, n, numbers):
        one = type(x)(1)
        if not n <= numbers[0]:
            return type(x)(math.nan)
        if n < one:
            return one if n > -one else type(x)(0)
        before, last = one, type(x)(first(x))
        for k in range(2, int(n) + 1):
            before, last = last, type(x)(step(k, x, last, before))
        return last

    return polynomial
