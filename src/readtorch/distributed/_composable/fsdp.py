"""The place that `fully_shard` had before it was public. In PyTorch: `torch/distributed/_composable/fsdp/__init__.py`."""

from readtorch.distributed.fsdp import *  # noqa: F403
from readtorch.distributed.fsdp import __all__  # noqa: F401
