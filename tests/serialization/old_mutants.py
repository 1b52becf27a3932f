"""Files in the formats of before PyTorch 1.6, spoiled by chance and by ill will, from a seed: as `mutants.py` spoils zip archives."""

import collections
import io
import pickle
import pickletools
import random
import struct
import tarfile

import torch

from tests.serialization import spoiled_bytes
from tests.serialization.mutants import INSTRUCTIONS, exhausting_program, hostile_program, no_archive
from tests.serialization.old_files import archive, legacy, tar
from tests.serialization.state_dicts import DTYPES, DTYPES_WITH_CLASS, random_checkpoint

MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
VERSION = pickle.dumps(1001, 2)
SYSTEM = pickle.dumps(
    {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 8}}, 2
)


def mutant(seed):
    """(what was done, bytes of the file)"""
    rng = random.Random(seed)
    kind = rng.choices(list(KINDS), weights=[weight for _, weight in KINDS.values()])[0]
    return kind, KINDS[kind][0](rng)


_bases = {}


def base(rng):
    """A whole checkpoint. Few of them, made once."""
    which = rng.randrange(24)
    if which not in _bases:
        _bases[which] = legacy(torch, random_checkpoint(2000 + which, DTYPES if which % 4 == 0 else DTYPES_WITH_CLASS))
    return _bases[which]


def parts(rng):
    """A checkpoint as [magic number, version, system, object, keys, storages]."""
    data, found = base(rng), []
    file = io.BytesIO(data)
    for i in range(5):
        start = file.tell()
        collections.deque(pickletools.genops(file), maxlen=0)
        found.append(data[start : file.tell()])
    return [*found, data[file.tell() :]]


# Its parts


def swapped_parts(rng):
    found = parts(rng)
    i, j = rng.randrange(6), rng.randrange(6)
    found[i], found[j] = found[j], found[i]
    if rng.random() < 0.3:
        found.insert(rng.randrange(6), rng.choice(found))
    return b"".join(found)


def changed_pickle(rng):
    """Random bytes, instructions put in, instructions in another order."""
    found = parts(rng)
    which = rng.choice([3, 3, 3, 3, 4, 2, 1, 0])
    data = bytearray(found[which])
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        at = rng.randrange(2, max(len(data), 3))
        action = rng.randrange(4)
        if action == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif action == 1:
            data[at:at] = rng.choice(INSTRUCTIONS)
        elif action == 2:
            del data[at : at + rng.randrange(1, 12)]
        else:
            start = rng.randrange(len(data))
            data[at:at] = data[start : start + rng.randrange(1, 60)]
    found[which] = bytes(data)
    return b"".join(found)


def changed_keys(rng):
    """Another list of storages than the pickle names."""
    found = parts(rng)
    keys = pickle.loads(found[4])
    way = rng.randrange(7)
    if way == 0 and keys:
        del keys[rng.randrange(len(keys))]
    elif way == 1 and keys:
        keys.append(rng.choice(keys))
    elif way == 2:
        rng.shuffle(keys)
    elif way == 3:
        keys.insert(rng.randrange(len(keys) + 1), rng.choice(["77", 3, None, (), [], b"77", 2**70]))
    elif way == 4:
        keys = rng.choice([None, {}, "77", 3, {"77": 1}, tuple(keys), set(keys)])
    elif way == 5:
        keys = [key.encode() for key in keys]
    else:
        keys *= 1000
    found[4] = pickle.dumps(keys, 2)
    return b"".join(found)


def changed_sizes(rng):
    """A storage says that it is longer, or shorter, than the pickle has it."""
    found = parts(rng)
    data = bytearray(found[5])
    if len(data) >= 8:
        at = rng.choice([0, 0, rng.randrange(len(data) - 7)])
        number = rng.choice([0, 1, 2, -1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), rng.randrange(256)])
        struct.pack_into("<q", data, at, number)
    found[5] = bytes(data)
    return b"".join(found)


def hostile(rng):
    """A program in the place of one of the five pickles."""
    found = [MAGIC, VERSION, SYSTEM, b"\x80\x02N.", b"\x80\x02]."]
    which = rng.randrange(5)
    found[which] = hostile_program(rng)
    return b"".join(found[: which + 1] if rng.random() < 0.3 else found)


def exhausting(rng):
    found = [MAGIC, VERSION, SYSTEM, b"\x80\x02N.", b"\x80\x02]."]
    found[rng.randrange(5)] = exhausting_program(rng)
    return b"".join(found)


def _big(n):
    return b"\x8a\x08" + struct.pack("<q", n)


def _number(rng):
    return _big(rng.choice([0, 1, 2, 3, 4, -1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]))


def storage_lies(rng):
    """A storage, or a view of one, that claims more than the file has, or is odd."""
    kind = rng.choice(
        [b"ctorch\nFloatStorage\n"] * 3
        + [b"ctorch\nByteStorage\n", b"ctorch.storage\nUntypedStorage\n", b"N", b"ctorch\nComplexDoubleStorage\n"]
        + [b"ccollections\nOrderedDict\n", b"ctorch.storage\nTypedStorage\n", b"ctorch\nTensor\n"]
    )
    key = rng.choice([b"X\x01\x00\x00\x000"] * 6 + [b"N", b"K\x00", b")", b"]", b"U\x010", b")" + b"\x85" * 100_000])
    location = rng.choice([b"X\x03\x00\x00\x00cpu"] * 6 + [b"X\x04\x00\x00\x00cuda", b"X\x04\x00\x00\x00meta", b"N"])
    numel = rng.choice([b"K\x04"] * 3 + [_number(rng)])
    view = rng.choice(
        [b"N"] * 4
        + [b"X\x01\x00\x00\x001" + _number(rng) + _number(rng) + b"\x87", b"X\x01\x00\x00\x000K\x00K\x02\x87"]
        + [b"X\x01\x00\x00\x001K\x01K\x02\x87", b"]K\x00K\x00\x87", b"K\x03", b")", b"NNN\x87"]
    )
    rest = rng.choice([b""] * 8 + [b"N"])
    reference = b"(X\x07\x00\x00\x00storage" + kind + key + location + numel + view + rest + b"tQ"
    dims = rng.randrange(0, 4)
    sizes, strides = (b"(" + b"".join(_number(rng) for _ in range(dims)) + b"t" for _ in range(2))
    whole = b"K\x00K\x04\x85K\x01\x85"
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + reference
        + rng.choice([whole, whole, _number(rng) + sizes + strides])
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )
    if rng.random() < 0.3:
        tensor = _made_empty(rng, reference, whole)
    body = tensor if rng.random() < 0.7 else b"](" + tensor * rng.randrange(2, 5) + b"e"
    keys = rng.choice([b"\x80\x02]X\x01\x00\x00\x000a."] * 6 + [b"\x80\x02].", b"\x80\x02]X\x01\x00\x00\x001a."])
    count = rng.choice([4, 4, 4, 16, 1])
    return MAGIC + VERSION + SYSTEM + b"\x80\x02" + body + b"." + keys + struct.pack("<q", count) + b"\0\0\x80\x3f" * 4


def _made_empty(rng, reference, whole):
    """A tensor, or a parameter, that is made empty and given a state: as files of before 0.4 have it."""
    rebuilt = b"ctorch._utils\n_rebuild_tensor\n(" + reference + whole + b"tR"
    hooks = rng.choice(
        [b"N", b"ccollections\nOrderedDict\n)R", b"ccollections\nOrderedDict\n]K\x01K\x02\x86a\x85R", b"]"]
    )
    state = rng.choice(
        [
            b"("
            + reference
            + rng.choice([whole, _number(rng) + b"(" + _number(rng) + b"t(" + _number(rng) + b"t"])
            + b"t",
            b"(" + rebuilt + b"N" + hooks + b"\x88\x89t",
            b"(\x88N" + hooks + b"t",
            b"(" + rng.choice([reference, b"N", b"K\x01"]) + b"N" + hooks + rng.choice([b"\x88", b"N"]) + b"\x89t",
            rng.choice([b")", b"N", b"}", rebuilt, reference]),
        ]
    )
    cls = rng.choice(
        [b"ctorch\nFloatTensor\n", b"ctorch\nTensor\n", b"ctorch.nn.parameter\nParameter\n", b"ctorch\nLongTensor\n"]
    )
    return (
        cls
        + rng.choice([b")", b")", b")", rebuilt + b"\x85", _number(rng) + b"\x85"])
        + rng.choice([b"R", b"\x81"])
        + state
        + b"b"
    )


def many_storages(rng):
    """Thousands of storages that all claim the same bytes, or none."""
    count, numel = rng.choice([2000, 10_000]), rng.choice([0, 1, 5000, 2**20])
    references = b"".join(
        b"(X\x07\x00\x00\x00storageh\x00X\x05\x00\x00\x00%05dX\x03\x00\x00\x00cpu" % i + _big(numel) + b"NtQ"
        for i in range(count)
    )
    program = b"\x80\x02ctorch\nByteStorage\nq\x000](" + references + b"e."
    return MAGIC + VERSION + SYSTEM + program + b"\x80\x02]." + bytes(rng.choice([0, 5000, 50_000]))


# Tar archives


def tar_archive(rng):
    """A good one, a spoiled one, one with links and places outside, one whose headers claim much."""
    a = torch.arange(6.0)
    good = tar({"a": a, "again": a}, [a]) if rng.random() < 0.5 else _hostile_tar(rng)
    data = bytearray(good)
    for _ in range(rng.choice([0, 0, 1, 2, 8])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.1:
        data = data[: rng.randrange(len(data))]
    return bytes(data)


def _hostile_tar(rng):
    program = hostile_program(rng)
    way = rng.randrange(5)
    if way == 0:
        return archive({name: program for name in ("storages", "tensors", "pickle")})
    if way == 1:
        return archive({"storages": b"\x80\x02K\x00.\x80\x02].", "tensors": b"\x80\x02K\x00.", "pickle": program})
    if way == 2:
        return bytes(512 * rng.randrange(1, 9))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:", format=rng.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])) as file:
        member = tarfile.TarInfo(rng.choice(["storages", "../../storages", "/tmp/storages", "x" * 300, "größe" * 40]))
        member.type = rng.choice([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
        member.linkname = rng.choice(["/etc/passwd", "storages", "../x"])
        file.addfile(member)
    if way == 4:  # a header that claims gigabytes
        data = bytearray(made.getvalue())
        data[124:136] = b"%011o\0" % rng.choice([2**33 - 1, 10**9])
        data[148:156] = b"        "
        data[148:156] = b"%06o\0 " % sum(data[:512])
        return bytes(data)
    return made.getvalue()


KINDS = {
    **spoiled_bytes.ways(base, (12, 8, 6, 6)),
    "swapped parts": (swapped_parts, 6),
    "changed pickle": (changed_pickle, 24),
    "changed keys": (changed_keys, 8),
    "changed sizes": (changed_sizes, 8),
    "hostile": (hostile, 14),
    "exhausting": (exhausting, 3),
    "storage lies": (storage_lies, 20),
    "many storages": (many_storages, 1),
    "tar archive": (tar_archive, 8),
    "no archive": (no_archive, 2),
}
