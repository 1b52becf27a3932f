"""What `save` and `load` do unless told otherwise. In PyTorch: `torch/utils/serialization`."""
from . import config  # noqa: F401
