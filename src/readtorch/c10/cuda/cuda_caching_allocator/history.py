"""What the allocator did, in order, with the stack of who asked and the reason of each decision.

Off by default and then without cost: the allocator only checks whether there is a History. With one, an entry
keeps the facts of the moment; words are made of them (reasons.py) when the entries are read.

In PyTorch: `TraceEntry` in `c10/core/CachingDeviceAllocator.h`, `RingBuffer` in
`c10/cuda/CUDACachingAllocator.cpp`, stacks in `torch/csrc/profiler/combined_traceback.h`. Reasons and
details are ours: PyTorch's entries say what happened, not why. Explained in the chapter "The caching
allocator".
"""

import sys
import threading
import time
from collections import deque

from .block import NO_POOL
from .reasons import reason

# How much a History keeps of stacks: none; those of what is allocated now; also those of allocations in the
# entries; also those of calls of `free`.
NEVER, STATE, ALLOC, ALL = range(4)
CONTEXTS = {None: NEVER, "state": STATE, "alloc": ALLOC, "all": ALL}

# The packages that are C++ in PyTorch: stacks="python" leaves their frames out.
_GENERATED = "readtorch.aten."  # functions made from schemas have no module
_BELOW_PYTHON = ("readtorch.c10.", "readtorch.aten.", "readtorch.csrc.")
_ALLOCATOR = "readtorch.c10.cuda."


class _Note(threading.local):
    """What `_set_memory_metadata` wants in the entries of this thread."""

    text = ""


note = _Note()


class TraceEntry:
    """One event. `size` is what was asked for (alloc, free_*), what the driver gave or got back
    (segment_*)."""

    __slots__ = ("action", "device", "address", "size", "stream", "pool_id", "time", "context", "details", "metadata")

    def __init__(self, action, device, address, size, stream, pool_id, context, details):
        self.action = action
        self.device = device
        self.address = address  # of an "oom": the device's free bytes
        self.size = size
        self.stream = stream
        self.pool_id = pool_id
        self.time = time.time_ns()
        self.context = context
        self.details = details
        self.metadata = note.text

    def as_dict(self):
        """As in `torch.cuda.memory._snapshot()["device_traces"]`, and our `reason` and `details`."""
        entry = {
            "action": self.action,
            "device_free" if self.action == "oom" else "addr": self.address,
            "size": self.size,
            "stream": self.stream,
            "device": self.device,
            "time_us": self.time // 1000,
            "compile_context": "N/A",
            "user_metadata": self.metadata,
        }
        if self.pool_id != NO_POOL:
            entry["pool_id"] = self.pool_id
        if self.context is not None:
            entry["frames"] = frames_of(self.context)
        if self.details is not None:
            entry["reason"] = reason(self.action, self.details)
            entry["details"] = self.details
        return entry


class History:
    """The latest `max_entries` entries of a device."""

    def __init__(self, context=ALLOC, max_entries=sys.maxsize, all_stacks=False, skip_actions=()):
        self.level = context
        self.entries = deque(maxlen=max(1, max_entries))
        self.all_stacks = all_stacks
        self.skip_actions = frozenset(skip_actions)

    def gather(self, level):
        """The stack of the caller, if stacks are kept at that level."""
        return gather_stack(self.all_stacks) if self.level >= level else None

    def add(self, action, device, address, size, stream, pool_id, context, details):
        if action not in self.skip_actions:
            kept = context if self.level >= ALLOC else None
            self.entries.append(TraceEntry(action, device, address, size, stream, pool_id, kept, details))


def gather_stack(with_inner_rooms=False):
    """Where we are: (code, line) a frame, innermost first. The allocator's own frames are left out."""
    left_out = _ALLOCATOR if with_inner_rooms else _BELOW_PYTHON
    stack = []
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or _GENERATED
        if not module.startswith(left_out):
            stack.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return stack


def frames_of(stack):
    """The frames as snapshots have them."""
    return [{"name": code.co_name, "filename": code.co_filename, "line": line} for code, line in stack or ()]
