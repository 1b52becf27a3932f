"""The old tensor types by name. In PyTorch: `torch/csrc/tensor`."""
