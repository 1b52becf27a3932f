"""`readtorch.cuda` of a build without CUDA: there are no devices, and whoever asks for one gets an error.

In PyTorch: `torch/cuda/__init__.py`, `random.py` and `memory.py`.
"""
from ..csrc.tensor.python_tensor import cuda_types as _types

# FloatTensor, LongTensor …
globals().update(_types)


def is_available():
    """Whether there is a device that can be used."""
    return False


def device_count():
    """The number of devices."""
    return 0


def is_initialized():
    """Whether a device has been used."""
    return False


def is_bf16_supported(including_emulation=True):
    return False


def get_arch_list():
    """The architectures that this build has kernels for."""
    return []


def init():
    """Get ready to use a device; everything that needs one begins with this. Raises AssertionError: there is none."""
    raise AssertionError("Torch not compiled with CUDA enabled")


def current_device():
    init()


def synchronize(device=None):
    init()


def get_device_name(device=None):
    init()


def get_device_capability(device=None):
    init()


def get_device_properties(device=None):
    init()


def current_stream(device=None):
    init()


def default_stream(device=None):
    init()


# ------------------------------------------------------------------------------------------- random numbers
# To seed is allowed: a seed is kept for the devices that may come.

def manual_seed(seed):
    int(seed)


def manual_seed_all(seed):
    int(seed)


def seed():
    pass


def seed_all():
    pass


def initial_seed():
    init()


def get_rng_state(device="cuda"):
    init()


def get_rng_state_all():
    return []


def set_rng_state_all(new_states):
    pass


# --------------------------------------------------------------------------------------------------- memory

def empty_cache():
    """Give cached memory back to the device: there is none."""


def memory_allocated(device=None):
    return 0


def max_memory_allocated(device=None):
    return 0


def memory_reserved(device=None):
    return 0


def max_memory_reserved(device=None):
    return 0
