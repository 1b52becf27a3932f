"""Tensors from Python values, and memory shared with NumPy. In PyTorch: `torch/csrc/utils`. PyTorch has no such file: C++
has the folder.
"""
