"""Helpers of the C++ room that have no better place. In PyTorch: `torch/csrc/utils`."""
