"""Every element the same scalar: fill_ and zero_.

Grid: blocks of 256 threads with a grid-stride loop; four float32 at a time where they lie together.

In PyTorch: `aten/src/ATen/native/cuda/FillKernel.cu`.
"""

from numba import cuda

from readtorch.aten.native import fill as native_fill
from readtorch.aten.native.tensor_iterator import refuse_overlap
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.overflows import number_as
from readtorch.c10.tensor_impl import dtype_of

from .copy import copy_elements
from .loops import THREADS, blocks_of_four_dimensions, collapse, place
from .memory_access import in_fours, store4
from .register_dispatch_key import cuda_impl, cuda_kernel


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


def filled(t, number):
    """`t`, every element `number`."""
    fill(t._array, number_as(number, dtype_of(t))[()])
    return t


@cuda_kernel(native_fill.fill_scalar_)
def fill_cuda_(self, value):
    refuse_overlap(self)
    filled(self, value)
    return self


@cuda_kernel(native_fill.zero_)
def zero_cuda_(self):
    filled(self, 0)
    return self


@cuda_kernel(native_fill.fill_tensor_)
def fill_tensor_cuda_(self, value):
    native_fill.check_value(value)
    refuse_overlap(self)
    copy_elements(value, self)
    return self


cuda_impl(native_fill.fill_scalar)(lambda self, value, out: filled(out, value))
cuda_impl(native_fill.fill_tensor)(lambda self, value, out: copy_elements(value, out))
