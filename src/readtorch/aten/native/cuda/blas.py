"""Products of matrices: mm, bmm, addmm and their relatives.

In PyTorch: `aten/src/ATen/native/cuda/Blas.cpp`.
"""

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native.linear_algebra.addmm import check_addmm
from readtorch.aten.native.linear_algebra.matmul import check_batches, check_dot
from readtorch.aten.native.transformers import transformer as layers

from .cuda_blas import matmul
from .fill_kernel import fill
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named, owned


def product(x, y, bias=None, alpha=1):
    """alpha · x y + bias, for tensors of matrices, or stacks of as many."""
    result = empty((*x._array.shape[:-1], y._array.shape[-1]), x._array.dtype)
    if not x._array.shape[-1] and bias is not None:
        return fill_product(x, y, result) + bias
    return fill_product(x, y, result, bias, alpha)


def fill_product(x, y, out, bias=None, alpha=1):
    """`out` = alpha · x y + bias. An empty inner dimension gives zeros."""
    if x._array.shape[-1]:
        matmul(x._array, y._array, out._array, None if bias is None else bias._array, alpha)
    else:
        fill(out._array, out._array.dtype.type(0))
    return out


def plus_product(self, x, y, beta, alpha):
    """beta · self + alpha · x y. With beta 0 even a nan in `self` counts nothing."""
    shape = (*x._array.shape[:-1], y._array.shape[-1])
    if broadcast_shape(self._array.shape, shape) != shape:
        raise RuntimeError(
            f"The expanded size of the tensor must match the existing sizes. Target sizes: {list(shape)}.  "
            f"Tensor sizes: {list(self._array.shape)}"
        )
    if beta == 0:
        return product(x, y, None, alpha)
    return product(x, y, self if beta == 1 else at.mul(self, beta), alpha)


cuda_impl(operator_named("mm"), operator_named("bmm"))(fill_product)


@cuda_kernel(operator_named("addmm"))
def addmm_cuda(self, mat1, mat2, beta, alpha):
    check_addmm(self, mat1, mat2)
    return plus_product(self, mat1, mat2, beta, alpha)


@cuda_kernel(operator_named("baddbmm"))
def baddbmm_cuda(self, batch1, batch2, beta, alpha):
    check_batches(batch1, batch2)
    return plus_product(self, batch1, batch2, beta, alpha)


@cuda_kernel(operator_named("addbmm"))
def addbmm_cuda(self, batch1, batch2, beta, alpha):
    return at.mul(self, beta) + at.mul(at.bmm(batch1, batch2).sum(0), alpha)


@cuda_kernel(operator_named("mv"))
def mv_cuda(self, vec):
    if self._array.ndim != 2 or vec._array.ndim != 1 or self._array.shape[1] != vec._array.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({self._array.shape}), vec ({vec._array.shape})")
    return owned(product(self, vec.unsqueeze(1)).squeeze(1))


@cuda_kernel(operator_named("addmv"))
def addmv_cuda(self, mat, vec, beta, alpha):
    return at.mul(self, beta) + at.mul(mv_cuda(mat, vec), alpha)


@cuda_kernel(operator_named("dot"))
def dot_cuda(self, tensor):
    if self._array.ndim != 1 or tensor._array.ndim != 1 or self._array.shape != tensor._array.shape:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements, "
            "but got {} and {} elements respectively".format(
                *[", ".join(map(str, t._array.shape)) for t in (self, tensor)], self._array.size, tensor._array.size
            )
        )
    return owned(product(self.unsqueeze(0), tensor.unsqueeze(1)).reshape(()))


@cuda_kernel(operator_named("addr"))
def addr_cuda(self, vec1, vec2, beta, alpha):
    return plus_product(self, vec1.unsqueeze(1), vec2.unsqueeze(0), beta, alpha)


@cuda_kernel(operator_named("_trilinear"))
def trilinear_cuda(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    """The sum over `sumdim` of the product of three tensors, each of which lacks the dimensions in its `expand`."""
    total = i1._array.ndim + len(expand1)
    spell = lambda absent: "".join(chr(97 + d) for d in range(total) if d not in absent)
    equation = f"{spell(expand1)},{spell(expand2)},{spell(expand3)}->{spell(sumdim)}"
    return owned(at.einsum(equation, [i1, i2, i3]).contiguous())


cuda_kernel(operator_named("_addmm_activation"))(layers.addmm_activation)


@cuda_kernel(operator_named("vdot"))
def vdot_cuda(self, other):
    check_dot(self, other, "vdot")
    return dot_cuda(at.conj_physical(self), other)
