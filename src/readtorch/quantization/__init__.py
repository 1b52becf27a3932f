"""The older place of `ao.quantization`. In PyTorch: `torch/quantization/__init__.py`."""

from readtorch.ao.quantization import *  # noqa: F403

from . import fake_quantize, observer, qconfig
from .quantize import quantize, quantize_dynamic
