"""Batch normalization through the loops of `cpu/batch_norm_kernels.py`: for float32 and float64 without gaps.

In PyTorch: the choice between `batch_norm_cpu_contiguous_impl` and `…_channels_last_impl`.
"""
import functools

import numpy as np

from ...c10.tensor_impl import wrap
from ..parallel import parallel_for
from .normalization_common import PIECE, filled

@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import batch_norm_kernels
    return batch_norm_kernels


def loop_for(name, layout):
    """`name`_planes or `name`_columns."""
    return getattr(loops(), f"{name}_{'planes' if layout.ndim == 3 else 'columns'}")


def layout_of(x):
    """`x` as planes (N, C, L) or columns (rows, C), as it lies in memory; None if it has gaps."""
    shape = x.shape
    if x.flags.c_contiguous:
        return x.reshape(shape[0], shape[1], -1) if x.size > shape[0] * shape[1] else x.reshape(shape[:2])
    if x.ndim in (4, 5):
        pixels = np.moveaxis(x, 1, -1)
        if pixels.flags.c_contiguous:
            return pixels.reshape(-1, shape[1])
    return None


def in_layout(x, layout):
    """Another tensor of the same shape in the same layout, copied if need be."""
    found = layout_of(x)
    if found is not None and found.ndim == layout.ndim:
        return found
    if layout.ndim == 2 and x.ndim > 2:
        x = np.moveaxis(x, 1, -1)
    return np.ascontiguousarray(x).reshape(layout.shape)


def share(loop, layout, *arguments):
    """Run a loop over all channels, by some threads."""
    channels = layout.shape[1]
    grain = max(1, PIECE * channels // layout.size)
    if layout.ndim == 2:
        grain = max(grain, 16)  # neighbours in memory: fewer of them fill no cache line
    parallel_for(0, channels, grain, lambda begin, end: loop(*arguments, begin, end))


def train(x, layout, weight, bias, running_mean, running_var, momentum, eps):
    """The result, the mean, 1 / deviation; moves the running statistics."""
    nothing = np.empty(0, x.dtype)
    out, mean, rstd = np.empty_like(x), *np.empty((2, layout.shape[1]), x.dtype)
    running_mean, running_var = [nothing if v is None else v for v in (running_mean, running_var)]
    weight, bias = filled(weight, 1, x, mean.size), filled(bias, 0, x, mean.size)
    share(loop_for("train", layout), layout, layout, weight, bias, x.dtype.type(momentum), float(eps),
          running_mean, running_var, layout_of(out), mean, rstd)
    return wrap(out), wrap(mean), wrap(rstd)


def evaluate(x, layout, slope, start):
    """x · slope + start, two numbers a channel."""
    out = np.empty_like(x)
    share(loop_for("evaluate", layout), layout, layout, slope, start, layout_of(out))
    return out


def backward(dy, x, layout, weight, mean, rstd, train, wants_dx):
    """The gradients of the input (if wanted), the weight and the bias, as arrays."""
    dx = np.empty_like(x) if wants_dx else None
    dw, db = np.empty((2, layout.shape[1]), x.dtype)
    into = np.empty((0,) * layout.ndim, x.dtype) if dx is None else layout_of(dx)
    weight = filled(weight, 1, x, mean.size)
    dy = in_layout(dy, layout)
    share(loop_for("backward", layout), layout, dy, layout, weight, mean, rstd, train, into, dw, db)
    return dx, dw, db
