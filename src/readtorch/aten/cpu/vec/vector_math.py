"""A stand-in for the module `math` in compiled loops, mostly of polynomials. libm's are, in float64, sin, cos and pow.

A scalar function says `math.exp(x)`; on the CPU it is compiled with this module in the place of `math`, and
a loop over it becomes vector instructions. See Note [ Functions that vectorize ] in `__init__.py`.

In PyTorch: `torch/csrc/jit/tensorexpr/llvm_codegen.cpp` names SLEEF's functions at the same place, those of
`aten/src/ATen/cpu/vec/vec.h`.
"""

from math import atan2, ceil, floor, sqrt  # noqa: F401  single instructions

import numpy as np
from numba import types
from numba.extending import overload

from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import scalar

from . import INFINITY, NAN, ONE, ZERO, erf, exp, expm1, log, nearest, tanh  # noqa: F401
from .sine import cos, sin  # noqa: F401

f32, f64 = np.float32, np.float64


@scalar
def log1p(x):
    """What 1 + x lost to rounding is put back by a factor (W. Kahan). Errors stay below 3 units in the last place."""
    one = type(x)(1)
    y = one + x
    lost = y - one
    factor = x / (one if lost == 0 else lost)
    whole = log(y) * (factor if lost < INFINITY else one)
    return x if lost == 0 else whole


@scalar
def pow_f32(x, y):
    """|x|ʸ as e to the power of y log |x| in float64, which has digits to spare; then the cases of the C standard."""
    size = abs(x)
    result = f32(vec.exp_f64(f64(y) * vec.log_f64(f64(size))))
    result = ONE if (y == ZERO) | (x == ONE) | ((size == ONE) & (abs(y) == INFINITY)) else result
    half = y * f32(0.5)
    odd = (nearest(y) == y) & (nearest(half) != half)
    result = -result if odd & (vec.bits_of(x) < 0) else result
    return NAN if (x < ZERO) & (nearest(y) != y) & (size < INFINITY) else result


def pow(x, y):
    raise TypeError("pow is for compiled loops")


@overload(pow, inline="always")
def compiled_pow(x, y):
    return (lambda x, y: pow_f32(x, y)) if x is types.float32 else (lambda x, y: x**y)
