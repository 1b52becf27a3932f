"""What `torch` and `torch._C` have of autocast: its switches, and their older names.

In PyTorch: `torch/csrc/autograd/init.cpp`.
"""

import warnings

from readtorch.aten import autocast_mode
from readtorch.c10 import scalar_type


def _checked(function, name, place, value, kind):
    if not isinstance(value, kind):
        expected = "torch.dtype" if kind is scalar_type.dtype else kind.__name__
        raise TypeError(
            f"{function}(): argument '{name}' (position {place}) must be {expected}, not {type(value).__name__}"
        )
    return value


def is_autocast_enabled(device_type="cuda"):
    """Whether this thread casts operands on such devices. RuntimeError for a kind of device without autocast."""
    return autocast_mode.is_autocast_enabled(_checked("is_autocast_enabled", "device_type", 1, device_type, str))


_ONE_OR_TWO = (
    "set_autocast_enabled() received an invalid combination of arguments - got {}, but expected one of:\n"
    " * (str device_type, bool enabled)\n * (bool enabled)\n"
)


def set_autocast_enabled(*arguments):
    """`set_autocast_enabled(device_type, enabled)`; `set_autocast_enabled(enabled)` means "cuda"."""
    if len(arguments) == 1 and isinstance(arguments[0], bool):
        arguments = ("cuda", *arguments)
    if len(arguments) != 2:
        raise TypeError(_ONE_OR_TWO.format(f"({', '.join(type(a).__name__ for a in arguments)})"))
    device_type, enabled = arguments
    _checked("set_autocast_enabled", "device_type", 1, device_type, str)
    _checked("set_autocast_enabled", "enabled", 2, enabled, bool)
    autocast_mode.set_autocast_enabled(device_type, enabled)


def get_autocast_dtype(device_type):
    """To which dtype autocast lowers operands on such devices: by default bfloat16 on the CPU, float16 on CUDA."""
    return autocast_mode.get_autocast_dtype(_checked("get_autocast_dtype", "device_type", 1, device_type, str))


def set_autocast_dtype(device_type, dtype):
    _checked("set_autocast_dtype", "device_type", 1, device_type, str)
    _checked("set_autocast_dtype", "dtype", 2, dtype, scalar_type.dtype)
    autocast_mode.set_autocast_dtype(device_type, dtype)


def is_autocast_cache_enabled():
    return autocast_mode.state.cache_enabled


def set_autocast_cache_enabled(enabled):
    """Keep the casts of weights until the outermost autocast ends, or not."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    autocast_mode.state.cache_enabled = enabled


def clear_autocast_cache():
    autocast_mode.clear_cache()


def autocast_increment_nesting():
    return autocast_mode.increment_nesting()


def autocast_decrement_nesting():
    return autocast_mode.decrement_nesting()


def _is_any_autocast_enabled():
    return autocast_mode.is_any_autocast_enabled()


def _is_autocast_available(device_type):
    return autocast_mode.is_autocast_available(_checked("_is_autocast_available", "device_type", 1, device_type, str))


def _autocast_supported_devices():
    return list(autocast_mode.SUPPORTED_DEVICES)


# ------------------------------------------------------------------------------------------------ the older names


def _deprecated(name, arguments, device_type, function, better):
    """A function of one kind of device, which says what to call in its place."""
    shown = ", ".join((f"'{device_type}'", *arguments))
    message = f"torch.{name}({', '.join(arguments)}) is deprecated. Please use torch.{better}({shown}) instead."

    def older(*values):
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return function(device_type, *values)

    older.__name__ = older.__qualname__ = name
    older.__doc__ = f"In PyTorch: deprecated; `{better}({shown})`."
    return older


def _older_names():
    for short, device_type in (("cpu", "cpu"), ("gpu", "cuda"), ("ipu", "ipu"), ("xla", "xla")):
        if short != "gpu":  # of which the plain names are
            yield f"is_autocast_{short}_enabled", (), device_type, is_autocast_enabled, "is_autocast_enabled"
            yield (
                f"set_autocast_{short}_enabled",
                ("enabled",),
                device_type,
                set_autocast_enabled,
                "set_autocast_enabled",
            )
        yield f"get_autocast_{short}_dtype", (), device_type, get_autocast_dtype, "get_autocast_dtype"
        yield f"set_autocast_{short}_dtype", ("dtype",), device_type, set_autocast_dtype, "set_autocast_dtype"


_OLDER = {name: _deprecated(name, *rest) for name, *rest in _older_names()}
globals().update(_OLDER)

__all__ = [
    "is_autocast_enabled",
    "set_autocast_enabled",
    "get_autocast_dtype",
    "set_autocast_dtype",
    "is_autocast_cache_enabled",
    "set_autocast_cache_enabled",
    "clear_autocast_cache",
    "autocast_increment_nesting",
    "autocast_decrement_nesting",
    *_OLDER,
]

for _name in __all__:  # they are found in `torch`
    globals()[_name].__module__ = "readtorch"
