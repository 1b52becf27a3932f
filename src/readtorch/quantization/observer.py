"""The older place of `ao.quantization.observer`. In PyTorch: `torch/quantization/observer.py`."""

from readtorch.ao.quantization.observer import *  # noqa: F403
