"""What runs graphs: operators and the interpreter. In PyTorch: `torch/csrc/jit/runtime`."""
