"""`Generator`: the Python face of a source of random numbers.

In PyTorch: `torch/csrc/Generator.cpp`. Explained in the chapter "Where numbers come from: init and random".
"""

import numpy as np

from readtorch.c10.cpu_generator_impl import CPUGeneratorImpl, default_cpu_generator, of_thread
from readtorch.c10.device import device as Device
from readtorch.c10.tensor_impl import TensorImpl, wrap

# Device type -> function(device) that makes an implementation. Other devices add theirs.
implementations = {"cpu": lambda device: CPUGeneratorImpl()}


class Generator:
    """A source of random numbers with a state of its own: `torch.rand(3, generator=g)` draws from `g`."""

    def __init__(self, device="cpu"):
        self.device = Device(device)
        if self.device.type not in implementations:
            raise RuntimeError(f"{self.device.type.upper()} device type not an accelerator.")
        self._impl = implementations[self.device.type](self.device)

    def manual_seed(self, seed, /):
        """Start from `seed`, an int of 64 bits (else ValueError); a negative one counts from 2**64 down. Returns self."""
        check_long("manual_seed", seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._impl.set_current_seed(int(seed) % 2**64)
        return self

    def seed(self):
        """Start from a seed that nobody can foretell; returns it."""
        return self._impl.seed()

    def initial_seed(self):
        """The seed that the numbers started from."""
        return self._impl.initial_seed

    def get_state(self):
        """The state as a ByteTensor: see Note [Bytes of a generator's state]."""
        return wrap(self._impl.get_state())

    def set_state(self, new_state, /):
        """Continue from a state that `get_state` gave, here or in PyTorch."""
        if not isinstance(new_state, TensorImpl):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state._array.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not new_state._array.flags.c_contiguous:
            raise RuntimeError("RNG state must be contiguous")
        self._impl.set_state(new_state._array.reshape(-1))
        return self

    def clone_state(self):
        """Another generator in the same state."""
        return generator_for(self._impl.clone(), self.device)

    def get_offset(self):
        """How many numbers each thread of a device has drawn. RuntimeError on the CPU."""
        if self.device.type == "cpu":
            raise RuntimeError("CPU Generator does not use offset")
        return self._impl.get_offset()

    def set_offset(self, offset, /):
        """Continue as if each thread had drawn so many, a multiple of 4. RuntimeError on the CPU."""
        check_long("manual_offset", offset)
        if self.device.type == "cpu":
            raise RuntimeError("CPU Generator does not use offset")
        self._impl.set_offset(offset)

    def graphsafe_get_state(self):
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state, /):
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self):
        offset = None if self.device.type == "cpu" else self.get_offset()
        return Generator, (self.device,), (self.initial_seed(), offset, self.get_state())

    def __setstate__(self, saved):
        seed, offset, state = saved
        self.manual_seed(seed)
        if offset is not None:
            self.set_offset(offset)
        self.set_state(state)


def check_long(function, value):
    """RuntimeError unless it is an int of Python's; TypeError for one of NumPy's."""
    if isinstance(value, np.integer):
        raise TypeError("an integer is required")
    if isinstance(value, bool) or not isinstance(value, int):
        raise RuntimeError(f"{function} expected a long, but got {type(value).__name__}")


def generator_for(implementation, device):
    """A Generator over an implementation that exists already."""
    generator = Generator.__new__(Generator)
    generator.device = device
    generator._impl = implementation
    return generator


class _DefaultGenerator(Generator):
    """The face of whichever generator this thread draws from by default."""

    def __init__(self):
        self.device = Device("cpu")

    _impl = property(lambda self: of_thread.generator)


default_generator = _DefaultGenerator()


def random_numbers_of_thread(generator):
    """Let this thread draw from `generator` by default; None: from the process's again."""
    of_thread.generator = default_cpu_generator if generator is None else generator._impl
