"""Whole layers as single operators, where PyTorch calls oneDNN (once called MKL-DNN). Here the loops are compiled from Python.

In PyTorch: `aten/src/ATen/native/mkldnn`.
"""
from . import rnn  # noqa: F401
