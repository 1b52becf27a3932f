"""The old tensor types by name. In PyTorch: `torch/csrc/tensor`. PyTorch has no such file: C++
has the folder.
"""
