"""Tensors from Python values, and memory shared with NumPy. PyTorch has no such file: C++ has the folder `torch/csrc/utils`."""
