"""Whether there is a device to cast on. In PyTorch: `torch/cuda/amp/common.py`."""

from readtorch.amp.autocast_mode import amp_definitely_not_available

__all__ = ["amp_definitely_not_available"]

amp_definitely_not_available.__module__ = __name__
