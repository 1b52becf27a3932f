"""Unpicklers that know PyTorch's names and what stands for a storage.

In PyTorch: `UnpicklerWrapper` of `torch/serialization.py`.
"""

import functools
import pickle

from readtorch.storage import UntypedStorage

from ._names import readtorch_name
from ._storage_type import StorageType


@functools.cache
def unpickler_class(pickle_module):
    """The Unpickler of a module such as `pickle`. Its `checkpoint` makes storages of references."""
    return type("Unpickler", (_RefersToStorages, pickle_module.Unpickler), {})


class _RefersToStorages:
    """An Unpickler that takes PyTorch's names for ours, and references for the storages of a checkpoint."""

    def find_class(self, module, name):
        if "Storage" in name:
            try:
                return StorageType(name)
            except KeyError:
                pass
        return super().find_class(*readtorch_name(module, name))

    def persistent_load(self, saved_id):
        return self.checkpoint.persistent_load(saved_id)


def element_type(kind):
    """The dtype of a storage's elements: bytes, if it is untyped."""
    if kind is UntypedStorage:
        return StorageType("ByteStorage").dtype
    if not isinstance(kind, StorageType):
        raise pickle.UnpicklingError(f"{kind if isinstance(kind, type) else type(kind)} is not a class of storages")
    return kind.dtype


def maybe_decode_ascii(text):
    """Texts of PyTorch itself, which a pickle of Python 2 that is loaded with encoding="bytes" has as bytes."""
    return text.decode("ascii") if isinstance(text, bytes) else text
