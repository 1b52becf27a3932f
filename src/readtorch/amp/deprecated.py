"""The older names of autocast and GradScaler, one set for each kind of device: `torch.cuda.amp.autocast()` and the like.

In PyTorch: `torch/cuda/amp/autocast_mode.py`, `torch/cpu/amp/autocast_mode.py` and the like, each written out.
"""

import warnings

from .autocast_mode import autocast, custom_bwd, custom_fwd
from .grad_scaler import GradScaler


def _warn(older, better):
    message = f"`torch.{older}` is deprecated. Please use `torch.amp.{better}` instead."
    warnings.warn(message, FutureWarning, stacklevel=3)


def autocast_of(device_type, default_dtype):
    """The class `autocast(enabled=True, dtype=…, cache_enabled=True)` of one kind of device, which warns."""

    class autocast_of_device(autocast):
        __doc__ = f'Deprecated: `readtorch.amp.autocast("{device_type}", …)`.'

        def __init__(self, enabled=True, dtype=default_dtype, cache_enabled=True):
            _warn(f"{device_type}.amp.autocast(args...)", f"autocast('{device_type}', args...)")
            super().__init__(device_type, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    return _named(autocast_of_device, "autocast", f"{device_type}.amp.autocast_mode")


def grad_scaler_of(device_type):
    """The class GradScaler of one kind of device, which warns."""

    class GradScalerOfDevice(GradScaler):
        __doc__ = f'Deprecated: `readtorch.amp.GradScaler("{device_type}", …)`.'

        def __init__(
            self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True
        ):
            _warn(f"{device_type}.amp.GradScaler(args...)", f"GradScaler('{device_type}', args...)")
            super().__init__(device_type, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    return _named(GradScalerOfDevice, "GradScaler", f"{device_type}.amp.grad_scaler")


def _named(made, name, module):
    made.__name__ = made.__qualname__ = name
    made.__module__ = f"readtorch.{module}"
    return made


def custom_fwd_of_cuda(fwd=None, *, cast_inputs=None):
    """Deprecated: `readtorch.amp.custom_fwd(…, device_type="cuda")`."""
    _warn("cuda.amp.custom_fwd(args...)", "custom_fwd(args..., device_type='cuda')")
    return custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd_of_cuda(bwd):
    """Deprecated: `readtorch.amp.custom_bwd(…, device_type="cuda")`."""
    _warn("cuda.amp.custom_bwd(args...)", "custom_bwd(args..., device_type='cuda')")
    return custom_bwd(bwd, device_type="cuda")


for _made, _name in ((custom_fwd_of_cuda, "custom_fwd"), (custom_bwd_of_cuda, "custom_bwd")):
    _named(_made, _name, "cuda.amp.autocast_mode")
