"""The driver and the allocator of this process.

There are none until a program asks for simulated devices.

In PyTorch: the allocator is a global of `c10/cuda/CUDACachingAllocator.cpp` (`get`), made when the library is loaded
and initialised at the first use of a device (`_cuda_init` in `torch/csrc/cuda/Module.cpp`).
"""

from .allocator_config import AllocatorConfig
from .cuda_caching_allocator import CachingAllocator
from .simulated_driver import SimulatedDriver

_config = AllocatorConfig()  # settings may be made before there is a device
_driver = None
_allocator = None


def simulate(devices=1, memory="2GiB", **options):
    """Make `devices` simulated ones (see SimulatedDriver); they replace those of an earlier call.

    Memory that came from the earlier allocator must be given back to that one.
    """
    use(SimulatedDriver(devices, memory, **options))


def use(driver):
    """Let `driver` be the process's driver, with a fresh allocator above it; None: there are no devices any
    more."""
    global _config, _driver, _allocator
    if _driver is not None:  # a new machine: what was set for the old one is forgotten
        _config = AllocatorConfig()
    if not _config.last_settings:
        _config.read_environment()
    _allocator = None if driver is None else CachingAllocator(driver, _config)
    _driver = driver


def config():
    """The settings of the process's allocator."""
    return _config


def is_available():
    """Whether there is a driver."""
    return _driver is not None


def is_simulated(device):
    """Whether that device does not exist, so that its addresses mean nothing outside of this package."""
    return driver().get_device_properties(device).simulated


def driver():
    """The process's driver. AssertionError if there is none."""
    if _driver is None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    return _driver


def allocator():
    """The process's allocator. AssertionError if there is no driver."""
    if _allocator is None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    return _allocator
