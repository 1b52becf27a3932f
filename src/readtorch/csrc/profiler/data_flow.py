"""Which memory the tensors of a run own, when it came and when it went.

Note [ Memory of tensors ]
NumPy allocates for CPU tensors, and tells nobody. So the profiler looks at what calls return: an array that owns memory which no
call has been seen with was allocated inside this call, and a weak reference says when it is freed. What a kernel allocates and
frees before it returns is not seen. In PyTorch: the allocators report each allocation to the thread's profiler (`c10::reportMemoryUsageToProfiler`).

In PyTorch: `torch/csrc/profiler/data_flow.cpp`. Explained in the chapter "One operator call".
"""

import weakref
from collections import namedtuple

from readtorch.c10.storage_impl import address_of, owner_of
from readtorch.c10.tensor_impl import TensorImpl

from .orchestration.observer import DeviceType

Allocation = namedtuple("Allocation", ["nbytes", "device_type", "address"])


class MemoryWatcher:
    """Calls report(Allocation) for what appears, with negative bytes for what goes."""

    def __init__(self, report):
        self.report = report
        self.living = {}  # id of an owner of memory -> weak reference to it

    def note_inputs(self, values):
        """This memory was there before."""
        for tensor in tensors_among(values):
            self._note(tensor)

    def note_outputs(self, values):
        """What of this was not there before has been allocated now."""
        for tensor in tensors_among(values if isinstance(values, (list, tuple)) else (values,)):
            allocation = self._note(tensor)
            if allocation is not None:
                self.report(allocation)

    def _note(self, tensor):
        """An Allocation if the tensor's memory is not known yet."""
        owner = owner_of(tensor._array)
        key = id(owner)
        if key in self.living or not owner.nbytes:
            return None
        nbytes, address = owner.nbytes, address_of(owner)
        place = DeviceType.CUDA if tensor.is_cuda else DeviceType.CPU

        def forget(reference):
            if self.living.pop(key, None) is not None:
                self.report(Allocation(-nbytes, place, address))

        self.living[key] = weakref.ref(owner, forget)
        return Allocation(nbytes, place, address)


def tensors_among(values):
    for value in values or ():
        if isinstance(value, TensorImpl):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_among(value)
