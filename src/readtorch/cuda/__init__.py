"""`readtorch.cuda`: devices, their streams, memory and random numbers.

Without a GPU there are no devices until `simulate` makes some (or the variable READTORCH_SIMULATE_CUDA asks for them):
see Note [ Two kinds of simulated devices ]. Until then `is_available()` is False, and using one is PyTorch's error of a
build without CUDA. Real GPUs are looked for at the first use, through NVIDIA's Python bindings, which come with
numba-cuda: `pip install readtorch[cu13]`, or `[cu12]` for drivers older than 580. No run on one has been recorded yet.

In PyTorch: `torch/cuda/__init__.py`. Explained in the chapter "The caching allocator".
"""

from readtorch.c10 import device as c10_device
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda import cuda_stream as c10_stream
from readtorch.c10.cuda.cuda_exception import AcceleratorError, OutOfMemoryError
from readtorch.c10.device import current_device as _current
from readtorch.c10.dispatch_key import CPU, CUDA, SIMULATED_CUDA
from readtorch.csrc.tensor.python_tensor import cuda_types as _types
from readtorch.random import device_modules
from readtorch.storage import legacy_cuda_classes as _legacy_storages
from . import amp, jiterator, memory, nvtx, random, streams
from ._utils import _get_device_index
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from ._nvml import clock_rate, device_memory_used, memory_usage, power_draw, temperature, utilization
from .memory import *  # noqa: F403
from .random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, ExternalStream, Stream

globals().update(_legacy_storages)  # FloatStorage, LongStorage … of a GPU

device_modules["cuda"] = random

# FloatTensor, LongTensor …
globals().update(_types)


# ---------------------------------------------------------------------------------------- simulated devices


def simulate(devices=1, memory="2GiB", **options):
    """Make simulated GPUs, numbered from 0. They have memory, streams and an allocator. They compute with the CPU's
    kernels or, with `kernels=True`, with CUDA kernels on the kernel simulator: Note [ Two kinds of simulated devices ].

    devices: how many; 0: remove them again. memory: of each, in bytes or as in "512MiB"; a list gives each its own.
    options: see `readtorch.c10.cuda.simulated_driver.SimulatedDriver`. Tensors on devices of an earlier call stay valid
    but should not be mixed with new ones.
    """
    if devices:
        runtime.simulate(devices, memory, **options)
        _begin()
    else:
        runtime.use(None)
        c10_device.backend_keys["cuda"] = c10_device.no_cuda
        random.make_generators(0)


def _begin():
    """Let tensors be made on the devices of a new driver."""
    if runtime.driver().runs_kernels:
        from readtorch.aten.native.cuda import register_cuda  # every operator that has a CUDA kernel gets it
    else:
        from readtorch.aten import simulated_device  # its kernels go into the dispatcher's table
    c10_device.backend_keys["cuda"] = _keys
    random.make_generators(runtime.driver().device_count())
    _current.index = 0


def _keys(target):
    if target.index is not None:
        c10_stream.check_index(target.index)
    return CUDA if runtime.driver().runs_kernels else SIMULATED_CUDA | CPU


# --------------------------------------------------------------------------------------------- real devices

_looked = False  # whether real GPUs were looked for already


def _look_for_gpus():
    """Whether there are real GPUs. That there are none (no bindings, no driver, no device) is no error."""
    global _looked
    if _looked or runtime.is_available():
        return False
    _looked = True
    driver = _real_driver()
    if driver is None or not driver.device_count():
        return False
    from readtorch.c10.cuda import numba_memory

    runtime.use(driver)
    numba_memory.install()
    _begin()
    return True


def _real_driver():
    """A driver of real GPUs, or None."""
    try:
        from readtorch.c10.cuda.real_driver import RealDriver

        return RealDriver()
    except (ImportError, RuntimeError, AcceleratorError):  # the bindings raise RuntimeError without libcuda
        return None


c10_device.look_for_devices.append(_look_for_gpus)


def simulate_as_asked(text):
    """Do what READTORCH_SIMULATE_CUDA says: "4:2GiB" is four devices of 2 GiB each. ValueError if it says nothing."""
    devices, _, size = text.partition(":")
    if not devices.isdigit():
        raise ValueError(f"READTORCH_SIMULATE_CUDA should be like '4:2GiB' (devices:memory of each), not {text!r}")
    simulate(int(devices), size or "2GiB")


# -------------------------------------------------------------------------------------------------- devices


def is_available():
    """Whether there is a device that can be used. A simulated one counts."""
    return runtime.is_available() or _look_for_gpus()


def device_count():
    """The number of devices."""
    return runtime.driver().device_count() if is_available() else 0


def is_initialized():
    """Whether devices can be used."""
    return runtime.is_available()


def init():
    """Get ready to use a device; everything that needs one begins with this. Raises AssertionError if there is none."""
    is_available()
    runtime.driver()


_lazy_init = init


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes with bfloat16."""
    return is_available()


def is_tf32_supported():
    """Whether the current device multiplies matrices of float32 in the shorter format TF32."""
    return is_bf16_supported(including_emulation=False)


def get_arch_list():
    """The architectures that this build has kernels for."""
    return []


def get_gencode_flags():
    """The compiler's flags for these architectures: none, since kernels are compiled when they are needed."""
    return ""


def current_device():
    """The number of the device that "cuda" means to this thread."""
    init()
    return _current.index


def set_device(device):
    """Make a device the current one of this thread. Nothing happens for a negative number."""
    index = _get_device_index(device)
    if index >= 0:
        c10_stream.check_index(index)
        _current.index = index


class device:
    """`with device(1):` that device is the current one inside. None or a negative number: nothing changes."""

    def __init__(self, device):
        self.idx = _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = current_device() if is_available() else -1
        if self.idx >= 0:
            set_device(self.idx)

    def __exit__(self, type, value, traceback):
        if self.prev_idx >= 0:
            set_device(self.prev_idx)
        return False


class device_of(device):
    """`with device_of(tensor):` the tensor's device is the current one inside, if it is on a device."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_properties(device=None):
    """What never changes about a device: name, total_memory, multi_processor_count … Raises AssertionError."""
    init()
    index = _get_device_index(device, optional=True)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return runtime.driver().get_device_properties(index)


def get_device_name(device=None):
    """The name of a device (default: the current one), as its driver gives it."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """(major, minor)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device, peer_device):
    """Whether a device may read another's memory directly. Raises AssertionError for a device that is not there."""
    init()
    device, peer_device = _get_device_index(device, optional=True), _get_device_index(peer_device)
    if not 0 <= device < device_count():
        raise AssertionError("Invalid device id")
    if not 0 <= peer_device < device_count():
        raise AssertionError("Invalid peer device id")
    return device != peer_device


def synchronize(device=None):
    """Wait until all streams of a device have done their work."""
    init()
    runtime.driver().device_synchronize(_get_device_index(device, optional=True))


def ipc_collect():
    """Give memory shared with other processes back: nothing is shared here."""


# -------------------------------------------------------------------------------------------------- streams


def current_stream(device=None):
    """The stream on which this thread puts work for a device."""
    init()
    return streams.stream_over(c10_stream.current_stream(_get_device_index(device, optional=True)))


def default_stream(device=None):
    """The stream that is current if no other was chosen."""
    init()
    return streams.stream_over(c10_stream.default_stream(_get_device_index(device, optional=True)))


def set_stream(stream):
    """Make a stream the current one of its device, and its device the current one. None changes nothing."""
    if stream is not None:
        c10_stream.set_current_stream(stream._impl)


class StreamContext:
    """`with stream(s):` work goes to `s` inside. The stream that was current on `s`'s device comes back afterwards."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is None:
            return
        self.previous_device = _current.index
        self.previous = c10_stream.current_stream(self.stream.device_index)
        set_stream(self.stream)

    def __exit__(self, *exception):
        if self.stream is not None:
            c10_stream.set_current_stream(self.previous)
            _current.index = self.previous_device


def stream(stream):
    """A StreamContext: `with stream(s):`."""
    return StreamContext(stream)


# ------------------------------------------------------------------------------------ NVIDIA's own libraries


def cudart():
    """CUDA's runtime library as a module. Raises AssertionError without a device, else NotImplementedError."""
    init()
    raise NotImplementedError("readtorch calls CUDA's driver and has no module of its runtime library")


def current_blas_handle():
    """cuBLAS' handle. Raises AssertionError without a device, else NotImplementedError."""
    init()
    raise NotImplementedError("readtorch multiplies matrices with kernels of its own and has no cuBLAS handle")


def get_sync_debug_mode():
    """0: nothing is said when the program waits for a device."""
    init()
    return 0


_SYNC_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode):
    """Whether waiting for a device warns or raises: "default" (0). "warn" (1) and "error" (2) raise NotImplementedError."""
    init()
    if isinstance(debug_mode, str):
        if debug_mode not in _SYNC_DEBUG_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _SYNC_DEBUG_MODES[debug_mode]
    if debug_mode not in _SYNC_DEBUG_MODES.values():
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    if debug_mode:
        raise NotImplementedError("readtorch does not tell when a program waits for a device")
