"""Group normalization: over the channels of one group, of one example.

In PyTorch: `aten/src/ATen/native/group_norm.cpp` and `cpu/group_norm_kernel.cpp`. Explained in the chapter on
normalization.
"""

import functools
import math

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.native_function import native_function, packets, python_binding
from readtorch.aten.parallel import parallel_for
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.tensor_meta import TensorMeta, in_format_of
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.memory_format import suggested_format
from readtorch.c10.tensor_impl import dtype_of, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .binary_ops.arithmetic import mul_scalar
from .normalization import PIECE, Tangents, are_plain, filled, in_format, layout_of, loops_serve, statistics_type
from .tensor_iterator import WIDENED, cast, not_implemented

group_norm = native_function(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
    "cudnn_enabled=True) -> Tensor"
)
native_group_norm = native_function(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, "
    "int group, float eps) -> (Tensor, Tensor, Tensor)"
)
native_group_norm_backward = native_function(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, "
    "SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
)


parse_group_norm = make_parser(packets["torch", "group_norm"], is_method=False)


@python_binding("group_norm", "function")
def group_norm_binding(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """Normalize each group of channels of each example of (N, C, *)."""
    if are_plain(input, weight, bias, (num_groups,), eps):
        return group_norm.call(input, num_groups, weight, bias, eps, cudnn_enabled)
    return parse_group_norm((input, num_groups, weight, bias, eps, cudnn_enabled), {})


def check(input, weight, bias, channels, groups):
    shape = list(input._array.shape)
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got "
            f"input of shape {shape} and num_groups={groups}"
        )
    # in PyTorch: the message about the bias gives the shape of the weight, [0] if there is none.
    given = [0] if weight is None else list(weight._array.shape)
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter._array.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in "
                f"input, but got {name} of shape {given} and input of shape {shape}"
            )


def in_own_format(t):
    """`t` without gaps: row by row, or channels last if it is that already."""
    array = t._array
    return t if array.flags.c_contiguous else t.contiguous(memory_format=suggested_format(array))


@group_norm.compose
def group_norm_composite(input, num_groups, weight, bias, eps, cudnn_enabled):
    shape = input._array.shape
    n, c = shape[0], shape[wrap_dim(1, len(shape))]
    check(input, weight, bias, c, num_groups)
    pixels = math.prod(shape[2:])
    return native_group_norm.call(in_own_format(input), weight, bias, n, c, pixels, num_groups, eps)[0]


def in_groups(x, n, groups, channels, pixels):
    """(N, groups, channels of a group, pixels), in the type to compute in."""
    return cast(x, WIDENED.get(x.dtype, x.dtype)).reshape(n, groups, channels // groups, pixels)


def by_group(parameter, x):
    """A weight or bias (C) as it stands beside `in_groups`."""
    return parameter.reshape(1, x.shape[1], x.shape[2], 1)


@native_group_norm.meta
def native_group_norm_meta(input, weight, bias, N, C, HxW, group, eps):
    """The result, and the mean and 1 / deviation of each group: (N, group)."""
    check(input, weight, bias, C, group)
    saved = TensorMeta((N, group), statistics_type(input, weight, bias))
    return in_format_of(input, input._array.shape), saved, saved


@native_group_norm.kernel
def native_group_norm_cpu(input, weight, bias, N, C, HxW, group, eps):
    check(input, weight, bias, C, group)
    kept = statistics_type(input, weight, bias).numpy
    if not dtype_of(input).is_floating_point:
        raise not_implemented("GroupNormKernelImpl")(dtype_of(input))
    if not input._array.size:
        return (
            in_format(np.empty_like(input._array), input),
            wrap(np.zeros((N, group), kept)),
            wrap(np.full((N, group), np.nan, kept)),
        )
    if input._array.ndim > 1 and layout_of(input._array) is None:
        raise RuntimeError(
            "Expected X.is_contiguous(memory_format) to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    x = in_groups(input._array, N, group, C, HxW)
    w, b = (None if t is None else cast(t._array, x.dtype) for t in (weight, bias))
    y, mean, rstd = (by_loops if loops_serve(x, w, b) else by_numpy)(x, w, b, eps)
    return in_format(y, input), wrap(cast(mean, kept).reshape(N, group)), wrap(cast(rstd, kept).reshape(N, group))


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import group_norm_kernel

    return group_norm_kernel


def share(loop, x, *arguments):
    """Run a loop over the groups of all examples, by some threads. x: (N · groups, channels, pixels)."""
    groups = x.shape[0]
    parallel_for(0, groups, max(1, PIECE * groups // x.size), lambda begin, end: loop(*arguments, begin, end))


def by_loops(x, weight, bias, eps):
    n, groups, channels, pixels = x.shape
    x = np.ascontiguousarray(x).reshape(n * groups, channels, pixels)
    weight, bias = (
        filled(p, number, x, groups * channels).reshape(groups, channels) for p, number in ((weight, 1), (bias, 0))
    )
    y, mean, rstd = np.empty_like(x), *np.empty((2, n * groups), x.dtype)
    share(loops().group_norm, x, x, weight, bias, float(eps), y, mean, rstd)
    return y, mean, rstd


def by_numpy(x, weight, bias, eps):
    mean = x.mean((2, 3), keepdims=True)
    y = x - mean
    rstd = 1 / np.sqrt(np.square(y).mean((2, 3), keepdims=True) + x.dtype.type(eps))
    y *= rstd if weight is None else rstd * by_group(weight, x)
    if bias is not None:
        y += by_group(bias, x)
    return y, mean, rstd


def group_tangents(input, input_t, mean, rstd, group):
    """Of the input as (N, groups, channels of a group, pixels)."""
    N, C = input.shape[:2]
    sizes = (N, group, C // group, input.numel() // (N * C) if N * C else 1)
    mean, rstd = mean.reshape((N, group, 1, 1)), rstd.reshape((N, group, 1, 1))
    return Tangents(input.reshape(sizes), input_t.reshape(sizes), mean, rstd, [2, 3])


@native_group_norm.backward
class NativeGroupNormBackward0:
    def input__weight__bias(grads, input, result1, result2, weight, N, C, HxW, group, eps, grad_input_mask):
        dy, dmean, drstd = grads
        if grad_mode_enabled() or dmean is not None or drstd is not None:
            return differentiable_backward(
                dy, dmean, drstd, input, result1, result2, weight, N, C, HxW, group, eps, grad_input_mask
            )
        return native_group_norm_backward.call(
            in_own_format(dy), in_own_format(input), result1, result2, weight, N, C, HxW, group, grad_input_mask
        )

    def result0(input_p, input_t, weight_p, weight_t, bias_t, result1, result2, C, group):
        tangents = group_tangents(input_p, input_t, result1, result2, group)
        in_groups = [None if t is None else t.reshape((1, group, C // group, 1)) for t in (weight_p, weight_t, bias_t)]
        return tangents.of_result(*in_groups).reshape(input_p.shape)

    def result1(input_p, input_t, result1, result2, group):
        return group_tangents(input_p, input_t, result1, result2, group).mean_t.reshape(result1.shape)

    def result2(input_p, input_t, result1, result2, group):
        return group_tangents(input_p, input_t, result1, result2, group).rstd_t.reshape(result2.shape)


def check_gradient_dtype(grad_out, input):
    if grad_out._array.dtype is not input._array.dtype:
        raise RuntimeError("Expected scalar types of X and dY are same.")


@native_group_norm_backward.meta
def native_group_norm_backward_meta(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    check_gradient_dtype(grad_out, input)
    features = TensorMeta((C,), dtype_of(input if weight is None else weight))
    outputs = in_format_of(input, input._array.shape), features, features
    return tuple([output if asked else None for output, asked in zip(outputs, output_mask)])


@native_group_norm_backward.kernel
def native_group_norm_backward_cpu(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    check_gradient_dtype(grad_out, input)
    of_parameters = input._array.dtype if weight is None else weight._array.dtype
    if not input._array.size:
        # nan where there are examples: 1 / deviation of no elements is nan, here as in PyTorch
        nothing = np.repeat(rstd._array * 0, C // group, axis=1).sum(0), np.zeros(C)
        return (
            in_format(input._array, input) if output_mask[0] else None,
            *[wrap(cast(v, of_parameters)) if wanted else None for v, wanted in zip(nothing, output_mask[1:])],
        )
    x, dy = (in_groups(t._array, N, group, C, HxW) for t in (input, grad_out))
    m, r = (cast(t._array, x.dtype).reshape(-1) for t in (mean, rstd))
    w = None if weight is None else cast(weight._array, x.dtype)
    compute = backward_by_loops if loops_serve(x, w) else backward_by_numpy
    dx, dw, db = compute(dy, x, w, m, r, output_mask[0])
    dw, db = (
        wrap(cast(v.reshape(N, C).sum(0), of_parameters)) if wanted else None
        for v, wanted in zip((dw, db), output_mask[1:])
    )
    return dx if dx is None else in_format(dx, input), dw, db


def backward_by_loops(dy, x, weight, mean, rstd, wants_dx):
    """The gradient of x (if wanted); those of weight and bias, still for each example."""
    n, groups, channels, pixels = x.shape
    x, dy = (np.ascontiguousarray(v).reshape(n * groups, channels, pixels) for v in (x, dy))
    weight = filled(weight, 1, x, groups * channels).reshape(groups, channels)
    dx = np.empty_like(x if wants_dx else x[:0])
    dw, db = np.empty((2, n * groups, channels), x.dtype)
    share(loops().group_norm_backward, x, dy, x, weight, mean, rstd, dx, dw, db)
    return dx if wants_dx else None, dw, db


def backward_by_numpy(dy, x, weight, mean, rstd, wants_dx):
    """The same. See Note [ Normalizations ]."""
    n, groups, channels, pixels = x.shape
    r = rstd.reshape(n, groups, 1, 1)
    xhat = (x - mean.reshape(n, groups, 1, 1)) * r
    dw, db = np.einsum("ngcl,ngcl->ngc", dy, xhat), dy.sum(3)
    dx = None
    if wants_dx:
        scale = x.dtype.type(1) if weight is None else by_group(weight, x)
        along, across = ((v[..., None] * scale).mean(2, keepdims=True) / x.dtype.type(pixels) for v in (dw, db))
        dx = r * (dy * scale - across - xhat * along)
    return dx, dw, db


native_group_norm_backward.backward(NOT_IMPLEMENTED)


def differentiable_backward(dy, dmean, drstd, input, mean, rstd, weight, N, C, HxW, group, eps, grad_input_mask):
    """The same in operators that have gradients; also when the mean and 1 / deviation were used.

    For a whole group dx = a · dy + b · x + c, with a different a for each channel.
    """
    groups = (N, group, C // group, HxW)
    x, m, r = input.reshape(groups), mean.reshape((N, group, 1, 1)), rstd.reshape((N, group, 1, 1))
    dx = dw = db = products = sums = None
    if dy is not None:
        dy = dy.reshape(groups)
        products, sums = (dy * x).sum(3).unsqueeze_(-1), dy.sum(3).unsqueeze_(-1)
    if grad_input_mask[0]:
        scale = None if weight is None else weight.reshape((1, group, C // group, 1))
        # in PyTorch: the gradients of mean and rstd count only if both were used.
        if dmean is not None and drstd is not None:
            dx = through_statistics(dmean, drstd, x, r)
        if dy is not None:
            dx = plus(through_result(dy, products, sums, x, m, r, scale), dx)
        dx = dx if dx is None else dx.reshape(input.shape)
    if grad_input_mask[1] and dy is not None:
        dw = ((products - sums * m) * r).sum(0).reshape((C,))
    if grad_input_mask[2] and dy is not None:
        db = sums.sum(0).reshape((C,))
    return dx, dw, db


def plus(a, b):
    return a if b is None else a + b


def through_result(dy, products, sums, x, mean, rstd, scale):
    count = x.shape[2] * x.shape[3]
    share = 1.0 / count if count else math.inf
    scaled = (lambda v: v) if scale is None else (lambda v: v * scale)
    a = scaled(rstd)
    b, c = (scaled(v).sum(2).unsqueeze_(-2) for v in (products, sums))
    b = mul_scalar.call((c * mean - b) * (rstd * rstd * rstd), share)
    c = -b * mean - mul_scalar.call(c * rstd, share)
    return a * dy + b * x + c


def through_statistics(dmean, drstd, x, rstd):
    """What flows through the second and third result."""
    count = x.shape[2] * x.shape[3]
    of_deviation = (x - x.mean((2, 3), True)) * (-(rstd * rstd * rstd) * drstd.reshape(rstd.shape) / count)
    return of_deviation + dmean.reshape(rstd.shape) / count
