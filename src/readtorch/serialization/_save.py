"""`save`: a pickle in which storages are numbers, and beside it the storages' bytes.

In PyTorch: `save` and `_save` of `torch/serialization.py`. Explained in the chapter "state_dict, save and
load".

Note [ The records of a checkpoint ]

    data.pkl              the object, pickled; where it holds a storage stands
                          ("storage", class that names its dtype, key, device, number of elements)
    .format_version       1
    .storage_alignment    64
    byteorder             "little" or "big"
    data/0, data/1 …      the bytes of the storage with that key
    version               3
    .data/serialization_id
"""

import functools
import io
import os
import pickle
import sys
import types

from readtorch import storage as storages
from readtorch.c10.scalar_type import uint8
from readtorch.storage import TypedStorage, UntypedStorage

from . import config
from ._files import is_path, open_for_writing
from ._inline_container import ZipWriter
from ._locations import location_tag
from ._names import torch_name
from ._opcodes import rename_globals

DEFAULT_PROTOCOL = 2


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    """Write `obj` to a file that `load`, here and in PyTorch, reads back: tensors that share a storage share
    it again.

    f: path, or a file object with `write`. A path is replaced when the new file is complete, not before.
    pickle_module, pickle_protocol: what turns Python's objects into bytes.
    Raises what pickling raises, RuntimeError for a directory that is not there.
    """
    if not is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        # in PyTorch: the format of before 1.6
        raise ValueError("readtorch writes the zip format only: _use_new_zipfile_serialization must be True")
    name = _archive_name(os.fspath(f)) if is_path(f) else "archive"
    with open_for_writing(f) as file:
        writer = ZipWriter(
            file.write,
            lambda count: file.seek(count, os.SEEK_CUR),
            name,
            config.save.compute_crc32,
            config.save.storage_alignment,
        )
        _save(obj, writer, pickle_module, pickle_protocol, _disable_byteorder_record)
        writer.write_end_of_file()


def _archive_name(path):
    """The folder inside the archive: the file's name without its last extension."""
    base = path.replace("\\", "/").rpartition("/")[2]
    name = base.rpartition(".")[0] if "." in base else base
    if not name:
        raise RuntimeError(f"invalid file name: {path}")
    return name if path.isascii() else "archive"


def _save(obj, writer, pickle_module, pickle_protocol, _disable_byteorder_record):
    data, storages_by_key = _pickled(obj, pickle_module, pickle_protocol)
    writer.write_record("data.pkl", data)
    writer.write_record(".format_version", b"1")
    writer.write_record(".storage_alignment", str(config.save.storage_alignment).encode())
    if not _disable_byteorder_record:
        writer.write_record("byteorder", sys.byteorder.encode())
    for key, storage in storages_by_key.items():
        numbers = None if config._serialization_tls.skip_data else storage.cpu()._impl.buffer.data
        writer.write_record(f"data/{key}", numbers, storage.nbytes())


def _pickled(obj, pickle_module, protocol):
    """The pickle of `obj`, with PyTorch's names for our classes, and the storages that it refers to by their
    keys.
    """
    buffer = io.BytesIO()
    pickler = _pickler_class(pickle_module, protocol >= 4)(buffer, protocol=protocol)
    pickler.dump(obj)
    data = buffer.getvalue()
    return (rename_globals(data, torch_name) if protocol < 4 else data), pickler.storages


@functools.cache
def _pickler_class(pickle_module, names_on_stack):
    """A Pickler that refers to storages. From protocol 4 on it is one in Python, which can write PyTorch's
    names itself.
    """
    renames = names_on_stack and pickle_module is pickle
    return type("Pickler", (_RefersToStorages, _RenamingPickler if renames else pickle_module.Pickler), {})


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
        storage = obj.untyped()
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
        return "storage", kind, key, location_tag(storage), len(obj)


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
