"""Signal processing: the windows. In PyTorch: `torch/signal/__init__.py`."""
from . import windows  # noqa: F401

__all__ = ["windows"]
