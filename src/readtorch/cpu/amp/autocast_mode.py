"""The older name of `autocast("cpu")`. In PyTorch: `torch/cpu/amp/autocast_mode.py`; deprecated."""

from readtorch.amp.deprecated import autocast_of
from readtorch.c10.scalar_type import bfloat16

__all__ = ["autocast"]

autocast = autocast_of("cpu", bfloat16)
