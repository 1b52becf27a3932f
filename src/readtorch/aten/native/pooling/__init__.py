"""Pooling: one element from each window of a signal, an image or a volume.

In PyTorch: `aten/src/ATen/native/Pooling.cpp`.
"""

from . import adaptive, average, fractional_max_pooling, max, max_unpooling, windows
