"""The two gradients of a convolution, each as a function. In PyTorch: `torch/nn/grad.py`. See the chapter
"Layers: convolution, embedding, recurrence".
"""

from readtorch._ops import ops
from readtorch.nn.modules.utils import _pair, _single, _triple


def _convolution_backward(grad_output, input, weight, geometry, groups, wanted):
    stride, padding, dilation = geometry
    return ops.aten.convolution_backward.default(
        grad_output, input, weight, None, stride, padding, dilation, False, [0], groups, wanted
    )


def _input(tuple_of, input_size, weight, grad_output, stride, padding, dilation, groups):
    input = grad_output.new_empty(1).expand(input_size)  # only its sizes count
    geometry = tuple_of(stride), tuple_of(padding), tuple_of(dilation)
    return _convolution_backward(grad_output, input, weight, geometry, groups, (True, False, False))[0]


def _weight(tuple_of, input, weight_size, grad_output, stride, padding, dilation, groups):
    weight = grad_output.new_empty(1).expand(weight_size)
    geometry = tuple_of(stride), tuple_of(padding), tuple_of(dilation)
    return _convolution_backward(grad_output, input, weight, geometry, groups, (False, True, False))[1]


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d's input, of size `input_size`, for the gradient of its output."""
    return _input(_single, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d's weight, of size `weight_size`, for the gradient of its output."""
    return _weight(_single, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d's input, of size `input_size`, for the gradient of its output."""
    return _input(_pair, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d's weight, of size `weight_size`, for the gradient of its output."""
    return _weight(_pair, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d's input, of size `input_size`, for the gradient of its output."""
    return _input(_triple, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d's weight, of size `weight_size`, for the gradient of its output."""
    return _weight(_triple, input, weight_size, grad_output, stride, padding, dilation, groups)
