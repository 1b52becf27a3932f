"""Distances and similarities: pairwise_distance, cosine_similarity, cdist, pdist.

In PyTorch: `aten/src/ATen/native/Distance.cpp` and `aten/src/ATen/native/cpu/DistanceOpsKernel.cpp`.
"""

import math

import numpy as np

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.local_dispatch_key_set import AutoGradMode
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, type_name

from .binary_ops.arithmetic import add_scalar
from .linear_algebra.norm import p_norm
from .tensor_iterator import not_implemented, result_type

pairwise_distance = native_function(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor"
)
cosine_similarity = native_function("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")


@pairwise_distance.compose
def pairwise_distance_composite(x1, x2, p, eps, keepdim):
    """The p-norm of the difference along the last dimension. eps keeps it from 0, where the norm has no gradient."""
    last = max(x1.dim(), x2.dim()) - 1
    return p_norm.call(add_scalar.call(x1 - x2, eps, 1), p, (last,), keepdim)


@cosine_similarity.compose
def cosine_similarity_composite(x1, x2, dim, eps):
    """The dot product of both, each divided by its norm first: more exact than one division at the end."""
    common = result_type(x1, x2)
    if not (common.is_floating_point or common.is_complex):
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {SCALAR_TYPE_NAMES[common]}"
        )
    x1, x2 = broadcast(x1.to(common), x2.to(common))
    return at.sum((x1 / length(x1, dim, eps)) * (x2 / length(x2, dim, eps)), dim)


def broadcast(x1, x2):
    """Both broadcast to their common shape."""
    if x1._array.shape == x2._array.shape:
        return x1, x2
    shape = broadcast_shape(x1._array.shape, x2._array.shape)
    return x1.expand(shape), x2.expand(shape)


def length(x, dim, eps):
    """The Euclidean norms along `dim`, at least eps. The clamp at eps is hidden from autograd: the gradient stays."""
    result = at.linalg_vector_norm(x, 2, dim, True).clone()
    with AutoGradMode(False):
        result.clamp_min_(eps)
    return result


# ------------------------------------------------------------------------------------------------------ cdist

cdist = native_function("cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor")
_cdist_forward = native_function("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", "")
_cdist_backward = native_function(
    "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor", ""
)
_euclidean_dist = native_function("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", "")

IF_MANY_ROWS, ALWAYS = 0, 1  # values of compute_mode: when to use a matrix product for p = 2
MANY_ROWS = 25


@cdist.compose
def cdist_composite(x1, x2, p, compute_mode):
    """(*, P, M), (*, R, M) to (*, P, R): the p-norms of the differences."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    rows = max(x1.shape[-2], x2.shape[-2])
    by_product = compute_mode == ALWAYS or (compute_mode or IF_MANY_ROWS) == IF_MANY_ROWS and rows > MANY_ROWS
    if p == 2 and by_product and x1.numel() and x2.numel():
        check_cdist(x1, x2, p)
        return euclidean_by_product(x1, x2)
    return _cdist_forward.call(x1, x2, p, compute_mode)


def check_cdist(x1, x2, p):
    """Raises RuntimeError unless these are floats and p a norm."""
    for name, x in (("X1", x1), ("X2", x2)):
        if not dtype_of(x).is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {type_name(x)}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")


def euclidean_by_product(x1, x2):
    """All batches in a row, as a product of matrices wants them."""
    batch = broadcast_shape(x1.shape[:-2], x2.shape[:-2])
    count, result = math.prod(batch), (*batch, x1.shape[-2], x2.shape[-2])
    if count == 1:
        return _euclidean_dist.call(x1, x2).view(result)
    in_a_row = [x.expand(*batch, *x.shape[-2:]).contiguous().view(count, *x.shape[-2:]) for x in (x1, x2)]
    return _euclidean_dist.call(*in_a_row).view(result)


@_euclidean_dist.kernel
@any_device
def _euclidean_dist_any(x1, x2):
    """√(|a|² - 2 a·b + |b|²) as one product: (-2 a, |a|², 1) · (b, 1, |b|²)."""
    with below_autograd():
        norm1, norm2 = (at.sum(x.pow(2), (-1,), True) for x in (x1, x2))
        left = at.cat([x1.mul(-2), norm1, at.ones_like(norm1)], -1)
        right = at.cat([x2, at.ones_like(norm2), norm2], -1)
        return left.matmul(right.transpose(-2, -1)).clamp_min(0).sqrt()


@_euclidean_dist.backward
class EuclideanDistBackward0:
    """The gradient of a row points along its differences to the others; where two rows are equal it is taken as 0."""

    def x1__x2(grad, x1, x2, result):
        ratio = (grad / result).masked_fill_(result == 0, 0)
        return (
            x1 * ratio.sum(-1, True) - ratio.matmul(x2),
            x2 * ratio.sum(-2, False).unsqueeze(-1) - ratio.mT.matmul(x1),
        )


def batches(x1, x2):
    """Both arrays as (batch, rows, columns) with one batch size, and the sizes of the batch dimensions."""
    batch = broadcast_shape(x1.shape[:-2], x2.shape[:-2])
    count = math.prod(batch)
    expanded = [np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(count, *x.shape[-2:]) for x in (x1, x2)]
    return *expanded, batch


@_cdist_forward.meta
def _cdist_forward_meta(x1, x2, p, compute_mode):
    check_cdist(x1, x2, p)
    (*batch1, rows1, _), (*batch2, rows2, _) = x1._array.shape, x2._array.shape
    return TensorMeta((*broadcast_shape(batch1, batch2), rows1, rows2), dtype_of(x1))


def check_cdist_types(x1, x2, kernel_name):
    """Raises what a kernel that has something to do raises for dtypes that it does not know."""
    if dtype_of(x1).itemsize == 2:
        raise not_implemented(kernel_name)(dtype_of(x1))
    if x1._array.dtype != x2._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(x1)} but found {type_name(x2)}")


@_cdist_forward.impl()
def _cdist_forward_cpu(x1, x2, p, compute_mode, out):
    a, b, _ = batches(x1._array, x2._array)
    result = out._array.reshape(len(a), a.shape[1], b.shape[1])
    result[...] = 0
    if result.size and a.shape[2]:
        check_cdist_types(x1, x2, "cdist")
        for n in range(len(a)):
            for i, row in enumerate(a[n]):
                result[n, i] = lengths(np.abs(row - b[n]), p)


@_cdist_forward.backward
class CdistBackward0:
    def x1(grad, x1, x2, p, result):
        return _cdist_backward.call(grad.contiguous(), x1, x2, p, result)

    def x2(grad, x1, x2, p, result):
        return _cdist_backward.call(grad.mT.contiguous(), x2, x1, p, result.mT.contiguous())


@_cdist_backward.meta
def _cdist_backward_meta(grad, x1, x2, p, cdist):
    batch = broadcast_shape(x1._array.shape[:-2], x2._array.shape[:-2])
    return TensorMeta((*batch, *x1._array.shape[-2:]), dtype_of(x1))


@_cdist_backward.impl()
def _cdist_backward_cpu(grad, x1, x2, p, cdist, out):
    """Each row of x1 gets the gradient of the norm of its difference to every row of x2."""
    a, b, _ = batches(x1._array, x2._array)
    g, distances = (t._array.reshape(len(a), a.shape[1], b.shape[1]) for t in (grad, cdist))
    result = out._array.reshape(a.shape)
    result[...] = 0
    if p != 0 and a.size and b.size:
        for n in range(len(a)):
            for i, row in enumerate(a[n]):
                result[n, i] = g[n, i] @ slopes(row - b[n], distances[n, i][:, None], p)


@_cdist_backward.backward
class CdistBackwardBackward0:
    def grad():
        raise NotImplementedError("the derivative for '_cdist_backward' is not implemented.")

    x1 = x2 = cdist = grad


# ------------------------------------------------------------------------------------------------------ pdist

pdist = native_function("pdist(Tensor self, float p=2) -> Tensor")
_pdist_forward = native_function("_pdist_forward(Tensor self, float p=2) -> Tensor", "")
_pdist_backward = native_function("_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor", "")


@pdist.compose
def pdist_composite(self, p):
    """(N, D) to (N (N-1) / 2): the p-norms of row 0 - row 1, row 0 - row 2, … row 1 - row 2, …"""
    if self.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.dim()}D")
    if not dtype_of(self).is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pdist_forward.call(self.contiguous(), p)


def differences(x):
    """For each row but the last: where its distances stand, and its differences to all rows after it."""
    start = 0
    for i in range(len(x) - 1):
        count = len(x) - 1 - i
        yield i, slice(start, start + count), x[i] - x[i + 1 :]
        start += count


@_pdist_forward.meta
def pdist_forward_meta(self, p):
    n = self._array.shape[0]
    return TensorMeta((n * (n - 1) // 2,), dtype_of(self))


@_pdist_forward.impl()
def pdist_forward_cpu(self, p, out):
    x = self._array
    if x.dtype.name not in ("float32", "float64"):
        raise not_implemented("pdist")(dtype_of(self))
    out._array[...] = 0
    if x.size:
        for _, place, difference in differences(x):
            out._array[place] = lengths(np.abs(difference), p)


def lengths(sizes, p):
    """The p-norm of each row of non-negative numbers."""
    if p == 0:
        return np.count_nonzero(sizes, 1)
    if p == math.inf:
        return sizes.max(1)
    if p in (1, 2):
        return sizes.sum(1) if p == 1 else np.sqrt(np.einsum("ij,ij->i", sizes, sizes))
    return (sizes**p).sum(1) ** (1 / p)


@_pdist_forward.backward
class PdistBackward0:
    def self(grad, self, p, result):
        return _pdist_backward.call(grad, self, p, result)


@_pdist_backward.meta
def pdist_backward_meta(grad, self, p, pdist):
    return TensorMeta(self._array.shape, dtype_of(self))


@_pdist_backward.impl()
def pdist_backward_cpu(grad, self, p, pdist, out):
    """Each pair adds the norm's gradient to its first row, and subtracts it from its second."""
    x, g, distances, result = self._array, grad._array, pdist._array, out._array
    result[...] = 0
    if p == 0 or not x.size:
        return
    for i, place, difference in differences(x):
        pull = slopes(difference, distances[place][:, None], p) * g[place][:, None]
        result[i] += pull.sum(0)
        result[i + 1 :] -= pull


def slopes(difference, length, p):
    """The derivative of the p-norm by each element; 0 where the rows are equal, and where an element is 0."""
    if p == 1:
        return np.sign(difference)
    if p == math.inf:
        return np.sign(difference) * (np.abs(difference) == length)
    if p == 2:
        slope = difference / length
    else:
        slope = np.sign(difference) * (np.abs(difference) / length) ** (p - 1)
    return np.where((length == 0) | (difference == 0), 0, slope).astype(difference.dtype, copy=False)


@_pdist_backward.backward
class PdistBackwardBackward0:
    def grad():
        raise NotImplementedError("the derivative for '_pdist_backward' is not implemented.")

    self = pdist = grad
