"""`readtorch inspect FILE`: what is in a checkpoint, without loading it or running what it names.

The pickle is read by the same unpickler that `load` uses, but every class and function in it is replaced by a
stand-in that only remembers what it was given. So files that need `weights_only=False` can be looked at
safely, too, and no tensor's bytes are read. PyTorch has no such file. Explained in the chapter "state_dict, save and load".
"""

import dataclasses
import io
import math
import os
from collections import Counter

from ._weights_only_unpickler import Unpickler
from .c10.extras import extra
from .c10.scalar_type import dtype as Dtype
from .c10.tensor_impl import contiguous_strides
from .serialization import StorageType
from .serialization._files import open_for_reading
from .serialization._inline_container import ZipReader
from .serialization._safe_globals import _get_allowed_globals
from .storage import UntypedStorage


@dataclasses.dataclass
class Storage:
    """The bytes that a pickle refers to."""

    key: str
    dtype: Dtype | None
    nbytes: int


@dataclasses.dataclass
class TensorFacts:
    """What a pickle says of a tensor."""

    storage: Storage | None  # None on the device meta
    dtype: Dtype
    shape: tuple
    stride: tuple
    offset: int = 0
    requires_grad: bool = False
    kind: str = "Tensor"

    @property
    def nbytes(self):
        return math.prod(self.shape) * self.dtype.itemsize


class Named:
    """A class or function, by its name only."""

    def __init__(self, path):
        self.path = path


class Object:
    """What calling a `Named` would have made."""

    def __init__(self, path, args):
        self.path, self.args = path, args
        self.state = None
        self.items = []  # of a subclass of list or dict


# ----------------------------------------------------------------------------------------- reading the pickle


class Describer(Unpickler):
    """An unpickler that makes `TensorFacts` of tensors and `Object`s of what it does not know."""

    def __init__(self, file):
        super().__init__(file)
        self.storages = {}
        self.unknown = Counter()  # full names of what `load` would refuse

    def find_global(self, module, name):
        path = f"{module}.{name}"
        allowed = _get_allowed_globals().get(path)
        if path.startswith(("torch._utils._rebuild", "torch._tensor._rebuild")):
            return Named(path)
        if isinstance(allowed, type) and name in _TENSORS:
            return Named(path)
        if allowed is None:
            self.unknown[path] += 1
            return Named(path)
        return allowed

    def persistent_load(self, pid):
        _, kind, key, _, numel = pid
        dtype = kind.dtype if isinstance(kind, StorageType) else None
        known = dtype or kind is UntypedStorage or isinstance(kind, Named)
        if type(key) is not str or type(numel) is not int or not known:
            raise self.damaged("a storage without key, size or class")
        made = Storage(key, dtype, numel * (dtype.itemsize if dtype else 1))
        return self.storages.setdefault(key, made)

    def call(self, function, args):
        if not isinstance(function, Named):
            return super().call(function, args)
        describe = _REBUILDERS.get(function.path.rpartition(".")[2])
        if describe is None:
            return Object(function.path, args)
        try:
            return describe(self, *args)
        except (TypeError, ValueError, AttributeError) as error:
            raise self.damaged(f"{function.path}: {error}") from None

    def _new_object(self):
        if not isinstance(self.stack[-2], Named):
            super()._new_object()
            return
        args, named = self.stack.pop(), self.stack.pop()
        self.stack.append(self.call(named, args))

    def _build(self):
        if not isinstance(self.stack[-2], (Object, TensorFacts)):
            super()._build()
            return
        state, made = self.stack.pop(), self.stack[-1]
        if isinstance(made, Object):
            made.state = state

    def _set(self, code, keys, values):
        if isinstance(self.stack[-1], Object):
            self.stack[-1].items += zip(keys, values)
        else:
            super()._set(code, keys, values)

    def _target(self, what, *classes):
        target = self.stack[-1]
        if isinstance(target, Object) and list in classes:
            return target.items
        return super()._target(what, *classes)


_TENSORS = {"Tensor", "Parameter"}


def _tensor(describer, storage, offset, size, stride, requires_grad=False, hooks=None, *rest):
    dtype = rest[0] if rest and isinstance(rest[0], Dtype) else storage.dtype
    if not all(type(n) is int and n >= 0 for n in (offset, *size, *stride)) or not isinstance(dtype, Dtype):
        raise ValueError("not a tensor's numbers")
    return TensorFacts(storage, dtype, tuple(size), tuple(stride), offset, bool(requires_grad))


def _on_meta(describer, dtype, size, stride, requires_grad):
    made = _tensor(describer, Storage("", dtype, 0), 0, size, stride, requires_grad)
    return dataclasses.replace(made, storage=None)


def _parameter(describer, data, requires_grad, hooks=None, state=None):
    return dataclasses.replace(data, kind="Parameter", requires_grad=bool(requires_grad))


def _typed(describer, function, cls, args, state):
    kind = cls.path.rpartition(".")[2]
    made = describer.call(function, args)
    is_buffer = isinstance(state, dict) and state.get("_is_buffer") is True
    return dataclasses.replace(made, kind="Buffer" if is_buffer else kind)


_REBUILDERS = {
    "_rebuild_tensor": _tensor,
    "_rebuild_tensor_v2": _tensor,
    "_rebuild_tensor_v3": _tensor,
    "_rebuild_parameter": _parameter,
    "_rebuild_parameter_with_state": _parameter,
    "_rebuild_from_type_v2": _typed,
    "_rebuild_meta_tensor_no_storage": _on_meta,
}


def tensors_in(value):
    """Yield (name, TensorFacts) for all tensors in what the pickle holds. Each container is walked once."""
    waiting, seen = [("", value)], set()
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, TensorFacts):
            yield name, value
        elif id(value) not in seen:
            seen.add(id(value))
            waiting += reversed(list(_parts(name, value)))


def _parts(name, value):
    if isinstance(value, dict):
        for key, part in value.items():
            # a module keeps its parts in these, but nobody says `_modules.0._parameters.weight`
            hidden = isinstance(key, str) and key in ("_modules", "_parameters", "_buffers")
            yield (name if hidden else f"{name}.{key}" if name else str(key)), part
    elif isinstance(value, (list, tuple, set)):
        for i, part in enumerate(value):
            yield f"{name}[{i}]", part
    elif isinstance(value, Object):
        yield name, list(value.args) if isinstance(value.args, tuple) else None
        yield name, value.state
        pairs = all(isinstance(item, tuple) and len(item) == 2 for item in value.items)
        yield name, dict(value.items) if pairs else value.items


# ------------------------------------------------------------------------------------------------- showing it


def lines_about(path):
    """The lines of text that describe a checkpoint or safetensors file. Raises what reading it raises."""
    if os.fspath(path).endswith(".safetensors"):
        return _about_safetensors(path)
    with open_for_reading(path) as file:
        if file.read(4) != b"PK\x03\x04":
            raise ValueError("not a checkpoint in the zip format")
        file.seek(0)
        return _about_checkpoint(path, ZipReader(file))


def _about_checkpoint(path, reader):
    describer = Describer(io.BytesIO(reader.read("data.pkl")))
    tensors = list(tensors_in(describer.load()))
    lines = [f"{path}: checkpoint, {_size(reader.size)}, " + ", ".join(_facts(reader)), ""]
    lines += _table(tensors)
    lines += [
        "",
        f"{_count(len(tensors), 'tensor')} in {_count(len(describer.storages), 'storage')} of "
        f"{_size(sum(s.nbytes for s in describer.storages.values()))}",
    ]
    for key, names in _shared(tensors).items():
        lines.append(_printable(f"data/{key} is shared by {', '.join(names)}"))
    if describer.unknown:
        lines += [
            "",
            "load refuses this file unless weights_only=False, or these are allowed:",
            *sorted(map(_printable, describer.unknown)),
        ]
    return lines


def _facts(reader):
    shown = ("byteorder", "{} endian"), (".storage_alignment", "aligned to {}"), ("version", "version {}")
    for record, text in shown:
        if record in reader:
            yield _printable(text.format(reader.text(record).strip()))


def _shared(tensors):
    users = {}
    for name, facts in tensors:
        if facts.storage:
            users.setdefault(facts.storage.key, []).append(name)
    return {key: names for key, names in users.items() if len(names) > 1}


def _table(tensors):
    rows = [("name", "kind", "dtype", "shape", "size", "storage", "stride, offset")]
    for name, facts in tensors:
        plain = facts.stride == contiguous_strides(facts.shape) and facts.offset == 0
        where = _printable(f"data/{facts.storage.key}") if facts.storage else "meta"
        rows.append(
            (
                _printable(name),
                facts.kind,
                str(facts.dtype).removeprefix("torch."),
                str(list(facts.shape)),
                _size(facts.nbytes),
                where,
                "" if plain else f"{list(facts.stride)}, {facts.offset}",
            )
        )
    return _aligned(rows)


def _aligned(rows):
    """The rows with each column as wide as its widest cell; sizes to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    sizes = rows[0].index("size")
    return [
        "  ".join(
            cell.rjust(width) if i == sizes else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def _about_safetensors(path):
    with extra("safetensors", "A .safetensors file"):
        import safetensors
    with safetensors.safe_open(path, framework="np") as file:
        parts = [(name, file.get_slice(name)) for name in file.keys()]
        rows = [("name", "dtype", "shape", "size")]
        for name, part in parts:
            rows.append((_printable(name), part.get_dtype(), str(part.get_shape()), _size(_stored(part))))
        facts = [_printable(f"{key} = {value}") for key, value in (file.metadata() or {}).items()]
    total = sum(_stored(part) for _, part in parts)
    return [
        f"{path}: safetensors, {_size(os.path.getsize(path))}",
        *facts,
        "",
        *_aligned(rows),
        "",
        f"{_count(len(parts), 'tensor')} of {_size(total)}",
    ]


def _stored(part):
    name = part.get_dtype()  # "F32", "I64", "F8_E5M2" … and these:
    bits = {"BOOL": 8, "BF16": 16, "C64": 64}.get(name) or int(name[1:].partition("_")[0])
    return math.prod(part.get_shape()) * bits // 8


def _printable(text):
    """The text without what a terminal would obey: a file may hold anything."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _size(nbytes):
    """12 B, 3.4 KB, 5.6 MB …"""
    for unit in ("B", "KB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


def _count(n, noun):
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
