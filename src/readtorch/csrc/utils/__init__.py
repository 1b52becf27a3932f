"""Tensors from Python values, and memory shared with NumPy. In PyTorch: `torch/csrc/utils`."""
