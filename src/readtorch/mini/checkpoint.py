"""Written in the chapter "state_dict, save and load": its cells are this file, put together by `tools/mini.py`."""

import collections
import io
import struct
import zipfile
from pickle import UnpicklingError

import numpy as np

from .tensor import Storage, Tensor


def load_named(own, saved, strict=True):
    """Copy what was saved into the tensors of the same name."""
    missing = [name for name in own if name not in saved]
    unexpected = [name for name in saved if name not in own]
    errors = [f"missing {missing}, unexpected {unexpected}"
              ] if strict and missing + unexpected else []
    for name, tensor in own.items():
        if name in missing:
            continue
        if saved[name].shape != tensor.shape:
            errors.append(f"size mismatch for {name}")
        else:
            tensor.write(saved[name].read())
    if errors:
        raise RuntimeError("; ".join(errors))
    return missing, unexpected


TYPES = {"BoolStorage": "?", "ByteStorage": "u1",
         "CharStorage": "i1", "ShortStorage": "i2",
         "IntStorage": "i4", "LongStorage": "i8",
         "HalfStorage": "f2", "FloatStorage": "f4",
         "DoubleStorage": "f8", "ComplexFloatStorage": "c8",
         "ComplexDoubleStorage": "c16"}
STORAGES = {np.dtype(code): name for name, code in TYPES.items()}


def fetch(module, name):
    return f"c{module}\n{name}\n".encode()


class Writer:
    """Writes the program that builds a value."""

    def __init__(self, location="cpu"):
        self.location, self.storages = location, {}

    def all(self, values):
        return b"".join(map(self.of, values))

    def of(self, value):
        """Instructions that leave `value` on the stack."""
        match value:
            case Tensor():
                return self.tensor(value)
            case None | bool():
                return {None: b"N", False: b"\x89",
                        True: b"\x88"}[value]
            case str():
                data = value.encode()
                return b"X" + struct.pack("<I", len(data)) + data
            case int():
                return b"\x8a\x08" + struct.pack("<q", value)
            case float():
                return b"G" + struct.pack(">d", value)
            case tuple():
                return b"(" + self.all(value) + b"t"
            case list():
                return b"](" + self.all(value) + b"e"
            case dict():
                pairs = b"".join(map(self.all, value.items()))
                return b"}(" + pairs + b"u"
        raise TypeError(f"cannot save {type(value).__name__}")

    def tensor(self, t):
        numbers = t.offset, t.shape, t.strides, False
        return (fetch("torch._utils", "_rebuild_tensor_v2")
                + b"(" + self.storage(t.storage, t.dtype)
                + self.all(numbers)
                + fetch("collections", "OrderedDict") + b")R"
                + b"tR")

    def storage(self, storage, dtype):
        """A reference: the bytes go into another record."""
        known = self.storages.setdefault(
            id(storage), (storage, dtype))
        if known[1] != dtype:
            raise TypeError("one storage under two dtypes")
        key = list(self.storages).index(id(storage))
        count = len(storage.bytes) // dtype.itemsize
        return (b"(" + self.of("storage")
                + fetch("torch", STORAGES[dtype])
                + self.all([str(key), self.location, count])
                + b"tQ")


def save(value, file, location="cpu"):
    writer = Writer(location)
    program = b"\x80\x02" + writer.of(value) + b"."
    records = {"data.pkl": program, "byteorder": b"little"}
    for key, (storage, _) in enumerate(writer.storages.values()):
        records[f"data/{key}"] = storage.bytes.tobytes()
    records["version"] = b"3\n"
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in records.items():
            record = zipfile.ZipInfo(f"archive/{name}")
            start = archive.fp.tell() + 30 + len(record.filename)
            fill = -(start + 4) % 64
            length = struct.pack("<H", fill)
            record.extra = b"FB" + length + b"Z" * fill
            archive.writestr(record, data)


class Machine:
    """Runs a program; `find` says what a reference means."""

    def __init__(self, program, find):
        self.program, self.find = io.BytesIO(program), find
        self.stack, self.below, self.memo = [], [], {}

    def run(self):
        while (code := self.program.read(1)) != b".":
            self.step(code)
        return self.stack.pop()

    def number(self, layout):
        data = self.program.read(struct.calcsize(layout))
        return struct.unpack(layout, data)[0]

    def push(self, value):
        self.stack.append(value)

    def mark(self):
        self.below.append(self.stack)
        self.stack = []

    def since(self, count):
        """Takes `count` values off; None means: to the mark."""
        if count is None:
            items, self.stack = self.stack, self.below.pop()
        else:
            items = self.stack[-count:]
            del self.stack[-count:]
        return items

    def top(self, *kinds):
        """The object to be changed: of one of these classes."""
        if type(self.stack[-1]) not in kinds:
            kind = type(self.stack[-1]).__name__
            raise UnpicklingError(f"will not change a {kind}")
        return self.stack[-1]

    def fetch(self):
        lines = [self.program.readline() for _ in range(2)]
        name = " ".join(line.decode().strip() for line in lines)
        if name not in REBUILD | DTYPES:
            raise UnpicklingError(f"{name} is not on the list")
        return (REBUILD | DTYPES)[name]

    def call(self, function, arguments):
        if function not in REBUILD.values():
            raise UnpicklingError(f"will not call {function!r}")
        return function(*arguments)

    def step(self, code):
        match code:
            case b"N" | b"\x89" | b"\x88" | b")" | b"]" | b"}":
                self.push(CONSTANTS[code]())
            case b"J" | b"K" | b"M" | b"G":  # BININT, BINFLOAT
                self.push(self.number(NUMBERS[code]))
            case b"\x8a":  # LONG1
                data = self.program.read(self.number("B"))
                n = int.from_bytes(data, "little", signed=True)
                self.push(n)
            case b"X":  # BINUNICODE
                length = self.number("<I")
                self.push(self.program.read(length).decode())
            case b"\x85" | b"\x86" | b"\x87":  # TUPLE1, 2, 3
                self.push(tuple(self.since(code[0] - 0x84)))
            case b"(":  # MARK
                self.mark()
            case b"t":  # TUPLE
                self.push(tuple(self.since(None)))
            case b"e" | b"a":  # APPENDS, APPEND
                items = self.since(1 if code == b"a" else None)
                self.top(list).extend(items)
            case b"u" | b"s":  # SETITEMS, SETITEM
                items = self.since(2 if code == b"s" else None)
                target = self.top(dict, collections.OrderedDict)
                target.update(zip(items[::2], items[1::2]))
            case b"q" | b"r":  # BINPUT, LONG_BINPUT
                place = self.number(NUMBERS[code])
                self.memo[place] = self.stack[-1]
            case b"h" | b"j":  # BINGET, LONG_BINGET
                place = self.number(NUMBERS[code])
                self.push(self.memo[place])
            case b"c":  # GLOBAL
                self.push(self.fetch())
            case b"R":  # REDUCE
                self.push(self.call(*self.since(2)))
            case b"b":  # BUILD
                [state] = self.since(1)
                target = self.top(collections.OrderedDict)
                target.__dict__.update(state)
            case b"Q":  # BINPERSID
                self.push(self.find(*self.stack.pop()))
            case b"\x80":  # PROTO
                self.number("B")
            case _:
                raise UnpicklingError(f"no instruction {code}")


def rebuild_tensor(storage, offset, shape, strides,
                   requires_grad, hooks, bits=None):
    if bits:  # numbers to be conjugated or negated
        raise UnpicklingError(f"cannot read {bits}")
    dtype, data = storage
    whole = Tensor(data, dtype, (0,), (1,))
    return whole.as_strided(shape, strides, offset)


def rebuild_parameter(data, requires_grad, hooks):
    return data


REBUILD = {"torch._utils _rebuild_tensor_v2": rebuild_tensor,
           "torch._utils _rebuild_parameter": rebuild_parameter,
           "collections OrderedDict": collections.OrderedDict}
DTYPES = {f"torch {name}": np.dtype(code)
          for name, code in TYPES.items()}
CONSTANTS = {b"N": lambda: None, b"\x89": lambda: False,
             b"\x88": lambda: True, b")": tuple,
             b"]": list, b"}": dict}
NUMBERS = {b"J": "<i", b"K": "B", b"M": "<H", b"G": ">d",
           b"q": "B", b"r": "<I", b"h": "B", b"j": "<I"}


def load(file):
    archive = zipfile.ZipFile(file)
    folder = archive.namelist()[0].split("/")[0]
    order = f"{folder}/byteorder"
    if (order in archive.namelist()
            and archive.read(order) != b"little"):
        raise UnpicklingError("bytes in another order")
    storages = {}

    def find(kind, dtype, key, location, count):
        if key not in storages:
            data = archive.read(f"{folder}/data/{key}")
            if len(data) != count * dtype.itemsize:
                raise UnpicklingError(
                    f"record {key} has {len(data)} bytes")
            storages[key] = storage = Storage(len(data))
            storage.bytes[:] = np.frombuffer(data, np.uint8)
        return dtype, storages[key]

    program = archive.read(f"{folder}/data.pkl")
    return Machine(program, find).run()
