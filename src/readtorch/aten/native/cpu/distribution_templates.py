"""The loops of the distributions: each fills a contiguous array from an mt19937 state.

A loop knows one accumulation type (float32, float64, int64 or uint8); `distribution_kernels` rounds to other types.
All bits agree with PyTorch's CPU kernels in their AVX2 and AVX-512 builds: see
Note [Fused multiply-add] and Note [The vector normal]. In PyTorch: `aten/src/ATen/native/cpu/DistributionTemplates.h`,
`aten/src/ATen/core/TransformationHelper.h`, `DistributionsHelper.h`. numba compiles these functions when they are
first called and keeps the result on disk.
"""

import math

import numpy as np

from readtorch.aten.cpu.vec.multiply_add import fma
from readtorch.c10.codecache import cached
from readtorch.c10.mt19937_rng_engine import random, random64, random_words

# Words are drawn this many at a time: enough to amortise the call, few enough to stay in the first-level
# cache.
CHUNK = 1280
FLOAT_STEP = np.float32(1.0 / (1 << 24))
DOUBLE_BITS = np.uint64((1 << 53) - 1)
DOUBLE_STEP = 1.0 / (1 << 53)

# Note [Fused multiply-add]
# PyTorch compiles its kernels for AVX2, where the compiler joins `a * b + c` into one instruction that rounds
# once. LLVM does that only when told to, so wherever PyTorch's expression has this shape we say fma: the last
# bit depends on it.


# --- whole numbers ------------------------------------------------------------------------------------------


@cached(error_model="numpy")
def integers(state, out, span, base):
    """`word % span + base` from 32-bit words (int64 `out`, uint64 `span`)."""
    words = np.empty(min(CHUNK, out.size), np.uint32)
    divisor = np.uint32(span)
    for start in range(0, out.size, CHUNK):
        chunk = out[start : start + CHUNK]
        random_words(state, words[: chunk.size])
        for i in range(chunk.size):
            chunk[i] = np.int64(words[i] % divisor) + base


@cached(error_model="numpy")
def wide_integers(state, out, span, base):
    """The same from 64-bit words; span 0 stands for 2**64."""
    for i in range(out.size):
        word = random64(state)
        if span != 0:
            word = word % span
        out[i] = np.int64(word) + base


@cached(error_model="numpy")
def shuffle(state, out):
    """0 … n-1 in random order: each place in turn is exchanged with one that is not behind it."""
    n = out.size
    for i in range(n):
        out[i] = i
    for i in range(n - 1):
        other = i + np.int64(random(state)) % (n - i)
        out[i], out[other] = out[other], out[i]


@cached(error_model="numpy")
def wide_shuffle(state, out):
    """The same for n so large that 32 bits would favour some places: 64 bits, built from the inside out."""
    for i in range(out.size):
        other = np.int64(random64(state) % np.uint64(i + 1))
        out[i] = out[other]
        out[other] = i


# --- uniform ------------------------------------------------------------------------------------------------

# Note [The open end]
# `low + u * (high - low)` can round up to `high`, which does not belong to the range. PyTorch then gives
# `low`.


@cached(error_model="numpy")
def uniform_float(state, out, low, high):
    """`low + u * (high - low)` with u of 24 random bits."""
    words = np.empty(min(CHUNK, out.size), np.uint32)
    low, high = np.float32(low), np.float32(high)
    width = high - low
    for start in range(0, out.size, CHUNK):
        chunk = out[start : start + CHUNK]
        random_words(state, words[: chunk.size])
        for i in range(chunk.size):
            u = np.float32(np.int32(words[i] & np.uint32(0xFFFFFF))) * FLOAT_STEP
            value = fma(u, width, low)
            chunk[i] = low if value == high else value


@cached(error_model="numpy")
def uniform_double(state, out, low, high):
    """`low + u * (high - low)` with u of 53 random bits: the low bits of two words."""
    words = np.empty(2 * min(CHUNK, out.size), np.uint32)
    width = high - low
    for start in range(0, out.size, CHUNK):
        chunk = out[start : start + CHUNK]
        random_words(state, words[: 2 * chunk.size])
        for i in range(chunk.size):
            bits = (np.uint64(words[2 * i]) << np.uint64(32)) | np.uint64(words[2 * i + 1])
            u = np.float64(np.int64(bits & DOUBLE_BITS)) * DOUBLE_STEP
            value = fma(u, width, low)
            chunk[i] = low if value == high else value


@cached(error_model="numpy")
def bernoulli(state, out, p):
    """1 where u < p, u of 53 bits (uint8 `out`). As whole numbers: bits < p * 2**53."""
    words = np.empty(2 * min(CHUNK, out.size), np.uint32)
    threshold = np.int64(math.ceil(p * 9007199254740992.0))
    for start in range(0, out.size, CHUNK):
        chunk = out[start : start + CHUNK]
        random_words(state, words[: 2 * chunk.size])
        for i in range(chunk.size):
            high = np.int64(words[2 * i] & np.uint32(0x1FFFFF))
            chunk[i] = ((high << 32) | np.int64(words[2 * i + 1])) < threshold


# --- inverse transforms: what a uniform number becomes ------------------------------------------------------


@cached(error_model="numpy")
def exponential(state, out, rate):
    """-log(1 - u) / rate."""
    uniform_double(state, out, 0.0, 1.0)
    scale = -1.0 / rate
    for i in range(out.size):
        out[i] = scale * math.log1p(-out[i])


@cached(error_model="numpy")
def geometric(state, out, p):
    """ceil(log(u) / log1p(-p)): the number of trials up to the first success."""
    uniform_double(state, out, 0.0, 1.0)
    for i in range(out.size):
        out[i] = np.ceil(math.log(out[i]) / math.log1p(-p))


@cached(error_model="numpy")
def cauchy(state, out, median, sigma):
    """median + sigma * tan(pi * (u - 1/2))."""
    uniform_double(state, out, 0.0, 1.0)
    for i in range(out.size):
        out[i] = fma(sigma, math.tan(math.pi * (out[i] - 0.5)), median)


# --- normal -------------------------------------------------------------------------------------------------


@cached(error_model="numpy")
def next_uniform(state):
    """The next 53-bit uniform number."""
    return np.float64(np.int64(random64(state) & DOUBLE_BITS)) * DOUBLE_STEP


@cached(error_model="numpy")
def next_normal(state, spare):
    """The next standard normal number. Box-Muller makes two at a time: `spare` keeps [valid, value]."""
    if spare[0]:
        value = spare[1]
        spare[0], spare[1] = 0.0, 0.0
        return value
    u1 = next_uniform(state)
    u2 = next_uniform(state)
    radius = math.sqrt(-2.0 * math.log1p(-u2))
    angle = 2.0 * math.pi * u1
    spare[0], spare[1] = 1.0, radius * math.sin(angle)
    return radius * math.cos(angle)


@cached(error_model="numpy")
def normal_one_by_one(state, out, spare, mean, std):
    """The path of fewer than 16 numbers, and of memory with gaps."""
    for i in range(out.size):
        out[i] = fma(next_normal(state, spare), std, mean)


@cached(error_model="numpy")
def log_normal(state, out, spare, mean, std):
    """exp of a normal number."""
    for i in range(out.size):
        out[i] = math.exp(fma(next_normal(state, spare), std, mean))


@cached(error_model="numpy")
def box_muller_double(data, mean, std):
    """Turn 16 uniform numbers at a time into normal ones, in place: 8 radii, then 8 angles."""
    for block in range(0, data.size - 15, 16):
        for i in range(block, block + 8):
            radius = math.sqrt(-2.0 * math.log(1.0 - data[i]))
            angle = 2.0 * math.pi * data[i + 8]
            data[i] = fma(radius * math.cos(angle), std, mean)
            data[i + 8] = fma(radius * math.sin(angle), std, mean)


@cached(error_model="numpy")
def normal_double(state, out, mean, std):
    """The path of 16 numbers and more. If they are no multiple of 16, the last 16 are drawn anew."""
    uniform_double(state, out, 0.0, 1.0)
    box_muller_double(out, mean, std)
    if out.size % 16:
        uniform_double(state, out[-16:], 0.0, 1.0)
        box_muller_double(out[-16:], mean, std)
