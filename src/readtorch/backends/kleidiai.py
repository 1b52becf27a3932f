"""Arm's library of small kernels: not here. In PyTorch: `torch/backends/kleidiai/__init__.py`."""


def is_available():
    """Whether the library is there."""
    return False
