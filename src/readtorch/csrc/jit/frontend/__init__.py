"""What writes graphs: the tracer and the compiler. In PyTorch: `torch/csrc/jit/frontend`."""
