"""Operators whose kernels are a few others in a row: traces, counts, membership, fills by index, activations with
a threshold, sums without nans.

In PyTorch: kernels of their own, in `aten/src/ATen/native/cuda/{Activation*Kernel,UnfoldBackwardKernel,IndexKernel,
UnaryOpsKernel}.cu`: one launch, where here there are several.
"""

import math

import ml_dtypes

from .....c10.scalar_type import BOOL, FLOAT
from .....c10.tensor_impl import dtype_of
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from .copies import clone_cuda
from .factories import filled
from .pointwise import operator_named
from .registration import cuda_kernel, empty, write_back


@cuda_kernel(operator_named("unfold_backward"))
def unfold_backward_cuda(grad_in, input_sizes, dim, size, step):
    """Windows may overlap: their elements are added one place of the window after the other."""
    result = filled(empty(input_sizes, grad_in._array.dtype), 0)
    dim = wrap_dim(dim, len(input_sizes))
    count = grad_in._array.shape[dim]
    for k in range(size):
        seen = at.slice(result, dim, k, k + (count - 1) * step + 1, step)
        seen.add_(grad_in.select(-1, k))
    return result


@cuda_kernel(operator_named("bitwise_not"))
def bitwise_not_cuda(self):
    return at.logical_not(self) if dtype_of(self).category == BOOL else -1 - self


@cuda_kernel(operator_named("trace"))
def trace_cuda(self):
    if self._array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self._array.ndim}")
    return self.diagonal().sum()


@cuda_kernel(operator_named("count_nonzero"), operator_named("count_nonzero.dim_IntList"))
def count_nonzero_cuda(self, dim):
    return at.ne(self, 0).sum(dim)


@cuda_kernel(operator_named("isin.Tensor_Tensor"))
def isin_cuda(elements, test_elements, assume_unique, invert):
    """Everything is compared with everything."""
    found = at.eq(elements.unsqueeze(-1), test_elements.reshape(-1)).any(-1)
    return at.logical_not(found) if invert else found


@cuda_kernel(operator_named("isin.Tensor_Scalar"))
def isin_number_cuda(elements, test_element, assume_unique, invert):
    return at.ne(elements, test_element) if invert else at.eq(elements, test_element)


@cuda_kernel(operator_named("isin.Scalar_Tensor"))
def is_number_in_cuda(element, test_elements, assume_unique, invert):
    found = at.eq(test_elements, element).any()
    return at.logical_not(found) if invert else found


@cuda_kernel(operator_named("nan_to_num"))
def nan_to_num_cuda(self, nan, posinf, neginf):
    if dtype_of(self).category < FLOAT:
        return clone_cuda(self, None)
    most = float(ml_dtypes.finfo(self._array.dtype).max)
    self = at.where(self != self, 0.0 if nan is None else nan, self)
    self = at.where(self == math.inf, most if posinf is None else posinf, self)
    return at.where(self == -math.inf, -most if neginf is None else neginf, self)


@cuda_kernel(operator_named("threshold"))
def threshold_cuda(self, threshold, value):
    return at.where(self <= threshold, value, self)


@cuda_kernel(operator_named("threshold_"))
def threshold_cuda_(self, threshold, value):
    return write_back(self, threshold_cuda(self, threshold, value))


@cuda_kernel(operator_named("nansum"))
def nansum_cuda(self, dim, keepdim, dtype):
    if dtype_of(self).is_complex:
        raise RuntimeError("nansum does not support complex inputs")
    numbers = self if dtype_of(self).category < FLOAT else at.where(self != self, 0.0, self)
    return at.sum(numbers, dim, keepdim, dtype=dtype)


@cuda_kernel(operator_named("hardshrink"))
def hardshrink_cuda(self, lambd):
    return self.masked_fill(self.abs() <= lambd, 0)


@cuda_kernel(operator_named("softshrink"))
def softshrink_cuda(self, lambd):
    return self - self.clamp(-lambd, lambd)


@cuda_kernel(operator_named("hardshrink_backward"), operator_named("softshrink_backward"))
def shrink_backward_cuda(grad, self, lambd):
    return grad.masked_fill(self.abs() <= lambd, 0)
