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

import io
import os
import pickle
import sys

from . import config
from ._files import is_path, open_for_writing
from ._formats import DEFAULT_PROTOCOL
from ._inline_container import ZipWriter
from ._module_versions import check_dill_version
from ._names import torch_name
from ._opcodes import rename_globals
from ._picklers import _RefersToStorages, pickler_class


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
    _use_new_zipfile_serialization: False for the format of before PyTorch 1.6, which can be read but not mapped.
    Raises what pickling raises, RuntimeError for a directory that is not there.
    """
    check_dill_version(pickle_module)
    if not is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        return _save_legacy(obj, f, pickle_module, pickle_protocol)
    if not is_path(f) and not callable(f.write):
        raise TypeError(f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'")
    name = _archive_name(os.fspath(f)) if is_path(f) else "archive"
    with open_for_writing(f) as file:
        writer = ZipWriter(
            lambda data: file.write(memoryview(data)),
            lambda count: file.seek(count, os.SEEK_CUR),
            name,
            config.save.compute_crc32,
            config.save.storage_alignment,
        )
        _save(obj, writer, pickle_module, pickle_protocol, _disable_byteorder_record)
        writer.write_end_of_file()


def _save_legacy(obj, f, pickle_module, pickle_protocol):
    from ._legacy_save import _legacy_save

    if config._serialization_tls.skip_data:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    with open_for_writing(f) as file:
        _legacy_save(obj, file, pickle_module, pickle_protocol)


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
        storage.data_ptr()  # raises for what wraps tensors and has no bytes
        numbers = None if config._serialization_tls.skip_data else storage.cpu()._impl.buffer.data
        writer.write_record(f"data/{key}", numbers, storage.nbytes())


def _pickled(obj, pickle_module, protocol):
    """The pickle of `obj`, with PyTorch's names for our classes, and the storages that it refers to by their
    keys.
    """
    buffer = io.BytesIO()
    pickler = pickler_class(pickle_module, protocol >= 4, _RefersToStorages)(buffer, protocol=protocol)
    pickler.dump(obj)
    data = buffer.getvalue()
    return (rename_globals(data, torch_name) if protocol < 4 else data), pickler.storages
