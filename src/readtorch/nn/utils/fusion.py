"""Folding a batch norm in eval mode into the layer before it. In PyTorch: `torch/nn/utils/fusion.py`. See
the chapter "Normalization".

With fixed statistics a batch norm multiplies each channel by a number and adds another; so may the layer's weights.
"""

import copy

import readtorch
from readtorch.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_statistics(bn):
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of `conv` that does what `bn(conv(x))` does. transpose: whether `conv` is a transposed convolution.

    Raises AssertionError unless both are in eval mode and `bn` keeps statistics.
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    _check_statistics(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """The weight and bias of the fused convolution, as Parameters. Output channels: dim 0, or 1 if `transpose`."""
    bias_type = conv_w.dtype if conv_b is None else conv_b.dtype
    conv_b = readtorch.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = readtorch.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = readtorch.zeros_like(bn_rm) if bn_b is None else bn_b
    rstd = readtorch.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = (conv_w * (bn_w * rstd).reshape(shape)).to(dtype=conv_w.dtype)
    bias = ((conv_b - bn_rm) * rstd * bn_w + bn_b).to(dtype=bias_type)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear, bn):
    """A copy of `linear` that does what `bn(linear(x))` does; `bn` must have as many features, or one."""
    _check(linear, bn)
    fused = copy.deepcopy(linear)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    _check_statistics(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and bias of the fused linear layer, as Parameters."""
    bias_type = linear_w.dtype if linear_b is None else linear_b.dtype
    linear_b = readtorch.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * readtorch.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_type)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)
