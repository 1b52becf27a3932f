"""Convolutions. In PyTorch: names of `torch/nn/functional.py` for operators of `torch`.

Direct: input (N, C, …) or (C, …), weight (out, C / groups, kernel…), bias (out) or None.
Transposed: weight (C, out / groups, kernel…).
"""

import readtorch

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc"]

conv1d = readtorch.conv1d
conv2d = readtorch.conv2d
conv3d = readtorch.conv3d
conv_transpose1d = readtorch.conv_transpose1d
conv_transpose2d = readtorch.conv_transpose2d
conv_transpose3d = readtorch.conv_transpose3d
conv_tbc = readtorch.conv_tbc
