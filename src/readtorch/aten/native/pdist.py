"""The distances between all pairs of rows of one matrix.

In PyTorch: `aten/src/ATen/native/Distance.cpp` (`pdist`), `cpu/DistanceOpsKernel.cpp`.
"""
import math

import numpy as np

from ...c10.tensor_impl import dtype_of, wrap
from ..native_function import native_function
from .tensor_iterator import not_implemented

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
        yield i, slice(start, start + count), x[i] - x[i + 1:]
        start += count


@_pdist_forward.kernel
def pdist_forward_cpu(self, p):
    x = self._array
    if x.dtype.name not in ("float32", "float64"):
        raise not_implemented("pdist")(dtype_of(self))
    result = np.zeros(len(x) * (len(x) - 1) // 2 if len(x) else 0, x.dtype)
    if x.size:
        for _, place, difference in differences(x):
            result[place] = lengths(np.abs(difference), p)
    return wrap(result)


def lengths(sizes, p):
    """The p-norm of each row of non-negative numbers."""
    if p == 0:
        return np.count_nonzero(sizes, 1)
    if p == math.inf:
        return sizes.max(1)
    if p in (1, 2):
        return sizes.sum(1) if p == 1 else np.sqrt(np.einsum("ij,ij->i", sizes, sizes))
    return (sizes ** p).sum(1) ** (1 / p)


@_pdist_forward.backward
class PdistBackward0:
    def self(grad, self, p, result):
        return _pdist_backward.call(grad, self, p, result)


@_pdist_backward.kernel
def pdist_backward_cpu(grad, self, p, pdist):
    """Each pair pulls its first row along the norm's slope, and pushes its second."""
    x, g, distances = self._array, grad._array, pdist._array
    result = np.zeros(x.shape, x.dtype)
    if p == 0 or not x.size:
        return wrap(result)
    for i, place, difference in differences(x):
        pull = slopes(difference, distances[place][:, None], p) * g[place][:, None]
        result[i] += pull.sum(0)
        result[i + 1:] -= pull
    return wrap(result)


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
