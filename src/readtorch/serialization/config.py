"""What `save` and `load` do unless told otherwise.

In PyTorch: `torch/utils/serialization/config.py` and the getters and setters of `torch/serialization.py`.
Explained in the chapter "state_dict, save and load".
"""

import sys
from enum import Enum

from readtorch._utils import _serialization_tls

if sys.platform == "win32":
    MAP_PRIVATE = MAP_SHARED = None
else:
    from mmap import MAP_PRIVATE, MAP_SHARED


class _Options:
    """A group of options: attributes that can be set, and no others."""

    def __init__(self, name, **options):
        self.__dict__.update(_name=name, _default=options, **options)

    def __getattr__(self, name):
        raise AttributeError(f"torch.utils.serialization.config.{self._name}.{name} does not exist")

    def __setattr__(self, name, value):
        if name not in self._default:
            self.__getattr__(name)
        self.__dict__[name] = value


load = _Options(
    "load",
    mmap=False,
    endianness=None,  # of files without a `byteorder` record; None means little
    mmap_flags=MAP_PRIVATE,
    calculate_storage_offsets=False,  # in PyTorch: saves reading headers; here the directory has been read in any case
)
save = _Options(
    "save",
    compute_crc32=True,
    use_pinned_memory_for_d2h=False,  # accepted; there is nothing to gain here
    storage_alignment=64,
)


class LoadEndianness(Enum):
    """The order in which `load` takes the bytes of a number to stand, where the file does not say."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness():
    """The byte order of files that do not name theirs: a LoadEndianness, or None, which means little."""
    return load.endianness


def set_default_load_endianness(endianness):
    """Set the byte order of files that do not name theirs. Raises TypeError for anything but a LoadEndianness
    or None.
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    load.endianness = endianness


def get_crc32_options():
    """Whether `save` writes the checksum of every record; True by default."""
    return save.compute_crc32


def set_crc32_options(compute_crc32):
    """Whether `save` writes checksums. Without them other programs may call the file damaged; `load` does not
    look.
    """
    save.compute_crc32 = compute_crc32


def get_default_mmap_options():
    """The flags with which `load(..., mmap=True)` maps a file: `mmap.MAP_PRIVATE` unless set otherwise."""
    return load.mmap_flags


class set_default_mmap_options:
    """Map files with `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED` from here on, or within a `with` block.

    Shared: what is written to a loaded tensor goes to the file. Raises ValueError for other flags.
    """

    def __init__(self, flags):
        if MAP_SHARED is None:
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, "
                f"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev, load.mmap_flags = load.mmap_flags, flags

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        load.mmap_flags = self.prev


class skip_data:
    """Within this block `save` leaves room for the bytes of storages without writing them, and `load` reads
    none.

    materialize_fake_tensors: `save` takes FakeTensors for tensors of their device, so that a file has room for their bytes.
    """

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        tls = _serialization_tls
        self._before = tls.skip_data, tls.materialize_fake_tensors
        tls.skip_data, tls.materialize_fake_tensors = True, self.materialize_fake_tensors

    def __exit__(self, type, value, tb):
        _serialization_tls.skip_data, _serialization_tls.materialize_fake_tensors = self._before
