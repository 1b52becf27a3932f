"""Special functions of single elements, for `pointwise` (loops.py): what belongs to the normal distribution,
the gamma functions, entropy and logarithms of ratios. (bessel.py: Bessel functions.)

Each computes in the width of its arguments, float32 or float64, from a formula that is good in both: series,
continued fractions and Halley's steps rather than tables of coefficients, which are others for each width.
"DLMF" numbers are those of the Digital Library of Mathematical Functions, dlmf.nist.gov.

In PyTorch: `aten/src/ATen/native/cuda/{UnarySpecialOpsKernel,UnaryGammaKernels,ZetaKernel,IGammaKernel,
LogAddExpKernel}.cu` and `Math.cuh`, mostly with the coefficients of the Cephes library.
"""
import math

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
    place, total, term, i = q, q ** -s, type(q)(0), 0
    while i < 9 or place <= type(q)(9):
        i += 1
        place += type(q)(1)
        term = place ** -s
        total += term
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
        if math.fmod(s, type(q)(1)) != type(q)(0):
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
    if not (a >= zero and x >= zero) or (a == zero and x == zero) or (a == x and a - a != zero):
        return nan, nan
    if x == zero or a - a != zero:
        return zero, one
    if a == zero or x - x != zero:
        return one, zero
    if x < a + one:
        below = share_below(a, x)
        return below, one - below
    above = share_above(a, x)
    return one - above, above


def igamma(a, x, scalars):
    return shares(a, x)[0]


def igammac(a, x, scalars):
    return shares(a, x)[1]
