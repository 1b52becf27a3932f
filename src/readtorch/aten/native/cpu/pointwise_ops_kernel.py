"""Formulas over flat float32 arrays in one pass. All arrays have one size; `out` comes last.

In PyTorch: `aten/src/ATen/native/cpu/PointwiseOpsKernel.cpp`, and `UnaryOpsKernel.cpp`, `LerpKernel.cpp`,
`TensorCompareKernel.cpp` there.
"""

import math

import numpy as np

from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import kernel

ONE, HALF = np.float32(1), np.float32(0.5)


@kernel
def rsqrt(x, out):
    for i in range(x.size):
        out[i] = ONE / math.sqrt(x[i])


@kernel
def erf(x, out):
    for i in range(x.size):
        out[i] = vec.erf(x[i])


@kernel
def cube(x, out):
    for i in range(x.size):
        out[i] = x[i] * x[i] * x[i]


@kernel
def clamp(x, low, high, out):
    """A nan in x stays."""
    for i in range(x.size):
        v = low if x[i] < low else x[i]
        out[i] = high if v > high else v


@kernel
def lerp(start, end, weight, out):
    """Counted from the nearer end, so that weight 1 gives exactly `end`."""
    if abs(weight) < HALF:
        for i in range(start.size):
            out[i] = start[i] + weight * (end[i] - start[i])
    else:
        for i in range(start.size):
            out[i] = end[i] - (end[i] - start[i]) * (ONE - weight)


@kernel
def addcmul(x, a, b, factor, out):
    for i in range(x.size):
        out[i] = x[i] + factor * a[i] * b[i]


@kernel
def addcdiv(x, a, b, factor, out):
    for i in range(x.size):
        out[i] = x[i] + factor * a[i] / b[i]
