"""The transforms of `aten/functorch` as Python calls them. In PyTorch: `torch/csrc/functorch/init.h`."""
