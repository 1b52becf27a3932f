"""tril, triu and trace.

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element.

In PyTorch: `aten/src/ATen/native/cuda/TriangularOps.cu`.
"""

from numba import cuda

from readtorch.c10.cuda.launch import blocks_of, launch

from .loops import THREADS
from .register_dispatch_key import cuda_kernel, empty, operator_named
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
    @cuda_kernel(operator_named(name))
    def kernel(self, diagonal):
        if self._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        result = empty(self._array.shape, self._array.dtype)
        if result._array.size:
            matrices = (-1, *self._array.shape[-2:])
            triangle(contiguous(self._array).reshape(matrices), diagonal, upper, result._array.reshape(matrices))
        return result


part_of_matrix("tril", upper=False)
part_of_matrix("triu", upper=True)


@cuda_kernel(operator_named("trace"))
def trace_cuda(self):
    if self._array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self._array.ndim}")
    return self.diagonal().sum()
