"""Layer normalization.

In PyTorch: `aten/src/ATen/native/layer_norm.cpp` and `cpu/layer_norm_kernel.cpp`.
Explained in the chapter "Layers".
"""
import numpy as np

from ...c10.tensor_impl import dtype_of, wrap
from ..native_function import native_function
from .tensor_iterator import WIDENED, cast, not_implemented

layer_norm = native_function(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
    "eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor")
native_layer_norm = native_function(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)")
native_layer_norm_backward = native_function(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
    "Tensor rstd, Tensor? weight, "
    "Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")


@layer_norm.compose
def layer_norm_composite(input, normalized_shape, weight, bias, eps, cudnn_enable):
    return native_layer_norm.call(input, normalized_shape, weight, bias, eps)[0]


def check(input, normalized_shape, weight, bias):
    shape, normalized = input._array.shape, tuple(normalized_shape)
    if not normalized:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
                           "least one element, but got "
                           "normalized_shape = []")
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t._array.shape != normalized:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of "
                               f"shape "
                               f"{list(t._array.shape)} and normalized_shape = {list(normalized)}")
    if shape[len(shape) - len(normalized):] != normalized:
        expected = "".join(f", {n}" for n in normalized)
        raise RuntimeError(f"Given normalized_shape={list(normalized)}, expected input with shape "
                           f"[*{expected}], but got input of "
                           f"size{list(shape)}")
    if not dtype_of(input).is_floating_point:
        raise not_implemented("LayerNormKernelImpl")(dtype_of(input))


def as_rows(input, normalized_shape):
    """`input` as a matrix whose rows are what is normalized, in the type to compute in; and the sizes of the
    statistics."""
    x = input._array
    axis = x.ndim - len(normalized_shape)
    width = int(np.prod(normalized_shape))
    rows = cast(x, WIDENED.get(x.dtype, x.dtype)).reshape(-1 if width else 0, width)
    return rows, x.shape[:axis] + (1,) * len(normalized_shape)


@native_layer_norm.kernel
def native_layer_norm_cpu(input, normalized_shape, weight, bias, eps):
    """Each row minus its mean, over its standard deviation; then scaled and shifted. Mean and 1/deviation are
    kept."""
    check(input, normalized_shape, weight, bias)
    x, statistics = as_rows(input, normalized_shape)
    mean = x.mean(1, keepdims=True)
    y = x - mean
    rstd = 1 / np.sqrt(np.einsum("ij,ij->i", y, y)[:, None] / x.dtype.type(x.shape[1]) + x.dtype.type(eps))
    y *= rstd
    if weight is not None:
        y *= weight._array.reshape(-1).astype(y.dtype, copy=False)
    if bias is not None:
        y += bias._array.reshape(-1).astype(y.dtype, copy=False)
    kept = (
        x.dtype
        if weight is None
        else cast(weight._array, WIDENED.get(weight._array.dtype, weight._array.dtype)).dtype
    )
    stats_type = input._array.dtype if weight is None or weight._array.dtype == input._array.dtype else kept
    return (
        wrap(cast(y.reshape(input._array.shape), input._array.dtype)),
        wrap(cast(mean.reshape(statistics), stats_type)),
        wrap(cast(rstd.reshape(statistics), stats_type)),
    )


@native_layer_norm.backward
class NativeLayerNormBackward0:
    def input__weight__bias(grad, input, normalized_shape, result1, result2, weight, bias, grad_input_mask):
        return native_layer_norm_backward.call(
            grad, input, normalized_shape, result1, result2, weight, bias, grad_input_mask
        )


def without_projections(v, xhat, mean):
    """v without its component along (1, …, 1) and along xhat: what survives subtracting the mean and fixing
    the length."""
    return v - mean(v) - xhat * mean(v * xhat)


@native_layer_norm_backward.kernel
def native_layer_norm_backward_cpu(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    x, _ = as_rows(input, normalized_shape)
    dy = cast(grad_out._array, x.dtype).reshape(x.shape)
    r = cast(rstd._array, x.dtype).reshape(-1, 1)
    xhat = (x - cast(mean._array, x.dtype).reshape(-1, 1)) * r
    dx = dw = db = None
    if output_mask[0]:
        g = dy if weight is None else dy * weight._array.reshape(-1).astype(x.dtype, copy=False)
        dx = r * without_projections(g, xhat, lambda v: v.mean(1, keepdims=True))
        dx = wrap(cast(dx.reshape(input._array.shape), input._array.dtype))
    if output_mask[1]:
        dw = wrap(cast(np.einsum("ij,ij->j", dy, xhat).reshape(normalized_shape), weight._array.dtype))
    if output_mask[2]:
        db = wrap(cast(dy.sum(0).reshape(normalized_shape), bias._array.dtype))
    return dx, dw, db


@native_layer_norm_backward.backward
class NativeLayerNormBackwardBackward0:
    """With P v = rstd · (v without its projections), backward is dx = P(dy·w), dw = Σ dy·x̂, db = Σ dy. P is
    its own transpose."""

    def grad_out__input__weight(
        grads, grad_out, input, normalized_shape, mean, rstd, weight, grad_input_mask
    ):
        to_dx, to_dw, to_db = grads
        dims = list(range(-len(normalized_shape), 0))
        rows = list(range(input.dim() - len(normalized_shape)))
        row_mean = lambda v: v.mean(dims, True)  # noqa: E731
        xhat = (input - mean) * rstd
        project = lambda v: rstd * without_projections(v, xhat, row_mean)  # noqa: E731
        scale = (lambda v: v) if weight is None else (lambda v: v * weight)
        for_dy = for_input = for_weight = None
        if to_dx is not None:
            a, g = to_dx, scale(grad_out)
            for_dy = scale(project(a))
            c, d = row_mean(g * xhat), row_mean(a * xhat)
            agreement = row_mean(a * g) - row_mean(a) * row_mean(g) - c * d
            for_input = -project(rstd * (g * d + a * c)) - rstd * rstd * xhat * agreement
            if weight is not None:
                for_weight = (grad_out * project(a)).sum(rows) if rows else grad_out * project(a)
        if to_dw is not None:
            for_dy = plus(for_dy, xhat * to_dw)
            for_input = plus(for_input, project(to_dw * grad_out))
        if to_db is not None:
            for_dy = plus(for_dy, to_db.expand(grad_out.shape))
        return for_dy, for_input, for_weight


def plus(a, b):
    return b if a is None else a + b
