"""Tools beside the core: hooks, checkpointing, modes. In PyTorch: `torch/utils`."""
