"""The old tensor types by name. PyTorch has no such file: C++ has the folder `torch/csrc/tensor`."""
