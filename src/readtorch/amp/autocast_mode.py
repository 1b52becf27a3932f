"""`autocast`, the region in which operands are cast, and what a custom Function needs to run within one.

What casts is a dispatch key: aten/autocast_mode.py. Here is what switches it on and off.
In PyTorch: `torch/amp/autocast_mode.py`. Explained in the chapter "Mixed precision".
"""

import collections.abc
import functools
import warnings
from importlib.util import find_spec

import numpy as np

from readtorch.aten.autocast_mode import is_eligible
from readtorch.aten.torch_function import mode_enabled
from readtorch.c10.cuda import runtime
from readtorch.c10.scalar_type import bfloat16, float16
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.autograd import autocast_init as switches
from readtorch.csrc.utils.disable_torch_function import handle_torch_function

__all__ = ["autocast_decorator", "autocast", "is_autocast_available", "custom_fwd", "custom_bwd"]


def is_autocast_available(device_type):
    """Whether there is autocast for a kind of device. RuntimeError for a name that is none."""
    return switches._is_autocast_available(device_type)


def autocast_decorator(autocast_instance, func):
    """`func` within `autocast_instance`."""

    @functools.wraps(func)
    def decorate_autocast(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    decorate_autocast.__script_unsupported = "@autocast() decorator is not supported in script mode"
    return decorate_autocast


class autocast:
    """`with autocast("cpu"):` casts the operands of matrix products and their like to `dtype`, of losses and their like to float32.

    device_type: "cpu", "cuda" … dtype: default `get_autocast_dtype(device_type)`. cache_enabled: whether casts of weights are kept
    until the outermost region ends. Belongs to the thread. Also decorates a function.
    ValueError if device_type is not a str, RuntimeError if such devices have no autocast; a dtype that they do not support
    gives a warning and an autocast that does nothing. Explained in the chapter "Mixed precision".
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        check_device_type(device_type)
        self.fast_dtype = switches.get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.custom_backend_name = "privateuseone"
        if device_type == self.custom_backend_name:
            raise AssertionError(_NO_CUSTOM_BACKEND)
        self._cache_enabled = switches.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        why_not = enabled and _why_not(device_type, self.fast_dtype)
        if why_not:
            warnings.warn(why_not, stacklevel=2)
        self._enabled = enabled and not why_not

    def __enter__(self):
        self.prev_cache_enabled = switches.is_autocast_cache_enabled()
        self.prev = switches.is_autocast_enabled(self.device)
        self.prev_fastdtype = switches.get_autocast_dtype(self.device)
        switches.set_autocast_enabled(self.device, self._enabled)
        switches.set_autocast_dtype(self.device, self.fast_dtype)
        switches.autocast_increment_nesting()
        switches.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        if switches.autocast_decrement_nesting() == 0:
            switches.clear_autocast_cache()
        switches.set_autocast_enabled(self.device, self.prev)
        switches.set_autocast_dtype(self.device, self.prev_fastdtype)
        switches.set_autocast_cache_enabled(self.prev_cache_enabled)
        return False

    def __call__(self, func):
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


_NO_CUSTOM_BACKEND = (
    "Tried to use AMP with the `privateuseone` backend, but the backend has not registered a module or  the module miss some "
    "necessary funcs. The backend should register a module by `torch._register_device_module`, and the module must have these "
    "funcs: \n`get_amp_supported_dtype() -> List[torch.dtype]`. \n"
)


def amp_definitely_not_available():
    """Whether there is neither a CUDA device, simulated ones included, nor torch_xla. In PyTorch: `torch/cuda/amp/common.py`."""
    return not (runtime.is_available() or find_spec("torch_xla"))


def _why_not(device_type, dtype):
    """Why a region for such devices does nothing; None if it does something."""
    if device_type == "cuda":
        missing = amp_definitely_not_available()
        return "CUDA is not available or torch_xla is imported. Disabling autocast." if missing else None
    if dtype in (bfloat16, float16):
        return None
    name = device_type.upper()
    return (
        f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
        f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
    )


class _UnmanagedAutocast(autocast):
    """One that was entered by a call and not by `with`."""


def _enter_autocast(*vals):
    """What a trace writes where a region begins; modes of functions see it."""
    if mode_enabled():
        return handle_torch_function(_enter_autocast, [], *vals)
    mode = _UnmanagedAutocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode):
    if mode_enabled():
        return handle_torch_function(_exit_autocast, [], mode)
    mode.__exit__(None, None, None)


# ------------------------------------------------------------------------------------------------ custom Functions


def _cast(value, device_type, dtype):
    """`value` with the floating-point tensors in it, however deep, cast to `dtype`."""
    if isinstance(value, TensorImpl):
        return value.to(dtype) if is_eligible(value, device_type) else value
    if isinstance(value, (str, bytes, np.ndarray)):  # iterables with nothing to cast in them
        return value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, collections.abc.Iterable):
        cast = (_cast(v, device_type, dtype) for v in value)
        return type(value)(cast) if isinstance(value, (list, tuple)) else cast
    return value


def check_device_type(device_type):
    """ValueError if it is no str."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates `forward` of a custom Function that may be called within autocast.

    cast_inputs: the dtype to which its tensors are cast; `forward` then runs with autocast off. None: it runs as the caller does.
    Outside autocast nothing is changed. ValueError if device_type is not a str.
    """
    check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args, **kwargs):
        context = args[0]
        context._autocast_dtype = switches.get_autocast_dtype(device_type)
        inside = switches.is_autocast_enabled(device_type)
        context._fwd_used_autocast = inside and cast_inputs is None
        if not inside or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd=None, *, device_type):
    """Decorates `backward` of a custom Function, which then runs with autocast as `forward` did. ValueError as of custom_fwd."""
    check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args, **kwargs):
        with autocast(device_type=device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._autocast_dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
