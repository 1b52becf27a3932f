"""tril, triu and trace.

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element.

In PyTorch: `aten/src/ATen/native/cuda/TriangularOps.cu`.
"""

from numba import cuda

from readtorch.c10.cuda.launch import blocks_of, launch

from .copy import copy
from .loops import THREADS
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous


def triangle(x, diagonal, upper, out):
    """x (matrices, rows, columns) above or below a diagonal, zeros elsewhere."""
    if out.size:
        launch(triangle_kernel, blocks_of(out.size, THREADS), THREADS, x, diagonal, int(upper), out)


def triangle_kernel(x, diagonal, upper, out):
    rows, columns = out.shape[1], out.shape[2]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        z, i, j = e // (rows * columns), e // columns % rows, e % columns
        kept = j - i >= diagonal if upper != 0 else j - i <= diagonal
        out[z, i, j] = x[z, i, j] if kept else out.dtype.type(0)


def part_of_matrix(name, upper):
    @cuda_impl(operator_named(name))
    def fill(self, diagonal, out):
        if out._array.size:
            matrices = (-1, *out._array.shape[-2:])
            triangle(contiguous(self._array).reshape(matrices), diagonal, upper, out._array.reshape(matrices))


part_of_matrix("tril", upper=False)
part_of_matrix("triu", upper=True)


@cuda_impl(operator_named("trace"))
def trace_cuda(self, out):
    copy(self.diagonal().sum()._array, out._array)
