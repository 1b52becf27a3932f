"""The older place of `ao.nn.quantized.dynamic`. In PyTorch: `torch/nn/quantized/dynamic/__init__.py`."""

from readtorch.ao.nn.quantized.dynamic import Linear

__all__ = ["Linear"]
