"""What the loader and its workers have in common. In PyTorch: `torch/utils/data/_utils`."""
from . import collate, fetch  # noqa: F401
