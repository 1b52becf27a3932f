"""Batch normalization, and instance normalization, which is batch normalization of every example by itself.

In PyTorch: `aten/src/ATen/native/Normalization.cpp` and `cpu/batch_norm_kernel.cpp`.
Explained in the chapter on normalization.
"""
import numpy as np

from ...c10 import scalar_type
from ...c10.tensor_impl import dtype_of, wrap
from ...c10.wrap_dim import wrap_dim
from ..functions import at
from ..native_function import native_function
from . import batch_norm_loops
from .normalization_common import SecondDerivative, loops_serve, statistics_type
from .tensor_iterator import WIDENED, cast, not_implemented

_AFFINE = "Tensor input, Tensor? weight, Tensor? bias"
_STATISTICS = "Tensor? running_mean, Tensor? running_var"
_NUMBERS = "bool training, float momentum, float eps"

batch_norm = native_function(
    f"batch_norm({_AFFINE}, {_STATISTICS}, {_NUMBERS}, bool cudnn_enabled) -> Tensor", direct=True)
instance_norm = native_function(
    f"instance_norm({_AFFINE}, {_STATISTICS}, bool use_input_stats, float momentum, float eps, "
    "bool cudnn_enabled) -> Tensor", direct=True)
native_batch_norm = native_function(
    f"native_batch_norm({_AFFINE}, {_STATISTICS}, {_NUMBERS}) -> (Tensor, Tensor, Tensor)",
    out=("out", "save_mean", "save_invstd"))
native_batch_norm_backward = native_function(
    f"native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, {_STATISTICS}, "
    "Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> "
    "(Tensor, Tensor, Tensor)")


def check_features(name, parameter, features):
    if parameter is not None and parameter._array.size != features:
        raise RuntimeError(f"{name} should contain {features} elements not {parameter._array.size}")


@batch_norm.compose
def batch_norm_composite(
        input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    shape = input._array.shape
    if not input._array.size:
        return of_nothing(input, weight, bias)
    features = shape[wrap_dim(1, len(shape))]
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        check_features(name, running, features)
        if running is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    check_features("weight", weight, features)
    check_features("bias", bias, features)
    # in PyTorch: _batch_norm_impl_index chooses between this and the kernels of cuDNN and MIOpen.
    return native_batch_norm.call(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def of_nothing(input, weight, bias):
    """An empty input: only the graph matters."""
    out = input.clone()
    if weight is not None:
        out = out * weight[0]
    return out if bias is None else out + bias[0]


@instance_norm.compose
def instance_norm_composite(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """The channels of all examples as the channels of one.

    Each example gets running statistics of its own; what is kept is their mean.
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is "
                           "false")
    shape = input._array.shape
    n, c = shape[0], shape[wrap_dim(1, len(shape))]
    repeated = [t if t is None else t.repeat(n) for t in (weight, bias, running_mean, running_var)]
    one_example = input.contiguous().view((1, n * c, *shape[2:]))
    out = at.batch_norm(one_example, *repeated, use_input_stats, momentum, eps, cudnn_enabled)
    for kept, running in zip((running_mean, running_var), repeated[2:]):
        if kept is not None:
            at.alias(kept).copy_(running.view(n, c).mean(0, False))
    return out.view(shape)


# ------------------------------------------------------------------------------------------ forward

BFLOAT16 = scalar_type.bfloat16.numpy


def per_channel(v, ndim):
    """(C) shaped to stand beside (N, C, …)."""
    return v.reshape((-1,) + (1,) * (ndim - 2))


def other_axes(ndim):
    """All axes but the channel's."""
    return (0, *range(2, ndim))


def forward(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """The result, the mean, 1 / deviation. The last two are empty unless computed from the input."""
    x = input._array
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not dtype_of(input).is_floating_point:
        raise not_implemented("batch_norm")(dtype_of(input))
    kept = statistics_type(input, weight, bias, running_mean, running_var)
    check_forward(x, weight, bias, running_mean, running_var, training)
    w, b, m, v = [None if t is None else t._array for t in (weight, bias, running_mean, running_var)]
    layout = batch_norm_loops.layout_of(x) if loops_serve(x, w, b, m, v) else None
    if layout is None:
        y, mean, rstd = forward_by_numpy(x, w, b, m, v, kept, training, momentum, eps)
        return wrap(cast(y, x.dtype)), wrap(mean), wrap(rstd)
    if training:
        return batch_norm_loops.train(x, layout, w, b, m, v, momentum, eps)
    slope, start = line(*given_statistics(m, v, x.dtype, eps), w, b)
    y = batch_norm_loops.evaluate(x, layout, slope, start)
    return wrap(y), wrap(np.empty(0, kept)), wrap(np.empty(0, kept))


def check_forward(x, weight, bias, running_mean, running_var, training):
    """Raises RuntimeError for parameters of another size than the channels. (In PyTorch: only `batch_norm` looks, and
    `native_batch_norm` reads what lies behind them.)"""
    channels = x.shape[wrap_dim(1, x.ndim)]
    if not training and running_mean is None:
        raise RuntimeError("Expected running_mean and running_var to be defined in evaluation mode")
    named = {"weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var}
    for name, parameter in named.items():
        check_features(name, parameter, channels)


def forward_by_numpy(x, weight, bias, running_mean, running_var, kept, training, momentum, eps):
    """The same for any type and layout. `kept`: the dtype of the mean and 1 / deviation."""
    parameters = [p for p in (weight, bias, running_mean, running_var) if p is not None]
    has_gaps = batch_norm_loops.layout_of(x) is None or not all([p.flags.c_contiguous for p in parameters])
    wide = WIDENED.get(x.dtype, x.dtype)
    saved = np.empty(0, kept), np.empty(0, kept)
    if training:
        mean, rstd = saved = batch_statistics(x, wide, kept, eps, momentum, running_mean, running_var)
    else:
        mean, rstd = given_statistics(running_mean, running_var, kept if has_gaps else wide, eps)
    if has_gaps:
        return step_by_step(x, mean, rstd, weight, bias), *saved
    slope, start = line(cast(mean, wide), cast(rstd, wide), weight, bias)
    return on_a_line(cast(x, wide), slope, start), *saved


def line(mean, rstd, weight, bias):
    """Two numbers a channel, so that the result is x · slope + start."""
    slope = rstd if weight is None else rstd * cast(weight, rstd.dtype)
    return slope, -mean * slope if bias is None else cast(bias, rstd.dtype) - mean * slope


def on_a_line(x, slope, start):
    y = x * per_channel(slope, x.ndim)
    y += per_channel(start, x.ndim)
    return y


def step_by_step(x, mean, rstd, weight, bias):
    """As PyTorch computes tensors with gaps: 16-bit floats are rounded after each step."""
    y = (x - per_channel(mean, x.ndim)) * per_channel(rstd, x.ndim)
    if weight is not None:
        y = y * per_channel(weight, x.ndim)
    return y if bias is None else y + per_channel(bias, x.ndim)


def batch_statistics(x, wide, kept, eps, momentum, running_mean, running_var):
    """Mean and 1 / deviation of each channel, of dtype `kept`; also moves the running statistics."""
    if not x.size:
        raise RuntimeError("input tensor must have at least one element, but got input_sizes = "
                           f"{list(x.shape)}")
    axes, count, x = other_axes(x.ndim), x.size // x.shape[1], cast(x, wide)
    mean = x.mean(axes)
    squares = np.square(x - per_channel(mean, x.ndim)).sum(axes)
    # in PyTorch: sums of bfloat16 are rounded to it in between, those of float16 are not.
    rounded = (lambda v: cast(cast(v, kept), wide)) if kept is BFLOAT16 else (lambda v: v)
    mean, squares = rounded(mean), rounded(squares)
    if running_mean is not None:
        move(running_mean, mean, momentum)
    if running_var is not None:
        move(running_var, rounded(squares / wide.type(count - 1)), momentum)
    variance = rounded(squares / wide.type(count))
    return cast(mean, kept), cast(1 / np.sqrt(variance + wide.type(eps)), kept)


def move(running, new, momentum):
    """running = momentum · new + (1 - momentum) · running, in place.

    # in PyTorch: here, too, past autograd: the version counter stays as it is.
    """
    momentum = new.dtype.type(momentum)
    np.copyto(running, momentum * new + (1 - momentum) * running, casting="same_kind")


def given_statistics(running_mean, running_var, dtype, eps):
    mean, variance = cast(running_mean, dtype), cast(running_var, dtype)
    return mean, dtype.type(1) / np.sqrt(variance + dtype.type(eps))


@native_batch_norm.kernel
def native_batch_norm_cpu(input, weight, bias, running_mean, running_var, training, momentum, eps):
    return forward(input, weight, bias, running_mean, running_var, training, momentum, eps)


@native_batch_norm.backward
class NativeBatchNormBackward0:
    output_differentiability = [True, False, False]

    def input__weight__bias(grad, input, weight, running_mean, running_var, result1, result2, training, eps,
                            grad_input_mask):
        return native_batch_norm_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, training, eps, grad_input_mask)


# ----------------------------------------------------------------------------------------- backward

@native_batch_norm_backward.kernel
def native_batch_norm_backward_cpu(
        grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask):
    x = input._array
    kept = statistics_type(input, weight, running_mean, running_var, save_mean, save_invstd)
    wide = WIDENED.get(x.dtype, x.dtype)
    if train:
        mean, rstd = cast(save_mean._array, wide), cast(save_invstd._array, wide)
    else:
        mean, rstd = given_statistics(running_mean._array, running_var._array, wide, eps)
    w, dy = None if weight is None else weight._array, cast(grad_out._array, wide)
    layout = batch_norm_loops.layout_of(x) if loops_serve(x, w, mean, rstd) else None
    if layout is not None:
        dx, dw, db = batch_norm_loops.backward(dy, x, layout, w, mean, rstd, train, output_mask[0])
    else:
        dx, dw, db = backward_by_numpy(dy, cast(x, wide), mean, rstd, w, train)
    results = zip((dx, dw, db), (x.dtype, kept, kept), output_mask)
    return tuple([wrap(cast(v, dtype)) if wanted else None for v, dtype, wanted in results])


def backward_by_numpy(dy, x, mean, rstd, weight, train):
    """The gradients of the input, the weight and the bias. See Note [ Normalizations ]."""
    ndim, axes = x.ndim, other_axes(x.ndim)
    xhat = (x - per_channel(mean, ndim)) * per_channel(rstd, ndim)
    dw, db = (dy * xhat).sum(axes), dy.sum(axes)
    dx = dy
    if train:
        count = x.dtype.type(x.size // x.shape[1])
        dx = dx - per_channel(db / count, ndim) - xhat * per_channel(dw / count, ndim)
    return dx * per_channel(rstd if weight is None else rstd * weight, ndim), dw, db


def double_backward(
        grads, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps):
    """The gradients for grad_out, input and weight of the backward."""
    ndim, rows = input.dim(), list(other_axes(input.dim()))

    def beside(v):
        return None if v is None else v.reshape([-1] + [1] * (ndim - 2))

    mean, rstd = (save_mean, save_invstd) if train else (running_mean, (running_var + eps).rsqrt())
    to_dx, to_dw, to_db = grads
    over = rows if train else None
    second = SecondDerivative(grad_out, input, beside(mean), beside(rstd), beside(weight), over, rows)
    return second.gradients(to_dx, beside(to_dw), beside(to_db))


@native_batch_norm_backward.backward
class NativeBatchNormBackwardBackward0:
    def grad_out__input__weight(
            grads, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps):
        return double_backward(
            grads, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps)
