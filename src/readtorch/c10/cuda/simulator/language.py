"""What a simulated kernel finds under the name `cuda`.

The names and their meanings are numba's; see Note [ Whose cuda ]. Positions (threadIdx, blockIdx) are plain
attributes that the scheduler sets whenever a thread begins or goes on.
"""

import dis
import functools
import math
import sys

import numpy as np

from readtorch.c10.extras import extra

with extra("simulator", "The simulator of CUDA kernels"):
    from greenlet import getcurrent

from . import arithmetic
from .atomics import Atomic
from .errors import call_path, kernel_frame, place_of
from .memory import dtype_of, shape_of, spoiled
from .schedule import WARP, Wait

ALL_LANES = 0xFFFFFFFF


class Language:
    """One for each launch."""

    warpsize = WARP
    libdevice = arithmetic.LibDevice()
    fma = staticmethod(arithmetic.fma)
    popc, clz = staticmethod(arithmetic.popc), staticmethod(arithmetic.clz)
    ffs, brev = staticmethod(arithmetic.ffs), staticmethod(arithmetic.brev)
    cbrt = staticmethod(arithmetic.device_math.cbrt)

    def __init__(self, launch):
        self.launch = launch
        self.hub = getcurrent()
        self.switch = self.hub.switch  # to the scheduler
        self.barriers = {}
        self.gridDim, self.blockDim = launch.grid_size, launch.block_size
        self.threadIdx = self.blockIdx = self.thread = None
        self.atomic = Atomic(self)
        self.shared, self.local, self.const = Shared(self), Local(self), Const(self)
        self.cg = CooperativeGroups(self)

    def enter(self, thread):
        self.thread, self.threadIdx, self.blockIdx = thread, thread.index, thread.block.index

    def wait(self, kind, mask=None, value=None):
        """Stop here until the scheduler has an answer. Called by what the kernel calls."""
        thread = self.thread
        thread.waits = Wait(kind, place_of(sys._getframe(2)), mask, value)
        self.switch()
        return thread.answer

    def wait_in_warp(self, kind, mask, value=None):
        """As `wait`, for the lanes that a mask of 32 bits names."""
        thread = self.thread
        thread.waits = Wait(kind, place_of(sys._getframe(2)), int(mask) & ALL_LANES, value)
        self.switch()
        return thread.answer

    # -------------------------------------------------------------------------------------------- positions

    @property
    def laneid(self):
        return self.thread.lane

    def grid(self, ndim):
        """The position of this thread in the whole grid: a number, or (x, y), or (x, y, z)."""
        block, size, thread = self.blockIdx, self.blockDim, self.threadIdx
        x = block.x * size.x + thread.x
        if ndim == 1:
            return x
        y = block.y * size.y + thread.y
        return (x, y) if ndim == 2 else (x, y, block.z * size.z + thread.z)

    def gridsize(self, ndim):
        size = tuple(g * b for g, b in zip(self.gridDim, self.blockDim))
        return size[0] if ndim == 1 else size[:ndim]

    # --------------------------------------------------------------------------------------------- barriers

    def syncthreads(self):
        """As `wait("syncthreads")`, which all threads of the block do: one object says it for all."""
        place = place_of(sys._getframe(1))
        known = self.barriers
        self.thread.waits = known.get(place) or known.setdefault(place, Wait("syncthreads", place))
        self.switch()

    def syncthreads_count(self, predicate):
        return self.wait("syncthreads_count", value=predicate)

    def syncthreads_and(self, predicate):
        return self.wait("syncthreads_and", value=predicate)

    def syncthreads_or(self, predicate):
        return self.wait("syncthreads_or", value=predicate)

    def syncwarp(self, mask=ALL_LANES):
        self.wait_in_warp("syncwarp", mask)

    def threadfence(self):
        """Orders this thread's writes for others: here they happen at once."""

    threadfence_block = threadfence_system = threadfence

    def nanosleep(self, nanoseconds):
        """Let others run: for a loop that waits for one of them."""
        self.wait("pause")

    # ------------------------------------------------------------------------------------ the lanes of a warp

    def shfl_sync(self, mask, value, source, width=WARP):
        return self.wait_in_warp("shfl_sync", mask, (movable(value), source, width))

    def shfl_up_sync(self, mask, value, delta, width=WARP):
        return self.wait_in_warp("shfl_up_sync", mask, (movable(value), delta, width))

    def shfl_down_sync(self, mask, value, delta, width=WARP):
        return self.wait_in_warp("shfl_down_sync", mask, (movable(value), delta, width))

    def shfl_xor_sync(self, mask, value, lanes, width=WARP):
        return self.wait_in_warp("shfl_xor_sync", mask, (movable(value), lanes, width))

    def ballot_sync(self, mask, predicate):
        return self.wait_in_warp("ballot_sync", mask, predicate)

    def all_sync(self, mask, predicate):
        return self.wait_in_warp("all_sync", mask, predicate)

    def any_sync(self, mask, predicate):
        return self.wait_in_warp("any_sync", mask, predicate)

    def eq_sync(self, mask, predicate):
        return self.wait_in_warp("eq_sync", mask, predicate)

    def match_any_sync(self, mask, value):
        return self.wait_in_warp("match_any_sync", mask, value)

    def match_all_sync(self, mask, value):
        return self.wait_in_warp("match_all_sync", mask, value)

    def mma(self, kind, a, b, c):
        """A product of two small matrices by a whole warp: `kind` is "m16n8k8.tf32", "m16n8k16.bf16" or
        "m16n8k16.f16", `a` and `b` are four and two registers, `c` and the answer four float32. See Note [ Fragments ].
        """
        thread, path = self.thread, call_path()
        thread.waits = Wait("mma." + kind, path[-1], ALL_LANES, (a, b, c), path)
        self.switch()
        return thread.answer

    def activemask(self):
        return self.wait("activemask")

    def lanemask_lt(self):
        return (1 << self.thread.lane) - 1

    # ----------------------------------------------------------------------------------------------- the rest

    @staticmethod
    def selp(condition, a, b):
        return a if condition else b

    def __getattr__(self, name):
        """numba's names for types (cuda.float32 …)."""
        if name.startswith(("float", "int", "uint", "complex", "bool")) and hasattr(np, name):
            return getattr(np, name)
        raise AttributeError(f"the simulator has no cuda.{name}")


def movable(value):
    """A shuffle moves registers of 32 or 64 bits, of integers or floats."""
    if isinstance(value, bool | np.bool_) or getattr(value, "itemsize", 8) not in (4, 8):
        raise TypeError(f"a shuffle moves 32 or 64 bits, not {type(value).__name__}")
    return value


class Shared:
    def __init__(self, language):
        self.language = language

    def array(self, shape, dtype, alignment=None):
        """The array of this place in the source, one for the block."""
        place, memory = place_of(sys._getframe(1)), self.language.thread.block.shared
        key = (place, dtype)  # a device function may have one shared array for each dtype that it is called with
        found = memory.arrays.get(key)
        if found is None:
            data = memory.array(shape_of(shape), dtype_of(dtype))
            found = memory.arrays[key] = self.language.launch.wrap(data, name_given(place), "shared")
        return found


class Local:
    def __init__(self, language):
        self.language = language

    def array(self, shape, dtype, alignment=None):
        """An array of this thread's own."""
        shape, dtype = shape_of(shape), dtype_of(dtype)
        memory = spoiled(np.empty(math.prod(shape) * dtype.itemsize, np.uint8)).view(dtype).reshape(shape)
        return self.language.launch.wrap(memory, name_given(place_of(kernel_frame())), "local")


class Const:
    def __init__(self, language):
        self.language = language

    def array_like(self, array):
        """A table that cannot be written; the rebuilder has wrapped it already."""
        return array


class CooperativeGroups:
    """cuda.cg: the whole grid as one group."""

    def __init__(self, language):
        self.language = language

    def this_grid(self):
        return self

    def sync(self):
        """Every thread of every block comes here before one goes on."""
        self.language.wait("grid")


@functools.lru_cache(1024)
def name_given(place):
    """The name of the variable that the result of this instruction is stored in, also by `a, b = …, …`."""
    above = 0  # values that lie on the result
    for i in dis.get_instructions(place.code):
        if i.offset <= place.offset:
            continue
        names = i.argval if isinstance(i.argval, tuple) else (i.argval,)  # two stores may be one instruction
        if i.opname.startswith("STORE") and above < i.opname.count("STORE"):
            return names[above]
        if i.opname == "SWAP":
            above = {0: i.arg - 1, i.arg - 1: 0}.get(above, above)
        elif i.opname == "BUILD_TUPLE":  # UNPACK_SEQUENCE follows, and the first comes to lie on top
            above = i.arg - 1 - above
        elif i.opname != "UNPACK_SEQUENCE":
            above += dis.stack_effect(i.opcode, i.arg, jump=False)
        if above < 0:
            break
    return "array"
