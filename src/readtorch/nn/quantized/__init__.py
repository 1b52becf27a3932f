"""The older place of `ao.nn.quantized`. In PyTorch: `torch/nn/quantized/__init__.py`."""

from readtorch.ao.nn.quantized import FloatFunctional

from . import dynamic

__all__ = ["FloatFunctional", "dynamic"]
