"""What `save` and `load` do unless told otherwise. In PyTorch: `torch/utils/serialization/__init__.py`."""

from . import config
