"""Weight normalization: a weight as a direction v and a length g for each of its slices, w = g v / |v|.

T. Salimans, D. Kingma: Weight normalization (2016). In PyTorch: `aten/src/ATen/native/WeightNorm.cpp` and
`cpu/WeightNormKernel.cpp`.
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, op_math_type
from readtorch.c10.tensor_impl import dtype_of, wrap

from .linear_algebra.norm import p_norm, p_norm_of_all
from .tensor_iterator import WIDENED, cast, not_implemented

norm_except_dim = native_function("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor")
weight_norm = native_function("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor")
weight_norm_interface = native_function("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)")
weight_norm_interface_backward = native_function(
    "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, "
    "int dim) -> (Tensor, Tensor)"
)


@norm_except_dim.compose
def norm_except_dim_composite(v, pow, dim):
    """The norms of the slices along `dim`, kept as sizes of 1 elsewhere; of everything if dim is -1."""
    shape = v.shape
    if dim == -1:
        return p_norm_of_all.call(v, pow)
    if dim == 0:
        rows = v.contiguous().view((shape[0], -1))
        return p_norm.call(rows, pow, (1,), False).view((shape[0], *[1] * (len(shape) - 1)))
    if dim == len(shape) - 1:
        columns = v.contiguous().view((-1, shape[-1]))
        return p_norm.call(columns, pow, (0,), False).view((*[1] * dim, shape[-1]))
    return norm_except_dim.call(v.transpose(0, dim), pow, 0).transpose(0, dim)


@weight_norm.compose
def weight_norm_composite(v, g, dim):
    """The first and the last dimension have a kernel; for another one the graph shows the pieces."""
    v, g = v.contiguous(), g.contiguous()
    if dim in (0, v.dim() - 1):
        return weight_norm_interface.call(v, g, dim)[0]
    return v * (g / norm_except_dim.call(v, 2, dim))


def check_types(v, g):
    kind = dtype_of(v)
    if not kind.is_floating_point:
        raise not_implemented("weight_norm_kernel")(kind)
    if dtype_of(g) is not kind:
        raise RuntimeError(f"expected scalar type {SCALAR_TYPE_NAMES[kind]} but found {SCALAR_TYPE_NAMES[dtype_of(g)]}")


def widened(t):
    """The array of `t`; of a 16-bit type, in float32."""
    x = t._array
    return cast(x, WIDENED.get(x.dtype, x.dtype))


def summed_but(x, dim):
    """The sums over every dimension but `dim`, kept as sizes of 1."""
    return x.sum(tuple(axis for axis in range(x.ndim) if axis != dim), keepdims=True)


@weight_norm_interface.meta
def weight_norm_meta(v, g, dim):
    """The norms of 16-bit floats stay in float32."""
    kind = dtype_of(v)
    return TensorMeta(v._array.shape, kind), TensorMeta(g._array.shape, op_math_type(kind))


@weight_norm_interface.kernel
def weight_norm_cpu(v, g, dim):
    """(w, the norms of v's slices)."""
    check_types(v, g)
    x = widened(v)
    norms = np.sqrt(summed_but(x * x, dim))
    w = np.ascontiguousarray(x * (widened(g).reshape(norms.shape) / norms))
    return wrap(cast(w, v._array.dtype)), wrap(norms.reshape(g._array.shape))


@weight_norm_interface_backward.meta
def weight_norm_backward_meta(grad_w, saved_v, saved_g, saved_norms, dim):
    kind = dtype_of(saved_v)
    return TensorMeta(saved_v._array.shape, kind), TensorMeta(saved_g._array.shape, kind)


@weight_norm_interface_backward.kernel
def weight_norm_backward_cpu(grad_w, saved_v, saved_g, saved_norms, dim):
    gw, v, g = widened(grad_w), widened(saved_v), widened(saved_g)
    products = summed_but(gw * v, dim)
    g, norms = g.reshape(products.shape), saved_norms._array.reshape(products.shape)
    to_g = products / norms
    a = g / norms
    to_v = np.ascontiguousarray(a * gw - (a * to_g / norms) * v)
    own = saved_v._array.dtype
    return wrap(cast(to_v, own)), wrap(cast(to_g, own).reshape(saved_g._array.shape))


def differentiable_backward(grad_w, v, g, norms, dim):
    """The same in operators that have derivatives."""
    norms = norms.to(g.dtype)
    rest = math.prod(v.shape) // max(v.shape[dim], 1)
    folded, summed = ((v.shape[0], rest), 1) if dim == 0 else ((rest, v.shape[dim]), 0)
    products = (grad_w * v).view(folded).sum(summed).view(g.shape)
    return (g / norms) * (grad_w - v * (products / (norms * norms))), products / norms


@weight_norm_interface.backward
class WeightNormInterfaceBackward0:
    output_differentiability = [True, False]

    def v__g(grad, v, g, dim, result1):
        backward = differentiable_backward if grad_mode_enabled() else at._weight_norm_interface_backward
        return backward(grad.contiguous(), v, g, result1, dim)
