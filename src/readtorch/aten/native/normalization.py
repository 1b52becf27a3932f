"""Batch normalization, and instance normalization, which is batch normalization of every example by itself; renorm.

Note [ Normalizations ]
Every one of them is y = (x - mean) · rstd · weight + bias, where rstd = 1 / √(variance + eps). They differ in
what shares a mean: the elements of a channel (batch norm), of a channel of one example (instance norm), of a
group of channels (group norm), of the last dimensions (layer norm). With x̂ = (x - mean) · rstd, the gradient
for x is

    rstd · (g - mean of g - x̂ · mean of (g · x̂))        where g = the gradient for y, times weight

which is g without what would only move the mean or the deviation: those are fixed again in the next forward.

In PyTorch: `aten/src/ATen/native/Normalization.cpp` and `aten/src/ATen/native/cpu/batch_norm_kernel.cpp`.
Explained in the chapter on normalization.
"""

import functools

import numpy as np

from readtorch.aten.empty_tensor import empty_cpu
from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, below_autograd, native_function
from readtorch.aten.parallel import parallel_for
from readtorch.aten.register_dispatch_key import any_device, write_out
from readtorch.aten.tensor_meta import TensorMeta, in_format_of
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import CPU
from readtorch.c10.python_dispatcher_tls import python_dispatcher_enabled
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, op_math_type
from readtorch.c10.tensor_impl import AutogradMetaFactory, TensorImpl, dtype_of, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .binary_ops.arithmetic import mul_scalar
from .linear_algebra.norm import check_linalg_norm_type, norm_gradient, vector_norm
from .tensor_iterator import F4, F8, WIDENED, cast, conj, not_implemented, wrap_reduced

# The compiled loops are used from this many elements on: fewer are not worth loading the compiler for.
FROM_SIZE = 256
# This many elements are work enough for a thread.
PIECE = 65536


def in_format(value, input):
    """`value` as a tensor of the shape, dtype and memory format of `input`."""
    x = input._array
    if x.flags.c_contiguous:
        value = cast(value, x.dtype)
        return wrap(value if value.shape == x.shape else value.reshape(x.shape))
    t = empty_cpu(in_format_of(input, x.shape))
    np.copyto(t._array, value.reshape(x.shape), casting="unsafe")
    return t


def loops_serve(x, *parameters):
    """Whether the loops in `cpu/` can take these arrays (None for one that is not there)."""
    if x.size < FROM_SIZE or x.dtype is not F4 and x.dtype is not F8:
        return False
    for p in parameters:
        if p is not None and (p.dtype is not x.dtype or not p.flags.c_contiguous):
            return False
    return True


def filled(parameter, number, like, size):
    """A weight or bias as a vector: one that is not there is 1 or 0 everywhere."""
    return np.full(size, number, like.dtype) if parameter is None else parameter.reshape(-1)


def are_plain(input, weight, bias, sizes, eps):
    """Whether these arguments need no conversion, so that a call may skip the argument parser."""
    return (
        isinstance(input, TensorImpl)
        and (weight is None or isinstance(weight, TensorImpl))
        and (bias is None or isinstance(bias, TensorImpl))
        and type(eps) is float
        and type(sizes) is tuple
        and all([type(n) is int for n in sizes])
    )


def statistics_type(input, *parameters):
    """The dtype of mean and rstd: the input's, but float32 where a 16-bit input has float32 parameters.

    Raises RuntimeError for any other mixture.
    """
    own = input._array.dtype
    for p in parameters:
        if p is not None and p._array.dtype is not own:
            return type_of_mixture(input, [p for p in parameters if p is not None])
    return dtype_of(input)


def type_of_mixture(input, given):
    own = input._array.dtype
    if given[0]._array.dtype is not own:
        if any([p._array.dtype is not F4 for p in given]):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if own not in WIDENED:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
        return scalar_type.float32
    other = next(p for p in given if p._array.dtype is not own)
    raise RuntimeError(
        f"expected scalar type {SCALAR_TYPE_NAMES[dtype_of(input)]} but found {SCALAR_TYPE_NAMES[dtype_of(other)]}"
    )


def without_projections(v, xhat, mean):
    """v without its component along (1, …, 1) and along x̂. See Note [ Normalizations ]."""
    v = v - mean(v)
    return v - xhat * mean(v * xhat)


def followed_statistics(input, rstd, over):
    """Mean and 1 / deviation as functions of the input, so that they can be differentiated, too. rstd: what was saved, from which
    the eps is taken that was added.

    Backward's own tangents are computed from them, as in PyTorch (`torch/_decomp/decompositions_for_jvp.py`). Forward takes what it
    has computed for constants: there a tangent of a tangent is another than the derivative's derivative, in PyTorch as well.
    """
    mean = input.mean(over, True)
    variance = (input - mean).square().mean(over, True)
    eps = (rstd.detach() ** -2 - variance).detach()
    return mean, (variance + eps).rsqrt()


def plus(a, b):
    return b if a is None else a + b


class Tangents:
    """The tangents of a normalization: of y = x̂ · weight + bias, and of what backward computes. See Note [ Normalizations ].

    `mean`, `rstd` and parameters must broadcast against `input`. over: the dimensions that share a mean; None if it was given.
    """

    def __init__(self, input, input_t, mean, rstd, over):
        self.over, self.rstd = over, rstd
        self.xhat = (input - mean) * rstd
        self.xhat_t = rstd * self.without_projections(input_t)
        if over is not None:
            self.mean_t = self.mean(input_t)
            self.rstd_t = -rstd * rstd * self.mean(input_t * self.xhat)

    def mean(self, v):
        return v.mean(self.over, True)

    def without_projections(self, v):
        return v if self.over is None else without_projections(v, self.xhat, self.mean)

    def of_result(self, weight, weight_t, bias_t):
        result = self.xhat_t if weight is None else self.xhat_t * weight + self.xhat * weight_t
        return result if bias_t is None else result + bias_t

    def of_backward(self, dy, dy_t, weight, weight_t, rows):
        """The tangents of dx = P(dy · w), dw = Σ dy · x̂ and db = Σ dy, sums over `rows`."""
        g, g_t = (dy, dy_t) if weight is None else (dy * weight, dy_t * weight + dy * weight_t)
        dx = self.rstd * self.without_projections(g_t)
        if self.over is not None:
            xhat, xhat_t = self.xhat, self.xhat_t
            dx = dx + self.rstd_t * self.without_projections(g)
            dx = dx - self.rstd * (xhat_t * self.mean(g * xhat) + xhat * self.mean(g * xhat_t))
        dw, db = dy_t * self.xhat + dy * self.xhat_t, dy_t
        return dx, *((v.sum(rows) if rows else v) for v in (dw, db))


class SecondDerivative:
    """The gradients of a normalization's backward: dx = P(dy · w), dw = Σ dy · x̂, db = Σ dy.

    P v is rstd · v without its projections; it is its own transpose. `mean`, `rstd`, `weight` and the
    gradients `to_dw` and `to_db` of dw and db must broadcast against `input`. over: the dimensions that share
    a mean; None if the mean was given, so that P v is rstd · v. rows: those over which dw and db are sums.
    """

    def __init__(self, dy, input, mean, rstd, weight, over, rows):
        self.dy, self.rstd, self.weight, self.over, self.rows = dy, rstd, weight, over, rows
        self.xhat = (input - mean) * rstd

    def mean(self, v):
        return v.mean(self.over, True)

    def project(self, v):
        return self.rstd * (v if self.over is None else without_projections(v, self.xhat, self.mean))

    def scale(self, v):
        return v if self.weight is None else v * self.weight

    def through_dx(self, to_dx):
        """What flows back to dy, the input and the weight, if `to_dx` is the gradient of dx."""
        projected = self.project(to_dx)
        for_weight = None if self.weight is None else self.sum(self.dy * projected)
        for_input = None if self.over is None else self.through_statistics(to_dx)
        return self.scale(projected), for_input, for_weight

    def through_statistics(self, to_dx):
        """P itself depends on the input, through x̂ and rstd."""
        a, g, xhat = to_dx, self.scale(self.dy), self.xhat
        c, d = self.mean(g * xhat), self.mean(a * xhat)
        agreement = self.mean(a * g) - self.mean(a) * self.mean(g) - c * d
        return -self.project(self.rstd * (g * d + a * c)) - self.rstd * self.rstd * xhat * agreement

    def sum(self, v):
        return v.sum(self.rows) if self.rows else v

    def gradients(self, to_dx, to_dw, to_db):
        """For dy, the input, the weight; each None if nothing flows there."""
        for_dy = for_input = for_weight = None
        if to_dx is not None:
            for_dy, for_input, for_weight = self.through_dx(to_dx)
        if to_dw is not None:
            for_dy = plus(for_dy, self.xhat * to_dw)
            for_input = plus(for_input, self.project(to_dw * self.dy))
        if to_db is not None:
            for_dy = plus(for_dy, to_db.expand(self.dy.shape))
        return for_dy, for_input, for_weight


# ---------------------------------------------------------------------------------- batch_norm, instance_norm

_AFFINE = "Tensor input, Tensor? weight, Tensor? bias"
_STATISTICS = "Tensor? running_mean, Tensor? running_var"
_NUMBERS = "bool training, float momentum, float eps"

batch_norm = native_function(
    f"batch_norm({_AFFINE}, {_STATISTICS}, {_NUMBERS}, bool cudnn_enabled) -> Tensor", direct=True
)
_batch_norm_impl_index = native_function(
    f"_batch_norm_impl_index({_AFFINE}, {_STATISTICS}, {_NUMBERS}, bool cudnn_enabled) -> "
    "(Tensor, Tensor, Tensor, Tensor, int)"
)
instance_norm = native_function(
    f"instance_norm({_AFFINE}, {_STATISTICS}, bool use_input_stats, float momentum, float eps, "
    "bool cudnn_enabled) -> Tensor",
    direct=True,
)
native_batch_norm = native_function(
    f"native_batch_norm({_AFFINE}, {_STATISTICS}, {_NUMBERS}) -> (Tensor, Tensor, Tensor)",
    out=("out", "save_mean", "save_invstd"),
)
native_batch_norm_backward = native_function(
    f"native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, {_STATISTICS}, Tensor? save_mean, "
    "Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
)


def check_features(name, parameter, features):
    """(In PyTorch: only `batch_norm` looks, and `native_batch_norm` reads the memory behind them.)"""
    if parameter is not None and parameter._array.size != features:
        raise RuntimeError(f"{name} should contain {features} elements not {parameter._array.size}")


@batch_norm.compose
def batch_norm_composite(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    # in PyTorch: through _batch_norm_impl_index, which has three implementations to choose from.
    if not input._array.size:
        return of_nothing(input, weight, bias)
    check_channels(input, weight, bias, running_mean, running_var, training)
    norm = with_legit_schema if python_dispatcher_enabled() else native_batch_norm.call
    return norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@_batch_norm_impl_index.compose
def batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """The implementation that fits, and its number: 0, for the library's own. The fourth result is what cuDNN would keep.

    # in PyTorch: 1 is cuDNN's, 2 is MIOpen's (`_select_batch_norm_backend`).
    """
    kind, nothing = dtype_of(input), at.empty((0,), dtype=scalar_type.uint8, device=input.device)
    if not input._array.size:
        wide = scalar_type.float64 if kind is scalar_type.float32 else op_math_type(kind)
        saved = [at.empty(input._array.shape[1:2], dtype=wide, device=input.device) for _ in range(2)]
        return of_nothing(input, weight, bias), *saved, nothing, 0
    check_channels(input, weight, bias, running_mean, running_var, training)
    results = native_batch_norm.call(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return *results, nothing, 0


def check_channels(input, weight, bias, running_mean, running_var, training):
    """Raises RuntimeError unless what is given for each channel has their number, and evaluation has statistics."""
    shape = input._array.shape
    features = shape[wrap_dim(1, len(shape))]
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        check_features(name, running, features)
        if running is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    check_features("weight", weight, features)
    check_features("bias", bias, features)


def of_nothing(input, weight, bias):
    """An empty input: only the graph matters."""
    out = input.clone()
    if weight is not None:
        out = out * weight[0]
    return out if bias is None else out + bias[0]


@instance_norm.compose
def instance_norm_composite(
    input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled
):
    """The channels of all examples as the channels of one.

    Each example gets running statistics of its own, in the weight's or the input's type; what is kept is their mean.
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    shape = input._array.shape
    n, c = shape[0], shape[wrap_dim(1, len(shape))]
    kind = (input if weight is None else weight).dtype
    statistics = [t if t is None else t.to(kind) for t in (running_mean, running_var)]
    repeated = [t if t is None else t.repeat(n) for t in (weight, bias, *statistics)]
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


def check_batch_norm(input, weight, bias, running_mean, running_var, training):
    """Raises unless the arguments fit. Returns the dtype of mean and 1 / deviation."""
    x = input._array
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not training and running_mean is None:
        raise RuntimeError("Expected running_mean and running_var to be defined in evaluation mode")
    channels = x.shape[wrap_dim(1, x.ndim)]
    check_features("weight", weight, channels)
    check_features("bias", bias, channels)
    check_features("running_mean", running_mean, channels)
    check_features("running_var", running_var, channels)
    if training and not x.size:
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(x.shape)}")
    return statistics_type(input, weight, bias, running_mean, running_var)


@native_batch_norm.meta
def native_batch_norm_meta(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """The result, the mean, 1 / deviation. The last two are empty unless computed from the input."""
    kept = check_batch_norm(input, weight, bias, running_mean, running_var, training)
    shape = input._array.shape
    saved = TensorMeta(shape[1:2] if training else (0,), kept)
    return in_format_of(input, shape), saved, saved


@native_batch_norm.kernel
def native_batch_norm_cpu(input, weight, bias, running_mean, running_var, training, momentum, eps):
    if not dtype_of(input).is_floating_point:
        raise not_implemented("batch_norm")(dtype_of(input))
    kept = check_batch_norm(input, weight, bias, running_mean, running_var, training).numpy
    x = input._array
    w, b, m, v = [None if t is None else t._array for t in (weight, bias, running_mean, running_var)]
    layout = layout_of(x) if loops_serve(x, w, b, m, v) else None
    if layout is None:
        y, mean, rstd = forward_by_numpy(x, w, b, m, v, kept, training, momentum, eps)
        return in_format(y, input), wrap(mean), wrap(rstd)
    if training:
        return train_by_loops(x, layout, w, b, m, v, momentum, eps)
    slope, start = line(*given_statistics(m, v, x.dtype, eps), w, b)
    y = evaluate_by_loops(x, layout, slope, start)
    return wrap(y), wrap(np.empty(0, kept)), wrap(np.empty(0, kept))


def forward_by_numpy(x, weight, bias, running_mean, running_var, kept, training, momentum, eps):
    """The same for any type and layout. `kept`: the dtype of the mean and 1 / deviation."""
    parameters = [p for p in (weight, bias, running_mean, running_var) if p is not None]
    has_gaps = layout_of(x) is None or not all([p.flags.c_contiguous for p in parameters])
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
    axes, count, has_gaps, x = other_axes(x.ndim), x.size // x.shape[1], layout_of(x) is None, cast(x, wide)
    rounded = lambda v: cast(cast(v, kept), wide)
    exact = lambda v: v
    # in PyTorch: of a tensor with gaps, the mean is rounded before squares are taken; of one without, the sums of
    # bfloat16 are rounded, those of float16 are not.
    at_mean, at_sums = (rounded, exact) if has_gaps else (exact, rounded if kept is BFLOAT16 else exact)
    mean = at_mean(wide.type(x.mean(axes, dtype=F8)))
    squares = at_sums(np.square(x - per_channel(mean, x.ndim)).sum(axes, dtype=F8).astype(wide))
    mean = at_sums(mean)
    if running_mean is not None:
        move(running_mean, mean, momentum)
    if running_var is not None:
        move(running_var, at_sums(squares / wide.type(count - 1)), momentum)
    variance = at_sums(squares / wide.type(count))
    return cast(mean, kept), cast(1 / np.sqrt(variance + wide.type(eps)), kept)


def move(running, new, momentum):
    """running = momentum · new + (1 - momentum) · running, in place.

    # in PyTorch: here, too, past autograd: the version counter stays as it is.
    """
    momentum = np.float64(momentum)  # in PyTorch: a C++ double, so the sum is taken in double precision
    np.copyto(running, momentum * new + (1 - momentum) * running, casting="unsafe")


def given_statistics(running_mean, running_var, dtype, eps):
    mean, variance = cast(running_mean, dtype), cast(running_var, dtype)
    return mean, dtype.type(1) / np.sqrt(variance + dtype.type(eps))


def batch_tangents(input, input_t, running_mean, running_var, save_mean, save_invstd, train, eps):
    """The Tangents of a batch norm, and what brings a number for each channel beside the input."""
    given = () if train else (running_mean, running_var)
    if any([t is not None and AutogradMetaFactory.fw_grad(t, 0) is not None for t in given]):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )
    ndim = input.dim()

    def beside(v):
        return None if v is None else v.reshape([-1] + [1] * (ndim - 2))

    mean, rstd = (save_mean, save_invstd) if train else (running_mean, (running_var + eps).rsqrt())
    over = list(other_axes(ndim)) if train else None
    return Tangents(input, input_t, beside(mean), beside(rstd), over), beside


def batch_norm_jvp(
    input_p, input_t, weight_p, weight_t, bias_t, running_mean, running_var, result1, result2, training, eps
):
    tangents, beside = batch_tangents(input_p, input_t, running_mean, running_var, result1, result2, training, eps)
    return tangents.of_result(*map(beside, (weight_p, weight_t, bias_t)))


@native_batch_norm.backward
class NativeBatchNormBackward0:
    output_differentiability = [True, False, False]

    def input__weight__bias(
        grad, input, weight, running_mean, running_var, result1, result2, training, eps, grad_input_mask
    ):
        return native_batch_norm_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, training, eps, grad_input_mask
        )

    result0 = batch_norm_jvp


# ----------------------------------------------------------------------------------------- backward


@native_batch_norm_backward.meta
def native_batch_norm_backward_meta(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    kept = statistics_type(input, weight, running_mean, running_var, save_mean, save_invstd)
    features = TensorMeta((input._array.shape[1],), kept)
    outputs = in_format_of(input, input._array.shape), features, features
    return tuple([output if asked else None for output, asked in zip(outputs, output_mask)])


@native_batch_norm_backward.kernel
def native_batch_norm_backward_cpu(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    kept = statistics_type(input, weight, running_mean, running_var, save_mean, save_invstd).numpy
    x = input._array
    wide = WIDENED.get(x.dtype, x.dtype)
    if train:
        mean, rstd = cast(save_mean._array, wide), cast(save_invstd._array, wide)
    else:
        mean, rstd = given_statistics(running_mean._array, running_var._array, wide, eps)
    w, dy = None if weight is None else weight._array, cast(grad_out._array, wide)
    layout = layout_of(x) if loops_serve(x, w, mean, rstd) else None
    if layout is not None:
        dx, dw, db = backward_by_loops(dy, x, layout, w, mean, rstd, train, output_mask[0])
    else:
        dx, dw, db = backward_by_numpy(dy, cast(x, wide), mean, rstd, w, train)
    return (
        in_format(dx, input) if output_mask[0] else None,
        wrap(cast(dw, kept)) if output_mask[1] else None,
        wrap(cast(db, kept)) if output_mask[2] else None,
    )


def backward_by_numpy(dy, x, mean, rstd, weight, train):
    """The gradients of the input, the weight and the bias. See Note [ Normalizations ]."""
    ndim, axes = x.ndim, other_axes(x.ndim)
    xhat = (x - per_channel(mean, ndim)) * per_channel(rstd, ndim)
    dw, db = (v.sum(axes, dtype=F8).astype(x.dtype) for v in (dy * xhat, dy))
    dx = dy
    if train:
        count = x.dtype.type(x.size // x.shape[1])
        dx = dx - per_channel(db / count, ndim) - xhat * per_channel(dw / count, ndim)
    return dx * per_channel(rstd if weight is None else rstd * weight, ndim), dw, db


def batch_norm_backward_jvp(
    grad_out_p,
    grad_out_t,
    input_p,
    input_t,
    weight_p,
    weight_t,
    running_mean,
    running_var,
    save_mean,
    save_invstd,
    train,
    eps,
    output_mask,
):
    rows = list(other_axes(input_p.dim()))
    if train:
        rstd = save_invstd.reshape([-1] + [1] * (input_p.dim() - 2))
        save_mean, save_invstd = followed_statistics(input_p, rstd, rows)
    statistics = running_mean, running_var, save_mean, save_invstd
    tangents, beside = batch_tangents(input_p, input_t, *statistics, train, eps)
    changes = tangents.of_backward(grad_out_p, grad_out_t, beside(weight_p), beside(weight_t), rows)
    return tuple([t if asked else None for t, asked in zip(changes, output_mask)])


def double_backward(grads, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps):
    """The gradients of backward for grad_out, input and weight."""
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
    grad_out__input__weight = double_backward
    result0__result1__result2 = batch_norm_backward_jvp


# --------------------------------------------------------------------------------------------- compiled loops
# `cpu/batch_norm_kernel.py`, for contiguous float32 and float64. In PyTorch: the choice between
# `batch_norm_cpu_contiguous_impl` and `batch_norm_cpu_channels_last_impl`.


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import batch_norm_kernel

    return batch_norm_kernel


def loop_for(name, layout):
    """`name`_planes or `name`_columns."""
    return getattr(loops(), f"{name}_{'planes' if layout.ndim == 3 else 'columns'}")


def layout_of(x):
    """`x` as planes (N, C, L) or columns (rows, C), as it lies in memory; None if it has gaps."""
    shape = x.shape
    if x.flags.c_contiguous:
        return x.reshape(shape[0], shape[1], -1) if x.size > shape[0] * shape[1] else x.reshape(shape[:2])
    if x.ndim in (4, 5):
        pixels = np.moveaxis(x, 1, -1)
        if pixels.flags.c_contiguous:
            return pixels.reshape(-1, shape[1])
    return None


def in_layout(x, layout):
    """Another tensor of the same shape in the same layout, copied if need be."""
    found = layout_of(x)
    if found is not None and found.ndim == layout.ndim:
        return found
    if layout.ndim == 2 and x.ndim > 2:
        x = np.moveaxis(x, 1, -1)
    return np.ascontiguousarray(x).reshape(layout.shape)


def share(loop, layout, *arguments):
    """Run a loop over all channels, by some threads."""
    channels = layout.shape[1]
    grain = max(1, PIECE * channels // layout.size)
    if layout.ndim == 2:
        grain = max(grain, 16)  # neighbours in memory: fewer of them fill no cache line
    parallel_for(0, channels, grain, lambda begin, end: loop(*arguments, begin, end))


def train_by_loops(x, layout, weight, bias, running_mean, running_var, momentum, eps):
    """The result, the mean, 1 / deviation; moves the running statistics."""
    nothing = np.empty(0, x.dtype)
    out, mean, rstd = np.empty_like(x), *np.empty((2, layout.shape[1]), x.dtype)
    running_mean, running_var = [nothing if v is None else v for v in (running_mean, running_var)]
    weight, bias = filled(weight, 1, x, mean.size), filled(bias, 0, x, mean.size)
    share(
        loop_for("train", layout),
        layout,
        layout,
        weight,
        bias,
        x.dtype.type(momentum),
        float(eps),
        running_mean,
        running_var,
        layout_of(out),
        mean,
        rstd,
    )
    return wrap(out), wrap(mean), wrap(rstd)


def evaluate_by_loops(x, layout, slope, start):
    """x · slope + start, two numbers a channel."""
    out = np.empty_like(x)
    share(loop_for("evaluate", layout), layout, layout, slope, start, layout_of(out))
    return out


def backward_by_loops(dy, x, layout, weight, mean, rstd, train, wants_dx):
    """The gradients of the input (if wanted), the weight and the bias, as arrays."""
    dx = np.empty_like(x) if wants_dx else None
    dw, db = np.empty((2, layout.shape[1]), x.dtype)
    into = np.empty((0,) * layout.ndim, x.dtype) if dx is None else layout_of(dx)
    weight = filled(weight, 1, x, mean.size)
    dy = in_layout(dy, layout)
    share(loop_for("backward", layout), layout, dy, layout, weight, mean, rstd, train, into, dw, db)
    return dx, dw, db


# -------------------------------------------------------------------------- schemas that name what is written
# The same kernels under schemas that `torch.export` uses.

_WRITTEN_STATISTICS = "Tensor(a!) running_mean, Tensor(b!) running_var"
_OUTPUTS = ("out", "save_mean", "save_invstd")

_native_batch_norm_legit = native_function(
    f"_native_batch_norm_legit({_AFFINE}, {_WRITTEN_STATISTICS}, {_NUMBERS}) -> (Tensor, Tensor, Tensor)", out=_OUTPUTS
)
_native_batch_norm_legit_no_stats = native_function(
    f"_native_batch_norm_legit.no_stats({_AFFINE}, {_NUMBERS}) -> (Tensor, Tensor, Tensor)", out=_OUTPUTS
)
_native_batch_norm_legit_no_training = native_function(
    f"_native_batch_norm_legit_no_training({_AFFINE}, Tensor running_mean, Tensor running_var, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)"
)


@any_device
def native_batch_norm_legit(*arguments):
    """in PyTorch: these, too, leave the version counters of the running statistics as they are."""
    with below_autograd():
        return native_batch_norm.call(*arguments)


_native_batch_norm_legit.kernel(native_batch_norm_legit)


def with_legit_schema(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """`native_batch_norm`, by the operator whose schema says what it does. RuntimeError if one statistic is missing."""
    if running_mean is None and running_var is None:
        return _native_batch_norm_legit_no_stats.call(input, weight, bias, training, momentum, eps)
    for name, other, missing in (("mean", "var", running_mean), ("var", "mean", running_var)):
        if missing is None:
            raise RuntimeError(
                f"running_{name} is None, but running_{other} is provided. They should both be None or both be provided."
            )
    statistics = running_mean, running_var
    if training:
        return _native_batch_norm_legit.call(input, weight, bias, *statistics, training, momentum, eps)
    return _native_batch_norm_legit_no_training.call(input, weight, bias, *statistics, momentum, eps)


@_native_batch_norm_legit_no_stats.kernel
@any_device
def native_batch_norm_legit_no_stats(input, weight, bias, training, momentum, eps):
    return native_batch_norm_legit(input, weight, bias, None, None, training, momentum, eps)


@_native_batch_norm_legit_no_training.kernel
@any_device
def native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return native_batch_norm_legit(input, weight, bias, running_mean, running_var, False, momentum, eps)


def compute_then_write(*arguments):
    """The `out=` form. Statistics that were not computed are not written, but their outputs must be vectors."""
    arguments, outs = arguments[:-3], arguments[-3:]
    for out in outs:
        if out._array.dtype is not arguments[0]._array.dtype:
            raise RuntimeError(
                f"expected scalar type {SCALAR_TYPE_NAMES[dtype_of(arguments[0])]} but found "
                f"{SCALAR_TYPE_NAMES[dtype_of(out)]}"
            )
    results = native_batch_norm.call(*arguments)
    if arguments[5]:
        return write_out(results, outs)
    for out in outs[1:]:
        if out._array.ndim != 1:
            raise RuntimeError(f"TensorAccessor expected 1 dims but tensor has {out._array.ndim}")
    write_out(results[0], outs[:1])
    return outs


@_native_batch_norm_legit_no_stats.out.kernel
def no_stats_compute_then_write(input, weight, bias, training, momentum, eps, out, save_mean, save_invstd):
    return compute_then_write(input, weight, bias, None, None, training, momentum, eps, out, save_mean, save_invstd)


native_batch_norm.out.kernel(any_device(compute_then_write))
_native_batch_norm_legit.out.kernel(lambda *arguments: compute_then_write(*arguments))  # in PyTorch: not on Meta


@_native_batch_norm_legit.backward
class NativeBatchNormLegitBackward0:
    output_differentiability = [True, False, False]
    input__weight__bias = NativeBatchNormBackward0.input__weight__bias

    result0 = batch_norm_jvp


@_native_batch_norm_legit_no_stats.backward
class NativeBatchNormLegitBackward1:
    output_differentiability = [True, False, False]

    def input__weight__bias(grad, input, weight, result1, result2, training, eps, grad_input_mask):
        return native_batch_norm_backward.call(
            grad, input, weight, None, None, result1, result2, training, eps, grad_input_mask
        )

    def result0(input_p, input_t, weight_p, weight_t, bias_t, result1, result2, training, eps):
        return batch_norm_jvp(input_p, input_t, weight_p, weight_t, bias_t, None, None, result1, result2, training, eps)


@_native_batch_norm_legit_no_training.backward
class NativeBatchNormLegitNoTrainingBackward0:
    output_differentiability = [True, False, False]

    def input__weight__bias(grad, input, weight, running_mean, running_var, result1, result2, eps, grad_input_mask):
        return native_batch_norm_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, False, eps, grad_input_mask
        )

    def result0(input_p, input_t, weight_p, weight_t, bias_t, running_mean, running_var, result1, result2, eps):
        statistics = running_mean, running_var, result1, result2
        return batch_norm_jvp(input_p, input_t, weight_p, weight_t, bias_t, *statistics, False, eps)


# ------------------------------------------- with a fourth result: what cuDNN would keep for backward

_batch_norm_with_update = native_function(
    f"_batch_norm_with_update({_AFFINE}, {_WRITTEN_STATISTICS}, float momentum, float eps) -> "
    "(Tensor, Tensor, Tensor, Tensor)"
)
_batch_norm_no_update = native_function(
    f"_batch_norm_no_update({_AFFINE}, {_STATISTICS}, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)"
)
batch_norm_backward = native_function(
    f"batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, {_STATISTICS}, Tensor? save_mean, Tensor? "
    "save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)"
)


def with_reserve(training):
    """The forward kernel whose fourth result is an empty tensor: only cuDNN keeps something for backward."""

    @any_device
    def kernel(input, weight, bias, running_mean, running_var, momentum, eps):
        results = native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps)
        return *results, at.empty((0,), dtype=scalar_type.uint8, device=input.device)

    return kernel


_batch_norm_with_update.kernel(with_reserve(training=True))
_batch_norm_no_update.kernel(with_reserve(training=False))


@batch_norm_backward.kernel
@any_device
def batch_norm_backward_any(*arguments):
    """Without the last argument, what cuDNN kept."""
    with below_autograd():
        return native_batch_norm_backward.call(*arguments[:-1])


@_batch_norm_with_update.backward
class BatchNormWithUpdateBackward0:
    output_differentiability = [True, False, False, False]

    def input__weight__bias(
        grad, input, weight, running_mean, running_var, result1, result2, result3, eps, grad_input_mask
    ):
        return batch_norm_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, True, eps, grad_input_mask, result3
        )

    def result0(input_p, input_t, weight_p, weight_t, bias_t, running_mean, running_var, result1, result2, eps):
        statistics = running_mean, running_var, result1, result2
        return batch_norm_jvp(input_p, input_t, weight_p, weight_t, bias_t, *statistics, True, eps)


@_batch_norm_no_update.backward
class BatchNormNoUpdateBackward0:
    output_differentiability = [True, False, False, False]

    def input__weight__bias(
        grad, input, weight, running_mean, running_var, result1, result2, result3, eps, grad_input_mask
    ):
        return batch_norm_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, False, eps, grad_input_mask, result3
        )

    def result0(input_p, input_t, weight_p, weight_t, bias_t, running_mean, running_var, result1, result2, eps):
        statistics = running_mean, running_var, result1, result2
        return batch_norm_jvp(input_p, input_t, weight_p, weight_t, bias_t, *statistics, False, eps)


@batch_norm_backward.backward
class BatchNormBackwardBackward0:
    def grad_out__input__weight(
        grads, grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps
    ):
        return double_backward(
            grads, grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps
        )

    def result0__result1__result2(
        grad_out_p,
        grad_out_t,
        input_p,
        input_t,
        weight_p,
        weight_t,
        running_mean,
        running_var,
        save_mean,
        save_var,
        update,
        eps,
        output_mask,
    ):
        statistics = running_mean, running_var, save_mean, save_var, update, eps
        return batch_norm_backward_jvp(
            grad_out_p, grad_out_t, input_p, input_t, weight_p, weight_t, *statistics, output_mask
        )


# ----------------------------------------------------------------------------------------------------- renorm

renorm = native_function(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", BOTH, inplace=True, out=True
)


def check_renorm(self, p, maxnorm):
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self._array.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self._array.ndim} dimensions")


@renorm.meta
def renorm_meta(self, p, dim, maxnorm):
    check_renorm(self, p, maxnorm)
    wrap_dim(dim, self._array.ndim)
    check_linalg_norm_type("linalg.vector_norm", self, None)
    return TensorMeta(self._array.shape, dtype_of(self))


def other_dims(self, dim):
    dim = wrap_dim(dim, self._array.ndim)
    return tuple([d for d in range(self._array.ndim) if d != dim])


@renorm.kernel
def renorm_cpu(self, p, dim, maxnorm):
    """Each slice along `dim` whose norm is greater than maxnorm is scaled down to it."""
    check_renorm(self, p, maxnorm)
    dims = other_dims(self, dim)
    with below_autograd():
        norm = vector_norm.call(self, p, dims, True, None)._array
    wide = norm.astype(op_math_type(dtype_of(self).to_real()).numpy)
    factor = np.where(wide > maxnorm, maxnorm / (wide + wide.dtype.type(1e-7)), wide.dtype.type(1)).astype(norm.dtype)
    return wrap_reduced((self._array * factor).astype(self._array.dtype, copy=False))


def accumulate_type(t):
    """The type that sums are held in where they are rounded once. In PyTorch: `toAccumulateType`."""
    if t._keys & CPU and dtype_of(t) in (scalar_type.float32, scalar_type.complex64):
        return scalar_type.float64 if dtype_of(t) is scalar_type.float32 else scalar_type.complex128
    return op_math_type(dtype_of(t))


@renorm.backward
class RenormBackward0:
    def self(grad, self, p, dim, maxnorm):
        """Where a slice was scaled, its norm depends on each of its elements."""
        dims = other_dims(self, dim)
        wide = accumulate_type(self)
        norm = vector_norm.call(self, p, dims, True, None if wide == dtype_of(self) else wide)
        along = conj(self) * grad
        along = (along.real if dtype_of(along).is_complex else along).sum(dims, True, dtype=wide.to_real())
        through_norm = norm_gradient(along, self, p, norm, dims, True)
        inverse = (norm + 1e-7).reciprocal()
        difference = (
            grad.to(wide) - inverse * through_norm
        )  # in PyTorch: `sub` casts, and the copy's strides are the result's
        scaled = mul_scalar.call(inverse, maxnorm) * difference
        return at.where(norm > maxnorm, scaled.to(grad.dtype), grad)

    def result(self_p, self_t, p, dim, maxnorm):
        dims = other_dims(self_p, dim)
        norm = vector_norm.call(self_p, p, dims, True, None)
        along = conj(norm_gradient(at.ones_like(norm), self_p, p, norm, dims, True)) * self_t
        norm_t = (along.real if dtype_of(along).is_complex else along).sum(dims, True)
        inverse = (norm + 1e-7).reciprocal()
        scaled = mul_scalar.call(inverse, maxnorm) * (self_t - self_p * inverse * norm_t)
        return at.where(norm > maxnorm, scaled, self_t)
