"""Checkpoints spoiled by chance and by ill will, from a seed."""

import io
import pickle
import random
import struct
import zipfile
import zlib

import torch

from tests.serialization import spoiled_bytes
from tests.serialization.state_dicts import random_checkpoint

FORBIDDEN = "fuzz-was-here"  # what the hostile pickles would write to the environment or print, if anything ran


def mutant(seed):
    """(what was done, bytes of the file)"""
    rng = random.Random(seed)
    kind = rng.choices(list(KINDS), weights=[weight for _, weight in KINDS.values()])[0]
    return kind, KINDS[kind][0](rng)


def base(rng):
    """A whole checkpoint. Few of them, made once."""
    which = rng.randrange(24)
    if which not in _bases:
        file = io.BytesIO()
        torch.save(random_checkpoint(1000 + which), file)
        _bases[which] = file.getvalue()
    return _bases[which]


_bases = {}


# Bytes of the file


def flipped_in_structure(rng):
    """Where it hurts: the headers, the pickle and the directory instead of the padding."""
    data = bytearray(base(rng))
    spots = [
        i
        for mark in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08")
        for i in _all(data, mark)
    ]
    at = rng.choice(spots) + rng.randrange(60)
    for i in range(at, min(len(data), at + rng.choice([1, 2, 4, 8]))):
        data[i] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(data)


def _all(data, mark):
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


# Records of the archive


def rezipped(records, compress=False):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, data in records:
            archive.writestr(zipfile.ZipInfo(name), data, archive.compression)
    return file.getvalue()


def records_of(rng):
    with zipfile.ZipFile(io.BytesIO(base(rng))) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def swapped_records(rng):
    records = records_of(rng)
    i, j = rng.randrange(len(records)), rng.randrange(len(records))
    names = [name for name, _ in records]
    names[i], names[j] = names[j], names[i]
    return rezipped([(name, data) for name, (_, data) in zip(names, records)])


def lost_or_doubled_record(rng):
    records = records_of(rng)
    if rng.random() < 0.6:
        del records[rng.randrange(len(records))]
    else:
        name, data = rng.choice(records)
        other = rng.choice(records)[1]
        records.insert(rng.randrange(len(records)), (name if rng.random() < 0.5 else name.upper(), other))
    return rezipped(records)


def compressed(rng):
    return rezipped(records_of(rng), compress=True)


def changed_record(rng):
    records = records_of(rng)
    i = rng.randrange(len(records))
    name, data = records[i]
    data = bytearray(data)
    for _ in range(rng.choice([1, 2, 5])):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.3:
        data += rng.randbytes(rng.randrange(1, 20))
    records[i] = name, bytes(data)
    return rezipped(records)


def with_pickle(data, records=()):
    return rezipped(
        [("archive/data.pkl", data), ("archive/version", b"3\n"), ("archive/byteorder", b"little"), *records]
    )


def changed_pickle(rng):
    """Random bytes, instructions put in, instructions in another order."""
    records = dict(records_of(rng))
    data = bytearray(records["archive/data.pkl"])
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        at = rng.randrange(2, len(data))
        action = rng.randrange(4)
        if action == 0:
            data[at] = rng.randrange(256)
        elif action == 1:
            data[at:at] = rng.choice(INSTRUCTIONS)
        elif action == 2:
            del data[at : at + rng.randrange(1, 12)]
        else:
            start = rng.randrange(2, len(data))
            data[at:at] = data[start : start + rng.randrange(1, 60)]
    records["archive/data.pkl"] = bytes(data)
    return rezipped(records.items())


INSTRUCTIONS = [
    b"(",
    b"t",
    b"]",
    b"}",
    b")",
    b"\x85",
    b"\x86",
    b"\x87",
    b"R",
    b"b",
    b"\x81",
    b"a",
    b"e",
    b"s",
    b"u",
    b"Q",
    b"0",
    b"1",
    b"2",
    b"h\x00",
    b"h\x05",
    b"q\x00",
    b"j\xff\xff\xff\xff",
    b"r\xff\xff\xff\xff",
    b"K\xff",
    b"J\xff\xff\xff\x7f",
    b"J\x00\x00\x00\x80",
    b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x8a\xff" + b"\x7f" * 255,
    b"N",
    b"\x88",
    b".",
    b"cos\nsystem\n",
    b"ctorch\nTensor\n",
    b"c__builtin__\nset\n",
    b"c__builtin__\nbytearray\n",
    b"c_codecs\nencode\n",
    b"ccollections\nOrderedDict\n",
    b"ccollections\nCounter\n",
    b"ctorch\nSize\n",
    b"X\x04\x00\x00\x00name",
    b"X\xff\xff\xff\xff",
    b"G" + struct.pack(">d", float("nan")),
]


# Hostile pickles


def hostile(rng):
    return with_pickle(hostile_program(rng))


def hostile_program(rng):
    """A pickle that calls what a checkpoint has no business to call, in one of the ways that a pickle can."""
    module, name, argument = rng.choice(TARGETS)
    text = b"X" + struct.pack("<I", len(argument)) + argument.encode()
    path = f"{module}\n{name}\n".encode()
    way = rng.randrange(8)
    if way == 0:
        program = b"c" + path + text + b"\x85R"
    elif way == 1:
        program = b"(" + text + b"i" + path  # INST
    elif way == 2:
        program = b"(c" + path + text + b"o"  # OBJ
    elif way == 3:
        program = b"c" + path + text + b"\x85\x81"  # NEWOBJ
    elif way == 4:  # STACK_GLOBAL
        program = (
            b"".join(b"\x8c" + bytes([len(part)]) + part.encode() for part in (module, name))
            + b"\x93"
            + text
            + b"\x85R"
        )
    elif way == 5:  # BUILD with a class's own __setstate__
        program = b"ccollections\nOrderedDict\n)R}X\x0c\x00\x00\x00__setstate__c" + path + b"sb" + text + b"b"
    elif way == 6:  # through the function that rebuilds subclasses of Tensor
        program = b"ctorch._tensor\n_rebuild_from_type_v2\n(c" + path + b"ctorch\nTensor\n" + text + b"\x85}tR"
    else:  # as a persistent id
        program = b"c" + path + text + b"\x85RQ"
    return b"\x80\x02" + rng.choice([b"", b"}", b"]"]) + program + b"."


_PUT = f"__import__('os').environ.__setitem__('{FORBIDDEN}', '1')"
TARGETS = [
    ("os", "system", f"echo {FORBIDDEN}"),
    ("posix", "system", f"echo {FORBIDDEN}"),
    ("nt", "system", f"echo {FORBIDDEN}"),
    ("subprocess", "getoutput", f"echo {FORBIDDEN}"),
    ("builtins", "eval", _PUT),
    ("__builtin__", "eval", _PUT),
    ("builtins", "exec", _PUT),
    ("builtins", "__import__", "this"),
    ("builtins", "getattr", "x"),
    ("builtins", "open", FORBIDDEN),
    ("sys", "exit", "0"),
    ("runpy", "run_path", FORBIDDEN),
    ("pickle", "loads", "x"),
    ("importlib", "import_module", "this"),
    ("torch", "load", FORBIDDEN),
    ("torch.serialization", "load", FORBIDDEN),
    ("readtorch", "load", FORBIDDEN),
    ("torch.hub", "load", "x"),
    ("torch._utils", "_import_dotted_name", "this"),
    ("torch.storage.UntypedStorage", "from_file", "x"),
    ("torch", "Tensor.resize_", "x"),
    ("torch.serialization", "os.system", f"echo {FORBIDDEN}"),
    ("readtorch._weights_only_unpickler", "warnings.sys.exit", "0"),
]


def exhausting(rng):
    return with_pickle(exhausting_program(rng))


def exhausting_program(rng):
    """A short pickle that takes all memory, all time or all of the stack."""
    return b"\x80\x02" + rng.choice(BOMBS)(rng) + b"."


def _big(n):
    return b"\x8a\x08" + struct.pack("<q", n)


def _text(n):
    return b"X" + struct.pack("<I", n) + b"x" * n


def _list(n):
    return b"](" + b"N" * n + b"e"


BOMBS = [
    lambda r: b"(" * r.randrange(1, 200_000),
    lambda r: b"]" * 100_000 + b"a" * 99_999,
    lambda r: b")" + b"\x85" * 200_000,
    lambda r: b")" + b"\x85" * 200_000 + b"q\x00}h\x00Ns",  # a key nested deep
    lambda r: b")q\x00" + b"h\x00h\x00\x86q\x00" * 80 + b"}h\x00Ns",  # a key that doubles 80 times
    lambda r: b")q\x00" + b"h\x00h\x00\x86q\x00" * 80 + b"c__builtin__\nset\n]h\x00a\x85R",
    lambda r: b"c__builtin__\nbytearray\n" + _big(10**12) + b"\x85R",
    lambda r: b"ctorch\nTensor\n" + _big(10**12) + b"\x85R",
    lambda r: b"ctorch\nTensor\n" + _big(10**12) + b"\x85\x81",
    lambda r: b"ctorch\nFloatTensor\n" + _big(10**12) + b"\x85R",
    lambda r: b"ctorch.storage\nUntypedStorage\n" + _big(10**12) + b"\x85R",
    lambda r: b"ctorch.nn.parameter\nParameter\n" + _big(10**12) + b"\x85R",
    lambda r: _list(50_000) + b"q\x000c__builtin__\nset\nq\x010](" + b"h\x01h\x00\x85R" * 2_000 + b"e",
    lambda r: (
        _text(100_000) + b"q\x000c_codecs\nencode\nq\x010](" + b"h\x01h\x00X\x06\x00\x00\x00latin1\x86R" * 2_000 + b"e"
    ),
    lambda r: b"c_codecs\nencode\n" + _text(8) + b"X\x03\x00\x00\x00hex\x86R",
    lambda r: b"c_codecs\nencode\n" + _text(8) + b"X\x04\x00\x00\x00zlib\x86R",
    lambda r: (
        b"}(" + b"".join(b"\x8a\x28" + (k * (2**61 - 1)).to_bytes(40, "little") + b"N" for k in range(1, 20_000)) + b"u"
    ),
    lambda r: (
        b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n" + _big(10**12) + b"\x85K\x01\x85\x89tR"
    ),
    lambda r: b"ctorch._utils\n_rebuild_tensor_v2\n(" + b")" * 6 + b"tR",
    lambda r: (
        b"(ctorch._utils\n_rebuild_tensor_v2\n)q\x00"
        + b"ctorch._tensor\n_rebuild_from_type_v2\n(h\x00h\x00h\x00h\x00tR" * 50
    ),
    lambda r: b"X\xff\xff\xff\x7fabc",
    lambda r: b"c" + b"x" * 300_000,
    lambda r: b"\x8c\x02os\x8c\x06system\x93",
    lambda r: b"r\xff\xff\xff\xff" + b"N" + b"r\xff\xff\xff\xffj\xff\xff\xff\xff",
]


def storage_lies(rng):
    """A tensor that claims more than its storage has, or an odd storage."""

    def number():
        n = rng.choice([0, 1, 2, 3, 4, -1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)])
        return _big(n)

    kind = rng.choice(
        [
            b"ctorch\nFloatStorage\n",
            b"ctorch\nByteStorage\n",
            b"ctorch.storage\nUntypedStorage\n",
            b"N",
            b"ccollections\nOrderedDict\n",
            b"ctorch\nComplexDoubleStorage\n",
        ]
    )
    key = rng.choice(
        [
            b"X\x01\x00\x00\x000",
            b"X\x01\x00\x00\x001",
            b"X\x08\x00\x00\x00../../et",
            b"N",
            b"K\x00",
            b")",
            b"]",
            b")" + b"\x85" * 100_000,
        ]
    )
    location = rng.choice([b"X\x03\x00\x00\x00cpu"] * 4 + [b"X\x04\x00\x00\x00cuda", b"N"])
    numel = rng.choice([b"K\x04"] * 4 + [number()])
    dims = rng.randrange(0, 4)
    sizes, strides = (b"(" + b"".join(number() for _ in range(dims)) + b"t" for _ in range(2))
    storage = b"(X\x07\x00\x00\x00storage" + kind + key + location + numel + b"tQ"
    metadata = rng.choice([b""] * 4 + [b"}X\x04\x00\x00\x00conj\x88s", b"}X\x03\x00\x00\x00neg\x88s", b"K\x01"])
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + number()
        + sizes
        + strides
        + rng.choice([b"\x88", b"\x89"])
        + b"ccollections\nOrderedDict\n)R"
        + metadata
        + b"tR"
    )
    return with_pickle(b"\x80\x02" + tensor + b".", [("archive/data/0", b"\0\0\x80\x3f" * 4)])


# Hostile archives


def zip_bomb(rng):
    """A record that expands a thousandfold, tells a wrong size, or is the same bytes again and again."""
    way = rng.randrange(4)
    if way == 0:
        return rezipped(
            [("archive/data.pkl", b"\x80\x02N."), ("archive/version", b"3\n" + b" " * rng.choice([10**6, 10**7]))],
            compress=True,
        )
    if way == 1:
        return rezipped(
            [("archive/data.pkl", b"\x80\x02" + b"N0" * 2_000_000 + b"N."), ("archive/version", b"3")], compress=True
        )
    data = bytearray(
        rezipped(
            [
                ("archive/data.pkl", b"\x80\x02N."),
                ("archive/version", b"3\n"),
                ("archive/data/0", zlib.compress(bytes(10**6))),
            ],
            compress=True,
        )
    )
    headers = list(_all(data, b"PK\x01\x02"))
    at = rng.choice(headers)
    if way == 2:
        struct.pack_into("<I", data, at + rng.choice([20, 24]), rng.choice([10**9, 2**32 - 2, 2**32 - 1, 0]))
        return bytes(data)
    struct.pack_into("<I", data, at + 42, rng.randrange(len(data)))
    return bytes(data)


def many_records(rng):
    """A directory that names the same bytes many times."""
    body = bytes(20_000)
    local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 0, 0, 0, 0, 0, 0, len(body), len(body), 9, 0) + b"archive/x" + body
    count = rng.choice([100, 5000])
    directory = b"".join(
        struct.pack(
            "<IHHHHHHIIIHHHHHII", 0x02014B50, 0, 0, 0, 0, 0, 0, 0, len(body), len(body), len(name), 0, 0, 0, 0, 0, 0
        )
        + name
        for name in (b"archive/data/%d" % i for i in range(count))
    )
    return (
        local
        + directory
        + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count & 0xFFFF, count & 0xFFFF, len(directory), len(local), 0)
    )


def no_archive(rng):
    return rng.choice(
        [
            b"",
            b"PK\x03\x04",
            b"PK\x05\x06" + bytes(18),
            rng.randbytes(300),
            b"PK\x03\x04" + rng.randbytes(300),
            pickle.dumps({"a": 1}, 2),
            pickle.dumps(0x1950A86A20F9469CFC6C, 2) + rng.randbytes(30),
        ]
    )


KINDS = {
    **spoiled_bytes.ways(base, (10, 8, 6, 6)),
    "flipped in structure": (flipped_in_structure, 12),
    "swapped records": (swapped_records, 8),
    "lost or doubled record": (lost_or_doubled_record, 6),
    "compressed": (compressed, 2),
    "changed record": (changed_record, 8),
    "changed pickle": (changed_pickle, 24),
    "hostile": (hostile, 14),
    "exhausting": (exhausting, 3),
    "storage lies": (storage_lies, 10),
    "zip bomb": (zip_bomb, 2),
    "many records": (many_records, 1),
    "no archive": (no_archive, 3),
}
