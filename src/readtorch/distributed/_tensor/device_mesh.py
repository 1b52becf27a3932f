"""The older name of `distributed.device_mesh`.

In PyTorch: an entry in `sys.modules`, made by `torch/distributed/_tensor/__init__.py`.
"""

from readtorch.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
