"""Graphs as Python text, and archives. In PyTorch: `torch/csrc/jit/serialization`."""
