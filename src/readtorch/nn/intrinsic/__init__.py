"""The older place of `ao.nn.intrinsic`. In PyTorch: `torch/nn/intrinsic/__init__.py`."""

from readtorch.ao.nn.intrinsic import *  # noqa: F403
