"""Random tensors: uniform, normal, exponential, geometric, cauchy, integers and bernoulli.

    uniform(state, out, low, high)        state: (seed, offset) of the device's generator

Grid: blocks of 256 threads, as many as hold a thread for each element but at most `most_blocks`, what the
chip holds at once. A thread draws four numbers at a time and gives them to elements that lie a whole grid
apart; with two (float64) likewise. Which thread gives which element is part of the result: see Note [ Who
draws which number ] in philox_rng_engine.py. `draws_used` is what the generator must be moved on by.

In PyTorch: `aten/src/ATen/native/cuda/DistributionTemplates.h`.
"""

import functools
import math

import numpy as np
from numba import cuda

from readtorch.c10.cuda.launch import blocks_of, launch

from .philox_rng_engine import philox, philox_args, unpack
from .rows import flat

THREADS = 256
MOST_BLOCKS = 8 * 132  # what an H100 holds: 2048 threads on each of 132 multiprocessors
f32, u64 = np.float32, np.uint64


def grid_of(size, most_blocks):
    return min(-(-size // THREADS), most_blocks)


def draws_used(size, at_once=4, most_blocks=MOST_BLOCKS):
    """How many numbers of 32 bits each thread may use for so many elements; 2 at once for float64."""
    return ((size - 1) // (THREADS * grid_of(size, most_blocks) * at_once) + 1) * 4 if size else 0


def uniform(state, out, low=0.0, high=1.0, most_blocks=MOST_BLOCKS):
    """In [low, high). out: contiguous, float32 or float64."""
    number = out.dtype.type
    run(uniform_between, state, out, (number(high - low), number(low), number(high)), most_blocks)


def normal(state, out, mean=0.0, std=1.0, most_blocks=MOST_BLOCKS):
    run(normal_with, state, out, (out.dtype.type(std), out.dtype.type(mean)), most_blocks, of_pairs=True)


def exponential(state, out, rate=1.0, most_blocks=MOST_BLOCKS):
    number = out.dtype.type
    run(exponential_with, state, out, (number(-1.0) / number(rate), number(np.finfo(number).eps / 2)), most_blocks)


def geometric(state, out, p, most_blocks=MOST_BLOCKS):
    """Trials up to the first success. From float32 numbers, but for a float64 `out`."""
    number = np.float64 if out.dtype == np.float64 else f32
    run(geometric_with, state, out, (number(np.log1p(-number(p))),), most_blocks)


def cauchy(state, out, median=0.0, sigma=1.0, most_blocks=MOST_BLOCKS):
    number = out.dtype.type
    edge = np.finfo(f32).eps if number == f32 else 0.0  # where float32's tangent would be infinite
    run(cauchy_with, state, out, (number(median), number(sigma), number(math.pi), number(edge)), most_blocks)


def bernoulli(state, out, p, most_blocks=MOST_BLOCKS):
    """1 with probability p, else 0, from float32 numbers (float64 for a float64 `out`)."""
    number = np.float64 if out.dtype == np.float64 else f32
    run(below, state, out, (number(p),), most_blocks)


def bernoulli_each(state, p, out):
    """Likewise, each with a probability of its own. Four neighbours take the numbers of one evaluation,
    whatever the dtype. p, out: contiguous."""
    if out.size:
        launch(
            bernoulli_each_kernel,
            blocks_of(out.size, 4 * THREADS, 1 << 30),
            THREADS,
            philox_args(state),
            flat(p),
            out.reshape(-1),
        )


def integers(state, out, low, high, most_blocks=MOST_BLOCKS):
    """low … high - 1, of 32 bits modulo the range, or of 64 if it is 2²⁸ or more."""
    of_width(high - low >= 1 << 28, state, out, low, high, most_blocks)


def of_width(wide, state, out, low, high, most_blocks):
    if out.size:
        launch(
            integers_kernel(wide),
            grid_of(out.size, most_blocks),
            THREADS,
            philox_args(state),
            out.reshape(-1),
            u64(high - low),
            np.int64(low),
        )


narrow_integers = functools.partial(of_width, False)
wide_integers = functools.partial(of_width, True)


def run(transform, state, out, scalars, most_blocks, of_pairs=False):
    if out.size:
        draw = DRAWS[out.dtype == np.float64, of_pairs]
        kernel = pairs_kernel if out.dtype == np.float64 else fours_kernel
        launch(
            kernel(draw, transform),
            grid_of(out.size, most_blocks),
            THREADS,
            philox_args(state),
            out.reshape(-1),
            scalars,
        )


TO_UNIT, TO_ANGLE = f32(2.3283064e-10), f32(2.3283064e-10) * f32(6.2831855)  # 2⁻³² and 2π 2⁻³²
TO_UNIT_64, PI = 1.1102230246251565e-16, math.pi  # 2⁻⁵³


def unit(x):
    """In (0, 1]: the middle of the piece that x stands for."""
    return f32(x) * TO_UNIT + TO_UNIT / f32(2)


def unit_64(x, y):
    """Likewise, of 53 bits."""
    return np.float64(u64(x) ^ (u64(y) << u64(21))) * TO_UNIT_64 + TO_UNIT_64 / 2.0


def four_uniform(a, b, c, d):
    return unit(a), unit(b), unit(c), unit(d)


def two_uniform(a, b, c, d):
    return unit_64(a, b), unit_64(c, d)


def box_muller(x, y):
    """Two normal numbers from two uniform ones: a radius and an angle."""
    radius = math.sqrt(f32(-2) * math.log(unit(x)))
    angle = f32(y) * TO_ANGLE + TO_ANGLE / f32(2)
    sine, cosine = cuda.libdevice.fast_sincosf(angle)
    return radius * sine, radius * cosine


def four_normal(a, b, c, d):
    x, y = box_muller(a, b)
    z, w = box_muller(c, d)
    return x, y, z, w


def two_normal(a, b, c, d):
    radius = math.sqrt(-2.0 * math.log(unit_64(a, b)))
    angle = 2.0 * unit_64(c, d) * PI
    return radius * math.sin(angle), radius * math.cos(angle)


DRAWS = {(False, False): four_uniform, (False, True): four_normal, (True, False): two_uniform, (True, True): two_normal}


def uniform_between(x, scalars):
    """scalars: range, low, high. (0, 1] is reflected to [0, 1): what would be `high` is `low`."""
    y = x * scalars[0] + scalars[1]
    return scalars[1] if y == scalars[2] else y


def normal_with(x, scalars):
    return x * scalars[0] + scalars[1]


def exponential_with(x, scalars):
    """numbers: -1 / rate, half the distance from 1 to the next number: the logarithm must not be 0."""
    half = scalars[1]
    return scalars[0] * (-half if x >= type(x)(1) - half else math.log(x))


def geometric_with(x, scalars):
    """numbers: the logarithm of the chance to fail."""
    return type(x)(math.ceil(math.log(x) / scalars[0]))


def cauchy_with(x, scalars):
    """numbers: median, sigma, π, and how close to 0 and 1 the uniform number may come."""
    x = min(max(x, scalars[3]), type(x)(1) - scalars[3])
    return scalars[0] + scalars[1] * math.tan(scalars[2] * (x - type(x)(0.5)))


def below(x, scalars):
    return x < scalars[0]


@functools.cache
def fours_kernel(draw, transform):
    """Four elements for each evaluation, a grid apart."""

    def fours(state, out, scalars):
        seed, offset = unpack(state)
        thread, step = cuda.grid(1), cuda.gridsize(1)
        count = u64(offset // u64(4))
        for first in range(thread, out.size, 4 * step):
            a, b, c, d = philox(seed, u64(thread), count)
            x, y, z, w = draw(a, b, c, d)
            count += u64(1)
            out[first] = transform(x, scalars)
            if first + step < out.size:
                out[first + step] = transform(y, scalars)
            if first + 2 * step < out.size:
                out[first + 2 * step] = transform(z, scalars)
            if first + 3 * step < out.size:
                out[first + 3 * step] = transform(w, scalars)

    return fours


@functools.cache
def pairs_kernel(draw, transform):
    """Two elements for each evaluation."""

    def pairs(state, out, scalars):
        seed, offset = unpack(state)
        thread, step = cuda.grid(1), cuda.gridsize(1)
        count = u64(offset // u64(4))
        for first in range(thread, out.size, 2 * step):
            a, b, c, d = philox(seed, u64(thread), count)
            x, y = draw(a, b, c, d)
            count += u64(1)
            out[first] = transform(x, scalars)
            if first + step < out.size:
                out[first + step] = transform(y, scalars)

    return pairs


def bernoulli_each_kernel(state, p, out):
    seed, offset = unpack(state)
    thread = cuda.grid(1)
    first = 4 * thread
    if first < out.size:
        a, b, c, d = philox(seed, u64(thread), u64(offset // u64(4)))
        x, y, z, w = four_uniform(a, b, c, d)
        out[first] = x <= p[first]
        if first + 1 < out.size:
            out[first + 1] = y <= p[first + 1]
        if first + 2 < out.size:
            out[first + 2] = z <= p[first + 2]
        if first + 3 < out.size:
            out[first + 3] = w <= p[first + 3]


@functools.cache
def integers_kernel(wide):
    each = 2 if wide else 4

    def integers(state, out, span, base):
        seed, offset = unpack(state)
        thread, step = cuda.grid(1), cuda.gridsize(1)
        count = u64(offset // u64(4))
        for first in range(thread, out.size, each * step):
            a, b, c, d = philox(seed, u64(thread), count)
            count += u64(1)
            if wide:
                a, b, c, d = joined(a, b), joined(c, d), u64(0), u64(0)
            for k in range(each):
                x = a if k == 0 else b if k == 1 else c if k == 2 else d
                if first + k * step < out.size:
                    out[first + k * step] = np.int64(u64(x) % span) + base

    return integers


def joined(upper, lower):
    return (u64(upper) << u64(32)) | u64(lower)
