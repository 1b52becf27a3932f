"""`VonMises`. In PyTorch: `torch/distributions/von_mises.py`."""

import math

import readtorch
from readtorch.c10.local_dispatch_key_set import trace_under_way

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Polynomials for the modified Bessel functions of the first kind: in (x / 3.75)² below 3.75, in 3.75 / x from there on.
# M. Abramowitz, I. Stegun: Handbook of mathematical functions (1964), 9.8.1 to 9.8.4.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1, 0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1, 0.1787654e-1, -0.420059e-2),
)  # fmt: skip


def _eval_poly(y, coefficients):
    """Horner's scheme; the constant comes first."""
    *rest, result = coefficients
    for coefficient in reversed(rest):
        result = coefficient + y * result
    return result


def _log_modified_bessel_fn(x, order=0):
    """log I₀(x), or log I₁(x), for positive x."""
    small = _eval_poly((x / 3.75) * (x / 3.75), _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _eval_poly(3.75 / x, _LARGE[order]).log()
    return readtorch.where(x < 3.75, small.log(), large)


def _rejection_sample(loc, concentration, proposal_r, x):
    """Angles in [-π, π); `x` gives the shape.

    Three uniform numbers propose an angle and decide whether it is taken, until each has one.
    D. J. Best, N. I. Fisher: Efficient simulation of the von Mises distribution (1979).
    """
    done = readtorch.zeros(x.shape, dtype=readtorch.bool, device=loc.device)
    while not done.all():
        u1, u2, u3 = readtorch.rand([3] + list(x.shape), dtype=loc.dtype, device=loc.device).unbind()
        z = (math.pi * u1).cos()
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
        if accept.any():
            x = readtorch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles: a density proportional to exp(concentration cos(x - loc)) on a circle.

    loc, concentration: tensors, or numbers, that broadcast; loc is any angle, concentration is positive. Draws are in
    [-π, π), and computed in float64. `mean` and `variance` are the circular ones.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        loc, concentration = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=self.__dict__.get("_validate_args"))

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """1 - I₁(concentration) / I₀(concentration)"""
        log_ratio = _log_modified_bessel_fn(self.concentration, order=1) - _log_modified_bessel_fn(self.concentration)
        return 1 - log_ratio.exp()

    def log_prob(self, value):
        self._check(value)
        cosine = self.concentration * (value - self.loc).cos()
        return cosine - math.log(2 * math.pi) - _log_modified_bessel_fn(self.concentration)

    @lazy_property
    def _loc(self):
        return self.loc.to(readtorch.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(readtorch.double)

    @lazy_property
    def _proposal_r(self):
        """How wide the proposed distribution is; by its series where the formula would divide by almost nothing."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return readtorch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape=()):
        draw = _rejection_sample
        if trace_under_way():  # the loop's length depends on the draws: a trace takes the script
            draw = readtorch.jit.script(_rejection_sample)
        with readtorch.no_grad():
            x = readtorch.empty(self._extended_shape(sample_shape), dtype=self._loc.dtype, device=self.loc.device)
            return draw(self._loc, self._concentration, self._proposal_r, x).to(self.loc.dtype)
