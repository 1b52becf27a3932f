"""The older place of `ao.quantization.quantize`. In PyTorch: `torch/quantization/quantize.py`."""

from readtorch.ao.quantization.quantize import *  # noqa: F403
