"""`load` of checkpoints in the formats of before PyTorch 1.6.

In PyTorch: `_legacy_load` of `torch/serialization.py`. Explained in the chapter "state_dict, save and load".

Two of them: Note [ The bytes of an old checkpoint ], and the tar archive of before 0.2, in which three files lie: the
storages, the tensors as numbers that describe views of them, and the pickle, which names tensors by their keys.

Note [ What is believed of an old checkpoint ]

The storages' sizes stand in the pickle, and their bytes behind it. So a storage is made only if the rest of the file is
long enough for all that were named so far, and a hostile number cannot take memory. The tar archive is opened only for
weights_only=False: its pickles are run by `pickle_module`, and until PyTorch 2.6 that was so for weights_only=True, too,
which made the argument worthless for whoever sent a tar file (CVE-2025-32434).
"""

import contextlib
import difflib
import inspect
import io
import os
import pickle
import struct
import tarfile
import warnings

from readtorch import _weights_only_unpickler
from readtorch.aten.functions import at
from readtorch.c10.device import is_faked
from readtorch.c10.module_names import room_of
from readtorch.csrc.serialization import read_file_raw
from readtorch.csrc.storage_methods import part_of, untyped
from readtorch.storage import TypedStorage, UntypedStorage

from . import config
from ._files import reads_directly
from ._formats import MAGIC_NUMBER, PROTOCOL_VERSION
from ._locations import get_restore_location
from ._messages import UNSAFE_MESSAGE, SourceChangeWarning
from ._opcodes import end_of_pickle
from ._references import element_type, maybe_decode_ascii, unpickler_class

_AT_ONCE = 1 << 16


def _legacy_load(file, map_location, pickle_module, **pickle_load_args):
    """The object in a file of an old format. pickle_module: None for weights_only."""
    if reads_directly(file) and file.tell() == 0 and _is_tar(file):
        if pickle_module is None:
            raise RuntimeError(
                "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. " + UNSAFE_MESSAGE
            )
        with contextlib.closing(tarfile.open(fileobj=file, mode="r:", format=tarfile.PAX_FORMAT)) as tar:
            return _TarCheckpoint(tar, map_location, pickle_module, pickle_load_args).load()
    run = _pickles_of(file, pickle_module, pickle_load_args)
    magic = run()
    if type(magic) is not int or magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = run()
    if type(version) is not int or version != PROTOCOL_VERSION:
        shown = version if type(version) in (int, str) else type(version)  # a tuple may be nested too deep to be shown
        raise RuntimeError(f"Invalid protocol version: {shown}")
    run()  # what the machine was like
    checkpoint = _OldCheckpoint(map_location, _rest_of(file))
    result = run(checkpoint)
    checkpoint.read_storages(file, run())
    return result


def _pickles_of(file, pickle_module, pickle_load_args):
    """A function that runs the next pickle in the file. It takes the checkpoint that the pickle's references are for."""

    def run(checkpoint=None):
        if pickle_module is None:
            unpickler = _weights_only_unpickler.Unpickler(_next_pickle(file), encoding=pickle_load_args["encoding"])
            if checkpoint is not None:
                unpickler.persistent_load = checkpoint.persistent_load
        else:
            unpickler = unpickler_class(pickle_module)(file, **pickle_load_args)
            unpickler.checkpoint = checkpoint
        return unpickler.load()

    return run


def _next_pickle(file):
    """The pickle that begins where the file stands, which then stands behind it."""
    start, found = file.tell(), b""
    while True:
        more = file.read(max(_AT_ONCE, len(found)))
        if not isinstance(more, bytes):
            raise AssertionError(f"Expected bytes, got {type(more).__name__}")
        found += more
        try:
            end = end_of_pickle(found)
        except EOFError:
            if more:
                continue
            end = len(found)
        file.seek(start + end)
        return io.BytesIO(found[:end])


def _rest_of(file):
    """How many bytes follow."""
    here = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(here)
    return (file.tell() if end is None else end) - here


class _OldCheckpoint:
    """The storages of an old checkpoint: made when the pickle names them, filled afterwards."""

    def __init__(self, map_location, room):
        self.restore = get_restore_location(map_location)
        self.is_fake = is_faked()
        self.room = room  # bytes of the file in which storages may be
        self.loaded = {}  # key -> TypedStorage
        self.unread = set()  # keys of those whose bytes are still to come

    def persistent_load(self, saved_id):
        """The storage, or the class, that a reference stands for."""
        if type(saved_id) is not tuple:
            raise AssertionError(f"saved_id must be a tuple, got {type(saved_id).__name__}")
        kind, *data = saved_id
        kind = maybe_decode_ascii(kind)
        if kind == "module":
            return _checked_class(*data)
        if kind != "storage":
            raise RuntimeError(f"Unknown saved id type: {kind}")
        if len(data) != 5:
            raise pickle.UnpicklingError(f"a reference to a storage has 6 parts, not {len(saved_id)}")
        storage_type, key, location, numel, view = data
        storage = self._storage(element_type(storage_type), key, maybe_decode_ascii(location), numel)
        return storage if view is None else self._view(storage, view)

    def _storage(self, dtype, key, location, numel):
        if type(key) not in (str, bytes) or type(location) is not str or type(numel) is not int or numel < 0:
            raise pickle.UnpicklingError("a storage's key and location must be texts, its size a natural number")
        known = self.loaded.get(key)
        if known is None:
            self.room -= numel * dtype.itemsize
            if self.room < 0:
                raise RuntimeError(f"unexpected EOF, expected {-self.room} more bytes. The file might be corrupted.")
            if self.is_fake:
                storage = UntypedStorage(numel * dtype.itemsize, device="meta")
            else:
                storage = self.restore(UntypedStorage(numel * dtype.itemsize), location)
            self.loaded[key] = known = TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)
            self.unread.add(key)
        elif known._data_ptr() == 0:  # an empty storage, or one on the Meta device
            nbytes, device = known._nbytes() and numel * dtype.itemsize, known._untyped_storage.device
            known = TypedStorage(wrap_storage=UntypedStorage(nbytes, device=device), dtype=dtype, _internal=True)
        return known

    def _view(self, storage, view):
        """A part of a storage, as files of before 0.4 have it."""
        numbers = type(view) is tuple and len(view) == 3 and all(type(n) is int and n >= 0 for n in view[1:])
        if not numbers or type(view[0]) not in (str, bytes):
            raise pickle.UnpicklingError(f"a view's place in a storage is a key and two natural numbers, not {view}")
        key, offset, size = view
        if key not in self.loaded:
            self.loaded[key] = _part_of(storage, offset, size)
        return self.loaded[key]

    def read_storages(self, file, keys):
        if config._serialization_tls.skip_data or self.is_fake:
            return
        if type(keys) is not list:
            raise pickle.UnpicklingError(f"the storages' keys are a list, not {type(keys)}")
        for key in keys:
            if type(key) not in (str, bytes) or key not in self.loaded:
                shown = repr(key) if type(key) in (str, bytes, int) else type(key)  # as above
                raise AssertionError(f"storage key {shown} not found in deserialized_objects")
            storage = self.loaded[key]
            read_file_raw(file, storage._untyped_storage._impl, storage.dtype.itemsize)
            self.unread.discard(key)
        if self.unread:  # in PyTorch: they hold whatever the memory held
            raise RuntimeError(f"the bytes of {len(self.unread)} storages are missing")


def _part_of(storage, offset, numel):
    """Some elements of a TypedStorage as one of its own, over the same memory."""
    item, impl = storage.dtype.itemsize, storage._untyped_storage._impl
    start, stop = (min(place * item, impl.nbytes) for place in (offset, offset + numel))
    return TypedStorage(wrap_storage=untyped(part_of(impl, start, stop)), dtype=storage.dtype, _internal=True)


# ---------------------------------------------------------------------------------------------- the sources of classes


def _checked_class(cls, source_file=None, source=None):
    """A class of modules, with a warning if its source is not what it was."""
    if source_file and source and room_of(cls.__module__) is None:
        _check_container_source(cls, source_file, source)
    return cls


def _check_container_source(cls, source_file, original_source):
    try:
        current_source = "".join(inspect.getsourcelines(cls)[0])
    except Exception:
        warnings.warn(
            f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked "
            "for correctness upon loading.",
            stacklevel=2,
        )
        return
    if original_source != current_source:
        advice = (
            _save_patch(cls.__name__ + ".patch", current_source, original_source, source_file)
            if cls.dump_patches
            else "you can retrieve the original source code by accessing the object's source attribute or set "
            "`torch.nn.Module.dump_patches = True` and use the patch tool to revert the changes."
        )
        name = f"{cls.__module__}.{cls.__name__}"
        warnings.warn(f"source code of class '{name}' has changed. {advice}", SourceChangeWarning, stacklevel=2)


def _save_patch(name, current_source, original_source, source_file):
    """Write the difference to a file of that name, unless another one has the name. Returns what to say of it."""
    lines = current_source.split("\n"), original_source.split("\n")
    diff = "\n".join(difflib.unified_diff(*lines, source_file, source_file, lineterm=""))
    try:
        with open(name, "a+") as file:
            file.seek(0)
            found = file.read()
            if not found:
                file.write(diff)
            elif found != diff:
                raise OSError
        return f"Saved a reverse patch to {name}. Run `patch -p0 < {name}` to revert your changes."
    except OSError:
        return (
            f"Tried to save a patch, but couldn't create a writable file {name}. Make sure it doesn't exist and your "
            "working directory is writable."
        )


# ----------------------------------------------------------------------------------------------------- the tar archive


def _is_tar(file):
    """Whether the file begins as a tar archive does."""
    head = file.read(tarfile.BLOCKSIZE)
    file.seek(0)
    try:
        tarfile.TarInfo.frombuf(head, tarfile.ENCODING, "surrogateescape")
    except tarfile.EOFHeaderError:  # a block of zeros: an archive without files
        return True
    except tarfile.HeaderError:
        return False
    return True


class _TarCheckpoint:
    """An archive of the files "storages", "tensors" and "pickle"."""

    def __init__(self, tar, map_location, pickle_module, pickle_load_args):
        self.tar, self.arguments = tar, (pickle_module, pickle_load_args)
        self.restore = get_restore_location(map_location)
        self.loaded = {}  # key -> TypedStorage or Tensor

    def load(self):
        self._read_storages(self._open("storages"))
        self._read_tensors(self._open("tensors"))
        return _pickles_of(self._open("pickle"), *self.arguments)(self)

    def _open(self, name):
        return self.tar.extractfile(name)  # in PyTorch: unpacked to a temporary folder

    def persistent_load(self, saved_id):
        if isinstance(saved_id, tuple):
            return _checked_class(*saved_id)
        return self.loaded[int(saved_id)]

    def _read_storages(self, file):
        run = _pickles_of(file, *self.arguments)
        for _ in range(run()):
            key, location, kind = run()
            storage = self.restore(untyped(read_file_raw(file, None, kind.dtype.itemsize)), location)
            self.loaded[key] = TypedStorage(wrap_storage=storage, dtype=kind.dtype, _internal=True)
        for key, root, offset, numel in run():
            self.loaded[key] = _part_of(self.loaded[root], offset, numel)

    def _read_tensors(self, file):
        run = _pickles_of(file, *self.arguments)
        for _ in range(run()):
            key, storage_key, _ = run()
            storage = self.loaded[storage_key]
            (ndim, _) = struct.unpack("<ii", file.read(8))
            *layout, offset = struct.unpack(f"<{2 * ndim + 1}q", file.read(8 * (2 * ndim + 1)))
            tensor = at.empty((0,), dtype=storage.dtype, device=storage._untyped_storage.device)
            self.loaded[key] = tensor.set_(storage._untyped_storage, offset, layout[:ndim], layout[ndim:])
