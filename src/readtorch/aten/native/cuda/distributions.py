"""Samples that take a number of random words that is not known beforehand: poisson, binomial, gamma and what is made
of it.

    sample(draw, state, parameters, out)       draw: one_poisson, one_binomial or one_gamma

Grid: blocks of 256 threads with a grid-stride loop. The number of an element, not of a thread, is part of the Philox
counter, so results do not depend on the grid. Each step takes two words of an evaluation as one fraction of 53 bits.
The methods are those of the CPU (../cpu/distributions/rejection.py); the generator moves on by DRAWS_USED.

In PyTorch: `aten/src/ATen/native/cuda/Distributions.cu`, `aten/src/ATen/native/cuda/Distributions.cpp`. There
cuRAND's `curand_poisson` draws a Poisson number, and a uniform number takes one word: other samples of the same
distributions.
"""

import functools
import math

import ml_dtypes
import numpy as np
from numba import cuda

from readtorch.aten.native import distributions as ops
from readtorch.aten.native.distribution_templates import DRAWN_FLOATS
from readtorch.aten.native.distributions import FLOAT_OR_DOUBLE, check_kernel_type
from readtorch.c10.cuda.launch import blocks_of, launch

from .copy import copy_elements
from .distribution_templates import unit_64
from .loops import THREADS
from .philox_rng_engine import philox, philox_args, unpack
from .reduce_ops import converted
from .register_dispatch_key import cuda_impl, empty

DRAWS_USED = 256  # of one element; a sample that takes more (hardly ever) runs into the next call's
u64 = np.uint64


def sample(draw, state, parameters, out):
    """parameters: one or two float64 arrays; out: float64. All contiguous and of one size."""
    if out.size:
        arrays = [p.reshape(-1) for p in parameters]
        launch(
            kernel(draw),
            blocks_of(out.size, THREADS),
            THREADS,
            philox_args(state),
            arrays[0],
            arrays[-1],
            out.reshape(-1),
        )


@functools.cache
def kernel(draw):
    def samples(state, first, second, out):
        seed, offset = unpack(state)
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = draw(seed, u64(i), offset // u64(4), first[i], second[i])

    return samples


def uniform(seed, element, draw):
    """Of (0, 1]."""
    a, b, _, _ = philox(seed, element, draw)
    return unit_64(a, b)


def normal(seed, element, draw):
    """By Box-Muller, of two uniform numbers."""
    a, b, c, d = philox(seed, element, draw)
    return math.sqrt(-2.0 * math.log(unit_64(a, b))) * math.cos(2.0 * math.pi * unit_64(c, d))


def one_poisson(seed, element, draw, rate, _):
    """Below 10: multiply uniforms until the product is below exp(-rate). Else rejection (Hörmann 1993)."""
    if rate == 0.0:
        return 0.0
    if rate < 10.0:
        count, product = 0.0, uniform(seed, element, draw)
        while product > math.exp(-rate):
            draw += u64(1)
            count, product = count + 1.0, product * uniform(seed, element, draw)
        return count
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    k, accepted = 0.0, False
    while not accepted:
        u, v = uniform(seed, element, draw) - 0.5, uniform(seed, element, draw + u64(1))
        draw += u64(2)
        distance = 0.5 - abs(u)
        k = math.floor((2 * a / max(distance, 1e-300) + b) * u + rate + 0.43) * 1.0
        accepted = distance >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2)
        if not accepted and k >= 0 and distance > 0 and (distance >= 0.013 or v <= distance):
            drawn = math.log(v) + math.log(inverse_alpha) - math.log(a / (distance * distance) + b)
            accepted = drawn <= -rate + k * math.log(rate) - math.lgamma(k + 1.0)
    return k


def one_binomial(seed, element, draw, count, p):
    """Successes in `count` trials; where p is above 1/2, the failures are counted."""
    if p != p or count != count:
        return math.nan
    if count <= 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return count
    likely = p > 0.5
    chance = 1.0 - p if likely else p
    if count * chance >= 10.0:
        found = by_rejection(seed, element, draw, count, chance)
    else:
        found = by_inversion(seed, element, draw, count, chance)
    return count - found if likely else found


def by_inversion(seed, element, draw, count, p):
    """Few successes: leap from success to success by geometric steps."""
    successes, reached = -1.0, 0.0
    while reached <= count:
        reached += math.ceil(math.log(uniform(seed, element, draw)) / math.log1p(-p))
        draw += u64(1)
        successes += 1.0
    return successes


def by_rejection(seed, element, draw, count, p):
    """Many successes: transformed rejection with squeeze (Hörmann 1993, "BTRS")."""
    deviation, odds = math.sqrt(count * p * (1.0 - p)), p / (1.0 - p)
    b = 1.15 + 2.53 * deviation
    a, alpha = -0.0873 + 0.0248 * b + 0.01 * p, (2.83 + 5.1 / b) * deviation
    mode = math.floor((count + 1.0) * p) * 1.0
    k, accepted = 0.0, False
    while not accepted:
        u, v = uniform(seed, element, draw) - 0.5, uniform(seed, element, draw + u64(1))
        draw += u64(2)
        distance = max(0.5 - abs(u), 1e-300)
        k = math.floor((2 * a / distance + b) * u + count * p + 0.5) * 1.0
        if k >= 0 and k <= count:
            accepted = distance >= 0.07 and v <= 0.92 - 4.2 / b
            if not accepted:
                bound = logarithm(count, mode, k) + (k - mode) * math.log(odds)
                accepted = math.log(v * alpha / (a / (distance * distance) + b)) <= bound
    return k


def logarithm(count, mode, k):
    """log(count over k) - log(count over mode)."""
    return (
        math.lgamma(mode + 1.0) + math.lgamma(count - mode + 1.0) - math.lgamma(k + 1.0) - math.lgamma(count - k + 1.0)
    )


def one_gamma(seed, element, draw, shape, _):
    """Marsaglia and Tsang (2000); a shape below 1 is raised by 1 and the sample scaled down again."""
    if shape == 0.0:
        return 0.0
    scale = 1.0
    if shape < 1.0:
        scale = uniform(seed, element, draw) ** (1.0 / shape)
        shape, draw = shape + 1.0, draw + u64(1)
    d = shape - 1.0 / 3.0
    v, accepted = 0.0, False
    while not accepted:
        x, u = normal(seed, element, draw), uniform(seed, element, draw + u64(1))
        draw += u64(2)
        root = 1.0 + x / math.sqrt(9.0 * d)
        if root > 0.0:
            v = root * root * root
            accepted = math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v))
    return scale * d * v


DOUBLE = np.dtype(np.float64)


def sampled(draw, generator, shape, *parameters):
    """Samples by one of the functions above, float64; the parameters are broadcast."""
    result = empty(shape, DOUBLE)
    if result._array.size:
        doubles = [converted(t, DOUBLE).expand(shape).contiguous()._array for t in parameters]
        sample(draw, generator.philox_state(DRAWS_USED), doubles, result._array)
    return result


@cuda_impl(ops.poisson)
def poisson_cuda(self, generator, out):
    """The rates stay unchecked: to look at them, the host would have to wait."""
    check_kernel_type(self, "poisson_cuda", DRAWN_FLOATS)
    copy_elements(sampled(one_poisson, generator, self._array.shape, self), out)


@cuda_impl(ops.binomial)
def binomial_cuda(count, prob, generator, out):
    check_kernel_type(count, "binomial_cuda", FLOAT_OR_DOUBLE)
    copy_elements(sampled(one_binomial, generator, out._array.shape, count, prob), out)


def positive(t):
    """At least the type's smallest positive number, so that a logarithm can follow."""
    return t.clamp(min=float(ml_dtypes.finfo(t._array.dtype).smallest_normal))


@cuda_impl(ops._standard_gamma)
def standard_gamma_cuda(self, generator, out):
    check_kernel_type(self, "gamma_cuda", FLOAT_OR_DOUBLE)
    copy_elements(positive(converted(sampled(one_gamma, generator, self._array.shape, self), self._array.dtype)), out)


@cuda_impl(ops._sample_dirichlet)
def sample_dirichlet_cuda(self, generator, out):
    check_kernel_type(self, "dirichlet", FLOAT_OR_DOUBLE)
    gamma = sampled(one_gamma, generator, self._array.shape, self)
    share = converted(gamma / gamma.sum(-1, True), self._array.dtype)
    below_one = np.nextafter(self._array.dtype.type(1), self._array.dtype.type(0))
    copy_elements(positive(share).clamp(max=float(below_one)), out)
