"""The Bessel functions of waves of single elements, for `pointwise` (loops.py): J and Y of order 0 and 1.

    waves(x) = (J0, J1, Y0, Y1)      for x > 0

All four come from one computation, in float64 whatever the width of the argument: the numbers of the recurrence
spread over more powers of ten than float32 has. "DLMF" numbers are those of the Digital Library of Mathematical
Functions, dlmf.nist.gov.

In PyTorch: `aten/src/ATen/native/cuda/{bessel_j0,bessel_j1,bessel_y0,bessel_y1}.cu`, in the argument's own
width with the coefficients of the Cephes library.
"""
import math

TINY, FAR, LAST = 1e-8, 25.0, 40  # from where to where there is a recurrence; terms of the series beyond
EULER = 0.5772156649015329


def waves(x):
    if x < TINY:
        return 1.0, x / 2, 2 / math.pi * (math.log(x / 2) + EULER), -2 / (math.pi * x)
    return near(x) if x < FAR else far(x)


def near(x):
    """Miller's algorithm: J[n - 1] = 2n/x · J[n] - J[n + 1], down from an order where J is about 0 and any
    small number will do. All are too large by one factor, which J0 + 2 (J2 + J4 + …) = 1 tells: DLMF 10.12.4.

    Y0 is a sum over the even ones, DLMF 10.23.16, and its derivative, -Y1, one over the odd ones.
    """
    above, here, whole, even, odd = 0.0, 1e-300, 0.0, 0.0, 0.0
    for n in range(24 + 2 * int(x), 0, -1):
        k = n // 2
        sign = -1.0 if k % 2 else 1.0
        if n % 2 == 0:
            whole += 2 * here
            even += sign * here / k
        elif k:
            odd += sign * here * n / (k * (k + 1))
        above, here = here, 2 * n / x * here - above
    whole += here
    j0, j1, log = here / whole, above / whole, math.log(x / 2) + EULER
    y0 = 2 / math.pi * (log * j0 - 2 * even / whole)
    return j0, j1, y0, 2 / math.pi * ((log - 1) * j1 - j0 / x - odd / whole)


def hankel(x, order):
    """Hankel's series: the parts in phase and out of phase, DLMF 10.17.3."""
    term, in_phase, out_of_phase = 1.0, 0.0, 0.0
    for k in range(0, LAST, 2):
        in_phase += term
        term *= (4 * order - (2 * k + 1) * (2 * k + 1)) / (8 * (k + 1) * x)
        out_of_phase += term
        term *= ((2 * k + 3) * (2 * k + 3) - 4 * order) / (8 * (k + 2) * x)
    return in_phase, out_of_phase


def far(x):
    """Waves of the phases x - π/4 and x - 3π/4, whose length falls with the root of x."""
    size, sine, cosine = 1 / math.sqrt(math.pi * x), math.sin(x), math.cos(x)
    rising, falling = (cosine + sine) * size, (sine - cosine) * size
    p0, q0 = hankel(x, 0)
    p1, q1 = hankel(x, 1)
    j0, y0 = rising * p0 - falling * q0, falling * p0 + rising * q0
    return j0, falling * p1 + rising * q1, y0, falling * q1 - rising * p1


def j0(x, scalars):
    return type(x)(waves(abs(float(x)))[0]) if x != type(x)(0) else type(x)(1)


def j1(x, scalars):
    if x == type(x)(0):
        return x
    value = type(x)(waves(abs(float(x)))[1])
    return -value if x < type(x)(0) else value


def y0(x, scalars):
    if x > type(x)(0):
        return type(x)(waves(float(x))[2])
    return type(x)(-math.inf) if x == type(x)(0) else type(x)(math.nan)


def y1(x, scalars):
    if x > type(x)(0):
        return type(x)(waves(float(x))[3])
    return type(x)(-math.inf) if x == type(x)(0) else type(x)(math.nan)
