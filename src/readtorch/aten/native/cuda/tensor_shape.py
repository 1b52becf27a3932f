"""The gradients of views: zeros, part of which is written through the view itself.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.c10.wrap_dim import wrap_dim

from .copy import copy_elements
from .fill_kernel import filled
from .register_dispatch_key import cuda_impl, operator_named


def put_into_zeros(name, view_of):
    """Zeros with `grad` where the view was: `view_of(tensor, *the view's arguments)`."""

    @cuda_impl(operator_named(name))
    def fill(grad_output, input_sizes, *place_and_out):
        *place, out = place_and_out
        copy_elements(grad_output, view_of(filled(out, 0), *place))


put_into_zeros("select_backward", lambda t, dim, index: t.select(dim, index))
put_into_zeros("slice_backward", lambda t, dim, start, end, step: at.slice(t, dim, start, end, step))
put_into_zeros("diagonal_backward", lambda t, offset, dim1, dim2: t.diagonal(offset, dim1, dim2))


@cuda_impl(operator_named("diag_embed"))
def diag_embed_cuda(self, offset, dim1, dim2, out):
    copy_elements(self, filled(out, 0).diagonal(offset, dim1, dim2))


@cuda_impl(operator_named("unfold_backward"))
def unfold_backward_cuda(grad_in, input_sizes, dim, size, step, out):
    """Windows may overlap: their elements are added one place of the window after the other."""
    dim = wrap_dim(dim, len(input_sizes))
    count = grad_in._array.shape[dim]
    filled(out, 0)
    for k in range(size):
        at.slice(out, dim, k, k + (count - 1) * step + 1, step).add_(grad_in.select(-1, k))
