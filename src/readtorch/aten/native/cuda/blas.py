"""Products of matrices: mm, bmm, addmm and their relatives.

In PyTorch: `aten/src/ATen/native/cuda/Blas.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native.linear_algebra.matmul import refuse_bool

from .copy import copy as copy_kernel
from .cuda_blas import matmul
from .fill_kernel import fill
from .register_dispatch_key import cuda_impl, cuda_kernel, operator_named, owned


@cuda_impl(operator_named("mm"), operator_named("bmm"))
def mm_cuda(self, mat2, out):
    addmm_cuda(None, self, mat2, 0, 1, out)


@cuda_impl(operator_named("addmm"), operator_named("baddbmm"))
def addmm_cuda(self, mat1, mat2, beta, alpha, out):
    refuse_bool(mat1, "addmm_cuda")
    plus_product(self, mat1, mat2, beta, alpha, out)


def plus_product(self, mat1, mat2, beta, alpha, out):
    """`out` = beta · self + alpha · mat1 mat2, of matrices or stacks of as many. With beta 0 even a nan in `self` counts
    nothing, and an empty inner dimension gives zeros."""
    bias = None if beta == 0 else self if beta == 1 else at.mul(self, beta)
    if mat1._array.shape[-1]:
        matmul(mat1._array, mat2._array, out._array, None if bias is None else bias._array, alpha)
    elif bias is None:
        fill(out._array, out._array.dtype.type(0))
    else:
        copy_kernel(bias.expand(out._array.shape)._array, out._array)


@cuda_impl(operator_named("addbmm"))
def addbmm_cuda(self, batch1, batch2, beta, alpha, out):
    """The sum of a batch of products is one product: of the matrices laid side by side."""
    addmm_cuda(self, batch1.transpose(0, 1).flatten(1), batch2.flatten(0, 1), beta, alpha, out)


@cuda_impl(operator_named("mv"))
def mv_cuda(self, vec, out):
    mm_cuda(self, vec.unsqueeze(1), out.unsqueeze(1))


@cuda_impl(operator_named("addmv"))
def addmv_cuda(self, mat, vec, beta, alpha, out):
    addmm_cuda(self.unsqueeze(-1), mat, vec.unsqueeze(1), beta, alpha, out.unsqueeze(1))


@cuda_impl(operator_named("addr"))
def addr_cuda(self, vec1, vec2, beta, alpha, out):
    x, y = vec1.unsqueeze(1).to(out.dtype), vec2.unsqueeze(0).to(out.dtype)
    plus_product(self, x, y, beta, alpha, out)


@cuda_impl(operator_named("dot"))
def dot_cuda(self, tensor, out):
    mm_cuda(self.unsqueeze(0), tensor.unsqueeze(1), out.view((1, 1)))


@cuda_impl(operator_named("vdot"))
def vdot_cuda(self, other, out):
    dot_cuda(at.conj_physical(self), other, out)


@cuda_kernel(operator_named("_trilinear"))
def trilinear_cuda(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    """The sum over `sumdim` of the product of three tensors, each of which lacks the dimensions in its `expand`."""
    total = i1._array.ndim + len(expand1)
    spell = lambda absent: "".join(chr(97 + d) for d in range(total) if d not in absent)
    equation = f"{spell(expand1)},{spell(expand2)},{spell(expand3)}->{spell(sumdim)}"
    return owned(at.einsum(equation, [i1, i2, i3]).contiguous())
