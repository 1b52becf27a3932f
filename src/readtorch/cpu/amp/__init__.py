"""Older names of `readtorch.amp` for the CPU. In PyTorch: `torch/cpu/amp/__init__.py`."""

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["autocast", "GradScaler"]
