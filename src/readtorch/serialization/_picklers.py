"""Picklers that write a reference where a storage stands.

In PyTorch: `PyTorchPickler` and `persistent_id` of `torch/serialization.py`. Explained in the chapter "state_dict, save and
load".
"""

import functools
import pickle
import types

from readtorch import storage as storages
from readtorch.c10.scalar_type import uint8
from readtorch.storage import TypedStorage, UntypedStorage

from ._locations import location_tag
from ._names import torch_name


@functools.cache
def pickler_class(pickle_module, names_on_stack, refers):
    """A Pickler that refers to storages. From protocol 4 on it is one in Python, which can write PyTorch's
    names itself.
    """
    renames = names_on_stack and pickle_module is pickle
    return type("Pickler", (refers, _RenamingPickler if renames else pickle_module.Pickler), {})


class _RefersToStorages:
    """A Pickler that writes a reference where a storage stands: see Note [ The records of a checkpoint ]."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.storages = {}  # key -> UntypedStorage
        self.keys = {}  # StorageImpl -> key
        self.dtypes = {}  # address -> dtype

    def persistent_id(self, obj):
        # Called for every object in the pickle: this test takes much of the time that pickling takes.
        cls = type(obj)
        if cls is not TypedStorage and cls is not UntypedStorage:
            return None
        storage = obj._untyped_storage if cls is TypedStorage else obj
        dtype = obj.dtype if cls is TypedStorage else uint8
        impl = storage._impl
        key = self.keys.get(impl)
        if key is None:
            key = self.keys[impl] = str(len(self.keys))
            self.storages[key] = storage
        address = impl.data_ptr()
        if address and self.dtypes.setdefault(address, dtype) is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        kind = storages.legacy_classes[storages.CLASS_NAMES[dtype]] if cls is TypedStorage else UntypedStorage
        return "storage", kind, key, _location_of(obj), storage.nbytes() // dtype.itemsize


def _location_of(storage):
    """The tag of a storage; under `skip_data` of the device for which a FakeTensor stands."""
    if storage._fake_device is not None:
        return str(storage._fake_device)
    return location_tag(getattr(storage, "_untyped_storage", storage))


class _RenamingPickler(pickle._Pickler):
    """Names of protocol 4 are texts on the stack, not instructions that could be found afterwards."""

    def save_global(self, obj, name=None):
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        there = pickle.whichmodule(obj, name), name
        renamed = torch_name(*there)
        if renamed == there:
            super().save_global(obj, name)
            return
        for text in renamed:
            self.save(text)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)

    dispatch = {**pickle._Pickler.dispatch, types.FunctionType: save_global}
