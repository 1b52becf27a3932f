"""The older name of `GradScaler("cpu")`. In PyTorch: `torch/cpu/amp/grad_scaler.py`; deprecated."""

from readtorch.amp.deprecated import grad_scaler_of

__all__ = ["GradScaler"]

GradScaler = grad_scaler_of("cpu")
