"""`convolution`, the one operator that all convolutions lead to, and its gradients.

A transposed convolution is the gradient of a direct one with respect to its input, and the other way round,
so three functions on arrays serve both: forward, grad_input and grad_weight.

In PyTorch: `aten/src/ATen/native/Convolution.cpp`. Explained in the chapter "Layers, functional, init".
"""

import numpy as np

from readtorch.aten.native.copy import allocate_like
from readtorch.aten.native.tensor_iterator import WIDENED, cast, not_implemented
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_utils import check_dim_sizes
from readtorch.c10.memory_format import contiguous_format, suggested_format
from readtorch.c10.tensor_impl import dtype_of, wrap

from . import kernel_offsets, pixel_rows
from .params import check_room, check_same_type, check_shapes, geometry_of, output_shape

convolution = native_function(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor"
)
convolution_backward = native_function(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
    "SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "",
)
_convolution_double_backward = native_function(
    "_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, "
    "Tensor self, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "",
)


@convolution.kernel
def convolution_cpu(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Checks, chooses how to compute, and gives the result the memory format of its inputs."""
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    check_shapes(input, weight, bias, geometry)
    x = input._array
    shape = output_shape(x.shape, weight._array.shape, geometry)
    if 0 in x.shape:
        return _of_nothing(x, shape)
    check_same_type(input, weight, bias)
    _check_dtype(input, geometry)
    if transposed:
        check_room(input, geometry, shape[2:])
    wide = WIDENED.get(x.dtype, x.dtype)
    wide_x, w, b = [None if t is None else cast(t._array, wide) for t in (input, weight, bias)]
    if transposed:
        result = _transposed_forward(wide_x, w, b, shape, geometry, x.dtype)
    else:
        result = _functions(wide_x, w, shape).forward(wide_x, w, b, shape, geometry)
    return _finish(result, input, weight)


def _transposed_forward(x, w, b, shape, geometry, dtype):
    large_padding = any(extra >= s for extra, s in zip(geometry.output_padding, geometry.stride))
    if x.dtype != dtype and (dtype == np.float16 or large_padding):
        # 16-bit numbers that PyTorch does not give to oneDNN: it rounds the product of each kernel element.
        result = kernel_offsets.grad_input(x, w, shape, geometry, dtype)
    else:
        result = _functions(x, w, x.shape).grad_input(x, w, shape, geometry)
    if b is not None:
        result += b.reshape(-1, *[1] * (result.ndim - 2)).astype(result.dtype, copy=False)
    return result


def _of_nothing(x, shape):
    """The result for an input without images or channels."""
    if x.shape[0] and x.shape[1]:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}"
        )
    return wrap(np.zeros((shape[0], shape[1] if x.shape[1] else 0, *shape[2:]), x.dtype))


def _check_dtype(input, geometry):
    """Raises NotImplementedError for the dtypes that PyTorch's loops leave out."""
    dtype, rank = input._array.dtype, 3 if input._array.ndim == 5 else 2
    if geometry.transposed:
        if dtype.kind in "biuc" and dtype != np.int64:
            raise not_implemented(f"slow_conv_transpose{rank}d_out_cpu")(dtype_of(input))
    elif dtype.kind in "bc":
        raise not_implemented(f"slow_conv{rank}d_cpu")(dtype_of(input))


def _functions(x, w, y_shape):
    """The module whose forward, grad_input, grad_weight and grad_bias serve x * w = y."""
    return pixel_rows if pixel_rows.is_worth_it(x, w, y_shape) else kernel_offsets


def _finish(result, *inputs):
    """`result` as a tensor of the inputs' dtype, channels last if one of them is."""
    dtype = inputs[0]._array.dtype
    formats = [suggested_format(t._array) for t in inputs]
    wanted = next((f for f in formats if f is not contiguous_format), None)
    if wanted is None:
        return wrap(cast(result, dtype))
    formatted = allocate_like(result, wanted, dtype)
    np.copyto(formatted, result, casting="unsafe")
    return wrap(formatted)


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


@convolution_backward.kernel
def convolution_backward_cpu(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    """The gradients of input, weight and bias that `output_mask` asks for; None for the others."""
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    if 0 in input._array.shape:
        return _zeros_like(input, weight, bias_sizes, output_mask)
    check_dim_sizes(grad_output, output_shape(input._array.shape, weight._array.shape, geometry))
    wide = WIDENED.get(input._array.dtype, input._array.dtype)
    grad, x, w = [cast(t._array, wide) for t in (grad_output, input, weight)]
    functions = _functions(x, w, x.shape if transposed else grad.shape)
    dx = dw = db = None
    if output_mask[0]:
        dx = (
            functions.forward(grad, w, None, x.shape, geometry)
            if transposed
            else functions.grad_input(grad, w, x.shape, geometry)
        )
    if output_mask[1]:
        dw = functions.grad_weight(*(x, grad) if transposed else (grad, x), w.shape, geometry)
    if output_mask[2]:
        db = functions.grad_bias(grad)
    dx, dw = [None if d is None else _finish(d, input, weight) for d in (dx, dw)]
    return dx, dw, None if db is None else wrap(cast(db, input._array.dtype))


def _zeros_like(input, weight, bias_sizes, output_mask):
    shapes = input._array.shape, weight._array.shape, bias_sizes
    return tuple(
        [wrap(np.zeros(shape, weight._array.dtype)) if wanted else None for shape, wanted in zip(shapes, output_mask)]
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
