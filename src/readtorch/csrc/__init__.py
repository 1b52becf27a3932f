"""csrc: the engine rooms between the operators and Python. In PyTorch: `torch/csrc`."""
