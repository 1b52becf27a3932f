"""The older name of `GradScaler("cuda")`. In PyTorch: `torch/cuda/amp/grad_scaler.py`; deprecated."""

from readtorch.amp.deprecated import grad_scaler_of

__all__ = ["GradScaler"]

GradScaler = grad_scaler_of("cuda")
