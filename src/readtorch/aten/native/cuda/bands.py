"""Products with banded matrices along one dimension: interpolation, forward and backward, and adaptive average
pooling of volumes.

    times_band(start, count, weights, x, out)     out[…, o, …] = Σ weights[o, k] x[…, start[o] + k, …]

The band says for each place of the result which elements it is made of: Note [ Resizing is a banded matrix ].

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element of the result.

In PyTorch: `aten/src/ATen/native/cuda/UpSample*.cu`: a kernel for each method and number of dimensions, which
works out the weights anew for each element and adds gradients atomically.
"""
from numba import cuda

from ....c10.cuda.launch import blocks_of, launch
from .loops import THREADS


def times_band(start, count, weights, x, out):
    """x, out: (outer, n, inner)."""
    if out.size:
        launch(band_kernel, blocks_of(out.size, THREADS), THREADS, start, count, weights, x, out)


def band_kernel(start, count, weights, x, out):
    rows, inner = out.shape[1], out.shape[2]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        i, o, j = e // (rows * inner), e // inner % rows, e % inner
        total = x.dtype.type(0)
        for k in range(count[o]):
            total += weights[o, k] * x[i, start[o] + k, j]
        out[i, o, j] = total
