"""A stand-in for the module `math` in compiled loops, mostly of polynomials.

A scalar function says `math.exp(x)`; on the CPU it is compiled with this module in the place of `math`, and
a loop over it becomes vector instructions. See Note [ Functions that vectorize ] in vec.py.

In PyTorch: `torch/csrc/jit/tensorexpr/llvm_codegen.cpp` names SLEEF's functions at the same place.
"""
import math
from math import atan2  # noqa: F401  libm's: it takes one pair of numbers at a time
from math import ceil, floor, sqrt  # noqa: F401  single instructions

from .compile import scalar
from .sine import cos, sin  # noqa: F401
from .vec import INFINITY, erf, exp, expm1, log, tanh  # noqa: F401


@scalar
def log1p(x):
    """What 1 + x lost to rounding is put back by a factor (W. Kahan)."""
    one = type(x)(1)
    y = one + x
    lost = y - one
    factor = x / (one if lost == 0 else lost)
    whole = log(y) * (factor if lost < INFINITY else one)
    return x if lost == 0 else whole
