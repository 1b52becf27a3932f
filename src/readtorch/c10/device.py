"""Where a tensor's bytes live.

In PyTorch: `c10/core/Device.h`, `torch/csrc/Device.cpp`. Explained in the chapter "Tensor and Storage".
"""

import functools
import operator
import re
import threading

from .dispatch_key import BACKENDS, CPU, CUDA, META

_TYPES = ("cpu", "cuda", "meta")
# Kinds that PyTorch knows and this book does not build: such a device can be named and compared, and holds no tensors.
_FOREIGN = (
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "hpu",
    "mtia",
    "privateuseone",
)


_WRITTEN = re.compile(r"([A-Za-z_]+)(?::(0|[1-9][0-9]*))?")


def _parse(text):
    if not text:
        raise RuntimeError("Device string must not be empty")
    written = _WRITTEN.fullmatch(text)
    if not written:
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, index = written.groups()
    if kind not in _TYPES and kind not in _FOREIGN:
        raise RuntimeError(
            "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
            f"mps, meta, hpu, mtia, privateuseone device type at start of device string: {kind}"
        )
    return kind, None if index is None else int(index)


def _checked(kind, index):
    """The index of a device of its own argument as an int. Raises TypeError, RuntimeError."""
    if not isinstance(kind, str):
        name = "torch.device" if isinstance(kind, device) else type(kind).__name__
        raise TypeError(f"device(): argument 'type' (position 1) must be str, not {name}")
    try:
        number = None if isinstance(index, bool) else operator.index(index)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {type(index).__name__}")
    return _not_negative(number)


def _not_negative(number):
    if number < 0:
        raise RuntimeError("Device index must not be negative")
    return number


class device:
    """`device("cuda:1")`, `device("cuda", 1)`, `device(1)` or `device("cpu")`. Immutable, hashable, a context manager.

    Raises RuntimeError for a kind that is not known.
    """

    __slots__ = ("type", "index", "_previous")

    def __init__(self, type, index=None):
        if index is not None:
            index = _checked(type, index)
        if isinstance(type, device):
            kind, own_index = type.type, type.index
        elif isinstance(type, int) and not isinstance(type, bool):
            kind, own_index = "cuda", _not_negative(type)
        elif isinstance(type, str):
            kind, own_index = _parse(type)
        else:
            raise TypeError(
                f"device() received an invalid combination of arguments - got ({type.__class__.__name__}), but expected "
                "one of:\n * (torch.device device)\n      didn't match because some of the arguments have invalid types: "
                f"(!{type.__class__.__name__}!)\n * (str type, int index = -1)\n"
            )
        if index is not None and own_index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", own_index if index is None else index)

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return (device, (self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self):
        push, _ = as_context
        push(self)
        return self

    def __exit__(self, *exception):
        _, pop = as_context
        pop()


# What `with device(...)` does on the way in, given the device, and out. `readtorch.utils._device` puts it here; in PyTorch the C++ of
# devices imports that module.
as_context = []

cpu = device("cpu")


@functools.cache
def cuda_device(index):
    """The device of that number, the same object each time."""
    return device("cuda", index)


class _CurrentDevice(threading.local):
    """The number of the accelerator that "cuda" means to this thread (`cudaGetDevice`)."""

    index = 0


current_device = _CurrentDevice()


# --------------------------------------------------------------------------------------- tensors on a device

# Functions that are called when a device is wanted and there is none: each looks for real GPUs and, if it finds some,
# puts their keys into `backend_keys`. `readtorch.cuda` adds its own.
look_for_devices = []


def no_cuda(target):
    if is_faked():
        return CUDA
    for look in look_for_devices:
        if look():
            return backend_keys["cuda"](target)
    raise AssertionError("Torch not compiled with CUDA enabled")


def has_accelerator():
    """Whether tensors can be made on a CUDA device; looks for real ones first."""
    return backend_keys["cuda"] is not no_cuda or any(look() for look in look_for_devices)


def is_faked():
    """Whether this thread has a FakeTensorMode, under which devices need not be there."""
    from .torch_dispatch_mode_tls import _TorchDispatchModeKey, get_mode, mode_tls  # they are above this module

    return bool(mode_tls.modes) and get_mode(_TorchDispatchModeKey.FAKE) is not None


def _no_such_device(target):
    raise RuntimeError(f"readtorch has no '{target.type}' device: it knows {', '.join(_TYPES)}")


# Device type -> function(device) that returns the dispatch keys of tensors there, or raises if there can be none.
# `readtorch.cuda` puts its own here when there are devices.
backend_keys = {"cpu": lambda target: CPU, "cuda": no_cuda, "meta": lambda target: META}
backend_keys.update(dict.fromkeys(_FOREIGN, _no_such_device))


def keys_on(target, keys):
    """The key set of an operator call whose result is to be on `target` (None: the CPU)."""
    target = cpu if target is None else target
    return keys & ~BACKENDS | backend_keys[target.type](target)
