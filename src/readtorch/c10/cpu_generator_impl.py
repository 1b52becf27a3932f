"""`CPUGeneratorImpl`: an mt19937 engine, its seed, the spare normal number, and the bytes that a state is
saved as.

In PyTorch: `aten/src/ATen/CPUGeneratorImpl.cpp`. The engine itself is in `mt19937_rng_engine.py`, which needs numba and
is therefore loaded by the first draw, not by `import readtorch`.
"""

import os
import threading

import numpy as np

MERSENNE_STATE_N = 624
POSITION, SEEDED = MERSENNE_STATE_N, MERSENNE_STATE_N + 1  # see Note [Engine state] in mt19937_rng_engine.py
DEFAULT_SEED = 67280421310721  # c10::detail's `default_rng_seed_val`

# Note [Bytes of a generator's state]
# A saved state is 5056 bytes, laid out as the C structs `CPUGeneratorImplStateLegacy` and
# `CPUGeneratorImplState`: words of 32 bits in slots of 64, and fields that nothing reads any more. We keep
# every byte where PyTorch has it, so that a checkpoint's random state moves between the two libraries.
STATE_LAYOUT = np.dtype(
    [
        ("initial_seed", "<u8"),
        ("left", "<i4"),  # how many words until the next block, plus one
        ("seeded", "<i4"),
        ("next", "<u8"),  # position of the next word
        ("words", "<u8", MERSENNE_STATE_N),
        ("normal_x", "<f8"),  # unused
        ("normal_y", "<f8"),  # the spare normal number
        ("normal_rho", "<f8"),  # unused
        ("normal_is_valid", "<i4"),
        ("padding_0", "<i4"),
        ("next_float_normal", "<f4"),
        ("next_float_normal_is_valid", "?"),
        ("padding_1", "u1", 3),
    ]
)


def seed_words(seed):
    """The 624 words that a seed starts from: a linear congruential chain from the seed's low 32 bits."""
    words = [seed & 0xFFFFFFFF]
    for i in range(1, MERSENNE_STATE_N):
        previous = words[-1]
        words.append((1812433253 * (previous ^ (previous >> 30)) + i) & 0xFFFFFFFF)
    return words


class CPUGeneratorImpl:
    """The CPU's source of random numbers.

    `state` is the engine (see Note [Engine state]); `spare_normal` holds [valid, value] of the second number
    of the last Box-Muller pair. Kernels move both in place; the caller of one holds `mutex`.
    """

    __slots__ = ("initial_seed", "state", "spare_normal", "next_float_normal_sample", "mutex", "__weakref__")

    def __init__(self, seed=DEFAULT_SEED):
        self.state = np.empty(MERSENNE_STATE_N + 1, np.uint32)
        self.spare_normal = np.zeros(2)
        self.next_float_normal_sample = None  # only carried in states: no CPU kernel draws float pairs
        self.mutex = threading.Lock()
        self.set_current_seed(seed)

    def set_current_seed(self, seed):
        """Start again from `seed` (0 <= seed < 2**64); a spare normal number is forgotten."""
        self.initial_seed = seed
        self.state[:MERSENNE_STATE_N] = seed_words(seed)
        self.state[POSITION] = SEEDED
        self.spare_normal[:] = 0
        self.next_float_normal_sample = None

    def seed(self):
        """Start from a seed that the operating system gives, and return it."""
        self.set_current_seed(int.from_bytes(os.urandom(8), "little") >> 11)  # 53 bits: exact in a double
        return self.initial_seed

    @property
    def next_double_normal_sample(self):
        """The spare normal number, or None."""
        valid, value = self.spare_normal
        return float(value) if valid else None

    def random(self):
        """The next 32 bits, as an int."""
        from . import mt19937_rng_engine

        with self.mutex:
            return int(mt19937_rng_engine.random(self.state))

    def random64(self):
        """The next 64 bits, as an int."""
        from . import mt19937_rng_engine

        with self.mutex:
            return int(mt19937_rng_engine.random64(self.state))

    def get_state(self):
        """The state as 5056 bytes (a uint8 array): see Note [Bytes of a generator's state]."""
        saved = np.zeros((), STATE_LAYOUT)
        position = int(self.state[POSITION])
        saved["initial_seed"] = self.initial_seed
        saved["seeded"] = 1
        saved["next"] = 0 if position == SEEDED else position
        saved["left"] = 1 if position == SEEDED else MERSENNE_STATE_N + 1 - position
        saved["words"] = self.state[:MERSENNE_STATE_N]
        saved["normal_is_valid"], saved["normal_y"] = self.spare_normal
        if self.next_float_normal_sample is not None:
            saved["next_float_normal"] = self.next_float_normal_sample
            saved["next_float_normal_is_valid"] = True
        return np.frombuffer(bytearray(saved.tobytes()), np.uint8)

    def set_state(self, saved):
        """Take over a state of 5056 bytes; RuntimeError where PyTorch refuses it."""
        size = STATE_LAYOUT.itemsize
        if saved.size != size:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {size} but found the input RNG state size to be {saved.size}"
            )
        saved = np.ascontiguousarray(saved).view(STATE_LAYOUT)[0]
        left, position = int(saved["left"]), int(saved["next"]) & 0xFFFFFFFF
        if not saved["seeded"] or not 0 < left <= MERSENNE_STATE_N or position > MERSENNE_STATE_N:
            raise RuntimeError("Invalid mt19937 state")
        self.initial_seed = int(saved["initial_seed"])
        self.state[:MERSENNE_STATE_N] = saved["words"].astype(np.uint32)
        self.state[POSITION] = SEEDED if left == 1 and position == 0 else MERSENNE_STATE_N + 1 - left
        valid = bool(saved["normal_is_valid"])
        self.spare_normal[:] = valid, saved["normal_y"] if valid else 0.0
        self.next_float_normal_sample = (
            float(saved["next_float_normal"]) if saved["next_float_normal_is_valid"] else None
        )

    def clone(self):
        """Another generator that will give the same numbers."""
        other = CPUGeneratorImpl.__new__(CPUGeneratorImpl)
        other.initial_seed = self.initial_seed
        other.state = self.state.copy()
        other.spare_normal = self.spare_normal.copy()
        other.next_float_normal_sample = self.next_float_normal_sample
        other.mutex = threading.Lock()
        return other


# The generator of every call that names none (`detail::getDefaultCPUGenerator`), seeded anew every time.
default_cpu_generator = CPUGeneratorImpl()
default_cpu_generator.seed()


class _OfThread(threading.local):
    """The default generator that this thread draws from: everybody's, unless threads are ranks of a process group."""

    generator = default_cpu_generator


of_thread = _OfThread()
