"""The state of a device's random numbers: a seed, and how many of its numbers have been used.

The numbers themselves are a function of seed, thread and position (Philox), so that thousands of threads can draw at
once independently of each other. In PyTorch: `aten/src/ATen/cuda/CUDAGeneratorImpl.cpp`. Explained in the chapter "CUDA
kernels with numba".
"""

import secrets
import threading

import numpy as np

from .cuda_graphs_c10_utils import assert_not_capturing, currently_capturing_graph

DEFAULT_SEED = 67280421310721
STATE_BYTES = 16


class CUDAGeneratorCaptureState:
    """What a generator hands out while a graph is captured, and how much of it.

    Note [ Random numbers in a graph ]
    A captured kernel has its arguments for ever, yet each replay shall draw other numbers. So it gets no seed and no
    offset but the address of two words in the device's memory, which hold them, and how much the kernels before it in the graph
    use up. A replay writes the generator's seed and offset there first, and moves the generator on by what the whole graph
    uses. Replays then draw the numbers that the same calls would have drawn without a graph.
    """

    def __init__(self, extragraph):
        self.extragraph = extragraph  # an array of two uint64 on the device: seed, offset
        self.offset_intragraph = 0

    def increase(self, increment):
        offset = self.offset_intragraph
        self.offset_intragraph += increment
        return self.extragraph, offset


class ReplayedState:
    """Where the kernels of one captured operator begin to draw when a simulated device replays it."""

    def __init__(self, seed, offset):
        self.seed, self.offset = seed, offset

    def increase(self, increment):
        offset = self.offset
        self.offset += increment
        return self.seed, offset


class CUDAGeneratorImpl:
    """Offsets count numbers of 32 bits that one thread has drawn."""

    def __init__(self, device):
        self.device = device
        self.initial_seed = DEFAULT_SEED
        self.offset = 0
        self.replayed = None  # a state that is drawn from instead: Note [ Operators in a graph ]
        self.lock = threading.Lock()

    def set_current_seed(self, seed):
        assert_not_capturing("Cannot call CUDAGeneratorImpl::set_current_seed")
        self.initial_seed = seed
        self.offset = 0

    def seed(self):
        """Start from an unpredictable seed; returns it."""
        assert_not_capturing("Cannot call CUDAGeneratorImpl::seed")
        self.set_current_seed(secrets.randbits(53))
        return self.initial_seed

    def philox_state(self, increment):
        """(seed, offset) for a kernel whose threads draw at most `increment` numbers each; they are used up then. While the
        current stream captures: (array, offset), see Note [ Random numbers in a graph ].

        Threads draw four at a time, so `increment` is rounded up to a multiple of 4.
        """
        increment = -(-increment // 4) * 4
        graph = currently_capturing_graph(self.device.index)
        with self.lock:
            if self.replayed is not None:
                return self.replayed.increase(increment)
            if graph is not None:
                return graph.capture_state_of(self).increase(increment)
            offset = self.offset
            self.offset += increment
            return self.initial_seed, offset

    def set_offset(self, offset):
        assert_not_capturing("Cannot call CUDAGeneratorImpl::set_offset")
        if offset % 4:
            raise RuntimeError("offset must be a multiple of 4")
        self.offset = offset

    def get_offset(self):
        assert_not_capturing("Cannot call CUDAGeneratorImpl::get_offset")
        return self.offset

    def get_state(self):
        """16 bytes: the seed and the offset, each an integer of 64 bits."""
        assert_not_capturing("Cannot call CUDAGeneratorImpl::current_seed")
        return np.array([self.initial_seed, self.offset], np.uint64).view(np.uint8)

    def set_state(self, state):
        assert_not_capturing("Please ensure to utilize the CUDAGeneratorImpl::set_state_index method during capturing.")
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
