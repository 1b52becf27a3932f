"""Layers that make integers of their inputs themselves, and floats of their results. In PyTorch:
`torch/ao/nn/quantized/dynamic/__init__.py`. Left out: all but `Linear`.
"""

from .modules.linear import Linear

__all__ = ["Linear"]
