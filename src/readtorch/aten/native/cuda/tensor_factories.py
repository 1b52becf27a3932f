"""Tensors from nothing: empty, zeros, ones, full, their `_like` and `new_` forms, eye, scalar_tensor, and indices of
triangles.

Windows (hann_window and its relatives) are made of other operators, and need nothing here.

In PyTorch: `aten/src/ATen/native/cuda/TensorFactories.cu`.
"""

from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native import tensor_factories as factories
from readtorch.c10 import scalar_type
from readtorch.c10.cuda.launch import blocks_of, launch

from .copy import copy_elements
from .fill_kernel import filled
from .loops import THREADS
from .register_dispatch_key import cuda_impl, here, operator_named


def eye(out):
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    if out.size:
        launch(eye_kernel, blocks_of(out.size, THREADS), THREADS, out)


def eye_kernel(out):
    columns = out.shape[1]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[e // columns, e % columns] = 1 if e // columns == e % columns else 0


@cuda_impl(factories.eye)
def eye_cuda(n, m, dtype, layout, device, pin_memory, out):
    eye(out._array)


UNFILLED = "empty empty_strided empty_permuted empty_like new_empty new_empty_strided".split()
cuda_impl(*[getattr(factories, name) for name in UNFILLED])(lambda *arguments_and_out: None)
cuda_impl(factories.zeros, factories.zeros_like, factories.new_zeros)(lambda *a: filled(a[-1], 0))
cuda_impl(factories.ones, factories.ones_like, factories.new_ones)(lambda *a: filled(a[-1], 1))
cuda_impl(factories.scalar_tensor)(lambda s, *a: filled(a[-1], s))
cuda_impl(factories.full, factories.full_like)(lambda _, fill_value, *a: filled(a[-1], fill_value))
cuda_impl(factories.new_full)(lambda self, size, fill_value, *a: filled(a[-1], fill_value))


def triangle_indices(name, part):
    @cuda_impl(operator_named(name))
    def kernel(row, col, offset, dtype, layout, device, pin_memory, out):
        """The places of ones in such a matrix. (In PyTorch: each thread works out its own place.)"""
        ones = part(at.ones((row, col), dtype=scalar_type.float32, device=here()), offset)
        copy_elements(ones.nonzero_static(size=out._array.shape[1]).t(), out)


triangle_indices("tril_indices", at.tril)
triangle_indices("triu_indices", at.triu)
