"""Where Python and TorchScript meet: calls, values, warnings. In PyTorch: `torch/csrc/jit/python`."""
