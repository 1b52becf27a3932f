"""Special functions of single elements, as in math.py: of the normal distribution, gamma, zeta, Bessel functions, entropy,
logarithms of ratios, and orthogonal polynomials.

Each computes in the width of its arguments, float32 or float64, from a formula that is good in both: series, continued
fractions and Halley's steps rather than tables of coefficients, which are others for each width. The Bessel functions J and
Y come from one computation, in float64 whatever the width: the terms of the recurrence cover more powers of ten than float32
has. "DLMF" numbers are those of the Digital Library of Mathematical Functions, dlmf.nist.gov.

    waves(x) = (J0, J1, Y0, Y1)      for x > 0

A polynomial is computed from the two before it, in the steps of the CPU's kernels (binary_ops/polynomials.py).

In PyTorch: `aten/src/ATen/native/Math.h`, `aten/src/ATen/native/cuda/Math.cuh`.
"""

import functools
import math

POLYNOMIALS = {}  # name -> its settings: binary_ops/polynomials.py

# ------------------------------------------------------------------------------------------ logarithms, sinc

LOG_2 = math.log(2)


def logit(x, scalars):
    """log of the odds."""
    return math.log(x / (type(x)(1) - x))


def logit_inside(x, scalars):
    """scalars: least and largest probability."""
    low, high = type(x)(scalars[0]), type(x)(scalars[1])
    p = low if x < low else x
    p = high if p > high else p
    return math.log(p / (type(x)(1) - p))


def entropy(x, scalars):
    if x > type(x)(0):
        return -x * math.log(x)
    return x if x != x else (type(x)(0) if x == type(x)(0) else type(x)(-math.inf))


def xlog1py(x, y, scalars):
    """0 where x is 0, but for a nan in y."""
    if y != y:
        return y
    return x * math.log1p(y) if x != type(x)(0) else type(x)(0)


def logaddexp(x, y, scalars):
    """log(exp x + exp y), from the larger one."""
    if x == y:
        return x + type(x)(LOG_2)
    larger = x if x > y else y
    return larger + math.log1p(math.exp(-abs(x - y)))


def logaddexp2(x, y, scalars):
    """log2(2 ** x + 2 ** y)"""
    if x == y:
        return x + type(x)(1)
    larger = x if x > y else y
    return larger + math.log1p(type(x)(2) ** -abs(x - y)) * type(x)(1 / LOG_2)


def sinc(x, scalars):
    product = x * type(x)(math.pi)
    return math.sin(product) / product if x != type(x)(0) else type(x)(1)


# ------------------------------------------------------------------------------ error function, turned around

SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0
TAYLOR = (1 / SLOPE, math.pi / 12 / SLOPE, 7 * math.pi**2 / 480 / SLOPE)
WINITZKI = 0.147


def halley(x, missing):
    """x, moved to where erf is greater by `missing`. Halley's step: Newton's, corrected by f''/f' = -2x."""
    step = missing / (type(x)(SLOPE) * math.exp(-x * x))
    return x + step / (type(x)(1) - x * step)


def erfinv_inside(y):
    """x with erf(x) = y, for |y| <= 1/2: three terms of Taylor's series, then two steps."""
    s = y * y
    x = y * (type(y)(TAYLOR[0]) + s * (type(y)(TAYLOR[1]) + s * type(y)(TAYLOR[2])))
    for _ in range(2):
        x = halley(x, y - math.erf(x))
    return x


def erfcinv_small(q):
    """x with erfc(x) = q, for 0 <= q <= 1/2: Winitzki's formula for erf solved for x, then three steps."""
    if q == type(q)(0):
        return type(q)(math.inf)
    size = math.log(q * (type(q)(2) - q))
    t = type(q)(2 / (math.pi * WINITZKI)) + size * type(q)(0.5)
    x = math.sqrt(math.sqrt(t * t - size * type(q)(1 / WINITZKI)) - t)
    for _ in range(3):
        x = halley(x, math.erfc(x) - q)
    return x


def erfinv(y, scalars):
    size = abs(y)
    if size <= type(y)(0.5):
        return erfinv_inside(y)
    if size <= type(y)(1):
        return math.copysign(erfcinv_small(type(y)(1) - size), y)
    return type(y)(math.nan)


def ndtri(p, scalars):
    """Where the normal distribution's cumulative function is p."""
    root, one = type(p)(math.sqrt(2)), type(p)(1)
    if p >= type(p)(0.25) and p <= type(p)(0.75):
        return root * erfinv_inside(p + p - one)
    below = p < type(p)(0.5)
    q = p if below else one - p
    if q >= type(p)(0):
        x = root * erfcinv_small(q + q)
        return -x if below else x
    return type(p)(math.nan)


# ----------------------------------------------------------------------------------- error function, scaled

LEVELS = 50


def exp_of_square(x):
    """exp(x²) for a small x. The error of a rounded x² would be multiplied by x²: x is taken apart into
    a part of few bits, whose square is exact, and a rest."""
    part = type(x)(math.floor(x * type(x)(16))) / type(x)(16)
    return math.exp(part * part) * math.exp((x - part) * (x + part))


def scaled_erfc(x):
    """exp(x²) · erfc(x); from 2 on by the continued fraction DLMF 7.9.1, from its last level up."""
    if x > type(x)(2):
        below = x
        for k in range(LEVELS, 0, -1):
            below = x + type(x)(k) * type(x)(0.5) / below
        return type(x)(1 / math.sqrt(math.pi)) / below
    if x > type(x)(-27):
        return exp_of_square(x) * math.erfc(x)
    return type(x)(math.inf) if x == x else x


def erfcx(x, scalars):
    return scaled_erfc(x)


def log_ndtr(x, scalars):
    """log of the normal distribution's cumulative function, also where that is too small for a number."""
    t, half = x * type(x)(math.sqrt(0.5)), type(x)(0.5)
    if x < type(x)(-1):
        return math.log(scaled_erfc(-t) * half) - t * t
    return math.log1p(-math.erfc(t) * half)


# ------------------------------------------------------------------------------------------- gamma functions


def lgamma(x, scalars):
    return math.lgamma(x)


def digamma_above_zero(x):
    """Up to 10 by ψ(x) = ψ(x + 1) - 1/x, and the asymptotic series there: DLMF 5.11.2."""
    one, total = type(x)(1), type(x)(0)
    while x < type(x)(10):
        total -= one / x
        x += one
    s = one / (x * x)
    rest = type(x)(1 / 240) - s * (type(x)(1 / 132) - s * (type(x)(691 / 32760) - s * type(x)(1 / 12)))
    rest = s * (type(x)(1 / 12) - s * (type(x)(1 / 120) - s * (type(x)(1 / 252) - s * rest)))
    return total + math.log(x) - type(x)(0.5) / x - rest


def digamma(x, scalars):
    """Below 0 mirrored: ψ(1 - x) - π / tan(πx), and a nan at whole numbers."""
    zero, one, pi = type(x)(0), type(x)(1), type(x)(math.pi)
    if x > zero:
        return digamma_above_zero(x)
    if x == zero:
        return math.copysign(type(x)(math.inf), -x)
    beyond = math.fmod(x, one)
    return digamma_above_zero(one - x) - pi / math.tan(pi * beyond) if beyond != zero else type(x)(math.nan)


def trigamma(x, scalars):
    """The derivative of digamma: six steps up, and the asymptotic series there; mirrored below 1/2."""
    one, pi = type(x)(1), type(x)(math.pi)
    mirrored = x < type(x)(0.5)
    place, total = one - x if mirrored else x, type(x)(0)
    for _ in range(6):
        total += one / (place * place)
        place += one
    s = one / (place * place)
    series = s * (type(x)(1 / 6) - s * (type(x)(1 / 30) - s * type(x)(1 / 42)))
    total += (one + type(x)(0.5) / place + series) / place
    ratio = pi / math.sin(pi * x)
    return ratio * ratio - total if mirrored else total


# ------------------------------------------------------------------------------------------------------- zeta

TERMS = 12


def even_bernoulli_numbers(count):
    """B₂, B₄, …: each from those before it, as their sums with binomial coefficients are 0."""
    from fractions import Fraction

    scalars = [Fraction(1), Fraction(-1, 2)]
    for n in range(2, 2 * count + 1):
        scalars.append(-sum((math.comb(n + 1, k) * b for k, b in enumerate(scalars)), Fraction(0)) / (n + 1))
    return scalars[2::2]


DIVISORS = tuple(float(math.factorial(2 * i + 2) / b) for i, b in enumerate(even_bernoulli_numbers(TERMS)))


def hurwitz(s, q, divisors):
    """Hurwitz's zeta function, Σ (q + i) ** -s: the first terms, and the rest by the Euler-Maclaurin formula,
    DLMF 25.11.5. divisors: DIVISORS, in the arguments' width."""
    place, total, term, i = q, q**-s, type(q)(0), 0
    while i < 9 or place <= type(q)(9):
        i += 1
        place += type(q)(1)
        term = place**-s
        total += term
        if abs(term) < abs(total) * type(q)(1.11e-16):
            return total
    total += term * place / (s - type(q)(1)) - type(q)(0.5) * term
    factor, power = type(q)(1), term
    for k in range(TERMS):
        power /= place
        factor *= s + type(q)(2 * k)
        part = factor * power / divisors[k]
        total += part
        if abs(part) < abs(total) * type(q)(1.11e-16):
            break
        power /= place
        factor *= s + type(q)(2 * k + 1)
    return total


def zeta(s, q, scalars):
    """scalars: DIVISORS."""
    if s <= type(s)(1):
        return type(s)(math.inf) if s == type(s)(1) else type(s)(math.nan)
    if q <= type(q)(0):
        if not abs(math.fmod(q, type(q)(1))) > type(q)(0):
            return type(q)(math.inf)  # the poles, and what is infinitely far
        if s < type(s)(math.inf) and math.fmod(s, type(q)(1)) != type(q)(0):
            return type(q)(math.nan)
    return hurwitz(s, q, scalars)


def polygamma(x, scalars):
    """scalars: the order + 1, its factorial with a sign, then DIVISORS."""
    return scalars[1] * zeta(scalars[0], x, scalars[2:])


# --------------------------------------------------------------------------------- incomplete gamma functions

MOST_TERMS = 2000


def gamma_density(a, x):
    """x ** a · exp(-x) / Γ(a)"""
    return math.exp(a * math.log(x) - x - math.lgamma(a))


def share_below(a, x):
    """DLMF 8.11.4: Σ x ** n / (a · (a + 1) · … · (a + n)), for x < a + 1."""
    term = type(x)(1) / a
    total, place = term, a
    for _ in range(MOST_TERMS):
        place += type(x)(1)
        term *= x / place
        if total + term == total:
            break
        total += term
    return total * gamma_density(a, x)


def share_above(a, x):
    """The continued fraction DLMF 8.9.2 by Lentz's method, for x >= a + 1."""
    one, two = type(x)(1), type(x)(2)
    b = x + one - a
    c, d = type(x)(1e30), one / b
    total = d
    for n in range(1, MOST_TERMS):
        step = type(x)(n) * (a - type(x)(n))
        b += two
        d = one / (step * d + b)
        c = b + step / c
        total *= c * d
        if c * d == one:
            break
    return total * gamma_density(a, x)


def shares(a, x):
    """(below x, above x) of the integral that is Γ(a)."""
    zero, one, nan = type(x)(0), type(x)(1), type(x)(math.nan)
    if x < zero or a < zero or (a == zero and not x > zero) or (a == x and a - a != zero):
        return nan, nan
    if x == zero or a > zero and a == a + a:  # whatever the other is, even nan
        return zero, one
    if a == zero or x > zero and x == x + x:
        return one, zero
    if a != a or x != x:
        return nan, nan
    if x < a + one:
        below = share_below(a, x)
        return below, one - below
    above = share_above(a, x)
    return one - above, above


def igamma(a, x, scalars):
    return shares(a, x)[0]


def igammac(a, x, scalars):
    return shares(a, x)[1]


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


TINY, ASYMPTOTIC, LAST_TERM = 1e-8, 25.0, 40  # from where to where there is a recurrence; terms of the series beyond
EULER = 0.5772156649015329


def waves(x):
    if x < TINY:
        return 1.0, x / 2, 2 / math.pi * (math.log(x / 2) + EULER), -2 / (math.pi * x)
    return near(x) if x < ASYMPTOTIC else far(x)


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
    for k in range(0, LAST_TERM, 2):
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
