"""`save` and `load`: any Python object with tensors in it, to a file and back.

In PyTorch: `torch/serialization.py`, `caffe2/serialize/inline_container.cc`. Explained in the chapter "state_dict, save and
load".

    _save, _load          the two ways
    _inline_container     the archive: records with names
    _opcodes, _names      the pickle in it: what it names, and what that is called on either side
    _safe_globals         what it may name when the file may be anybody's
    _locations, _files    where storages go; how files are opened and replaced
    config                what to do unless told otherwise
"""

import io
import shutil
import tempfile
import warnings
from contextlib import contextmanager

from readtorch import _weights_only_unpickler
from ._files import open_for_reading
from ._layouts import _get_layout  # checkpoints name it
from ._load import UNSAFE_MESSAGE, load
from ._load import _starts_with, _ZIP_MAGIC
from ._locations import default_restore_location, location_tag, register_package, validate_cuda_device
from ._safe_globals import (
    _get_allowed_globals,
    _get_user_allowed_globals,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from ._save import DEFAULT_PROTOCOL, save
from ._storage_type import StorageType
from ._inline_container import ZipReader
from .config import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)

__all__ = [
    "SourceChangeWarning",
    "mkdtemp",
    "register_package",
    "check_module_version_greater_or_equal",
    "validate_cuda_device",
    "location_tag",
    "default_restore_location",
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


class SourceChangeWarning(Warning):
    """That a saved class's source has changed since; formats of today do not keep the source."""


@contextmanager
def mkdtemp():
    """A directory that is removed at the end of the block."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


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


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether `module.__version__` is at least `req_version_tuple`.

    Raises RuntimeError, or only warns, if it cannot be read as numbers.
    """
    try:
        parts = module.__version__.split(".")
        version = tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts))
        return version >= req_version_tuple
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and "
            "cannot be compared"
            f" with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True
