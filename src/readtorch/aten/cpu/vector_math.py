"""A stand-in for the module `math` in compiled loops: float32 by polynomials, the rest by libm.

A scalar function says `math.exp(x)`; on the CPU it is compiled with this module in the place of `math`, and
a loop over it becomes vector instructions. See Note [ Functions that vectorize ] in vec.py.

In PyTorch: `torch/csrc/jit/tensorexpr/llvm_codegen.cpp` names SLEEF's functions at the same place.
"""
import math
from math import atan2, cos, sin  # noqa: F401  libm's: these take one number at a time
from math import ceil, floor, sqrt  # noqa: F401  single instructions

import numpy as np

from . import vec
from .compile import scalar
from .vec import by_width, erf, exp, log, tanh  # noqa: F401

f32 = np.float32
ZERO, HALF, ONE = f32(0), f32(0.5), f32(1)


@scalar
def log1p_f32(x):
    """What 1 + x lost to rounding is put back by a factor (W. Kahan)."""
    y = ONE + x
    lost = y - ONE
    factor = x / (ONE if lost == ZERO else lost)
    whole = vec.log_f32(y) * (factor if lost < vec.INFINITY else ONE)
    return x if lost == ZERO else whole


@scalar
def expm1_f32(x):
    """With t = tanh(x / 2): 2t / (1 - t), which keeps the digits of a small x."""
    few = f32(17) if x > f32(17) else x
    t = vec.tanh_f32(HALF * few)
    small = (t + t) / (ONE - t)
    whole = vec.exp_f32(x) - ONE
    return small if abs(x) < ONE else whole


log1p = by_width("log1p", log1p_f32, math.log1p)
expm1 = by_width("expm1", expm1_f32, math.expm1)
