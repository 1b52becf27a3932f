"""Rewritings of graphs, one file each. In PyTorch: `torch/csrc/jit/passes`."""
