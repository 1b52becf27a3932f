"""Reads the pickles of an archive: tensors, containers, and objects of the archive's own classes; nothing
else.

In PyTorch: `torch/csrc/jit/serialization/unpickler.cpp`. Explained in the chapter "JIT: scripting".
"""

import io
import pickle
from collections import OrderedDict

from ...._utils import _rebuild_tensor_v2
from ....c10.device import device as Device
from ....serialization._load import _Checkpoint
from ....serialization._storage_type import StorageType
from ..api.object import ScriptObject


def read_pickle(reader, name, types, map_location=None):
    """The object in the record `<name>.pkl`, whose tensors lie in the folder `name`. types: names -> classes
    of the archive.
    """
    unpickler = _Unpickler(io.BytesIO(reader.read(f"{name}.pkl")))
    unpickler.types = types
    unpickler.storages = _Storages(reader, map_location)
    unpickler.storages.folder = name
    return unpickler.load()


class _Storages(_Checkpoint):
    """The tensors' storages; each pickle has a folder of its own."""


def _as_given(value, *type):
    return value


def _list(values):
    return values


_KNOWN = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor_v2,
    ("collections", "OrderedDict"): OrderedDict,
    ("torch", "device"): Device,
    ("builtins", "complex"): complex,
    ("torch.jit._pickle", "restore_type_tag"): _as_given,
    **{("torch.jit._pickle", f"build_{kind}list"): _list for kind in ("int", "double", "bool", "tensor")},
}


class _Unpickler(pickle.Unpickler):
    """Names lead to the functions of `_KNOWN` and to the archive's classes: no other code can run."""

    def find_class(self, module, name):
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if module == "torch" and name.endswith("Storage"):
            return StorageType(name)
        type = self.types.find_type(f"{module}.{name}") if module.partition(".")[0] == "__torch__" else None
        if type is None:
            raise pickle.UnpicklingError(f"an archive may not name {module}.{name}")
        if hasattr(type, "python_class"):
            return type.python_class
        return _class_that_makes(type)

    def persistent_load(self, saved_id):
        return self.storages.persistent_load(saved_id)


def _class_that_makes(script_type):
    """A Python class whose instances are objects of a TorchScript class: what `NEWOBJ` wants."""
    return type(script_type.name(), (), {"__new__": lambda cls: ScriptObject(script_type)})
