"""Which memory the tensors of a run own, when it came and when it went.

Note [ Memory of tensors ]
NumPy allocates for CPU tensors, and tells nobody. So the profiler looks at what calls return: an array that owns memory which no
call has been seen with was allocated inside this call, and a weak reference says when it is freed. What a kernel allocates and
frees before it returns is not seen. In PyTorch: the allocators report each allocation to the thread's profiler (`c10::reportMemoryUsageToProfiler`).

Addresses are used again, so each piece of memory gets a number of its own when it is first seen. In PyTorch: numbers are worked out
from addresses and times when the run is over (`calculateUniqueTensorIDs`), and a tensor that changes its memory keeps its number.

In PyTorch: `torch/csrc/profiler/data_flow.cpp`. Explained in the chapter "The profiler".
"""

import itertools
import weakref
from collections import namedtuple

from readtorch.c10.storage_impl import address_of, owner_of
from readtorch.c10.tensor_impl import TensorImpl

# Memory that a tensor looks at: its number, address, device and bytes.
TensorMetadata = namedtuple("TensorMetadata", ["id", "storage_data_ptr", "device", "nbytes"])

# Memory has come, or gone: then nbytes is negative.
Allocation = namedtuple("Allocation", ["nbytes", "memory"])

next_id = itertools.count().__next__


class MemoryWatcher:
    """Calls report(Allocation) for what appears, with negative bytes for what goes."""

    def __init__(self, report):
        self.report = report
        self.living = {}  # id of an owner of memory -> (weak reference to it, its TensorMetadata)

    def note_inputs(self, values):
        """This memory was there before. Returns a TensorMetadata for each tensor, a list for a list, None for anything else."""
        noted = []
        for value in values:
            if isinstance(value, TensorImpl):
                noted.append(self.metadata(value))
            else:
                noted.append(self.note_inputs(value) if isinstance(value, (list, tuple)) else None)
        return noted

    def note_outputs(self, values):
        """What of this was not there before has been allocated now."""
        for tensor in tensors_among(values if isinstance(values, (list, tuple)) else (values,)):
            is_new = id(owner_of(tensor._array)) not in self.living
            memory = self.metadata(tensor)
            if is_new and memory is not None:
                self.report(Allocation(memory.nbytes, memory))

    def metadata(self, tensor):
        """The TensorMetadata of a tensor's memory, whose end is reported; None if it has no bytes."""
        owner = owner_of(tensor._array)
        key = id(owner)
        if key in self.living:
            return self.living[key][1]
        if not owner.nbytes:
            return None
        memory = TensorMetadata(next_id(), address_of(owner), tensor.device, owner.nbytes)

        def forget(reference):
            if self.living.pop(key, None) is not None:
                self.report(Allocation(-memory.nbytes, memory))

        self.living[key] = weakref.ref(owner, forget), memory
        return memory


def tensors_among(values):
    for value in values or ():
        if isinstance(value, TensorImpl):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_among(value)
