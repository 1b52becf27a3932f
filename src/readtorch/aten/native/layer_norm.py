"""Layer normalization: each row of the last dimensions by itself; and root mean square normalization, without the mean.

In PyTorch: `aten/src/ATen/native/layer_norm.cpp` and `aten/src/ATen/native/cpu/layer_norm_kernel.cpp`.
Explained in the chapter on normalization.
"""

import functools
import math

import numpy as np

from readtorch.aten.native_function import below_autograd, native_function, packets, python_binding
from readtorch.aten.parallel import parallel_for
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.exception import warn_once
from readtorch.c10.memory_format import contiguous_format, suggested_format
from readtorch.c10.scalar_type import C_TYPE_NAMES, op_math_type
from readtorch.c10.tensor_impl import dtype_of, wrap

from .binary_ops.arithmetic import add_scalar
from .normalization import (
    PIECE,
    SecondDerivative,
    Tangents,
    are_plain,
    filled,
    followed_statistics,
    loops_serve,
    statistics_type,
    without_projections,
)
from .tensor_iterator import WIDENED, cast, not_implemented

layer_norm = native_function(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool cudnn_enable=True) -> Tensor"
)
native_layer_norm = native_function(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)"
)
native_layer_norm_backward = native_function(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
    "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
)


parse_layer_norm = make_parser(packets["torch", "layer_norm"], is_method=False)


@python_binding("layer_norm", "function")
def layer_norm_binding(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """Normalize over the last dimensions, whose sizes are `normalized_shape`."""
    if are_plain(input, weight, bias, normalized_shape, eps):
        return layer_norm.call(input, normalized_shape, weight, bias, eps, cudnn_enable)
    return parse_layer_norm((input, normalized_shape, weight, bias, eps, cudnn_enable), {})


@layer_norm.compose
def layer_norm_composite(input, normalized_shape, weight, bias, eps, cudnn_enable):
    return native_layer_norm.call(input, normalized_shape, weight, bias, eps)[0]


def check_is_shape(normalized):
    if not normalized:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
            "least one element, but got normalized_shape = []"
        )


def check_parameter(name, parameter, normalized):
    if parameter is not None and parameter._array.shape != normalized:
        raise RuntimeError(
            f"Expected {name} to be of same shape as normalized_shape, but got {name} of "
            f"shape {list(parameter._array.shape)} and normalized_shape = {list(normalized)}"
        )


def check_layer_norm(input, normalized, weight, bias):
    check_is_shape(normalized)
    check_parameter("weight", weight, normalized)
    check_parameter("bias", bias, normalized)
    shape = input._array.shape
    if shape[len(shape) - len(normalized) :] != normalized:
        expected = "".join(f", {n}" for n in normalized)
        raise RuntimeError(
            f"Given normalized_shape={list(normalized)}, expected input with shape "
            f"[*{expected}], but got input of size{list(shape)}"
        )


def sizes_of_statistics(input, normalized):
    """One number for each row: the normalized dimensions have size 1."""
    shape = input._array.shape
    return shape[: len(shape) - len(normalized)] + (1,) * len(normalized)


@native_layer_norm.meta
def native_layer_norm_meta(input, normalized_shape, weight, bias, eps):
    """The result, and the mean and 1 / deviation of each row."""
    normalized, kept = tuple(normalized_shape), statistics_type(input, weight, bias)
    check_layer_norm(input, normalized, weight, bias)
    saved = TensorMeta(sizes_of_statistics(input, normalized), kept)
    return TensorMeta(input._array.shape, dtype_of(input)), saved, saved


def check_dtype(input):
    if not dtype_of(input).is_floating_point:
        raise not_implemented("LayerNormKernelImpl")(dtype_of(input))


def as_rows(x, normalized_shape):
    """`x` as a matrix whose rows are what is normalized, in the type to compute in."""
    rows = math.prod(x.shape[: x.ndim - len(normalized_shape)])
    matrix = cast(x, WIDENED.get(x.dtype, x.dtype)).reshape(rows, math.prod(normalized_shape))
    return np.ascontiguousarray(matrix)


@native_layer_norm.kernel
def native_layer_norm_cpu(input, normalized_shape, weight, bias, eps):
    normalized, kept = tuple(normalized_shape), statistics_type(input, weight, bias).numpy
    check_layer_norm(input, normalized, weight, bias)
    check_dtype(input)
    x = as_rows(input._array, normalized)
    w, b = (None if t is None else cast(t._array, x.dtype) for t in (weight, bias))
    compute = layer_norm_by_loops if loops_serve(x, w, b) else layer_norm_by_numpy
    y, mean, rstd = compute(x, w, b, eps)
    sizes = sizes_of_statistics(input, normalized)
    return (
        wrap(cast(y, input._array.dtype).reshape(input._array.shape)),
        wrap(cast(mean, kept).reshape(sizes)),
        wrap(cast(rstd, kept).reshape(sizes)),
    )


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import layer_norm_kernel

    return layer_norm_kernel


def grain(x):
    """How many rows of `x` are work enough for a thread."""
    return max(1, PIECE // x.shape[1])


def layer_norm_by_loops(x, weight, bias, eps):
    rows, width = x.shape
    weight, bias = filled(weight, 1, x, width), filled(bias, 0, x, width)
    y, mean, rstd = np.empty_like(x), *np.empty((2, rows), x.dtype)
    arguments = x, weight, bias, float(eps), y, mean, rstd
    parallel_for(0, rows, grain(x), lambda begin, end: loops().layer_norm(*arguments, begin, end))
    return y, mean, rstd


def layer_norm_by_numpy(x, weight, bias, eps):
    y, mean, rstd = normalize_rows(x, eps)
    if weight is not None:
        y *= weight.reshape(-1)
    if bias is not None:
        y += bias.reshape(-1)
    return y, mean, rstd


def normalize_rows(x, eps):
    """Each row of a matrix minus its mean, over its standard deviation; the mean; 1 / deviation."""
    if not x.shape[1]:
        return x, np.zeros((x.shape[0], 1), x.dtype), np.full((x.shape[0], 1), np.nan, x.dtype)
    mean = x.mean(1, keepdims=True)
    y = x - mean
    variance = np.einsum("ij,ij->i", y, y)[:, None] / x.dtype.type(x.shape[1])
    rstd = 1 / np.sqrt(variance + x.dtype.type(eps))
    y *= rstd
    return y, mean, rstd


@native_layer_norm.backward
class NativeLayerNormBackward0:
    output_differentiability = [True, False, False]

    def input__weight__bias(grad, input, normalized_shape, result1, result2, weight, bias, grad_input_mask):
        return native_layer_norm_backward.call(
            grad, input, normalized_shape, result1, result2, weight, bias, grad_input_mask
        )

    def result0(input_p, input_t, normalized_shape, weight_p, weight_t, bias_t, result1, result2):
        over = list(range(-len(normalized_shape), 0))
        return Tangents(input_p, input_t, result1, result2, over).of_result(weight_p, weight_t, bias_t)


@native_layer_norm_backward.meta
def native_layer_norm_backward_meta(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    features = tuple(normalized_shape)
    outputs = ((input, input._array.shape), (weight, features), (bias, features))
    return tuple([TensorMeta(shape, dtype_of(t)) if asked else None for (t, shape), asked in zip(outputs, output_mask)])


@native_layer_norm_backward.kernel
def native_layer_norm_backward_cpu(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    x = as_rows(input._array, normalized_shape)
    dy = cast(grad_out._array, x.dtype).reshape(x.shape)
    m, r = (cast(t._array, x.dtype).reshape(-1) for t in (mean, rstd))
    w = None if weight is None else cast(weight._array, x.dtype)
    compute = backward_by_loops if loops_serve(x, w) else backward_by_numpy
    dx, dw, db = compute(dy, x, w, m, r, output_mask[0])
    if dx is not None:
        dx = wrap(cast(dx, input._array.dtype).reshape(input._array.shape))
    if output_mask[1]:
        dw = wrap(cast(dw, weight._array.dtype).reshape(normalized_shape))
    if output_mask[2]:
        db = wrap(cast(db, bias._array.dtype).reshape(normalized_shape))
    return dx, dw if output_mask[1] else None, db if output_mask[2] else None


def backward_by_loops(dy, x, weight, mean, rstd, wants_dx):
    """The gradients of x (if wanted), weight and bias. The last two are sums of what each piece of rows gives."""
    dy = np.ascontiguousarray(dy)
    weight = filled(weight, 1, x, x.shape[1])
    dx = np.empty_like(x if wants_dx else x[:0])
    sums = {}

    def piece(begin, end):
        sums[begin] = loops().layer_norm_backward(dy, x, weight, mean, rstd, dx, begin, end)

    parallel_for(0, x.shape[0], grain(x), piece)
    dw, db = (sum([sums[begin][i] for begin in sorted(sums)]) for i in (0, 1))
    return dx if wants_dx else None, dw, db


def backward_by_numpy(dy, x, weight, mean, rstd, wants_dx):
    """The same. See Note [ Normalizations ]."""
    if not x.size:
        return (x if wants_dx else None), *np.zeros((2, x.shape[1]), x.dtype)
    xhat = (x - mean[:, None]) * rstd[:, None]
    dx = None
    if wants_dx:
        g = dy if weight is None else dy * weight.reshape(-1)
        dx = rstd[:, None] * without_projections(g, xhat, lambda v: v.mean(1, keepdims=True))
    return dx, np.einsum("ij,ij->j", dy, xhat), dy.sum(0)


@native_layer_norm_backward.backward
class NativeLayerNormBackwardBackward0:
    def grad_out__input__weight(grads, grad_out, input, normalized_shape, mean, rstd, weight):
        features = list(range(-len(normalized_shape), 0))
        rows = list(range(input.dim() - len(normalized_shape)))
        return SecondDerivative(grad_out, input, mean, rstd, weight, features, rows).gradients(*grads)

    def result0__result1__result2(
        grad_out_p, grad_out_t, input_p, input_t, normalized_shape, mean, rstd, weight_p, weight_t, output_mask
    ):
        over = list(range(-len(normalized_shape), 0))
        rows = list(range(input_p.dim() - len(normalized_shape)))
        statistics = followed_statistics(input_p, rstd, over)
        tangents = Tangents(input_p, input_t, *statistics, over).of_backward(
            grad_out_p, grad_out_t, weight_p, weight_t, rows
        )
        return tuple([t if asked else None for t, asked in zip(tangents, output_mask)])


# --------------------------------------------------------------------------------------------------- rms_norm

rms_norm = native_function(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor"
)
_fused_rms_norm = native_function(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)"
)


parse_rms_norm = make_parser(packets["torch", "rms_norm"], is_method=False)


@python_binding("rms_norm", "function")
def rms_norm_binding(input, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last dimensions, whose sizes are `normalized_shape`."""
    if are_plain(input, weight, None, normalized_shape, 0.0 if eps is None else eps):
        return rms_norm.call(input, normalized_shape, weight, eps)
    return parse_rms_norm((input, normalized_shape, weight, eps), {})


def check_rms_norm(input, normalized, weight):
    check_is_shape(normalized)
    check_parameter("weight", weight, normalized)
    shape = input._array.shape
    if len(shape) < len(normalized):
        raise ValueError(f"Input tensor must have at least {len(normalized)} dimensions, but got {len(shape)}")
    if shape[len(shape) - len(normalized) :] != normalized:
        raise RuntimeError(
            f"Given normalized_shape={list(normalized)}, expected input with shape "
            f"[*{', '.join(map(str, normalized))}], but got input of size{list(shape)}"
        )


def warn_of_mixture(input_type, weight_type):
    """PyTorch's kernel for GPUs cannot mix types; the warning comes here as well."""
    warn_once(
        f"Mismatch dtype between input and weight: input dtype = {input_type}, weight dtype = "
        f"{weight_type}, Cannot dispatch to fused implementation.",
        stacklevel=4,
    )


def are_mixed(input, weight):
    return weight is not None and weight._array.dtype is not input._array.dtype


@rms_norm.compose
def rms_norm_composite(input, normalized_shape, weight, eps):
    check_rms_norm(input, tuple(normalized_shape), weight)
    if are_mixed(input, weight) and not dtype_of(input).is_complex:
        warn_of_mixture(*[C_TYPE_NAMES[dtype_of(t)] for t in (input, weight)])
    return _fused_rms_norm.call(input, normalized_shape, weight, eps)[0]


def machine_epsilon(wide):
    """What stands for `eps=None`: the distance from 1 to the next number of the type that is computed in."""
    return float(np.finfo(wide.to_real().numpy).eps)


@_fused_rms_norm.compose
def fused_rms_norm_composite(input, normalized_shape, weight, eps):
    """x · rsqrt(mean of x² + eps) · weight, and the second factor.

    # in PyTorch: a kernel on GPUs only. On the CPU the graph shows these steps.
    """
    kind = dtype_of(input)
    if not (kind.is_floating_point or kind.is_complex):
        raise not_implemented("rms_norm")(kind)
    wide = op_math_type(kind)
    x = input.to(wide)
    dims = [x.dim() - 1 - i for i in range(len(normalized_shape))]
    mean_square = x.pow(2).mean(dims, keepdim=True)
    rrms = add_scalar.call(mean_square, machine_epsilon(wide) if eps is None else eps, 1).rsqrt()
    result = x.mul(rrms)
    if weight is not None:
        result = result.mul(weight)
    if has_channels_last(input):
        return result.type_as(input), rrms
    return result.contiguous().type_as(input), rrms.contiguous()


def has_channels_last(t):
    """in PyTorch: such a result stays as it is, any other lies row by row."""
    return not t._array.flags.c_contiguous and suggested_format(t._array) is not contiguous_format


@rms_norm.kernel
def rms_norm_cpu(input, normalized_shape, weight, eps):
    """The same in one go, for calls of which no graph is kept."""
    if not dtype_of(input).is_floating_point or are_mixed(input, weight) or has_channels_last(input):
        with below_autograd():
            return rms_norm_composite(input, normalized_shape, weight, eps)
    normalized = tuple(normalized_shape)
    check_rms_norm(input, normalized, weight)
    x = as_rows(input._array, normalized)
    eps = machine_epsilon(op_math_type(dtype_of(input))) if eps is None else eps
    w = None if weight is None else cast(weight._array, x.dtype)
    y = (rms_norm_by_loops if loops_serve(x, w) else rms_norm_by_numpy)(x, w, eps)
    return wrap(cast(y, input._array.dtype).reshape(input._array.shape))


def rms_norm_by_loops(x, weight, eps):
    x, y = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    weight = filled(weight, 1, x, x.shape[1])
    parallel_for(0, x.shape[0], grain(x), lambda begin, end: loops().rms_norm(x, weight, float(eps), y, begin, end))
    return y


def rms_norm_by_numpy(x, weight, eps):
    mean_square = np.einsum("ij,ij->i", x, x)[:, None] / x.dtype.type(x.shape[1])
    y = x * (1 / np.sqrt(mean_square + x.dtype.type(eps)))
    return y if weight is None else y * weight.reshape(-1)
