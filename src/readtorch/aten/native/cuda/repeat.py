"""repeat and repeat_interleave.

    repeat_indices(ends, out)                              0, 0, 1, 2, 2, 2 … by the running sum of the counts

Grid: blocks of 256 threads with a grid-stride loop, a thread for each index.

In PyTorch: `aten/src/ATen/native/cuda/Repeat.cu`.
"""

import numpy as np
from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native.tensor_transformations import check_counts, side_by_side
from readtorch.c10.cuda.launch import blocks_of, launch

from .copy import copy as copy_kernel
from .loops import THREADS
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named
from .rows import contiguous


def repeat_indices(ends, out):
    """ends: the running sum of how often each index is repeated."""
    if out.size:
        launch(repeat_kernel, blocks_of(ends.size, THREADS), THREADS, ends, out)


def repeat_kernel(ends, out):
    """Each index writes its own run."""
    for i in range(cuda.grid(1), ends.size, cuda.gridsize(1)):
        for place in range(ends[i - 1] if i > 0 else 0, ends[i]):
            out[place] = i


@cuda_impl(operator_named("repeat"))
def repeat_cuda(self, repeats, out):
    if out._array.size:
        copies, source = side_by_side(contiguous(self._array), repeats, out._array)
        copy_kernel(np.broadcast_to(source, copies.shape), copies)


@cuda_kernel(operator_named("repeat_interleave.Tensor"))
def repeat_interleave_cuda(repeats, output_size):
    """The host waits for the size of the result, unless the caller tells it."""
    counts = repeats._array
    check_counts(repeats, "repeat_interleave_cuda")
    if not counts.size:
        return empty((0,), counts.dtype)
    ends = repeats.cumsum(0)
    if output_size is None:
        if not at.ge(repeats, 0).all().item():
            raise RuntimeError("repeats can not be negative")
        output_size = ends[-1].item()
    result = empty((output_size,), counts.dtype)
    repeat_indices(ends._array, result._array)
    return result
