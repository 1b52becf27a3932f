"""Reads the pickles of an archive: tensors, containers, and objects of the archive's own classes; nothing
else.

In PyTorch: `torch/csrc/jit/serialization/unpickler.cpp`. Explained in the chapter "JIT: scripting".

Note [ What an archive's pickle cannot do ]

It runs on the machine that reads checkpoints (Note [ What a hostile pickle cannot do ]), with still fewer
instructions, and no function or class of Python is ever on its stack. What a name leads to is a `_Callable`,
which has no attributes that could be set, and the only thing that can be done with it is to run it, by `REDUCE` or
by `BUILD`, which are the same here, as in PyTorch. The keys of dictionaries are those that TorchScript has: no
tuples.

A list that holds itself twice, in one that holds that twice, and so on, is a short program, too, and becomes
2**60 lists when each is converted to the type that an attribute declares. So all that is converted may together
have no more parts than the pickle has bytes, some times over.
"""

import io
from pickle import UnpicklingError

from readtorch._utils import _rebuild_tensor_v2
from readtorch._weights_only_unpickler import Unpickler
from readtorch.c10.device import device as Device
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.api.module import ScriptModule
from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.csrc.jit.ir.type import ClassType, DictType, EnumType, ListType
from readtorch.serialization._load import _Checkpoint
from readtorch.serialization._storage_type import StorageType

_AS_IN_CHECKPOINTS = b"]})\x88\x89)NJKMGXhjqraesu(t\x85\x86\x87cQ"
_MAX_COMPLEX_KEYS = 10_000  # their hashes can be chosen to be the same
_DEEPEST = 200
_PARTS_PER_BYTE = 16


def read_pickle(reader, name, types, map_location=None):
    """The object in the record `<name>.pkl`, whose tensors lie in the folder `name`.

    types: what finds the archive's types by name. Raises RuntimeError for what `jit.save` does not write.
    """
    storages = _Storages(reader, map_location)
    storages.folder = name
    unpickler = _ArchiveUnpickler(io.BytesIO(reader.read(f"{name}.pkl")), types, storages)
    try:
        return unpickler.load()
    except (UnpicklingError, EOFError) as error:
        raise RuntimeError(f"Unpickler cannot read {name}.pkl: {error}") from None


class _Storages(_Checkpoint):
    """The tensors' storages; each pickle has a folder of its own."""


class _Callable:
    """What a name leads to. run(unpickler, argument): what REDUCE and BUILD do with it."""

    __slots__ = ("run",)

    def __init__(self, run):
        self.run = run


def _first(unpickler, arguments):
    """Of the functions that only say what type a list has: PyTorch needs it."""
    if type(arguments) is not tuple or not arguments or type(arguments[0]) is not list:
        raise UnpicklingError("a typed list must be made of a list")
    return arguments[0]


def _tagged(unpickler, arguments):
    """A list or dictionary with the text of its type, which must be the type of one."""
    if type(arguments) is not tuple or len(arguments) != 2 or type(arguments[1]) is not str:
        raise UnpicklingError("restore_type_tag takes a container and the text of its type")
    value, text = arguments
    if text not in unpickler.tags:
        unpickler.tags[text] = unpickler.types.type_of_text(text)
    kind = {list: ListType, dict: DictType}.get(type(value))
    if kind is None or not isinstance(unpickler.tags[text], kind):
        raise UnpicklingError(f"Unknown type for tag restoration: {text}")
    return value


def _calling(function):
    return _Callable(lambda unpickler, arguments: unpickler.call(function, arguments))


_KNOWN = {
    ("torch._utils", "_rebuild_tensor_v2"): _calling(_rebuild_tensor_v2),
    ("torch", "device"): _calling(Device),
    ("builtins", "complex"): _calling(complex),
    ("collections", "OrderedDict"): _Callable(lambda *_: None),  # of hooks, which are never called
    ("torch.jit._pickle", "restore_type_tag"): _Callable(_tagged),
    **{("torch.jit._pickle", f"build_{t}list"): _Callable(_first) for t in ("int", "double", "bool", "tensor")},
}


class _ArchiveUnpickler(Unpickler):
    """See Note [ What an archive's pickle cannot do ]."""

    instructions = {code: Unpickler.instructions[code] for code in _AS_IN_CHECKPOINTS} | {
        0x81: "_new_object",
        0x8A: "_long",
        ord("R"): "_run",
        ord("b"): "_run",
        ord("l"): "_list",
        ord("d"): "_dict",
    }

    def __init__(self, file, types, storages):
        super().__init__(file)
        self.types = types
        self.tags = {}  # text -> type
        self.persistent_load = storages.persistent_load
        self.complex_keys = 0
        self.room_for_parts = _PARTS_PER_BYTE * len(self.data)

    def load(self):
        if self.data[:2] != b"\x80\x02":
            raise self.damaged("Only Pickle protocol 2 is supported")
        self.at = 2
        result = super().load()
        if self.stack or self.metastack:
            raise self.damaged(f"expected 1 element on the stack, but found {len(self.stack) + 1}")
        self.count_parts(result)
        return result

    def find_global(self, module, name):
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if module == "torch" and name.endswith("Storage"):
            return StorageType(name)
        type = self.types.find_type(f"{module}.{name}") if module.partition(".")[0] == "__torch__" else None
        if isinstance(type, ClassType):
            return _Callable(lambda unpickler, state: unpickler.object(type, state))
        if isinstance(type, EnumType):
            return _Callable(lambda unpickler, value: unpickler.member(type, value))
        raise UnpicklingError(f"an archive may not name {module}.{name}")

    def object(self, type, state):
        self.count_parts(state)
        made = (ScriptModule if type.is_module() else ScriptObject)(type)
        made.__setstate__(state)
        return made

    def member(self, type, value):
        """The member of an enumeration. in PyTorch: its value comes in a tuple, or alone"""
        value = value[0] if isinstance(value, tuple) and len(value) == 1 else value
        for member in type.python_class:
            if member.value == value and member.value.__class__ is value.__class__:
                return member
        raise UnpicklingError(f"no member of {type.qualified} has this value")

    def count_parts(self, value):
        """Take account of all that is in `value`, as often as it is there."""
        level = [value]
        for _ in range(_DEEPEST):
            containers = [part for part in level if type(part) in (list, tuple, dict)]
            self.room_for_parts -= sum(map(len, containers))
            if self.room_for_parts < 0:
                raise UnpicklingError("values that hold more than the pickle")
            level = [part for each in containers for part in (each.values() if type(each) is dict else each)]
            if not level:
                return
        raise UnpicklingError("values that are nested too deep")

    def check_keys(self, keys):
        for key in keys:
            if type(key) not in (int, float, complex, bool, str, Device) and not isinstance(key, TensorImpl):
                raise UnpicklingError(f"Can't hash IValues of type {type(key).__name__}")
            self.complex_keys += type(key) is complex
        if self.complex_keys > _MAX_COMPLEX_KEYS:
            raise UnpicklingError("too many complex numbers as keys")

    # --------------------------------------------------------------------------------------- the instructions

    def _global(self):
        self.stack.append(self.find_global(self.readline(), self.readline()))

    def _new_object(self):  # the object is made when its state is there
        self.stack.pop()

    def _run(self):
        argument, what = self.stack.pop(), self.stack.pop()
        if type(what) is not _Callable:
            raise self.damaged("a call of what is no function")
        self.stack.append(what.run(self, argument))

    def _long(self):
        if self.read(1)[0] != 8:
            raise self.damaged("an integer that has not 64 bits")
        self.stack.append(int.from_bytes(self.read(8), "little", signed=True))

    def _list(self):
        items = self.pop_mark()
        self.stack.append(items)

    def _dict(self):
        items = self.pop_mark()
        self.stack.append({})
        self._set("DICT", items[::2], items[1::2])
