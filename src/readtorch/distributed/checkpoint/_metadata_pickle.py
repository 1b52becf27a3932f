"""The file `.metadata`, a pickle of a Metadata: written with PyTorch's names, read without trust.

In PyTorch: `pickle.dump` and `pickle.load` in `torch/distributed/checkpoint/filesystem.py`.

Note [ A checkpoint's metadata is a program too ]

Tensors of a checkpoint are read by the safe unpickler; the file that says where they lie is a pickle as well, and PyTorch
runs it. Ours knows eight classes, which it makes empty and whose fields it fills, four functions (`Size`, the layout, the
encoding of a memory format, a path) and dtypes. A field is no other than those the class declares, a key is a text or a
MetadataIndex, and a state is set on such an object alone, never on a class. A planner that keeps notes of its own kind
in `planner_data` must have its classes allowed: `readtorch.serialization.add_safe_globals`.
"""

import dataclasses
import pickle
import struct
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from readtorch._weights_only_unpickler import _INSTRUCTIONS, Unpickler, UnpicklingError
from readtorch.c10.scalar_type import ALL_TYPES
from readtorch.c10.size import Size
from readtorch.serialization import _get_layout
from readtorch.serialization._picklers import _RenamingPickler

from . import metadata as kinds

_PROTOCOL = 4  # what `pickle.dump` of Python 3.8 to 3.13 writes unless told otherwise
_uint64 = struct.Struct("<Q")


def dump(metadata, file):
    """Write a Metadata so that PyTorch reads it, and ours."""
    _RenamingPickler(file, _PROTOCOL).dump(metadata)


def load(file, storage_info):
    """The Metadata in `file`; `storage_info` is the storage's class for where an item lies. UnpicklingError if the file
    names, or does, anything else.
    """
    metadata = MetadataUnpickler(file, storage_info).load()
    if type(metadata) is not kinds.Metadata:
        raise UnpicklingError(f"expected the metadata of a checkpoint, but got {type(metadata)}")
    return metadata


_CLASSES = (
    kinds.Metadata,
    kinds.MetadataIndex,
    kinds.StorageMeta,
    kinds.TensorStorageMetadata,
    kinds.BytesStorageMetadata,
    kinds.ChunkStorageMetadata,
    kinds.TensorProperties,
)


def _names(classes):
    """Full name in files -> what stands for it."""
    here = "torch.distributed.checkpoint"
    names = {f"{here}.{cls.__module__.rpartition('.')[2]}.{cls.__qualname__}": cls for cls in classes}
    names.update({str(dtype): dtype for dtype in ALL_TYPES})
    names[f"{here}.metadata._MEM_FORMAT_ENCODING"] = kinds._MEM_FORMAT_ENCODING
    names["torch.Size"] = Size
    names["torch.serialization._get_layout"] = _get_layout
    for module in ("pathlib", "pathlib._local"):  # the second: Python 3.13
        names |= {f"{module}.PosixPath": PurePosixPath, f"{module}.WindowsPath": PureWindowsPath}
    return names


class MetadataUnpickler(Unpickler):
    """See Note [ A checkpoint's metadata is a program too ]."""

    def __init__(self, file, storage_info):
        super().__init__(file)
        self.classes = (*_CLASSES, storage_info)
        self.names = _names(self.classes)

    def find_global(self, module, name):
        full_path = f"{module}.{name}"
        return self.names[full_path] if full_path in self.names else super().find_global(module, name)

    def call(self, function, args):
        if function is kinds._MEM_FORMAT_ENCODING or (isinstance(function, type) and issubclass(function, PurePath)):
            if type(args) is tuple and all(type(arg) in (int, str) for arg in args):
                try:
                    return function(*args)
                except (TypeError, ValueError) as error:
                    raise self.damaged(f"{function.__name__}: {error}") from None
        return super().call(function, args)

    def check_keys(self, keys):
        for key in keys:
            named = type(key) is kinds.MetadataIndex and type(vars(key).get("fqn")) is str
            if type(key) is not str and not named:
                raise UnpicklingError(f"a key of a checkpoint's metadata must be a name, but got {type(key)}")

    def new_object(self):
        args, cls = self.stack.pop(), self.stack[-1]
        if cls in self.classes and args == ():
            self.stack[-1] = cls.__new__(cls)
            return
        self.stack.append(args)
        super()._new_object()

    def build(self):
        state, instance = self.stack[-1], self.stack[-2]
        if type(instance) not in self.classes:
            super()._build()
            return
        self.stack.pop()
        if type(instance) is kinds.TensorProperties:
            self.set_properties(instance, state)
        else:
            self.set_fields(instance, state)

    def set_properties(self, instance, state):
        good = type(state) is tuple and len(state) == 5 and type(state[3]) is kinds._MEM_FORMAT_ENCODING
        if not good or state[0] not in ALL_TYPES:
            raise UnpicklingError("the properties of a tensor are not such a tuple")
        instance.__setstate__(state)

    def set_fields(self, instance, state):
        if type(state) is not dict:
            raise UnpicklingError(f"the state of a {type(instance).__name__} must be a dict, but got {type(state)}")
        unknown = state.keys() - {field.name for field in dataclasses.fields(instance)}
        if unknown:
            raise UnpicklingError(f"a {type(instance).__name__} has no field {min(unknown)}")
        if type(state.get("offset")) not in (Size, int, type(None)):
            raise UnpicklingError("an offset must be a Size or a number")
        vars(instance).update(state)

    # --------------------------------------------------------------------------- instructions of protocol 4

    def frame(self):
        self.read(8)

    def short_text(self):
        self.stack.append(str(self.read(self.read(1)[0]), "utf-8", "surrogatepass"))

    def long_text(self):
        self.stack.append(str(self.read(_uint64.unpack(self.read(8))[0]), "utf-8", "surrogatepass"))

    def memoize(self):
        self.memo[len(self.memo)] = self.stack[-1]

    def stack_global(self):
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("a name must be a text")
        self.stack.append(self.find_global(module, name))

    def protocol(self):
        if not 2 <= (protocol := self.read(1)[0]) <= 5:
            raise UnpicklingError(f"unsupported pickle protocol: {protocol}")

    instructions = _INSTRUCTIONS | {
        pickle.PROTO[0]: "protocol",
        pickle.FRAME[0]: "frame",
        pickle.SHORT_BINUNICODE[0]: "short_text",
        pickle.BINUNICODE8[0]: "long_text",
        pickle.MEMOIZE[0]: "memoize",
        pickle.STACK_GLOBAL[0]: "stack_global",
        pickle.NEWOBJ[0]: "new_object",
        pickle.BUILD[0]: "build",
    }
