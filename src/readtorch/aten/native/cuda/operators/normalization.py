"""softmax and log_softmax; layer, group and batch normalization, forward and backward.

In PyTorch: `aten/src/ATen/native/cuda/{SoftMax,layer_norm_kernel,group_norm_kernel,Normalization}.cu`.
"""

import math

from .....c10.tensor_impl import dtype_of
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ...group_norm import check as check_groups
from ...layer_norm import check_layer_norm
from ...normalization import statistics_type
from ...tensor_iterator import WIDENED, not_implemented
from .. import batch_norm, layer_norm, softmax
from ..rows import contiguous, flat
from .factories import filled
from .pointwise import operator_named
from .reductions import converted
from .registration import cuda_kernel, empty


def wide(t):
    """The tensor in the dtype to compute in: float32 for 16-bit floats."""
    return None if t is None else converted(t, WIDENED.get(t._array.dtype, t._array.dtype))


def row(t):
    """A parameter as one contiguous row, or None."""
    return None if t is None else flat(wide(t)._array)


# ------------------------------------------------------------------------------------------------------
# softmax


def softmax_of(name, log):
    @cuda_kernel(operator_named(f"_{name}"))
    def forward(self, dim, half_to_float):
        dim = wrap_dim(dim, self._array.ndim)
        if not dtype_of(self).is_floating_point:
            raise not_implemented(f"{name}_cuda")(dtype_of(self))
        x = wide(self)
        out = empty(x._array.shape, x._array.dtype)
        softmax.softmax(x._array, dim, out._array, log)
        return out if half_to_float else converted(out, self._array.dtype)

    @cuda_kernel(operator_named(f"_{name}_backward_data"))
    def backward(grad_output, output, dim, input_dtype):
        grad, y = wide(grad_output), wide(output)
        out = empty(y._array.shape, y._array.dtype)
        softmax.softmax_backward(grad._array, y._array, wrap_dim(dim, y._array.ndim), out._array, log)
        return converted(out, input_dtype.numpy)


softmax_of("softmax", log=False)
softmax_of("log_softmax", log=True)


@cuda_kernel(operator_named("_safe_softmax"))
def safe_softmax_cuda(self, dim, dtype):
    """Zeros where a row is -inf throughout, in place of nans."""
    out = at.softmax(self, dim, dtype)
    hopeless = at.eq(self, -math.inf).all(dim, True)
    return at.where(hopeless, at.zeros((), dtype=out.dtype, device=out.device), out)


# --------------------------------------------------------------------------------------------- layer and
# group norm


@cuda_kernel(operator_named("native_layer_norm"))
def native_layer_norm_cuda(input, normalized_shape, weight, bias, eps):
    """The result, and the mean and 1 / deviation of each row."""
    normalized = tuple(normalized_shape)
    check_layer_norm(input, normalized, weight, bias)
    kept, shape, x = statistics_type(input, weight, bias), input._array.shape, wide(input)
    sizes = shape[: len(shape) - len(normalized)] + (1,) * len(normalized)
    out, mean, rstd = empty(shape, x._array.dtype), empty(sizes, x._array.dtype), empty(sizes, x._array.dtype)
    layer_norm.layer_norm(
        x._array,
        math.prod(normalized),
        row(weight),
        row(bias),
        eps,
        out._array,
        flat(mean._array),
        flat(rstd._array),
    )
    return converted(out, input._array.dtype), converted(mean, kept), converted(rstd, kept)


@cuda_kernel(operator_named("native_layer_norm_backward"))
def native_layer_norm_backward_cuda(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    x, grad = wide(input), wide(grad_out)
    n = math.prod(normalized_shape)
    number = x._array.dtype
    grads = wanted(output_mask, [input._array.shape, normalized_shape, normalized_shape], number)
    if x._array.size:
        layer_norm.layer_norm_backward(
            grad._array,
            x._array,
            n,
            row(mean),
            row(rstd),
            row(weight),
            *[None if g is None else g._array if i == 0 else flat(g._array) for i, g in enumerate(grads)],
        )
    return in_types_of(grads, input, weight)


def wanted(output_mask, shapes, numpy_dtype):
    """New tensors for the gradients that are asked for, None for the others; zeros, in case there is nothing
    to add up."""
    return [
        filled(empty(shape, numpy_dtype), 0) if asked else None for asked, shape in zip(output_mask, shapes)
    ]


def in_types_of(grads, input, weight):
    """The gradients of input, weight and bias in the dtypes of these."""
    like = [input, input if weight is None else weight, input if weight is None else weight]
    return tuple(None if g is None else converted(g, t._array.dtype) for g, t in zip(grads, like))


@cuda_kernel(operator_named("native_group_norm"))
def native_group_norm_cuda(input, weight, bias, N, C, HxW, group, eps):
    """The result, and the mean and 1 / deviation of each group: (N, group)."""
    check_groups(input, weight, bias, C, group)
    kept, x = statistics_type(input, weight, bias), wide(input)
    out = empty(input._array.shape, x._array.dtype)
    mean, rstd = (filled(empty((N, group), x._array.dtype), number) for number in (0, math.nan))
    if x._array.size:
        layer_norm.group_norm(
            x._array, group, row(weight), row(bias), eps, out._array, flat(mean._array), flat(rstd._array)
        )
    return converted(out, input._array.dtype), converted(mean, kept), converted(rstd, kept)


@cuda_kernel(operator_named("native_group_norm_backward"))
def native_group_norm_backward_cuda(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    x, grad = wide(input), wide(grad_out)
    grads = wanted(output_mask, [input._array.shape, (C,), (C,)], x._array.dtype)
    if x._array.size:
        layer_norm.group_norm_backward(
            grad._array,
            x._array,
            group,
            row(mean),
            row(rstd),
            row(weight),
            *[None if g is None else g._array for g in grads],
        )
    return in_types_of(grads, input, weight)


# ---------------------------------------------------------------------------------------------------- batch
# norm


@cuda_kernel(operator_named("native_batch_norm"))
def native_batch_norm_cuda(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """The result, and in training the mean and 1 / deviation of each channel."""
    x, kept = wide(input), statistics_type(input, weight, bias, running_mean, running_var)
    if training and not x._array.size:
        raise RuntimeError(
            f"input tensor must have at least one element, but got input_sizes = {list(x._array.shape)}"
        )
    number, channels = x._array.dtype, (input._array.shape[1],)
    out, mean, invstd = empty(x._array.shape, number), empty(channels, number), empty(channels, number)
    running = [None if t is None else t._array for t in (running_mean, running_var)]
    batch_norm.batch_norm(
        x._array,
        row(weight),
        row(bias),
        *running,
        training,
        momentum,
        eps,
        out._array,
        mean._array,
        invstd._array,
    )
    saved = (
        (converted(mean, kept), converted(invstd, kept))
        if training
        else (empty((0,), kept), empty((0,), kept))
    )
    return converted(out, input._array.dtype), *saved


@cuda_kernel(operator_named("native_batch_norm_backward"))
def native_batch_norm_backward_cuda(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    x, grad = wide(input), wide(grad_out)
    if train:
        mean, invstd = row(save_mean), row(save_invstd)
    else:
        mean, invstd = row(running_mean), row((running_var + eps).rsqrt())
    channels = (input._array.shape[1],)
    grads = wanted((True, True, True), [input._array.shape, channels, channels], x._array.dtype)
    if x._array.size:
        batch_norm.batch_norm_backward(
            contiguous(grad._array), x._array, row(weight), train, mean, invstd, *[g._array for g in grads]
        )
    return in_types_of([g if asked else None for g, asked in zip(grads, output_mask)], input, weight)
