"""The older place of `ao.quantization.qconfig`. In PyTorch: `torch/quantization/qconfig.py`."""

from readtorch.ao.quantization.qconfig import *  # noqa: F403
