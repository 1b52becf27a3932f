"""Signal processing: the windows. In PyTorch: `torch/signal/__init__.py`."""

from . import windows

__all__ = ["windows"]
