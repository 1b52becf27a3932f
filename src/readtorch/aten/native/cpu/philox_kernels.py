"""The numbers that a device's kernels draw, computed by NumPy for simulated devices.

Which thread makes which element is part of the result: the kernels are launched with 256 threads a block and as many
blocks as are resident on the device at once (or fewer), each thread draws four numbers at a time, and element `call *
4 * threads + i * threads + thread` is the thread's i-th of that call. So, with one seed, the numbers depend on how
many multiprocessors the device has once a tensor is larger than all its resident threads.

In PyTorch: `aten/src/ATen/native/cuda/DistributionTemplates.h`, `Dropout.cu`, `Randperm.cu`; `ATen/core/TransformationHelper.h`.
Explained in the chapter "CUDA kernels with numba".
"""

import math

import ml_dtypes
import numpy as np

from readtorch.c10.cpu_generator_impl import CPUGeneratorImpl
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.philox_rng_engine import draws

from . import distribution_kernels

BLOCK = 256
FLOAT, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
LONG = np.dtype(np.int64)
TWO_32 = np.uint64(32)


def threads_for(numel, engine):
    """How many threads the launch has (`calc_execution_policy`)."""
    properties = runtime.driver().get_device_properties(engine.device.index)
    resident = properties.multi_processor_count * (properties.max_threads_per_multi_processor // BLOCK)
    return BLOCK * min(resident, -(-numel // BLOCK))


def _words(numel, engine, at_once):
    """Draw for `numel` elements, `at_once` of them a call: 32-bit numbers [calls, 4, threads]."""
    threads = threads_for(numel, engine)
    calls = -(-numel // (threads * at_once))
    seed, offset = engine.philox_state(calls * 4)
    return draws(seed, offset, threads, calls)


def _elements(values, numel):
    """[calls, at_once, threads] -> the elements in their order."""
    return values.reshape(-1)[:numel]


def _pairs(words):
    """Numbers of 64 bits from two of 32: [calls, 2, threads]."""
    return words[:, 0::2] << TWO_32 | words[:, 1::2]


# ---------------------------------------------------------------------------------- uniform and normal numbers


def uniform_floats(numel, engine):
    """Of (0, 1], float32 (`curand_uniform4`)."""
    words = _elements(_words(numel, engine, 4), numel)
    return words.astype(FLOAT) * FLOAT.type(2.0**-32) + FLOAT.type(2.0**-33)


def uniform_doubles(numel, engine):
    """Of (0, 1], float64 (`curand_uniform2_double`)."""
    return _elements(_fractions(_words(numel, engine, 2)), numel)


def _fractions(words):
    """53 bits from two numbers of 32 each: [calls, 2, threads]."""
    bits = words[:, 0::2] ^ words[:, 1::2] << np.uint64(21)
    return bits.astype(DOUBLE) * 2.0**-53 + 2.0**-54


def uniforms(kind, numel, engine):
    return uniform_doubles(numel, engine) if kind == DOUBLE else uniform_floats(numel, engine)


def normals(kind, numel, engine):
    """Standard normal numbers by Box-Muller, sine first (`curand_normal4`, `curand_normal2_double`)."""
    if kind == DOUBLE:
        u, v = _fractions(_words(numel, engine, 2)).transpose(1, 0, 2)
        radius, angle = np.sqrt(-2 * np.log(u)), (v - 2.0**-54) * (2 * np.pi) + 2.0**-53 * np.pi
        return _elements(np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=1), numel)
    words = _words(numel, engine, 4)
    u = words[:, 0::2].astype(FLOAT) * FLOAT.type(2.0**-32) + FLOAT.type(2.0**-33)
    turn = 2 * math.pi * 2.0**-32
    v = words[:, 1::2].astype(FLOAT) * FLOAT.type(turn) + FLOAT.type(turn / 2)
    radius = np.sqrt(FLOAT.type(-2) * np.log(u))
    pairs = np.stack([np.sin(v) * radius, np.cos(v) * radius], axis=2)  # [calls, 2, (sine, cosine), threads]
    return _elements(pairs.reshape(pairs.shape[0], 4, -1), numel)


def _compute_type(array):
    return DOUBLE if array.dtype == DOUBLE else FLOAT


def _place(array, values):
    array[...] = values.reshape(array.shape).astype(array.dtype)


def uniform_(array, low, high, engine):
    kind = _compute_type(array)
    low, high = (array.dtype.type(end) for end in (low, high))
    span = kind.type(high) - kind.type(low)
    values = (uniforms(kind, array.size, engine) * span + kind.type(low)).astype(array.dtype)
    values[values == high] = low  # the interval is closed above, ours is closed below
    _place(array, values)


def normal_(array, mean, std, engine):
    kind = _compute_type(array)
    _place(array, normals(kind, array.size, engine) * kind.type(std) + kind.type(mean))


def log_normal_(array, mean, std, engine):
    kind = _compute_type(array)
    _place(array, np.exp(normals(kind, array.size, engine) * kind.type(std) + kind.type(mean)))


def exponential_(array, rate, engine):
    kind = _compute_type(array)
    _place(array, _exponentials(kind, array.size, rate, engine))


def _exponentials(kind, numel, rate, engine):
    """Never 0: what would round to log(1) becomes half an epsilon."""
    u, half = uniforms(kind, numel, engine), kind.type(np.finfo(kind).eps / 2)
    return kind.type(-1 / rate) * np.where(u >= 1 - half, -half, np.log(u))


def geometric_(array, p, engine):
    kind = _compute_type(array)
    _place(array, np.ceil(np.log(uniforms(kind, array.size, engine)) / np.log1p(-kind.type(p))))


def cauchy_(array, median, sigma, engine):
    kind = _compute_type(array)
    u = uniforms(kind, array.size, engine)
    if kind == FLOAT:  # the tangent would be infinite at the edges
        u = np.clip(u, np.finfo(kind).eps, 1 - np.finfo(kind).eps)
    _place(array, kind.type(median) + kind.type(sigma) * np.tan(kind.type(math.pi) * (u - kind.type(0.5))))


# ------------------------------------------------------------------------------------------------ whole numbers


def _integers(numel, engine, wide):
    words = _words(numel, engine, 2 if wide else 4)
    return _elements(_pairs(words) if wide else words, numel)


def random_(array, engine):
    if array.dtype.kind == "b":
        span = 2
    elif array.dtype.kind in "iu":
        span = int(np.iinfo(array.dtype).max) + 1
    else:
        span = 2 ** (ml_dtypes.finfo(array.dtype).nmant + 1) + 1
    _place(array, _integers(array.size, engine, array.dtype in (LONG, DOUBLE)) % np.uint64(span))


def random_from_to_(array, span, base, engine):
    values = _integers(array.size, engine, span == 0 or span >= 1 << 28)
    if span:
        values %= np.uint64(span)
    _place(array, values.astype(LONG) + LONG.type(base))


def randperm(n, dtype, engine):
    """Sort random keys; where two keys are equal, shuffle what they stand for."""
    if n == 0:
        return np.empty(0, dtype)
    likely = (6.0 * n * n + 1) / (12 * math.log(0.9))  # so many values that ten of a hundred runs meet a duplicate
    bits = min(64, math.ceil(math.log2(n - likely)))
    keys = np.empty(n, np.int32 if bits <= 32 else np.int64)
    lowest = np.iinfo(keys.dtype).min
    width = 8 * keys.itemsize
    random_from_to_(keys, (1 << width) - 1, lowest, engine)
    if bits < width:  # else they are sorted as signed numbers
        keys &= (1 << bits) - 1
    order = np.argsort(keys, kind="stable")
    _shuffle_islands(order, keys[order], engine)
    return order.astype(dtype)


def _shuffle_islands(order, keys, engine):
    """Equal keys lie side by side: the thread of the first of them swaps them about."""
    seed, offset = engine.philox_state(len(keys))
    ends = np.append(np.flatnonzero(keys[1:] != keys[:-1]), len(keys) - 1)
    start = 0
    for end in ends:
        size = end - start + 1
        if size > 1:
            words = draws(seed, offset, start + 1, -(-(size - 1) // 4))[:, :, start].reshape(-1)
            for i, word in zip(range(size - 1, 0, -1), words):
                j = int(word) % (i + 1)
                order[start + i], order[start + j] = order[start + j], order[start + i]
        start = end + 1


# ------------------------------------------------------------------------------------------------- yes or no


def bernoulli_(array, p, engine):
    if not isinstance(p, np.ndarray):
        kind = _compute_type(array)
        return _place(array, uniforms(kind, array.size, engine) < kind.type(p))
    seed, offset = engine.philox_state(10)
    kind = _compute_type(array)
    words = draws(seed, offset, -(-array.size // 4), 1)[0].T.reshape(-1)[: array.size]  # a thread: 4 neighbours
    u = words.astype(FLOAT) * FLOAT.type(2.0**-32) + FLOAT.type(2.0**-33)
    _place(array, u.reshape(array.shape) <= np.broadcast_to(p, array.shape).astype(kind))


def dropout(mask, keep, width, engine):
    """Whether an element stays: with the probability `keep`. A thread makes `width` neighbours (a power of 2) with one evaluation
    for each four of them (`fused_dropout_kernel_vec`), or, if that is 1, elements a grid apart as everywhere.

    # in PyTorch, too: pairs leave two numbers of each evaluation unused, and the generator moves on as if they had not.
    """
    n, threads = mask.size, threads_for(mask.size, engine)
    seed, offset = engine.philox_state(-(-n // (threads * 4)) * 4)
    fours = max(width // 4, 1)
    calls = -(-n // (threads * (width if width > 1 else 4))) * fours
    words = draws(seed, offset, threads, calls)
    if width > 1:
        words = words.reshape(-1, fours, 4, threads)[:, :, :width].transpose(0, 3, 1, 2)
    u = words.reshape(-1)[:n].astype(FLOAT) * FLOAT.type(2.0**-32) + FLOAT.type(2.0**-33)
    _place(mask, u < keep)


def exponential_race(probabilities, engine):
    kind = DOUBLE if probabilities.dtype == DOUBLE else FLOAT
    times = _exponentials(kind, probabilities.size, 1.0, engine).reshape(probabilities.shape)
    return (probabilities.astype(kind) / times).astype(probabilities.dtype)


def __getattr__(name):
    """The others are drawn by the CPU's kernels from an engine that starts where this one stands.

    In PyTorch: kernels of their own, other numbers.
    """
    kernel = getattr(distribution_kernels, name)

    def borrowed(*arguments):
        *rest, engine = arguments
        seed, offset = engine.philox_state(4)
        substitute = CPUGeneratorImpl()
        substitute.set_current_seed((seed + offset) % 2**64)
        return kernel(*rest, substitute)

    return borrowed
