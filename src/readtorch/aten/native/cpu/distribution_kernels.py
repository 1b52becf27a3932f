"""Random numbers into NumPy arrays of any strides, bit for bit those of PyTorch's CPU kernels.

Every function takes a `CPUGeneratorImpl`, draws from it in PyTorch's order, and checks nothing: errors are
the operators' business (`native/tensor_factories.py`). The loops are compiled by numba, which the first draw loads, not
`import readtorch`. In PyTorch: `aten/src/ATen/native/cpu/DistributionKernels.cpp` and
`DistributionTemplates.h`, `MultinomialKernel.cpp` there.
"""

from importlib import import_module

import ml_dtypes
import numpy as np

FLOAT, DOUBLE, LONG, BYTE = np.dtype("f4"), np.dtype("f8"), np.dtype("i8"), np.dtype("u1")
REDUCED = (np.dtype("f2"), np.dtype(ml_dtypes.bfloat16))


class _LoadedWhenUsed:
    """A module of loops, imported by the first look at one of its names."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        module = import_module(self._name, __package__)
        self.__dict__.update(vars(module))
        return getattr(module, name)


loops = _LoadedWhenUsed(".distribution_templates")
avx_mathfun = _LoadedWhenUsed(".avx_mathfun")
rejection = _LoadedWhenUsed(".distributions.rejection")
gamma_gradient = _LoadedWhenUsed(".distributions.gamma_gradient")
beta_gradient = _LoadedWhenUsed(".distributions.beta_gradient")

# Note [Visiting order]
# A draw is a sequence, so the order in which elements are visited is part of the result. PyTorch's
# TensorIterator does not visit rows first but memory: dimensions are sorted by stride, so that a transposed
# matrix gets the same numbers at the same addresses as the matrix itself. With an input beside the output,
# the output's strides decide first; where a stride is 0 (an expanded dimension) the input's decide.


def visiting_order(*arrays):
    """The dimensions, slowest first, as TensorIterator walks these arrays: all of one shape, output first."""
    order = list(range(arrays[0].ndim - 1, -1, -1))  # fastest first, until the end
    for i in range(1, len(order)):  # insertion sort: zero strides make no total order
        moving = i
        for j in range(i - 1, -1, -1):
            verdict = _compare(arrays, order[j], order[moving])
            if verdict < 0:
                break
            if verdict > 0:
                order[j], order[moving] = order[moving], order[j]
                moving = j
    return order[::-1]


def _compare(arrays, fast, slow):
    """-1 if `fast` is rightly inside of `slow`, 1 if they must be exchanged, 0 if nothing tells."""
    for array in arrays:
        inner, outer = array.strides[fast], array.strides[slow]
        if inner == 0 or outer == 0:
            continue
        if inner != outer:
            return -1 if inner < outer else 1
        if array.shape[fast] > array.shape[slow]:
            return 1
    return 0


def _round(values, dtype):
    """`values` as `dtype`; a reduced type is reached by way of float32, as C++ reaches it."""
    if values.dtype == dtype:
        return values
    if dtype in REDUCED:
        return values.astype(FLOAT).astype(dtype)
    if values.dtype == DOUBLE and dtype.kind in "iu":
        return values.astype(LONG).astype(dtype)
    return values.astype(dtype)


def _place(array, values):
    """Put `values`, given in visiting order, where they belong."""
    if not array.flags.c_contiguous:
        array = array.transpose(visiting_order(array))
    array[...] = _round(values, array.dtype).reshape(array.shape)


def _draw(size, kind, generator, loop, *parameters):
    """`size` fresh numbers of accumulation type `kind`."""
    values = np.empty(size, kind)
    with generator.mutex:
        loop(generator.state, values, *parameters)
    return values


def _fill(array, kind, generator, loop, *parameters):
    """Let `loop` fill `array`: in place if it has the loop's type and no gaps, else through a fresh array."""
    if array.dtype == kind and array.flags.c_contiguous:
        with generator.mutex:
            loop(generator.state, array.reshape(-1), *parameters)
    else:
        _place(array, _draw(array.size, kind, generator, loop, *parameters))


# --- uniform ------------------------------------------------------------------------------------------------


def uniform_(array, low, high, generator):
    """Numbers of [low, high): float64 from 53 random bits, every other type from 24."""
    low, high = float(low), float(high)
    if array.dtype == DOUBLE:
        _fill(array, DOUBLE, generator, loops.uniform_double, low, high)
    elif array.dtype == FLOAT:
        _fill(array, FLOAT, generator, loops.uniform_float, low, high)
    else:
        values = _draw(array.size, FLOAT, generator, loops.uniform_float, low, high)
        values = values.astype(array.dtype)  # may round up to `high`: see Note [The open end]
        values[values == array.dtype.type(high)] = array.dtype.type(low)
        _place(array, values)


def exponential_(array, rate, generator):
    """Exponential numbers of mean 1 / rate."""
    _fill(array, DOUBLE, generator, loops.exponential, float(rate))


def geometric_(array, p, generator):
    """Trials up to the first success of probability p: 1, 2, …"""
    _fill(array, DOUBLE, generator, loops.geometric, float(p))


def cauchy_(array, median, sigma, generator):
    """Cauchy numbers."""
    _fill(array, DOUBLE, generator, loops.cauchy, float(median), float(sigma))


# --- normal -------------------------------------------------------------------------------------------------


def normal_(array, mean, std, generator):
    """Normal numbers.

    Note [Two normals]
    16 or more numbers without gaps in memory are made in blocks, and only from the engine. Fewer, or strided
    ones, are made one after the other, in float64, and the second number of a Box-Muller pair waits in the
    generator for the next call. So `randn(8)` twice is not `randn(16)`.
    """
    mean, std = float(mean), float(std)
    if array.size < 16 or not array.flags.c_contiguous:
        _fill(array, DOUBLE, generator, loops.normal_one_by_one, generator.spare_normal, mean, std)
    elif array.dtype == DOUBLE:
        _fill(array, DOUBLE, generator, loops.normal_double, mean, std)
    else:
        loop = avx_mathfun.normal_float if array.dtype == FLOAT else avx_mathfun.normal_reduced
        _fill(array, FLOAT, generator, loop, mean, std)


def log_normal_(array, mean, std, generator):
    """exp of normal numbers, one after the other."""
    _fill(array, DOUBLE, generator, loops.log_normal, generator.spare_normal, float(mean), float(std))


# --- whole numbers ------------------------------------------------------------------------------------------


def random_(array, generator):
    """Whole numbers from 0 to the largest of an integer type, or to 2**digits of a floating one."""
    if array.dtype.kind == "b":
        span = 2
    elif array.dtype.kind in "iu":
        span = int(np.iinfo(array.dtype).max) + 1
    else:
        span = 2 ** (ml_dtypes.finfo(array.dtype).nmant + 1) + 1
    wide = array.dtype in (LONG, DOUBLE)  # decided by type here, by span in random_from_to_
    _fill(array, LONG, generator, loops.wide_integers if wide else loops.integers, np.uint64(span), 0)


def random_from_to_(array, span, base, generator):
    """Whole numbers from `base` to `base + span - 1`; span 0 stands for 2**64."""
    wide = span == 0 or span >= 1 << 28  # else `%` would favour small numbers noticeably
    _fill(array, LONG, generator, loops.wide_integers if wide else loops.integers, np.uint64(span), base)


def randperm(n, dtype, generator):
    """0 … n-1 in random order, as a new array."""
    loop = loops.shuffle if n < (2**32 - 1) // 20 else loops.wide_shuffle
    return _round(_draw(n, LONG, generator, loop), np.dtype(dtype))


# --- yes or no ----------------------------------------------------------------------------------------------


def bernoulli_(array, p, generator):
    """1 with probability p, else 0. `p` is a number, or an array that broadcasts to `array`'s shape."""
    if not isinstance(p, np.ndarray):
        return _fill(array, BYTE, generator, loops.bernoulli, float(p))
    p = np.broadcast_to(p, array.shape)
    order = visiting_order(array, p)
    array, p = array.transpose(order), p.transpose(order)
    if p.dtype == DOUBLE:
        u = _draw(array.size, DOUBLE, generator, loops.uniform_double, 0.0, 1.0)
    else:
        u = _draw(array.size, FLOAT, generator, loops.uniform_float, 0.0, 1.0)
        p = p.astype(FLOAT)
    array[...] = u.reshape(array.shape) < p


# --- one parameter an element -------------------------------------------------------------------------------


def _fill_from(array, parameters, generator, loop, *fixed):
    """Let `loop` fill `array` from parameter arrays of its shape, in the order of Note [Visiting order]."""
    order = visiting_order(array, *parameters)
    array = array.transpose(order)
    flat = [np.ascontiguousarray(parameter.transpose(order)).reshape(-1) for parameter in parameters]
    values = _draw(array.size, DOUBLE, generator, loop, *fixed, *flat)
    array[...] = _round(values, array.dtype).reshape(array.shape)


def poisson(array, rate, generator):
    """Counts of mean `rate` (an array of `array`'s shape)."""
    _fill_from(array, [rate.astype(DOUBLE)], generator, rejection.poisson)


def binomial(array, count, p, generator):
    """Successes in `count` trials of probability `p` (arrays of `array`'s shape)."""
    _fill_from(array, [count, p], generator, rejection.binomial)


def standard_gamma(array, shape, generator):
    """Gamma numbers with these shape parameters and scale 1; never 0, so that a logarithm can follow."""
    _fill_from(array, [shape], generator, rejection.standard_gamma, generator.spare_normal)
    np.maximum(array, ml_dtypes.finfo(array.dtype).smallest_normal, out=array)


def standard_gamma_grad(shape, sample):
    """The derivative of gamma numbers by their shape parameters, as a new array."""
    out = np.empty(shape.shape)
    flat = [np.ascontiguousarray(array, DOUBLE).reshape(-1) for array in (shape, sample)]
    gamma_gradient.standard_gamma_grad(*flat, out.reshape(-1))
    return _round(out, shape.dtype)


def dirichlet_grad(x, alpha, total):
    """The derivative of Dirichlet numbers' parts by their concentrations, over 1 - x, as a new array."""
    out = np.empty(x.shape)
    flat = [np.ascontiguousarray(array, DOUBLE).reshape(-1) for array in (x, alpha, total)]
    beta_gradient.dirichlet_grad(*flat, out.reshape(-1))
    return _round(out, x.dtype)


def dirichlet(array, concentration, generator):
    """Rows of positive numbers with sum 1: gamma numbers over their sum."""
    gamma = np.empty(array.shape)
    standard_gamma(gamma, concentration.astype(DOUBLE), generator)
    share = _round(gamma / gamma.sum(-1, keepdims=True), array.dtype)
    limits = ml_dtypes.finfo(array.dtype)
    below_one = np.nextafter(array.dtype.type(1), array.dtype.type(0))
    array[...] = np.clip(share, limits.smallest_normal, below_one)


def multinomial_with_replacement(probabilities, count, generator):
    """`count` categories for each row of `probabilities`: where uniform numbers fall in its running sum."""
    running_type = DOUBLE if probabilities.dtype == DOUBLE else FLOAT
    running = np.cumsum(probabilities, axis=-1, dtype=running_type)
    running /= running[:, -1:].copy()
    running[:, -1] = 1  # rounding may have left the last one below
    u = _draw(running.shape[0] * count, DOUBLE, generator, loops.uniform_double, 0.0, 1.0).reshape(-1, count)
    rows = [np.searchsorted(row, samples) for row, samples in zip(running.astype(DOUBLE), u)]
    return np.array(rows, LONG).reshape(-1, count)


def exponential_race(probabilities, generator):
    """p / q with q exponential: the k largest are k categories, drawn without replacement.

    q / p is the time at which a category with rate p arrives, and those who arrive first are drawn.
    """
    is_expanded = 0 in probabilities.strides  # to NumPy that dimension is the fastest, to at::empty_like it is not
    q = np.empty_like(probabilities, order="C" if is_expanded else "K")
    exponential_(q, 1.0, generator)
    with np.errstate(divide="ignore", invalid="ignore"):
        return probabilities / q
