"""Changes to a module that leave it the object it is. In PyTorch: `torch/distributed/_composable/__init__.py`."""

from . import fsdp
