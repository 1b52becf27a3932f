"""y = x Wᵀ + b.

In PyTorch: `aten/src/ATen/native/Linear.cpp`. Explained in the chapter "One training step, end to end".
"""
import math

from ...c10.tensor_impl import wrap
from ..functions import at
from ..native_function import native_function, write_out
from .blas import add_to_bias, addmm
from .exact_out import expected_dtype
from .linear_algebra import matmul
from .tensor_iterator import F4
from .views import t

linear = native_function("linear(Tensor input, Tensor weight, Tensor? bias=None) -> "
                         "Tensor", module="nn", out=True, direct=True)


@linear.compose
def linear_composite(input, weight, bias):
    """With a bias one fused addmm, over the input's leading dimensions flattened into rows where that is
    free."""
    array = input._array
    if bias is None:
        return matmul.call(input, t.call(weight))
    if array.ndim == 2:
        return addmm.call(bias, input, t.call(weight), 1, 1)
    if bias._array.ndim == 1 and array.ndim and array.flags.c_contiguous:
        rows = addmm.call(
            bias, input.view((math.prod(array.shape[:-1]), array.shape[-1])), t.call(weight), 1, 1
        )
        return rows.view((*array.shape[:-1], rows._array.shape[1]))
    return at.add(matmul.call(input, t.call(weight)), bias)


@linear.kernel
def linear_cpu(input, weight, bias):
    """The common case without a graph: no view of the weight needs to be made known to autograd."""
    x, w = input._array, weight._array
    if bias is not None and x.ndim == 2 == w.ndim and x.dtype is F4 is w.dtype and bias._array.dtype is F4:
        result = add_to_bias(bias._array, x, w.T)
        if result is not None:
            return wrap(result)
    return linear_composite(input, weight, bias)


@linear.out.kernel
def linear_out(input, weight, bias, out):
    """Into memory that is there: the bias is added in a second step, but for matrices."""
    if bias is None or input._array.ndim == 2:
        result = linear.call(input, weight, bias)
    else:
        result = at.add(matmul.call(input, t.call(weight)), bias)
    if out._array.dtype != result._array.dtype:
        raise RuntimeError(expected_dtype(out, result))
    return write_out(result, (out,))
