"""The accelerator that this machine has, whatever its kind: here CUDA's devices, on a GPU or simulated.

In PyTorch: `torch/accelerator/__init__.py`; there it may also be an XPU, MPS … See the chapter "The caching allocator".
"""

from readtorch import cuda
from readtorch.c10.device import device as Device

from .memory import empty_host_cache

__all__ = [
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_host_cache",
    "is_available",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available():
    """Whether there is an accelerator that can be used."""
    return cuda.is_available()


def device_count():
    """The number of its devices; 0 without one."""
    return cuda.device_count()


def current_accelerator(check_available=False):
    """A `device` without a number, such as `device("cuda")`, or None. Here one that is there can be used."""
    return Device("cuda") if is_available() else None


def current_device_index():
    """The number of the device that is current in this thread. RuntimeError if there is none."""
    _require()
    return cuda.current_device()


def set_device_index(device, /):
    """Make a device, or the device of that number, the current one of this thread."""
    _require()
    cuda.set_device(_index(device))


def current_stream(device=None, /):
    """The stream on which this thread puts work for a device."""
    _require()
    return cuda.current_stream(_index(device, optional=True))


def set_stream(stream):
    """Make a stream the current one of its device, and its device the current one."""
    _require()
    cuda.set_stream(stream)


def synchronize(device=None, /):
    """Wait until all streams of a device have done their work."""
    _require()
    cuda.synchronize(_index(device, optional=True))


class device_index:
    """`with device_index(1):` that device is the current one inside. None: nothing changes."""

    def __init__(self, device, /):
        self.idx = device
        self.prev_idx = -1

    def __enter__(self):
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc_info):
        if self.idx is not None:
            set_device_index(self.prev_idx)


def _require():
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def _index(device, optional=False):
    """The number that a device, its name or a number stands for. Raises ValueError for a device of another kind."""
    if isinstance(device, int):
        return device
    place = Device(device) if isinstance(device, str) else device
    if place is not None and place.type != "cuda":
        raise ValueError(f"{place.type} doesn't match the current accelerator {current_accelerator()}.")
    if place is None or place.index is None:
        if not optional:
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{place}")
        return cuda.current_device()
    return place.index
