"""The autocast kernel of a custom operator. In PyTorch: in `torch/library.py` and `torch/_library/custom_ops.py`."""

from readtorch.amp.autocast_mode import _cast
from readtorch.aten.autocast_mode import KEYS
from readtorch.c10.local_dispatch_key_set import KeyGuard
from readtorch.csrc.autograd.autocast_init import _is_autocast_available


def check_available(device_type):
    """ValueError for a kind of device without autocast."""
    if not _is_autocast_available(device_type):
        raise ValueError(f"Device type '{device_type}' does not support autocast.")


def autocast_key(device_type):
    """The name of the dispatch key of a kind of device."""
    return "AutocastCPU" if device_type == "cpu" else f"Autocast{device_type.upper()}"


def autocast_kernel(overload, device_type, cast_inputs):
    """What runs at that key: the operator on cast inputs, with autocast off."""

    def kernel(_, *args, **kwargs):
        if kwargs:
            raise AssertionError(f"Custom ops do not support kwargs yet, got {list(kwargs)}")
        with KeyGuard(exclude=KEYS.get(device_type, 0)):
            return overload(*_cast(args, device_type, cast_inputs))

    return kernel
