"""Layers whose numbers are small integers. In PyTorch: `torch/ao/nn/quantized/__init__.py`.

Left out: layers between quantized tensors (`Linear`, `Conv2d` …), since readtorch has no such tensors.
"""

from . import dynamic
from .modules.functional_modules import FloatFunctional

__all__ = ["FloatFunctional", "dynamic"]
