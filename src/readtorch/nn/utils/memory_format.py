"""The memory order of convolution weights. In PyTorch: `torch/nn/utils/memory_format.py`. See the chapter
"Tensor and Storage" for strides.
"""

from readtorch import nn

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module, memory_format):
    """Lay out the weight of every Conv2d and ConvTranspose2d in `module` in `memory_format`; returns the module."""
    return _convert(module, (nn.Conv2d, nn.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """The same for Conv3d and ConvTranspose3d."""
    return _convert(module, (nn.Conv3d, nn.ConvTranspose3d), memory_format)


def _convert(module, kinds, memory_format):
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone(memory_format=memory_format)
    for child in module.children():
        _convert(child, kinds, memory_format)
    return module
