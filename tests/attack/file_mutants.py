"""Files spoiled by chance and by ill will, from a seed: TorchScript archives, safetensors files, snapshots of memory.

Checkpoints: `tests/serialization/mutants.py`, whose tools are used here as well.
"""

import functools
import io
import json
import pickle
import random
import re
import struct
import warnings
import zipfile

import torch

from tests.serialization.mutants import INSTRUCTIONS, rezipped

SNAPSHOTS = ["small_03_split_merge", "small_18_two_devices", "real_01_mlp_roomy"]


def spoiled(rng, data, marks=()):
    """Bytes with some of them flipped, replaced, cut out, put in, doubled; marks: near which it hurts most."""
    data = bytearray(data)
    spots = [match.start() for mark in marks for match in re.finditer(re.escape(mark), bytes(data))]
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        at = rng.choice(spots) + rng.randrange(40) if spots and rng.random() < 0.5 else rng.randrange(len(data) + 1)
        way = rng.randrange(7)
        if way == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(data):
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif way == 2:
            del data[at : at + rng.randrange(1, 30)]
        elif way == 3:
            data[at:at] = rng.randbytes(rng.randrange(1, 30))
        elif way == 4:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + rng.randrange(1, 60)]
        elif way == 5:
            data[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x0BFFFFFF]))
        elif rng.random() < 0.1:
            del data[at:]
    return bytes(data)


def spoiled_pickle(rng, data):
    data = bytearray(spoiled(rng, data) if rng.random() < 0.4 else data)
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        at = rng.randrange(2, max(len(data), 3))
        way = rng.randrange(4)
        if way == 0:
            data[at:at] = rng.choice(INSTRUCTIONS + MORE_INSTRUCTIONS)
        elif way == 1:
            del data[at : at + rng.randrange(1, 12)]
        elif way == 2:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + rng.randrange(1, 60)]
        elif at < len(data):
            data[at] = rng.randrange(256)
    return bytes(data)


MORE_INSTRUCTIONS = [
    b"r\xff\xff\xff\x0b",
    b"N}X\x08\0\0\0__dict__Ns\x86b",
    b")" + b"\x85" * 5000 + b"q\x00}h\x00Ns",
    b")q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"}h\x00Ns",
    b"ctorch\ndevice\n",
    b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"ctorch.jit._pickle\nrestore_type_tag\n",
    b"ctorch.jit._pickle\nbuild_intlist\n",
    b"cbuiltins\ncomplex\n",
    b"c__torch__\nNet\n",
    b"l",
    b"d",
    b"\x94",
    b"\x8c\x05alloc",
    b"\x8c\x02os\x8c\x06system\x93",
    b"\x95" + bytes(8),
    b"]" * 3000,
    b"(" * 3000,
    b"\x8d\xff\xff\xff\xff\0\0\0\0",
]


# ------------------------------------------------------------------------------------------------ TorchScript


@functools.cache
def archives():
    """The reference's archives, as lists of (name, bytes)."""
    from tests.attack.archives_by_hand import archive
    from tests.jit import scripted_modules

    made = [archive()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (
            "Net",
            "Attributes",
            "Methods",
            "Layers",
            "Outer",
            "Stateful",
            "Convolutional",
            "Recurrent",
            "Property",
            "WithLoss",
            "Returns",
            "Attention",
        ):
            torch.manual_seed(0)
            file = io.BytesIO()
            torch.jit.save(torch.jit.script(getattr(scripted_modules, name)()), file)
            made.append(file.getvalue())
    # Without the places in the original program, which are for error messages and which readtorch does not read.
    return [
        [(name, file.read(name)) for name in file.namelist() if not name.endswith(".debug_pkl")]
        for file in (zipfile.ZipFile(io.BytesIO(data)) for data in made)
    ]


def torchscript(rng):
    records = list(rng.choice(archives()))
    way = rng.choices(["file", "pickle", "code", "records", "compressed"], [25, 30, 35, 8, 2])[0]
    if way == "file":
        return spoiled(rng, rezipped(records), [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"])
    if way == "records":
        i, j = rng.randrange(len(records)), rng.randrange(len(records))
        name, data = records[i]
        records[i] = (name, records[j][1])
        if rng.random() < 0.4:
            del records[j]
    elif way != "compressed":
        endings = (".py",) if way == "code" else ("data.pkl", "constants.pkl")
        i = rng.choice([i for i, (name, _) in enumerate(records) if name.endswith(endings)])
        name, data = records[i]
        records[i] = name, (spoiled_code if way == "code" else spoiled_pickle)(rng, data)
    return rezipped(records, compress=way == "compressed" or rng.random() < 0.1)


def spoiled_code(rng, data):
    if rng.random() < 0.25:
        return spoiled(rng, data)
    lines = data.decode().split("\n")
    for _ in range(rng.choice([1, 1, 2, 4])):
        at, way = rng.randrange(len(lines)), rng.randrange(6)
        if way == 0:
            lines.insert(at, " " * rng.choice([0, 2, 4, 6]) + rng.choice(LINES))
        elif way == 1:
            lines.insert(at, rng.choice(lines))
        elif way == 2:
            del lines[at : at + rng.randrange(1, 3)]
            lines = lines or [""]
        else:
            tokens = re.split(r"(\W+)", lines[at])
            tokens[rng.randrange(len(tokens))] = rng.choice(WORDS + re.split(r"(\W+)", rng.choice(lines)))
            lines[at] = "".join(tokens)
    return "\n".join(lines).encode()


LINES = [
    "import os",
    "from os import system",
    "__import__('os').system('true')",
    "@torch.jit.export",
    "pass",
    "class A:",
    "def f(x):",
    "return x",
    "x = x",
    "x : int = 3",
    "training : bool",
    '__parameters__ = ["a"]',
    "while True:",
    "if x:",
    "for i in x:",
    "try:",
    "except:",
    "lambda: 1",
    "raise Exception()",
    "assert False",
    '"text"',
    "a = b = c",
    "a, b = c",
    "global a",
    "del x",
    "with x:",
    "yield x",
    "return [x for x in x]",
    "a : List[List[int]]",
    "a : __torch__.Net",
    '__annotations__["0"] = int',
    "_0 = torch.add(x, x)",
    "_0 = ops.prim.PythonOp(x)",
    "_0 = CONSTANTS.c99999999999",
    "_0 = 10 ** 10 ** 10",
    "_0 = (" * 300,
    "n : Final[int] = 3",
]
WORDS = [
    "int",
    "Tensor",
    "List",
    "Optional",
    "None",
    "self",
    "x",
    "0",
    "-1",
    "99999999999999999999",
    "1e999",
    "'",
    '"',
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    "=",
    "->",
    ".",
    ",",
    "\\",
    "\0",
    "lambda",
    "import",
    "torch",
    "ops",
    "CONSTANTS",
    "__torch__",
    "__class__",
    "getattr",
    "eval",
    "fork",
    "annotate",
    "unchecked_cast",
    "uninitialized",
    "inf",
    "nan",
    "*",
    "**",
    "@",
    ";",
    "\n",
    "\t",
    "#",
    "# type:",
    "ä",
    "'{0.__class__}'.format(x)",
    "f'{x}'",
    "Module",
    "NamedTuple",
    "Enum",
    "Interface",
    "yield",
    "await",
    "async",
    "not",
    "if",
    "else",
]


# ------------------------------------------------------------------------------------------------ safetensors


def safetensors(rng):
    import safetensors.torch as theirs

    dtypes = [
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.uint8,
        torch.bool,
        torch.complex64,
        torch.float8_e4m3fn,
        torch.uint16,
    ]
    tensors = {
        f"t{i}": torch.ones([rng.randrange(4) for _ in range(rng.randrange(4))]).to(rng.choice(dtypes))
        for i in range(rng.randrange(4))
    }
    data = theirs.save(tensors, {"note": "kept"} if rng.random() < 0.3 else None)
    way = rng.randrange(4)
    if way == 0:
        return spoiled(rng, data)
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    if way == 1 and tensors:
        entry = header[rng.choice(sorted(tensors))]
        entry[rng.choice(["dtype", "shape", "data_offsets"])] = rng.choice(
            [
                "F4",
                "F6_E2M3",
                "F8_E8M0",
                "F64",
                "I8",
                "BOOL",
                [2**63, 2],
                [2**32, 2**32],
                [0],
                [],
                [-1],
                [0, 4],
                [4, 0],
                [0, 2**64 - 1],
                "text",
                None,
                [1.5],
                {},
            ]
        )
    elif way == 2:
        header[rng.choice(["__metadata__", "t0", "new", ""])] = rng.choice(
            [{}, {"a": 1}, {"a": "b"}, [], 3, {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}]
        )
    text = json.dumps(header).encode()
    if way == 3:
        text = rng.choice([b"", b"{" * 10000, b"[" * 10000, b"null", b"{}", text + b" " * 1000, text[:-1]])
    size = (
        len(text)
        if rng.random() < 0.8
        else rng.choice([0, 1, 2**40, 2**63, 2**64 - 1, max(len(text) - 1, 0), len(text) + 1, 100_000_001])
    )
    return struct.pack("<Q", size) + text + body


# -------------------------------------------------------------------------------------------------- snapshots


@functools.cache
def snapshot(name):
    from tests.viz.snapshots import snapshot_of

    return json.dumps(snapshot_of(name))


def memory_snapshot(rng):
    kept = json.loads(snapshot(rng.choice(SNAPSHOTS)))
    for trace in kept["device_traces"]:
        del trace[60:]
    if rng.random() < 0.5:
        return spoiled_pickle(rng, pickle.dumps(kept, rng.choice([2, 4, 4, 5])))
    for _ in range(rng.choice([1, 1, 2, 4])):
        place, parents = kept, []
        while isinstance(place, (dict, list)) and place and (not parents or rng.random() < 0.8):
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            parents.append((place, key))
            place = place[key]
        if parents:
            container, key = parents[-1]
            if rng.random() < 0.2:
                del container[key]
            else:
                container[key] = rng.choice(VALUES)
    return pickle.dumps(kept, rng.choice([2, 4, 4, 5]))


VALUES = [
    None,
    0,
    1,
    -1,
    512,
    2**40,
    2**62,
    2**63,
    2**64,
    10**30,
    True,
    1.5,
    float("nan"),
    "",
    "alloc",
    "segment_map",
    "segment_unmap",
    "oom",
    "_init__",
    "inactive",
    "\ud800",
    [],
    {},
    (),
    (0, 0),
    [[]],
    {"a": 1},
    b"bytes",
    "x" * 1000,
]

KINDS = {"jit": torchscript, "safetensors": safetensors, "snapshot": memory_snapshot}


def mutant(kind, seed):
    """The bytes of a file."""
    return KINDS[kind](random.Random(f"{kind} {seed}"))
