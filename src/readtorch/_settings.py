"""Settings of the whole process: the default device, determinism, precision of matrix products.

In PyTorch: part of `torch/__init__.py`. Explained in the chapter "import torch".
"""

import threading

import readtorch

from .aten.context import context
from .aten.float32_precision import float32_precision
from .c10.device import cpu

_DEBUG_MODES = ("default", "warn", "error")


class _GlobalDeviceContext(threading.local):
    """The DeviceContext that `set_default_device` has entered in this thread, or None."""

    device_context = None


_global_device_context = _GlobalDeviceContext()


def set_default_device(device):
    """Where tensors are made if a call does not say where; None stands for the CPU. See also `with device(...)`.

    Enters a mode of functions, in this thread, which every call of the package pays for: see `utils._device.DeviceContext`.
    """
    if _global_device_context.device_context is not None:
        _global_device_context.device_context.__exit__(None, None, None)
    entered = None if device is None else readtorch.utils._device.DeviceContext(device)
    if entered is not None:
        entered.__enter__()
    _global_device_context.device_context = entered


def get_default_device():
    """The device of tensors that are made here and now."""
    mode = readtorch.utils._device.current_context() or _global_device_context.device_context
    if mode is None:
        return cpu
    return readtorch.tensor([]).device if mode.device.index is None else mode.device


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Have operators raise, or with `warn_only` warn, which in PyTorch do not give the same bits every time, and fill
    memory that nothing is written to: Note [ Deterministic algorithms ]. Raises TypeError for no bool.
    """
    context.set_deterministic(mode, warn_only)


def are_deterministic_algorithms_enabled():
    """Whether `use_deterministic_algorithms` is on."""
    return context.deterministic


def is_deterministic_algorithms_warn_only_enabled():
    """Whether it only warns."""
    return context.deterministic_warn_only


def set_deterministic_debug_mode(debug_mode):
    """The same by name or number: "default" or 0, "warn" or 1, "error" or 2. Raises RuntimeError, TypeError."""
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    context.set_deterministic(debug_mode > 0, debug_mode == 1)


def get_deterministic_debug_mode():
    """0, 1 or 2: see `set_deterministic_debug_mode`."""
    if not context.deterministic:
        return 0
    return 1 if context.deterministic_warn_only else 2


def set_float32_matmul_precision(precision):
    """ "highest", "high" or "medium": how far products of float32 matrices may be rounded. Here they never are."""
    float32_precision.set_matmul(precision)


def get_float32_matmul_precision():
    """What `set_float32_matmul_precision` has set. RuntimeError if `backends` was told something else since."""
    return float32_precision.matmul()
