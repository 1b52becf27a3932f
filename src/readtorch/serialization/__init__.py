"""`save` and `load`: any Python object with tensors in it, to a file and back.

In PyTorch: `torch/serialization.py`, `caffe2/serialize/inline_container.cc`. Explained in the chapter "state_dict, save and
load".

    _save, _load          the two ways
    _legacy_save, _legacy_load   the same in the formats of before PyTorch 1.6
    _inline_container     the archive: records with names
    _opcodes, _names      the pickle in it: what it names, and what that is called on either side
    _safe_globals         what it may name when the file may be anybody's
    _locations, _files    where storages go; how files are opened and replaced
    config                what to do unless told otherwise
"""

import io
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from readtorch import _weights_only_unpickler
from readtorch.c10.device import device
from ._files import _check_seekable, open_for_reading
from ._files import is_path as _is_path
from ._files import reads_directly as _should_read_directly
from ._formats import DEFAULT_PROTOCOL, INT_SIZE, LONG_SIZE, MAGIC_NUMBER, PROTOCOL_VERSION, SHORT_SIZE
from ._layouts import _get_layout  # checkpoints name it
from ._load import load
from ._load import _starts_with, _ZIP_MAGIC
from ._messages import UNSAFE_MESSAGE, SourceChangeWarning
from ._locations import (
    _package_registry,
    _validate_device,
    default_restore_location,
    is_meta_location as _is_meta_location,
    get_restore_location as _get_restore_location,
    location_tag,
    normalize_storage_type,
    register_package,
    storage_to_tensor_type,
    validate_cuda_device,
    validate_hpu_device,
)
from ._safe_globals import (
    _get_allowed_globals,
    _get_user_allowed_globals,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from ._module_versions import check_dill_version as _check_dill_version
from ._module_versions import check_module_version_greater_or_equal
from ._references import maybe_decode_ascii as _maybe_decode_ascii
from ._save import save
from ._storage_type import StorageType
from ._inline_container import ZipReader
from . import config
from .config import (
    MAP_PRIVATE,
    MAP_SHARED,
    LoadEndianness,
    _serialization_tls,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)

MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None
STORAGE_KEY_SEPARATOR = ","
IS_WINDOWS = sys.platform == "win32"

__all__ = [
    "SourceChangeWarning",
    "mkdtemp",
    "register_package",
    "check_module_version_greater_or_equal",
    "validate_cuda_device",
    "validate_hpu_device",
    "location_tag",
    "default_restore_location",
    "normalize_storage_type",
    "storage_to_tensor_type",
    "save",
    "load",
    "StorageType",
    "LoadEndianness",
    "get_crc32_options",
    "set_crc32_options",
    "get_default_load_endianness",
    "set_default_load_endianness",
    "get_default_mmap_options",
    "set_default_mmap_options",
    "clear_safe_globals",
    "get_safe_globals",
    "add_safe_globals",
    "safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "skip_data",
]


@contextmanager
def mkdtemp():
    """A directory that is removed at the end of the block."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _is_zipfile(f):
    """Whether a file begins as a zip archive does."""
    return _starts_with(f, _ZIP_MAGIC)


def _is_torchscript_zip(zip_file):
    return "constants.pkl" in zip_file


def _get_storage_alignment():
    """To what multiple `save` aligns storages."""
    return config.save.storage_alignment


def get_unsafe_globals_in_checkpoint(f):
    """Full names of the classes and functions in a checkpoint that `load` would refuse. Nothing of it is run.

    f: path or file object. Raises ValueError if it is no checkpoint.
    """
    safe = {*_get_allowed_globals(), *_get_user_allowed_globals()}
    with open_for_reading(f) as file:
        if not _starts_with(file, _ZIP_MAGIC):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = ZipReader(file)
        if "constants.pkl" in reader:
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint"
            )
        named = _weights_only_unpickler.get_globals_in_pkl(io.BytesIO(reader.read("data.pkl")))
        return list(named - safe)
