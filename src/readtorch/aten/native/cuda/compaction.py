"""Places of what is not zero, and triangles of matrices: kernels in which the place of an element matters.

nonzero: the running count of what is not zero (scan.py) says where in the result each place belongs; the host
asks for the total, for it is the result's size. Grid: blocks of 256 threads with a grid-stride loop.

In PyTorch: `aten/src/ATen/native/cuda/{Nonzero,TriangularOps}.cu`.
"""
from numba import cuda

from ....c10.cuda.launch import blocks_of, launch
from .loops import THREADS


def places_of(counts, shape, out):
    """counts: the running counts (int64) of elements of an array of `shape`, in their order; out: (rows,
    dimensions), of which as many are written as there are elements, if there is room."""
    if out.size:
        launch(places_kernel, blocks_of(counts.size, THREADS), THREADS, counts, tuple(shape), out)


def triangle(x, diagonal, upper, out):
    """x (matrices, rows, columns) above or below a diagonal, zeros elsewhere."""
    if out.size:
        launch(triangle_kernel, blocks_of(out.size, THREADS), THREADS, x, diagonal, int(upper), out)


# ---------------------------------------------------------------------------------------------------- kernels


def places_kernel(counts, shape, out):
    for i in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        before = counts[i - 1] if i > 0 else 0
        if counts[i] != before and before < out.shape[0]:
            rest = i
            for d in range(len(shape) - 1, -1, -1):
                out[before, d] = rest % shape[d]
                rest //= shape[d]


def triangle_kernel(x, diagonal, upper, out):
    rows, columns = out.shape[1], out.shape[2]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        z, i, j = e // (rows * columns), e // columns % rows, e % columns
        kept = j - i >= diagonal if upper != 0 else j - i <= diagonal
        out[z, i, j] = x[z, i, j] if kept else out.dtype.type(0)
