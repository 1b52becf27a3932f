"""y = x Wᵀ + b.

In PyTorch: `aten/src/ATen/native/Linear.cpp`. Explained in the chapter "One training step".
"""
import math

from ..functions import at
from ..native_function import native_function
from .blas import addmm, addmm_cpu
from .linear_algebra import matmul
from .views import t_cpu

linear = native_function("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", module="nn", out=True, direct=True)


@linear.compose
def linear_composite(input, weight, bias):
    """With a bias one fused addmm, over the input's leading dimensions flattened into rows where that is free."""
    array = input._array
    if bias is None:
        return matmul.call(input, weight.t())
    if array.ndim == 2:
        return addmm.call(bias, input, weight.t(), 1, 1)
    if bias._array.ndim == 1 and array.ndim and array.flags.c_contiguous:
        rows = addmm.call(bias, input.view((math.prod(array.shape[:-1]), array.shape[-1])), weight.t(), 1, 1)
        return rows.view((*array.shape[:-1], rows._array.shape[1]))
    return at.add(matmul.call(input, weight.t()), bias)


@linear.kernel
def linear_cpu(input, weight, bias):
    """The common case without a graph: no view of the weight needs to be made known to autograd."""
    if bias is not None and input._array.ndim == 2:
        return addmm_cpu(bias, input, t_cpu(weight), 1, 1)
    return linear_composite(input, weight, bias)
