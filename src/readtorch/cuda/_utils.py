"""What `device` arguments mean.

In PyTorch: `torch/cuda/_utils.py`.
"""

from readtorch.c10.device import current_device
from readtorch.c10.device import device as Device


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device given as a number, a name or a `device`; of the current one for "cuda" or, if optional,
    None.

    With allow_cpu, -1 for the CPU. Raises ValueError for what is no such device.
    """
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = Device(device)
    if isinstance(device, Device):
        if device.type not in (("cuda", "cpu") if allow_cpu else ("cuda",)):
            raise ValueError(f"Expected a cuda{' or cpu' if allow_cpu else ''} device, but got: {device}")
        if device.type == "cpu":
            return -1
        return current_device.index if device.index is None else device.index
    if device is None and optional:
        return current_device.index
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
