"""Values of TorchScript as a pickle: the instructions that PyTorch writes, so that its reader understands
them.

A module is `NEWOBJ` of its class, then `BUILD` with its attributes. A list or dict goes through a function
that says its type, since [] alone does not: `build_intlist([1, 2])`, `restore_type_tag({}, "Dict[str,
int]")`.

In PyTorch: `torch/csrc/jit/serialization/pickler.cpp`. Explained in the chapter "JIT: scripting".
"""

import enum
import struct

from readtorch import storage as storages
from readtorch.c10.device import device as Device
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.csrc.jit.ir.constants import enum_type, type_of_value
from readtorch.csrc.jit.ir.type import (
    AnyType,
    BoolType,
    FloatType,
    IntType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    UnionType,
    unwrap_optional,
)

from .python_print import type_text

_LISTS = {
    IntType: "build_intlist",
    FloatType: "build_doublelist",
    BoolType: "build_boollist",
    TensorType: "build_tensorlist",
}


class Pickler:
    """name_of(type): the qualified name of a class in the archive. tensors: storages in the order of their
    numbers.
    """

    def __init__(self, name_of):
        self.out = bytearray(b"\x80\x02")
        self.name_of = name_of
        self.memo = {}  # what was written -> its number
        self.kept = []  # objects whose ids are in the memo: they must not be replaced by others
        self.classes = []  # of the objects
        self.storages = {}  # StorageImpl -> (number, UntypedStorage)

    def dump(self, value, type=None):
        self.value(value, type or type_of_value(value))
        return bytes(self.out + b".")

    # ------------------------------------------------------------------------------------------- the memo

    def memoize(self, key):
        number = self.memo[key] = len(self.memo)
        self.out += b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)

    def recall(self, key):
        """Whether it was written before; then only its number is."""
        if key not in self.memo:
            return False
        number = self.memo[key]
        self.out += b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)
        return True

    # --------------------------------------------------------------------------------------------- values

    def value(self, value, type):
        """type: as it is declared; it says the element types of empty containers."""
        type = _of_value(type, value)
        if value is None:
            self.out += b"N"
        elif value is True or value is False:
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, enum.Enum):
            self.enum(value)
        elif isinstance(value, int):
            self.int(value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            self.string(value)
        elif isinstance(value, complex):
            self.call("builtins", "complex", value.real, value.imag)
        elif isinstance(value, Device):
            self.call("torch", "device", str(value))
        else:
            self.shared(value, type)

    def shared(self, value, type):
        """What several places may share."""
        value = getattr(value, "_c", value)
        if self.recall(id(value)):
            return
        self.kept.append(value)
        if isinstance(value, TensorImpl):
            self.tensor(value)
        elif isinstance(value, ScriptObject):
            self.object(value)
        elif isinstance(value, tuple):
            self.tuple(value, type)
            return
        elif isinstance(value, list):
            self.list(value, type)
        elif isinstance(value, dict):
            self.dict(value, type)
        else:
            raise RuntimeError(f"Unknown IValue type for pickling: {value.__class__.__name__}")
        self.memoize(id(value))

    def int(self, value):
        if 0 <= value < 256:
            self.out += b"K" + bytes([value])
        elif 0 <= value < 65536:
            self.out += b"M" + struct.pack("<H", value)
        elif -(2**31) <= value < 2**31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def string(self, value):
        if not self.recall(("text", value)):
            data = value.encode()
            self.out += b"X" + struct.pack("<I", len(data)) + data
            self.memoize(("text", value))

    def global_(self, module, name):
        if not self.recall(("global", module, name)):
            self.out += f"c{module}\n{name}\n".encode()
            self.memoize(("global", module, name))

    def call(self, module, name, *arguments):
        self.global_(module, name)
        self.out += b"("
        for each in arguments:
            self.value(each, type_of_value(each))
        self.out += b"tR"

    def tuple(self, value, type):
        types = type.types if isinstance(type, TupleType) else [type_of_value(v) for v in value]
        if not value:
            self.out += b")"
            return
        short = {1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(value))
        self.out += b"" if short else b"("
        for each, t in zip(value, types):
            self.value(each, t)
        self.out += short or b"t"

    def list(self, values, type):
        element = type.elem if isinstance(type, ListType) else AnyType.get()
        function = _LISTS.get(element.__class__)
        self.global_("torch.jit._pickle", function or "restore_type_tag")
        self.out += b"(" if function else b""
        self.out += b"]("
        for each in values:
            self.value(each, element)
        self.out += b"e"
        if not function:
            self.string(type_text(type, self.name_of))
        self.out += b"tR" if function else b"\x86R"

    def dict(self, values, type):
        self.global_("torch.jit._pickle", "restore_type_tag")
        self.out += b"}("
        for key, value in values.items():
            self.value(key, type.key)
            self.value(value, type.value)
        self.out += b"u"
        self.string(type_text(type, self.name_of))
        self.out += b"\x86R"

    def enum(self, value):
        module, _, name = self.name_of(enum_type(value.__class__)).rpartition(".")
        self.global_(module, name)
        self.value(value.value, type_of_value(value.value))
        self.out += b"\x85R"

    def object(self, value):
        type = value.type
        self.classes.append(type)
        module, _, name = self.name_of(type).rpartition(".")
        self.global_(module, name)
        self.out += b")\x81"
        getstate = type.findMethod("__getstate__")
        if getstate is not None and type.findMethod("__setstate__") is not None:
            self.value(getstate(value), getstate.schema.returns[0].type)
        else:
            self.out += b"}("
            for attribute, each in zip(type.attributes, value.slots):
                self.string(attribute.name)
                self.value(each, attribute.type)
            self.out += b"u"
        self.out += b"b"

    # -------------------------------------------------------------------------------------------- tensors

    def tensor(self, tensor):
        """A call that puts it together from a storage, an offset in it, sizes and strides."""
        self.global_("torch._utils", "_rebuild_tensor_v2")
        self.out += b"("
        self.storage(tensor)
        self.int(tensor.storage_offset())
        for numbers in (tensor.shape, tensor.stride()):
            self.out += b"("
            for n in numbers:
                self.int(n)
            self.out += b"t"
        self.out += b"\x88" if tensor.requires_grad else b"\x89"
        self.global_("collections", "OrderedDict")
        self.out += b")RtR"

    def storage(self, tensor):
        untyped = tensor.untyped_storage()
        number, _ = self.storages.setdefault(untyped._impl, (len(self.storages), untyped))
        kind = storages.CLASS_NAMES[tensor.dtype]
        self.out += b"("
        self.string("storage")
        self.global_("torch", kind)
        self.string(str(number))
        self.string(str(tensor.device))
        self.int(untyped.nbytes() // tensor.dtype.itemsize)
        self.out += b"tQ"


def _of_value(type, value):
    """The part of an Optional or Union that a value has."""
    if isinstance(type, OptionalType):
        return unwrap_optional(type)
    if isinstance(type, (UnionType, AnyType)) and isinstance(value, (list, dict, tuple)):
        return type_of_value(value)
    return type
