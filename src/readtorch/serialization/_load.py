"""`load`: the way back from a checkpoint to objects.

In PyTorch: `load` and `_load` of `torch/serialization.py`. Explained in the chapter "state_dict, save and
load".
"""

import contextlib
import io
import os
import pickle
import sys
import warnings

import numpy as np

from readtorch import _weights_only_unpickler
from readtorch.c10.storage_impl import StorageImpl, address_of
from readtorch.storage import TypedStorage, UntypedStorage, untyped

from . import config
from ._files import is_path, open_for_reading
from ._inline_container import STORED, ZipReader
from ._locations import fake_place, get_restore_location, is_meta_location
from ._messages import UNSAFE_MESSAGE, weights_only_message
from ._module_versions import check_dill_version
from ._references import element_type, maybe_decode_ascii, unpickler_class

_ZIP_MAGIC = b"PK\x03\x04"


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """The object that `save`, here or in PyTorch, wrote.

    f: path, or a file object that can seek.
    map_location: where storages go: a device or its name, a dictionary from saved to wanted tags, or a
    function of (storage on the CPU, saved tag) that returns a storage or None. By default where they were.
    weights_only: True, the default: only tensors, containers, numbers and texts are built, and what
    `add_safe_globals` named; anything else raises UnpicklingError. False: the file is a program that is run;
    only for files you trust.
    mmap: storages are not read but mapped: their bytes come from the file when first used. Only for a path.
    pickle_module, pickle_load_args: for weights_only=False.
    Files in the formats of before PyTorch 1.6 load as well; tar archives, of before 0.2, only with weights_only=False.
    Raises RuntimeError for a damaged file, UnpicklingError for one that is no checkpoint.
    """
    weights_only = _decide_weights_only(weights_only, pickle_module)
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    mmap = config.load.mmap if mmap is None else mmap
    pickle_module = None if weights_only else pickle_module or pickle
    pickle_load_args = {"encoding": "utf-8", **pickle_load_args}
    check_dill_version(pickle_module)
    if is_path(f) and os.fspath(f).endswith(".safetensors"):
        return _load_safetensors(os.fspath(f), map_location)
    with open_for_reading(f) as file:
        if not _starts_with(file, _ZIP_MAGIC):
            return _load_legacy(file, f, map_location, pickle_module, mmap, pickle_load_args)
        start = file.tell()
        reader = ZipReader(file)
        if "constants.pkl" in reader:
            file.seek(start)
            return _load_torchscript(file, map_location, weights_only)
        if mmap and not is_path(f):
            raise ValueError("f must be a file path in order to use the mmap argument")
        checkpoint = _Checkpoint(reader, map_location, os.fspath(f) if mmap else None)
        if weights_only:
            return _load_weights_only(checkpoint, pickle_load_args["encoding"])
        return _load_with(pickle_module, checkpoint, pickle_load_args)


def _decide_weights_only(weights_only, pickle_module):
    """What to do, from the argument and from the two variables of the environment that override it."""
    unset = weights_only is None
    if unset:
        weights_only = pickle_module is None
    force, forbid = (
        os.getenv(f"TORCH_FORCE_{name}_LOAD", "0").lower() in ("1", "y", "yes", "true")
        for name in ("WEIGHTS_ONLY", "NO_WEIGHTS_ONLY")
    )
    if force and forbid:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or "
            "`TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if forbid and unset:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the"
            "`weights_only` argument was not explicitly passed to `torch.load`, forcing "
            "weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        weights_only = False
    weights_only = force or weights_only
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return weights_only


# -------------------------------------------------------------------------------------- what is no checkpoint


def _starts_with(file, magic):
    start = file.tell()
    found = file.read(len(magic))
    file.seek(start)
    return found == magic


def _load_legacy(file, f, map_location, pickle_module, mmap, pickle_load_args):
    """The object in a file that is no zip archive. pickle_module: None for weights_only."""
    if mmap:
        name = f"{f}, " if isinstance(f, str) else ""
        raise RuntimeError(
            f"mmap can only be used with files saved with "
            f"`torch.save({name}_use_new_zipfile_serialization="
            "True), please torch.save your checkpoint with this option in order to use mmap."
        )
    from ._legacy_load import _legacy_load

    try:
        return _legacy_load(file, map_location, pickle_module, **pickle_load_args)
    except pickle.UnpicklingError as error:
        if pickle_module is not None:
            raise
        raise pickle.UnpicklingError(weights_only_message(str(error))) from None


def _load_torchscript(file, map_location, weights_only):
    """The module in an archive that `jit.save` wrote."""
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call "
        "'torch.jit.load' directly to silence this warning)",
        UserWarning,
        stacklevel=3,
    )
    if weights_only:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. " + UNSAFE_MESSAGE
        )
    package = sys.modules[__name__.partition(".")[0]]  # not imported: the room lies above
    return package.jit.load(file, map_location=map_location)


def _load_safetensors(path, map_location):
    if isinstance(map_location, dict) or callable(map_location):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. "
            "Use a device string or torch.device instead."
        )
    from readtorch.utils.safetensors import load_file

    return load_file(path, "cpu" if map_location is None else str(map_location))


# ----------------------------------------------------------------------------------------------- the storages


class _Checkpoint:
    """A checkpoint's records as storages, each made when the pickle first names it, and then the same one."""

    folder = "data"  # where the storages lie

    def __init__(self, reader, map_location, mapped_path=None):
        self.reader = reader
        self.serialization_id = reader.serialization_id()
        self.format_version = reader.text(".format_version")
        self.alignment = _alignment(reader)
        self.map_location = map_location
        self.restore = get_restore_location(map_location)
        self.to_meta = is_meta_location(map_location)
        self.fake_place = fake_place(map_location)
        self.swaps = _byte_order(reader) != sys.byteorder
        self.file = memoryview(_map(mapped_path, reader.size)) if mapped_path else None
        self.loaded = {}  # key -> TypedStorage

    def persistent_load(self, saved_id):
        """The storage behind ("storage", class, key, location, number of elements)."""
        if type(saved_id) is not tuple or len(saved_id) != 5:
            raise pickle.UnpicklingError(f"persistent_load id must be a tuple of five, but got {type(saved_id)}")
        typename, kind, key, location, numel = map(maybe_decode_ascii, saved_id)
        if typename != "storage":
            raise RuntimeError(f"Unknown typename for persistent_load, expected 'storage' but got '{typename}'")
        if type(key) is not str or type(location) is not str or type(numel) is not int:
            raise pickle.UnpicklingError("a storage's key and location must be texts, its size an int")
        dtype = element_type(kind)
        if key in self.loaded:
            return self.loaded[key]
        storage = self._load_storage(dtype, key, location, numel)
        if storage._data_ptr():  # what has no address, as empty storages and those on the Meta device, is made anew
            self.loaded[key] = storage
        return storage

    def _load_storage(self, dtype, key, location, numel):
        name = f"{self.folder}/{key}"
        size = self.reader.record(name).size
        if size != numel * dtype.itemsize:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size "
                f"({numel * dtype.itemsize} bytes = "
                f"{numel} elements * {dtype.itemsize} bytes/element)"
            )
        if self.to_meta or self.fake_place:
            storage = UntypedStorage(size, device="meta")
            storage._checkpoint_offset = self.reader.offset(name)
            storage._fake_device = None if self.to_meta else self.fake_place(location)
            return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)
        storage = self._read(name, size)
        if self.swaps:
            storage.byteswap(dtype)
        return TypedStorage(wrap_storage=self.restore(storage, location), dtype=dtype, _internal=True)

    def _read(self, name, size):
        if config._serialization_tls.skip_data:
            return UntypedStorage(size)
        if self.file is None:
            buffer = _aligned(size)
            self.reader.read_into(name, buffer)
            return untyped(StorageImpl(np.frombuffer(buffer, np.uint8)))
        if self.reader.record(name).method != STORED:
            raise RuntimeError(f"{name} is compressed: mmap needs records as torch.save writes them")
        start = self.reader.offset(name)
        return untyped(StorageImpl(np.frombuffer(self.file, np.uint8, size, start), resizable=False))


def _aligned(size):
    """Fresh memory of that size at an address that is a multiple of 64: the system copies a file into it a
    quarter faster.
    """
    memory = np.empty(size + 63, np.uint8)
    start = -address_of(memory) % 64
    return memory.data[start : start + size]


def _map(path, size):
    shared = config.get_default_mmap_options() == config.MAP_SHARED
    return UntypedStorage.from_file(path, shared, size)._impl.buffer


def _alignment(reader):
    """To what multiple storages are aligned in the file. It changes nothing here: their places stand in the
    directory.
    """
    text = reader.text(".storage_alignment", "64")
    if not text.isdigit():
        raise ValueError(f"the record .storage_alignment holds no number: {text}")
    return int(text)


def _byte_order(reader):
    if "byteorder" in reader:
        order = reader.text("byteorder")
        if order not in ("little", "big"):
            raise ValueError("Unknown endianness type: " + order)
        return order
    default = config.get_default_load_endianness()
    return {
        None: "little",
        config.LoadEndianness.LITTLE: "little",
        config.LoadEndianness.BIG: "big",
        config.LoadEndianness.NATIVE: sys.byteorder,
    }[default]


# ------------------------------------------------------------------------------------------------- the pickle


def _load_weights_only(checkpoint, encoding):
    data = io.BytesIO(checkpoint.reader.read("data.pkl"))
    unpickler = _weights_only_unpickler.Unpickler(data, encoding=encoding)
    unpickler.persistent_load = checkpoint.persistent_load
    try:
        with _mapping(checkpoint):
            return unpickler.load()
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(weights_only_message(str(error))) from None


def _load_with(pickle_module, checkpoint, pickle_load_args):
    data = io.BytesIO(checkpoint.reader.read("data.pkl"))
    unpickler = unpickler_class(pickle_module)(data, **pickle_load_args)
    unpickler.checkpoint = checkpoint
    with _mapping(checkpoint):
        return unpickler.load()


@contextlib.contextmanager
def _mapping(checkpoint):
    """While the pickle runs its functions know `map_location`."""
    tls = config._serialization_tls
    before, tls.map_location = tls.map_location, checkpoint.map_location
    try:
        yield
    finally:
        tls.map_location = before  # in PyTorch: not if the load fails
