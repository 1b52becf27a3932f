"""Convolutions, of any number of dimensions, and transposed ones.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`.
"""

from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import parse_args, sizes


@onnx_symbolic("aten::_convolution")
@parse_args("v", "v", "v", "is", "is", "is", "b", "is", "i", "none", "none", "none", "none")
def _convolution(g, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *flags):
    """A trace writes every convolution down like this. ONNX wants padding for the beginnings, then for the
    ends.
    """
    return g.op(
        "ConvTranspose" if transposed else "Conv",
        *[input, weight] if bias is None else [input, weight, bias],
        kernel_shape_i=sizes(weight, "convolution")[2:],
        strides_i=stride,
        pads_i=padding + padding,
        dilations_i=dilation,
        group_i=groups,
        output_padding_i=output_padding if transposed and any(output_padding) else None,
    )


@onnx_symbolic("aten::_convolution_mode")
@parse_args("v", "v", "v", "is", "s", "is", "i")
def _convolution_mode(g, input, weight, bias, stride, padding, dilation, groups):
    """padding="same" or "valid"; of an odd sum the end gets one more, as in PyTorch."""
    kernel = sizes(weight, "convolution")[2:]
    both = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, kernel)]
    return g.op(
        "Conv",
        *[input, weight] if bias is None else [input, weight, bias],
        kernel_shape_i=kernel,
        strides_i=stride,
        pads_i=[n // 2 for n in both] + [n - n // 2 for n in both],
        dilations_i=dilation,
        group_i=groups,
    )


def _convolution_of_schema(transposed):
    """conv2d and the like, for graphs that have them: the same with other arguments."""

    @parse_args("v", "v", "v", "is", "v", "is", "i")
    def conv(g, input, weight, bias, stride, padding, dilation, groups):
        if padding.node().kind() == "prim::Constant":  # a string
            return _convolution_mode(g, input, weight, bias, stride, padding, dilation, groups)
        return _convolution(g, input, weight, bias, stride, padding, dilation, False, [], groups)

    @parse_args("v", "v", "v", "is", "is", "is", "i", "is")
    def conv_transpose(g, input, weight, bias, stride, padding, output_padding, groups, dilation):
        return _convolution(g, input, weight, bias, stride, padding, dilation, True, output_padding, groups)

    return conv_transpose if transposed else conv


onnx_symbolic("aten::conv1d", "aten::conv2d", "aten::conv3d")(_convolution_of_schema(False))
onnx_symbolic("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d")(
    _convolution_of_schema(True)
)
