"""The state of a device's random numbers: a seed, and how many of its numbers have been used.

The numbers themselves are a function of seed, thread and position (Philox), so that thousands of threads can draw at
once independently of each other. In PyTorch: `aten/src/ATen/cuda/CUDAGeneratorImpl.cpp`. Explained in the chapter "CUDA
kernels with numba".
"""

import secrets
import threading

import numpy as np

DEFAULT_SEED = 67280421310721
STATE_BYTES = 16


class CUDAGeneratorImpl:
    """Offsets count numbers of 32 bits that one thread has drawn."""

    def __init__(self, device):
        self.device = device
        self.initial_seed = DEFAULT_SEED
        self.offset = 0
        self.lock = threading.Lock()

    def set_current_seed(self, seed):
        self.initial_seed = seed
        self.offset = 0

    def seed(self):
        """Start from an unpredictable seed; returns it."""
        self.set_current_seed(secrets.randbits(53))
        return self.initial_seed

    def philox_state(self, increment):
        """(seed, offset) for a kernel whose threads draw at most `increment` numbers each; they are used up then.

        Threads draw four at a time, so `increment` is rounded up to a multiple of 4.
        """
        with self.lock:
            offset = self.offset
            self.offset += -(-increment // 4) * 4
            return self.initial_seed, offset

    def set_offset(self, offset):
        if offset % 4:
            raise RuntimeError("offset must be a multiple of 4")
        self.offset = offset

    def get_offset(self):
        return self.offset

    def get_state(self):
        """16 bytes: the seed and the offset, each an integer of 64 bits."""
        return np.array([self.initial_seed, self.offset], np.uint64).view(np.uint8)

    def set_state(self, state):
        if state.size not in (STATE_BYTES, STATE_BYTES - 8):
            raise RuntimeError("RNG state is wrong size")
        words = np.ascontiguousarray(state).view(np.uint64)
        self.initial_seed = int(words[0])
        self.offset = int(words[1]) if words.size > 1 else 0

    def clone(self):
        """Another generator that will give the same numbers."""
        copy = CUDAGeneratorImpl(self.device)
        copy.initial_seed, copy.offset = self.initial_seed, self.offset
        return copy


# Where each device's kernels draw from if they are given no generator; filled when devices appear.
default_engines = []
