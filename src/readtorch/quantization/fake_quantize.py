"""The older place of `ao.quantization.fake_quantize`. In PyTorch: `torch/quantization/fake_quantize.py`."""

from readtorch.ao.quantization.fake_quantize import *  # noqa: F403
