"""Convolution of signals, images and volumes, its transposed form, and the gradients of two orders.

In PyTorch: `aten/src/ATen/native/Convolution.cpp`.
"""

from . import backend, conv, convolution, double_backward, kernel_offsets, params, pixel_rows
