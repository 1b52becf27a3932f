"""The place that DTensor had before it was public.

In PyTorch: `torch/distributed/_tensor/__init__.py`.
"""

from readtorch.distributed.tensor import *  # noqa: F403
from readtorch.distributed.device_mesh import DeviceMesh, init_device_mesh

from . import device_mesh, experimental
