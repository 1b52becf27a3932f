"""The older names of `autocast("cuda")` and its decorators. In PyTorch: `torch/cuda/amp/autocast_mode.py`; deprecated."""

from readtorch.amp.deprecated import autocast_of, custom_bwd_of_cuda, custom_fwd_of_cuda
from readtorch.c10.scalar_type import float16

__all__ = ["autocast", "custom_fwd", "custom_bwd"]

autocast = autocast_of("cuda", float16)
custom_fwd, custom_bwd = custom_fwd_of_cuda, custom_bwd_of_cuda
