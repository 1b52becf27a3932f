"""`convolution`, the one operator that all convolutions lead to, and its gradients.

A transposed convolution is the gradient of a direct one with respect to its input, and the other way round,
so three functions on arrays serve both: forward, grad_input and grad_weight. They fill an array that is there.

In PyTorch: `aten/src/ATen/native/Convolution.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import numpy as np

from readtorch.aten.native.tensor_iterator import WIDENED, cast, not_implemented
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.aten.tensor_utils import check_dim_sizes, memory_for, put
from readtorch.c10.memory_format import contiguous_format, format_strides, suggested_format
from readtorch.c10.tensor_impl import dtype_of

from . import kernel_offsets, pixel_rows
from .params import check_room, check_same_type, check_shapes, geometry_of, output_shape

# --------------------------------------------------------------------------------------------- common to both


def _functions(x, w, y_shape):
    """The module whose forward, grad_input, grad_weight and grad_bias serve x * w = y."""
    return pixel_rows if pixel_rows.is_worth_it(x, w, y_shape) else kernel_offsets


def _channels_last_like(shape, *inputs):
    """An output of the inputs' dtype, channels last if one of them is."""
    strides = None
    for t in inputs:
        if suggested_format(t._array) is not contiguous_format:
            strides = format_strides(t._array, shape)
    return TensorMeta(shape, dtype_of(inputs[0]), strides)


# ------------------------------------------------------------------------------------------------ convolution

convolution = native_function(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor"
)


@convolution.meta
def convolution_meta(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Checks, and gives the result the memory format of its inputs."""
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    check_shapes(input, weight, bias, geometry)
    sizes = input._array.shape
    shape = output_shape(sizes, weight._array.shape, geometry)
    if 0 in sizes:
        if sizes[0] and sizes[1]:
            raise RuntimeError(
                f"Only zero batch or zero channel inputs are supported, but got input shape: {list(sizes)}"
            )
        return TensorMeta((shape[0], shape[1] if sizes[1] else 0, *shape[2:]), dtype_of(input))
    check_same_type(input, weight, bias)
    if transposed:
        check_room(input, geometry, shape[2:])
    return _channels_last_like(shape, input, weight)


@convolution.impl()
def convolution_cpu(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, out):
    """Chooses how to compute."""
    x = input._array
    if 0 in x.shape:
        return
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    _check_dtype(input, geometry)
    wide = WIDENED.get(x.dtype, x.dtype)
    wide_x, w, b = [None if t is None else cast(t._array, wide) for t in (input, weight, bias)]
    if transposed:
        _transposed_forward(wide_x, w, b, geometry, out)
    else:
        result = memory_for(out, wide)
        _functions(wide_x, w, result.shape).forward(wide_x, w, b, geometry, result)
        put(result, out)


def _transposed_forward(x, w, b, geometry, out):
    dtype = out._array.dtype
    large_padding = any(extra >= s for extra, s in zip(geometry.output_padding, geometry.stride))
    if x.dtype != dtype and (dtype == np.float16 or large_padding):
        # 16-bit numbers that PyTorch does not give to oneDNN: it rounds the product of each kernel element.
        result = memory_for(out, dtype)
        kernel_offsets.grad_input(x, w, geometry, result)
    else:
        result = memory_for(out, x.dtype)
        _functions(x, w, x.shape).grad_input(x, w, geometry, result)
    if b is not None:
        result += b.reshape(-1, *[1] * (result.ndim - 2)).astype(result.dtype, copy=False)
    put(result, out)


def _check_dtype(input, geometry):
    """Raises NotImplementedError for the dtypes that PyTorch's loops leave out."""
    dtype, rank = input._array.dtype, 3 if input._array.ndim == 5 else 2
    if geometry.transposed:
        if dtype.kind in "biuc" and dtype != np.int64:
            raise not_implemented(f"slow_conv_transpose{rank}d_out_cpu")(dtype_of(input))
    elif dtype.kind in "bc":
        raise not_implemented(f"slow_conv{rank}d_cpu")(dtype_of(input))


@convolution.backward
class ConvolutionBackward0:
    def input__weight__bias(
        grad,
        input,
        weight,
        bias_sym_sizes_opt,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        grad_input_mask,
    ):
        return convolution_backward.call(
            grad,
            input,
            weight,
            bias_sym_sizes_opt,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            grad_input_mask,
        )

    def result(
        input_p, input_t, weight_p, weight_t, bias_t, stride, padding, dilation, transposed, output_padding, groups
    ):
        settings = stride, padding, dilation, transposed, output_padding, groups
        return convolution.call(input_t, weight_p, None, *settings) + convolution.call(
            input_p, weight_t, bias_t, *settings
        )


# --------------------------------------------------------------------------------------- convolution_backward

convolution_backward = native_function(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
    "SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "",
)


@convolution_backward.meta
def convolution_backward_meta(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    """The gradients of input, weight and bias that `output_mask` asks for; None for the others."""
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    shape, weight_shape = input._array.shape, weight._array.shape
    if 0 not in shape:
        check_dim_sizes(grad_output, output_shape(shape, weight_shape, geometry))
    bias_shape = tuple(bias_sizes or grad_output._array.shape[1:2])
    wanted_input, wanted_weight, wanted_bias = output_mask
    return (
        _channels_last_like(shape, input, weight) if wanted_input else None,
        _channels_last_like(weight_shape, input, weight) if wanted_weight else None,
        TensorMeta(bias_shape, dtype_of(input)) if wanted_bias else None,
    )


@convolution_backward.impl()
def convolution_backward_cpu(
    grad_output,
    input,
    weight,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
    grad_input,
    grad_weight,
    grad_bias,
):
    if 0 in input._array.shape:
        return _fill_zeros(grad_input, grad_weight, grad_bias)
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    wide = WIDENED.get(input._array.dtype, input._array.dtype)
    grad, x, w = [cast(t._array, wide) for t in (grad_output, input, weight)]
    functions = _functions(x, w, x.shape if transposed else grad.shape)
    if grad_input is not None:
        result = memory_for(grad_input, wide)
        if transposed:
            functions.forward(grad, w, None, geometry, result)
        else:
            functions.grad_input(grad, w, geometry, result)
        put(result, grad_input)
    if grad_weight is not None:
        result = memory_for(grad_weight, wide)
        functions.grad_weight(*(x, grad) if transposed else (grad, x), geometry, result)
        put(result, grad_weight)
    if grad_bias is not None:
        put(functions.grad_bias(grad), grad_bias)


def _fill_zeros(*outs):
    for out in outs:
        if out is not None:
            out._array[...] = 0


_convolution_double_backward = native_function(
    "_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, "
    "Tensor self, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "",
)


@convolution_backward.backward
class ConvolutionBackwardBackward0:
    def grad_output__input__weight(
        grads,
        grad_output,
        weight,
        input,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        grad_input_mask,
    ):
        return _convolution_double_backward.call(
            *grads,
            grad_output,
            weight,
            input,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            grad_input_mask,
        )

    def result0(
        grad_output_p,
        grad_output_t,
        input_p,
        weight_p,
        weight_t,
        bias_sizes,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
    ):
        rest = bias_sizes, stride, padding, dilation, transposed, output_padding, groups, (True, False, False)
        by_weight = convolution_backward.call(grad_output_p, input_p, weight_t, *rest)[0]
        return by_weight + convolution_backward.call(grad_output_t, input_p, weight_p, *rest)[0]

    def result1(
        grad_output_p,
        grad_output_t,
        input_p,
        input_t,
        weight_p,
        bias_sizes,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
    ):
        rest = bias_sizes, stride, padding, dilation, transposed, output_padding, groups, (False, True, False)
        by_input = convolution_backward.call(grad_output_p, input_t, weight_p, *rest)[1]
        return by_input + convolution_backward.call(grad_output_t, input_p, weight_p, *rest)[1]

    def result2(grad_output_t, result2):
        """The bias is added everywhere."""
        return None if result2 is None else grad_output_t.sum([d for d in range(grad_output_t.dim()) if d != 1])
