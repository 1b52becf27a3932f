"""`save(..., _use_new_zipfile_serialization=False)`: a checkpoint as PyTorch wrote it before version 1.6.

In PyTorch: `_legacy_save` of `torch/serialization.py`. Explained in the chapter "state_dict, save and load".

Note [ The bytes of an old checkpoint ]

    pickles of a magic number, of the format's version, and of what the machine was like
    pickle of the object; where it holds a storage stands
        ("storage", class that names its dtype, address, device, number of elements, None)
    pickle of the list of the addresses, in the order of their texts
    for each: the number of elements in 8 bytes, then the elements

One follows the other; only who has run a pickle to its end knows where the next thing begins. So nothing in such a file
can be mapped or found without reading what stands before it, which is why the zip format came.
"""

import inspect
import io
import sys
import warnings

from readtorch.c10.module_names import room_of
from readtorch.csrc.serialization import write_file_raw

from ._formats import INT_SIZE, LONG_SIZE, MAGIC_NUMBER, PROTOCOL_VERSION, SHORT_SIZE
from ._names import torch_name
from ._opcodes import rename_globals
from ._picklers import _RefersToStorages, pickler_class


def _legacy_save(obj, f, pickle_module, pickle_protocol):
    """Write `obj` to the file `f` in the old format."""
    sys_info = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": SHORT_SIZE, "int": INT_SIZE, "long": LONG_SIZE},
    }
    for part in (MAGIC_NUMBER, PROTOCOL_VERSION, sys_info):
        pickle_module.dump(part, f, protocol=pickle_protocol)
    buffer = io.BytesIO()
    pickler = pickler_class(pickle_module, pickle_protocol >= 4, _RefersByAddress)(buffer, protocol=pickle_protocol)
    pickler.dump(obj)
    data = buffer.getvalue()
    f.write(rename_globals(data, torch_name) if pickle_protocol < 4 else data)
    addresses = sorted(pickler.written)
    pickle_module.dump(addresses, f, protocol=pickle_protocol)
    f.flush()
    for address in addresses:
        storage, element_size = pickler.written[address]
        storage.data_ptr()  # raises for what wraps tensors and has no bytes
        write_file_raw(storage._impl, f, True, element_size)


class _RefersByAddress(_RefersToStorages):
    """A Pickler that writes references as the old format has them: to storages, and to classes of modules."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.written = {}  # address of the StorageImpl, as text -> (UntypedStorage, bytes of an element)
        self.classes = set()

    def persistent_id(self, obj):
        if isinstance(obj, type):
            return self.reference_to_class(obj)
        reference = super().persistent_id(obj)
        if reference is None:
            return None
        _, kind, key, location, numel = reference
        storage = self.storages[key]
        address = str(storage._cdata)
        self.written.setdefault(address, (storage, obj.dtype.itemsize if hasattr(obj, "dtype") else 1))
        return "storage", kind, address, location, numel, None  # in files of before 0.4: a view's place in a storage

    def reference_to_class(self, cls):
        """("module", class, file, source) of a Module's class at its first use, for `load` to compare."""
        from readtorch.nn.modules.module import Module

        if not issubclass(cls, Module) or cls in self.classes:
            return None
        self.classes.add(cls)
        return "module", cls, *_source_of(cls)


def _source_of(cls):
    """(file, source) of a class, or two times None."""
    if room_of(cls.__module__) is not None:
        return None, None  # in PyTorch: its own, too; ours is another, and whoever loads the file need not hear of it
    try:
        return inspect.getsourcefile(cls), "".join(inspect.getsourcelines(cls)[0])
    except Exception:
        warnings.warn(
            f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked "
            "for correctness upon loading.",
            stacklevel=2,
        )
        return None, None
