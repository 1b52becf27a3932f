"""glu: one half of the features opens and closes a gate for the other half.

In PyTorch: `aten/src/ATen/native/GatedLinearUnit.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta, pointwise_strides
from readtorch.aten.tensor_utils import check_broadcasts
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import dtype_of, wrap_result
from readtorch.c10.wrap_dim import wrap_dim

from .activation import sigmoid_array
from .tensor_iterator import cast, compute, not_implemented

glu = native_function("glu(Tensor self, int dim=-1) -> Tensor", module="nn", out=True, direct=True)
glu_backward = native_function("glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", module="nn")


def halves(array, dim):
    dim = wrap_dim(dim, array.ndim)
    if array.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {array.shape[dim]}")
    return np.split(array, 2, dim)


@glu.meta
def glu_meta(self, dim):
    if self._array.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    half = halves(self._array, dim)[0]
    return TensorMeta(half.shape, dtype_of(self), pointwise_strides(half.shape, [half]))


@glu.kernel
def glu_cpu(self, dim):
    if self._array.ndim == 0:
        return glu_meta(self, dim)
    if not dtype_of(self).is_floating_point:
        raise not_implemented("glu_cpu")(dtype_of(self))
    return wrap_result(compute(lambda a, b: a * sigmoid_array(b), halves(self._array, dim), dtype_of(self)))


@glu_backward.meta
def glu_backward_meta(grad_output, self, dim):
    check_broadcasts(grad_output, halves(self._array, dim)[0].shape)
    return TensorMeta(self._array.shape, dtype_of(self))


@glu_backward.impl()
def glu_backward_cpu(grad_output, self, dim, out):
    wide = op_math_type(dtype_of(self)).numpy
    g, (a, b) = cast(grad_output._array, wide), halves(cast(self._array, wide), dim)
    to_a, to_b = halves(out._array, dim)
    s = sigmoid_array(b)
    to_a[...] = g * s
    to_b[...] = g * a * s * (1 - s)


@glu.backward
class GluBackward0:
    def self(grad, self, dim):
        return glu_backward.call(grad, self, dim)

    def result(self_p, self_t, result, dim):
        s, (a_t, b_t) = self_p.chunk(2, dim)[1].sigmoid(), self_t.chunk(2, dim)
        return a_t * s + result * (1 - s) * b_t


@glu_backward.backward
class GluBackwardBackward0:
    def grad_output(grad, self, dim):
        a, b = self.chunk(2, dim)
        to_a, to_b = grad.chunk(2, dim)
        s = b.sigmoid()
        return to_a * s + to_b * a * s * (1 - s)

    def self(grad, grad_output, self, dim):
        a, b = self.chunk(2, dim)
        to_a, to_b = grad.chunk(2, dim)
        s = b.sigmoid()
        slope = s * (1 - s)
        return at.cat([to_b * grad_output * slope, grad_output * slope * (to_a + to_b * a * (1 - 2 * s))], dim)

    def result(grad_output_p, grad_output_t, self_p, self_t, dim):
        """The gradient is (g s, g a s (1 - s)), where s = sigmoid(b)."""
        (a, b), (a_t, b_t) = self_p.chunk(2, dim), self_t.chunk(2, dim)
        g, g_t, s = grad_output_p, grad_output_t, b.sigmoid()
        slope = s * (1 - s)
        s_t = slope * b_t
        return at.cat([g_t * s + g * s_t, (g_t * a + g * a_t) * slope + g * a * s_t * (1 - 2 * s)], dim)
