"""Seeds and states of the default generators.

In PyTorch: `torch/random.py`. Explained in the chapter "Where numbers come from: init and random".
"""

import contextlib

from .c10.device import device as Device
from .csrc.generator import Generator, default_generator

__all__ = ["set_rng_state", "get_rng_state", "manual_seed", "seed", "initial_seed", "fork_rng", "thread_safe_generator"]

# Other devices: type -> module with manual_seed_all, device_count, get_rng_state(index), set_rng_state(state,
# index).
device_modules = {}


def set_rng_state(new_state):
    """Continue the CPU's random numbers from a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


def get_rng_state():
    """The state of the CPU's random numbers, a ByteTensor of 5056 bytes."""
    return default_generator.get_state()


def manual_seed(seed) -> Generator:
    """Start the random numbers of every device from `seed`; returns the CPU's generator."""
    seed = int(seed)
    for module in device_modules.values():
        module.manual_seed_all(seed)
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the random numbers of every device from a seed that cannot be predicted; returns it."""
    chosen = default_generator.seed()
    for module in device_modules.values():
        module.manual_seed_all(chosen)
    return chosen


def initial_seed() -> int:
    """The seed that the CPU's random numbers started from."""
    return default_generator.initial_seed()


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type=None):
    """`with fork_rng():` afterwards the random numbers go on as if none had been drawn inside.

    devices: indices of devices to include beside the CPU; by default all of `device_type` (default "cuda").
    """
    if device_type == "meta":
        yield
        return
    Device(device_type or "cuda")  # RuntimeError for a type that there is not
    if not enabled:
        yield
        return
    module = device_modules.get(device_type or "cuda")
    if module is None:
        devices = []
    elif devices is None:
        devices = range(module.device_count())
    devices = list(devices)
    cpu_state = get_rng_state()
    device_states = [module.get_rng_state(index) for index in devices]
    try:
        yield
    finally:
        set_rng_state(cpu_state)
        for index, state in zip(devices, device_states):
            module.set_rng_state(state, index)


def thread_safe_generator() -> Generator | None:
    """The generator of this DataLoader worker thread, or None where there is only one thread to serve."""
    # in PyTorch: DataLoader's worker threads have a generator each; our DataLoader's workers are processes
    return None
