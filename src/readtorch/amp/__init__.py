"""Mixed precision: operands cast by the operator that takes them, and gradients scaled so that float16 can hold them.

In PyTorch: `torch/amp/__init__.py`. Explained in the chapter "Mixed precision".
"""

from .autocast_mode import _enter_autocast, _exit_autocast, autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "GradScaler"]
