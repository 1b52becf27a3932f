"""Arrays of any number of dimensions inside a kernel: a flat array, and the sizes and strides as tuples.

In PyTorch: `aten/src/ATen/cuda/detail/OffsetCalculator.cuh`.
"""

from readtorch.c10.cuda.launch import strided


def laid_out(x):
    """(all of its memory as one row, its strides in elements); strides are not negative, as a tensor's never
    are.
    """
    steps = tuple(s // x.itemsize for s in x.strides)
    reach = 1 + sum((n - 1) * s for n, s in zip(x.shape, steps)) if x.size else 0
    return strided(x, (reach,), (x.itemsize,)), steps


def offset(i, shape, steps):
    """Where the i-th element lies, counted in the order of the dimensions. Runs in kernels."""
    place = 0
    for d in range(len(shape) - 1, -1, -1):
        place += i % shape[d] * steps[d]
        i //= shape[d]
    return place


def without(steps, dim):
    """The strides with one of them 0: for who goes along this dimension by other means."""
    return tuple(0 if d == dim else s for d, s in enumerate(steps))
