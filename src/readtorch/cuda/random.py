"""Seeds and states of the devices' random numbers.

In PyTorch: `torch/cuda/random.py`. Explained in the chapter "CUDA kernels with numba".
"""

from readtorch.c10.cuda.cuda_generator_impl import CUDAGeneratorImpl, default_engines
from readtorch.c10.device import current_device
from readtorch.c10.device import device as Device
from readtorch.csrc import generator

from ._utils import _get_device_index

# A generator each device, filled when devices appear.
default_generators = []
_seed = None  # what was asked for before there was a device


def device_count():
    """The number of devices that have random numbers."""
    return len(default_generators)


def make_generators(count):
    """A fresh default generator for each of `count` devices."""
    default_engines[:] = [CUDAGeneratorImpl(Device("cuda", i)) for i in range(count)]
    default_generators[:] = [generator.generator_for(engine, engine.device) for engine in default_engines]
    if _seed is not None:
        manual_seed_all(_seed)


def _new_implementation(device):
    if not default_generators:
        raise RuntimeError("CUDA device type not an accelerator.")
    return CUDAGeneratorImpl(Device("cuda", _get_device_index(device)))


generator.implementations["cuda"] = _new_implementation


def _default(device="cuda"):
    from . import init

    init()
    return default_generators[_get_device_index(device)]


def get_rng_state(device="cuda"):
    """The state of a device's random numbers: a ByteTensor of 16 bytes on the CPU."""
    return _default(device).get_state()


def get_rng_state_all():
    """The states of all devices."""
    return [get_rng_state(i) for i in range(len(default_generators))]


def set_rng_state(new_state, device="cuda"):
    """Continue a device's random numbers from a state that `get_rng_state` gave."""
    _default(device).set_state(new_state)


def set_rng_state_all(new_states):
    """Set the state of each device's generator; the i-th of the uint8 tensors is device i's."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def manual_seed(seed):
    """Start the current device's random numbers from `seed`. Without a device: the seed is kept for those to come."""
    if default_generators:
        default_generators[current_device.index].manual_seed(int(seed))
    else:
        _keep(seed)


def manual_seed_all(seed):
    """Start the random numbers of all devices from `seed`."""
    _keep(seed)
    for each in default_generators:
        each.manual_seed(int(seed))


def _keep(seed):
    global _seed
    _seed = int(seed)


def seed():
    """Start the current device's random numbers from an unpredictable seed."""
    if default_generators:
        default_generators[current_device.index].seed()


def seed_all():
    """The same for all devices, from one seed."""
    if default_generators:
        manual_seed_all(default_generators[0].seed())


def initial_seed():
    """The seed that the current device's random numbers started from."""
    return _default(current_device.index).initial_seed()
