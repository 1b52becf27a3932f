"""Every element the same number, and numbers in a row: what tensors are made of without reading any.

Grid: blocks of 256 threads with a grid-stride loop; four float32 at a time where they lie together.

In PyTorch: `aten/src/ATen/native/cuda/{FillKernel,RangeFactories}.cu`.
"""
from numba import cuda

from ....c10.cuda.launch import blocks_of, launch, strided
from .loops import THREADS, blocks_of_four_dimensions, collapse, place
from .vectors import in_fours, store4


def fill(out, number):
    """number: of out's dtype."""
    if out.size == 0:
        return
    (array,) = collapse([out])
    if array.ndim == 1 and array.flags.c_contiguous:
        fours = in_fours(array)
        grid = blocks_of(array.size, THREADS * 4 if fours else THREADS)
        launch(fill_fours if fours else fill_flat, grid, THREADS, array, number)
        return
    for (block,) in blocks_of_four_dimensions([array]):
        launch(fill_strided, blocks_of(block.size, THREADS), THREADS, block, number)


def arange(out, start, step):
    """out[i] = start + i step, computed as a float64, or as an int64 if `start` is one."""
    if out.size:
        flat = strided(out, (out.size,), (out.itemsize,))
        launch(arange_kernel, blocks_of(out.size, THREADS), THREADS, flat, start, step)


def linspace(out, start, end):
    """From `start` to `end` in even steps: the first half counted up, the second down. start, end: in the
    dtype to compute in."""
    if out.size:
        step = (end - start) / type(start)(max(out.size - 1, 1))
        launch(linspace_kernel, blocks_of(out.size, THREADS), THREADS, out, start, end, step)


def eye(out):
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    if out.size:
        launch(eye_kernel, blocks_of(out.size, THREADS), THREADS, out)


# ---------------------------------------------------------------------------------------------------- kernels


def fill_flat(out, number):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = number


def fill_fours(out, number):
    for q in range(cuda.grid(1), out.size // 4, cuda.gridsize(1)):
        store4(out, 4 * q, number, number, number, number)
    i = out.size // 4 * 4 + cuda.grid(1)
    if i < out.size:
        out[i] = number


def fill_strided(out, number):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[place(i, out.shape)] = number


def arange_kernel(out, start, step):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = start + i * step


def linspace_kernel(out, start, end, step):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        up = i < out.size // 2 or out.size == 1
        out[i] = start + step * type(step)(i) if up else end - step * type(step)(out.size - 1 - i)


def eye_kernel(out):
    columns = out.shape[1]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[e // columns, e % columns] = 1 if e // columns == e % columns else 0
