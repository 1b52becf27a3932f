"""Which layers are fused, and how. In PyTorch: `torch/ao/quantization/fuser_method_mappings.py`.

A batch norm is folded into the layer before it, or kept behind it where quantization is trained (`is_qat`): its statistics are
still to be learned.
"""

from readtorch import nn
from readtorch.ao.nn import intrinsic
from readtorch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse_conv_bn", "fuse_conv_bn_relu", "fuse_linear_bn", "fuse_convtranspose_bn", "get_fuser_method"]

_CONV_BN = {nn.Conv1d: intrinsic.ConvBn1d, nn.Conv2d: intrinsic.ConvBn2d, nn.Conv3d: intrinsic.ConvBn3d}
_CONV_BN_RELU = {
    nn.Conv1d: intrinsic.ConvBnReLU1d,
    nn.Conv2d: intrinsic.ConvBnReLU2d,
    nn.Conv3d: intrinsic.ConvBnReLU3d,
}
_CONV_RELU = {nn.Conv1d: intrinsic.ConvReLU1d, nn.Conv2d: intrinsic.ConvReLU2d, nn.Conv3d: intrinsic.ConvReLU3d}


def fuse_conv_bn(is_qat, conv, bn):
    """A convolution and a batch norm as one layer."""
    _check_mode(conv, bn, "Conv and BN")
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_norm(bn, conv.out_channels, "Output channel of Conv2d must match num_features of BatchNorm2d.", 2)
    return _class_of(_CONV_BN, conv, "train", (conv, bn))(conv, bn)


def fuse_conv_bn_relu(is_qat, conv, bn, relu):
    """A convolution, a batch norm and a ReLU as one layer."""
    if not conv.training == bn.training == relu.training:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")
    if not is_qat:
        cls = _class_of(_CONV_RELU, conv, "eval", (conv, bn, relu))
        return cls(fuse_conv_bn_eval(conv, bn), relu)
    _check_norm(bn, conv.out_channels, "Output channel of Conv2d must match num_features of BatchNorm2d", 2)
    return _class_of(_CONV_BN_RELU, conv, "train", (conv, bn, relu))(conv, bn, relu)


def fuse_linear_bn(is_qat, linear, bn):
    """A linear layer and a batch norm as one layer."""
    _check_mode(linear, bn, "Linear and BN")
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _check_norm(bn, linear.out_features, "Output features of Linear must match num_features of BatchNorm1d", 1)
    return intrinsic.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat, convt, bn):
    """A transposed convolution and a batch norm as one layer."""
    _check_mode(convt, bn, "ConvTranspose and BN")
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")  # noqa: TRY002  as PyTorch
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _check_mode(layer, bn, names):
    if layer.training != bn.training:
        raise AssertionError(f"{names} both must be in the same mode (train or eval).")


def _check_norm(bn, channels, message, dims):
    if bn.num_features != channels:
        raise AssertionError(message)
    if not bn.affine:
        raise AssertionError(f"Only support fusing BatchNorm{dims}d with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(f"Only support fusing BatchNorm{dims}d with tracking_running_stats set to True")


def _class_of(classes, conv, mode, layers):
    if type(conv) not in classes:
        raise NotImplementedError(f"Cannot fuse {mode} modules: {layers}")
    return classes[type(conv)]


def _in_a_row(cls):
    return lambda is_qat, first, second: cls(first, second)


_FUSER_METHODS = {
    **{cls._classes: fuse_conv_bn for cls in _CONV_BN.values()},
    **{cls._classes: fuse_conv_bn_relu for cls in _CONV_BN_RELU.values()},
    **{cls._classes: _in_a_row(cls) for cls in _CONV_RELU.values()},
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _in_a_row(intrinsic.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _in_a_row(intrinsic.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _in_a_row(intrinsic.BNReLU3d),
    (nn.ConvTranspose1d, nn.BatchNorm1d): fuse_convtranspose_bn,
    (nn.ConvTranspose2d, nn.BatchNorm2d): fuse_convtranspose_bn,
    (nn.ConvTranspose3d, nn.BatchNorm3d): fuse_convtranspose_bn,
}


def get_fuser_method(op_list, additional_fuser_method_mapping=None):
    """The function `(is_qat, *layers) -> layer` for a tuple of classes. Raises AssertionError if there is none."""
    method = {**_FUSER_METHODS, **(additional_fuser_method_mapping or {})}.get(op_list)
    if method is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return method
