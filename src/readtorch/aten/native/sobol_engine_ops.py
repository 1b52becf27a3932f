"""Sobol sequences: points that fill a cube evenly, each from the one before it by one exclusive or.

A dimension has 30 direction numbers. Point n + 1 is point n, exclusive-or the direction number whose position is that
of the lowest 0 in the binary digits of n; over 2³⁰ that is a number in [0, 1).

In PyTorch: `aten/src/ATen/native/SobolEngineOps.cpp`, which carries the table of Joe and Kuo. Here it is SciPy's copy.
"""

import functools
from pathlib import Path

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10 import scalar_type
from readtorch.c10.tensor_impl import dtype_of, wrap

from .tensor_iterator import refuse_overlap

BITS = 30

_sobol_engine_initialize_state_ = native_function(
    "_sobol_engine_initialize_state_(Tensor(a!) self, int dimension) -> Tensor(a!)"
)
_sobol_engine_scramble_ = native_function(
    "_sobol_engine_scramble_(Tensor(a!) self, Tensor ltm, int dimension) -> Tensor(a!)"
)
_sobol_engine_ff_ = native_function(
    "_sobol_engine_ff_(Tensor(a!) self, int n, Tensor sobolstate, int dimension, int num_generated) -> Tensor(a!)"
)
_sobol_engine_draw = native_function(
    "_sobol_engine_draw(Tensor quasi, int n, Tensor sobolstate, int dimension, int num_generated, ScalarType? dtype) "
    "-> (Tensor, Tensor)"
)


@functools.cache
def table():
    """A primitive polynomial for each dimension, its coefficients as bits, and the first direction numbers."""
    import scipy.stats

    with np.load(Path(scipy.stats.__file__).parent / "_sobol_direction_numbers.npz") as file:
        return file["poly"], file["vinit"]


def check_long(t, name):
    if dtype_of(t) is not scalar_type.int64:
        raise RuntimeError(f"{name}: expected a tensor of dtype int64, but got {dtype_of(t).name}")


def direction_numbers(polynomial, first):
    """All 30 of a dimension: those after the first follow from them by the polynomial."""
    degree = int(polynomial).bit_length() - 1
    numbers = [int(v) for v in first[:degree]]
    for place in range(degree, BITS):
        number = numbers[place - degree]
        for k in range(degree):
            if int(polynomial) >> (degree - 1 - k) & 1:
                number ^= numbers[place - k - 1] << (k + 1)
        numbers.append(number)
    return numbers


@_sobol_engine_initialize_state_.kernel
def initialize_state(self, dimension):
    """The direction numbers of each dimension, the first in the highest bit."""
    check_long(self, "sobol_engine_initialize_state_()")
    refuse_overlap(self)
    polynomials, first = table()
    state = np.ones((dimension, BITS), np.int64)
    for d in range(1, dimension):
        state[d] = direction_numbers(polynomials[d], first[d])
    self._array[...] = state << np.arange(BITS)[::-1]
    return self


@_sobol_engine_scramble_.kernel
def scramble(self, ltm, dimension):
    """Each direction number as bits, multiplied by its dimension's random matrix of bits: lower triangular, the
    diagonal 1."""
    check_long(self, "sobol_engine_scramble_()")
    weights = 1 << np.arange(BITS)
    matrices = ltm._array | np.eye(BITS, dtype=np.int64)
    rows = (matrices * weights[::-1]).sum(2)  # each row of the matrix as a number
    common = rows[:, None, ::-1] & self._array[:, :, None]
    odd = np.bitwise_count(common) & 1
    self._array[...] = (odd * weights).sum(2)
    return self


def lowest_zero(n):
    """The position of the lowest 0 among the binary digits of n."""
    return (~n & n + 1).bit_length() - 1


@_sobol_engine_ff_.kernel
def fast_forward(self, n, sobolstate, dimension, num_generated):
    """Skip n points."""
    check_long(self, "sobol_engine_ff_()")
    for i in range(num_generated, num_generated + n):
        self._array[...] ^= sobolstate._array[:, lowest_zero(i)]
    return self


@_sobol_engine_draw.meta
def draw_meta(quasi, n, sobolstate, dimension, num_generated, dtype):
    return TensorMeta((n, dimension), dtype or scalar_type.float32), TensorMeta((dimension,), scalar_type.int64)


@_sobol_engine_draw.kernel
def draw(quasi, n, sobolstate, dimension, num_generated, dtype):
    """The next n points, of shape (n, dimension), and the place of the last."""
    check_long(sobolstate, "sobol_engine_draw()")
    check_long(quasi, "sobol_engine_draw()")
    dtype = dtype or scalar_type.float32
    steps = sobolstate._array[:, [lowest_zero(i) for i in range(num_generated, num_generated + n)]]
    points = np.bitwise_xor.accumulate(np.concatenate([quasi._array[:, None], steps], 1), axis=1)
    numbers = points[:, 1:].T.astype(dtype.numpy) * dtype.numpy.type(2.0**-BITS)
    return wrap(np.ascontiguousarray(numbers)), wrap(np.ascontiguousarray(points[:, -1]))
