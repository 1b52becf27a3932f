"""Whole layers as single operators, where PyTorch calls oneDNN, once named MKL-DNN. Here the loops are compiled from
Python.

In PyTorch: `aten/src/ATen/native/mkldnn`, of which `RNN.cpp` is the part that exists here.
"""

from . import rnn
