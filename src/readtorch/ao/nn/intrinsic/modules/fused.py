"""Layers that follow each other, under one name: what quantization replaces by one layer of integers.

In PyTorch: `torch/ao/nn/intrinsic/modules/fused.py`.
"""

from readtorch import nn
from readtorch.nn.utils.parametrize import type_before_parametrizations


class _FusedModule(nn.Sequential):
    """Its layers in a row. Raises AssertionError unless they are of the classes that its name tells."""

    _classes = ()

    def __init__(self, *layers):
        given = [type_before_parametrizations(layer) for layer in layers]
        if given != list(self._classes):
            *first, last = (cls.__name__ for cls in given)
            comma = "," if len(first) > 1 else ""
            raise AssertionError(f"Incorrect types for input modules: {', '.join(first)}{comma} and {last}")
        super().__init__(*layers)


class ConvReLU1d(_FusedModule):
    _classes = (nn.Conv1d, nn.ReLU)


class ConvReLU2d(_FusedModule):
    _classes = (nn.Conv2d, nn.ReLU)


class ConvReLU3d(_FusedModule):
    _classes = (nn.Conv3d, nn.ReLU)


class LinearReLU(_FusedModule):
    _classes = (nn.Linear, nn.ReLU)


class ConvBn1d(_FusedModule):
    _classes = (nn.Conv1d, nn.BatchNorm1d)


class ConvBn2d(_FusedModule):
    _classes = (nn.Conv2d, nn.BatchNorm2d)


class ConvBn3d(_FusedModule):
    _classes = (nn.Conv3d, nn.BatchNorm3d)


class ConvBnReLU1d(_FusedModule):
    _classes = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU)


class ConvBnReLU2d(_FusedModule):
    _classes = (nn.Conv2d, nn.BatchNorm2d, nn.ReLU)


class ConvBnReLU3d(_FusedModule):
    _classes = (nn.Conv3d, nn.BatchNorm3d, nn.ReLU)


class BNReLU2d(_FusedModule):
    _classes = (nn.BatchNorm2d, nn.ReLU)


class BNReLU3d(_FusedModule):
    _classes = (nn.BatchNorm3d, nn.ReLU)


class LinearBn1d(_FusedModule):
    _classes = (nn.Linear, nn.BatchNorm1d)
