"""The zip archive of a checkpoint: `save` writes it byte for byte as PyTorch lays it out, `load` reads it.

In PyTorch: `caffe2/serialize/inline_container.h` and `caffe2/serialize/inline_container.cc` (`PyTorchStreamWriter`,
`PyTorchStreamReader`), over the C library miniz. Explained in the chapter "state_dict, save and load".

Note [ The bytes of a checkpoint ]

    local header | name | extra: padding | data | data descriptor   once a record
    …
    central directory: a header and the name of every record        where they are, how long, their checksums
    end of the central directory, twice: with 64-bit numbers, and as old readers expect it

All records lie in one folder, named after the file. Nothing is compressed, so a storage's bytes stand in the
file as they stand in memory: `load(..., mmap=True)` points a tensor straight at them. The padding puts them
at a multiple of 64 bytes. A record's length and checksum follow its data, in the descriptor, because a writer
that never seeks back learns them last. Numbers from 2**32 - 1 on do not fit the old fields: those then hold
2**32 - 1, and an "extra" field holds the number.

The file that is read may be anybody's, so nothing it says is believed before it is checked against the file's length: no
record leaves the file, together they claim no more bytes than it has, and a compressed one expands to just the size it
declared, if that is plausible.

Note [ How far a compressed archive may expand ]

`save` compresses nothing, but archives that were packed again are compressed, and load. DEFLATE shrinks a
record of equal bytes to a thousandth of its size, so a file of 60 KB can claim 60 MB of pickle, and each byte
of that may make an object of 200 bytes. The sizes stand in the directory, so they are judged before anything
is expanded:

- What is read whole, to be run, compiled or shown (pickles, source, texts), may be 4 MiB long, or longer, but
  then at most 32 times as long as it is stored. Pickles of models and optimizers shrink to a fourth or fifth;
  one of a million zeros shrinks to a six-hundredth, but has 2 MB.
- A storage's size must be what the pickle says of it, and it is expanded once, so a tensor of zeros may be as
  small in the file as it likes. But all compressed records together may be 256 MiB long, or longer, but then at
  most 100 times as long as the archive: models are not made of zeros.

What is refused can be unpacked by hand and zipped again without compression.
"""

import hashlib
import os
import struct
import sys
import zlib
from typing import NamedTuple

LOCAL_HEADER = struct.Struct("<IHHHHHIIIHH")
CENTRAL_HEADER = struct.Struct("<IHHHHHHIIIHHHHHII")
DESCRIPTOR, DESCRIPTOR_64 = struct.Struct("<IIII"), struct.Struct("<IIQQ")
END_64, END_64_LOCATOR, END = struct.Struct("<IQHHIIQQQQ"), struct.Struct("<IIQI"), struct.Struct("<IHHHHIIH")

LOCAL, CENTRAL, DESCRIBES = 0x04034B50, 0x02014B50, 0x08074B50
ENDS_64, LOCATES_64, ENDS = 0x06064B50, 0x07064B50, 0x06054B50
UTF8, HAS_DESCRIPTOR = 0x800, 0x008
MOST_32 = 0xFFFFFFFF
MOST_16 = 0xFFFF

SERIALIZATION_ID = ".data/serialization_id"
VERSION = 3  # of the file format
_GATHERED = 1 << 16  # a record up to this size is joined with its headers before it is written

OLDEST_VERSION, NEWEST_VERSION = 1, 10  # of the file format
STORED, DEFLATED = 0, 8
_ENCRYPTED_OR_PATCH = 0x1 | 0x20 | 0x40 | 0x2000
_IS_FOLDER = 0x10
_LONGEST_COMMENT = 0xFFFF
_LONGEST_TEXT = 1000
_DEFLATE_AT_MOST = 1032  # to one: what DEFLATE can reach
# See Note [ How far a compressed archive may expand ]: (bytes that are always allowed, times the stored size)
_OF_WHAT_IS_RUN = 4 << 20, 32
_OF_ALL_RECORDS = 256 << 20, 100


# ----------------------------------------------------------------------------------------------------- writing


class ZipWriter:
    """Writes records one after the other.

    write: takes bytes-like objects. skip: moves on by a number of bytes without writing them, for records
    without data.
    """

    def __init__(self, write, skip, archive_name, compute_crc32=True, alignment=64):
        self._write, self._skip = write, skip
        self._folder = archive_name.encode() + b"/"
        self._alignment = alignment
        self._crc32 = zlib.crc32 if compute_crc32 else lambda data: 0
        self._position = 0
        self._directory = []  # the central header of each record, in order
        self._names = set()
        self._combined_crc32 = 0

    def write_record(self, name, data, size=None):
        """Add a record. data: bytes-like; or None: room for `size` bytes, to be filled in by somebody else
        later.
        """
        if name in self._names:
            raise RuntimeError(f"Tried to serialize file twice: {name}")
        self._names.add(name)
        size = len(data) if data is not None else size
        crc32 = self._crc32(data) if data else 0
        path = self._folder + name.encode()
        flags = UTF8 | HAS_DESCRIPTOR if size else UTF8
        start = self._position
        sizes = struct.pack("<QQ", size, 0) if size >= MOST_32 else b""
        extra = self._extra(start, len(path), sizes)
        header = LOCAL_HEADER.pack(LOCAL, 0, flags, 0, 0, 0, 0, 0, 0, len(path), len(extra)) + path + extra
        descriptor = self._descriptor(crc32, size, start) if size else b""
        self._put(header, data, size, descriptor)
        self._directory.append(_central_header(path, flags, crc32, size, start))

    def _put(self, header, data, size, descriptor):
        if data is None:
            self._write(header)
            self._skip(size)
            self._write(descriptor)
        elif size <= _GATHERED:
            self._write(b"".join((header, data, descriptor)))
        else:
            self._write(header)
            self._write(data)
            self._write(descriptor)
        self._position += len(header) + size + len(descriptor)

    def _extra(self, start, path_length, sizes):
        """The extra field of a local header: long numbers if there are any, then padding up to the alignment."""
        long = _pack_long_numbers(sizes, start)
        before = start + LOCAL_HEADER.size + path_length + len(long) + 4
        padding = -before % self._alignment
        return long + b"FB" + padding.to_bytes(2, "little") + b"Z" * padding

    def _descriptor(self, crc32, size, start):
        self._combined_crc32 = _hash_combine(self._combined_crc32, crc32)
        layout = DESCRIPTOR_64 if max(size, start) >= MOST_32 else DESCRIPTOR
        return layout.pack(DESCRIBES, crc32, size, size)

    def write_end_of_file(self):
        """Add what every archive has, then the directory."""
        if "version" not in self._names and ".data/version" not in self._names:
            self.write_record("version", b"%d\n" % VERSION)
        if "byteorder" not in self._names:
            self.write_record("byteorder", sys.byteorder.encode())
        self.write_record(SERIALIZATION_ID, self._serialization_id())
        directory = b"".join(self._directory)
        self._write(directory + _end(len(self._directory), self._position, len(directory)))

    def _serialization_id(self):
        """Forty digits that tell checkpoints apart: from the records' names, and from their checksums."""
        # in PyTorch: the names' part comes from C++'s std::hash
        names = hashlib.blake2b("\n".join(sorted(self._names)).encode(), digest_size=8).digest()
        return b"%020d%020d" % (int.from_bytes(names, "little"), self._combined_crc32)


def _hash_combine(seed, value):
    """`c10::hash_combine`."""
    return seed ^ (value + 0x9E3779B9 + (seed << 6) + (seed >> 2) & 0xFFFFFFFFFFFFFFFF)


def _pack_long_numbers(sizes, start):
    """The extra field for sizes (packed, or nothing) and a position that do not fit into 32 bits."""
    numbers = sizes + (struct.pack("<Q", start) if start >= MOST_32 else b"")
    return struct.pack("<HH", 1, len(numbers)) + numbers if numbers else b""


def _central_header(path, flags, crc32, size, start):
    long = _pack_long_numbers(struct.pack("<QQ", size, size) if size >= MOST_32 else b"", start)
    size, start = min(size, MOST_32), min(start, MOST_32)
    header = CENTRAL_HEADER.pack(
        CENTRAL, 0, 0, flags, 0, 0, 0, crc32, size, size, len(path), len(long), 0, 0, 0, 0, start
    )
    return header + path + long


def _end(count, start, size):
    """The end of the archive. start, size: of the central directory."""
    made_by_unix, needs = 0x031E, 0x002D
    return (
        END_64.pack(ENDS_64, END_64.size - 12, made_by_unix, needs, 0, 0, count, count, size, start)
        + END_64_LOCATOR.pack(LOCATES_64, 0, start + size, 1)
        + END.pack(ENDS, 0, 0, min(count, MOST_16), min(count, MOST_16), min(size, MOST_32), min(start, MOST_32), 0)
    )


# ----------------------------------------------------------------------------------------------------- reading


class Record(NamedTuple):
    """An entry of the directory."""

    name: str
    start: int  # of the local header, from the archive's start
    stored_size: int
    size: int
    method: int


class ZipReader:
    """The records of an archive, by name.

    file: seekable and readable; the archive reaches from its position to its end. Raises RuntimeError if it
    is damaged.
    """

    def __init__(self, file):
        self._file = file
        self._origin = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self._origin
        records = self._read_directory()
        if not records:
            raise RuntimeError("archive does not contain any files")
        self.archive_name, slash, _ = records[0].name.partition("/")
        if not slash:
            raise RuntimeError(f"file in archive is not in a subdirectory: {self.archive_name}")
        self._by_name = self._index(records)
        self._check_version()

    # ------------------------------------------------------------------------------------------ the directory

    def _read_directory(self):
        count, size, start = self._find_directory()
        directory = self._read(start, size, "reading zip archive")
        records, at = [], 0
        for _ in range(count):
            record, at = _central_record(directory, at)
            if record.start + LOCAL_HEADER.size + record.stored_size > self.size:
                raise _damaged("reading zip archive", "invalid header or archive is corrupted")
            records.append(record)
        if sum(record.stored_size for record in records) > self.size:
            raise _damaged("reading zip archive", "records overlap")
        compressed = sum(record.size for record in records if record.method != STORED)
        _check_expansion("the archive", compressed, self.size, _OF_ALL_RECORDS)
        return records

    def _find_directory(self):
        """How many records the directory names, how long it is and where it starts."""
        reach = min(self.size, END.size + _LONGEST_COMMENT)
        tail = self._read(self.size - reach, reach, "reading zip archive")
        at = tail.rfind(ENDS.to_bytes(4, "little"), 0, max(0, reach - END.size + 4))
        if at < 0:
            raise _damaged("reading zip archive", "failed finding central directory")
        _, *disks, count_here, count, size, start, _ = END.unpack_from(tail, at)
        long = self._find_directory_64(self.size - reach + at)
        if long:
            *disks, count_here, count, size, start = long
        if count != count_here or disks not in ([0, 0], [1, 1]):
            raise _damaged("reading zip archive", "unsupported multidisk archive")
        if count * CENTRAL_HEADER.size > size or start + size > self.size:
            raise _damaged("reading zip archive", "invalid header or archive is corrupted")
        return count, size, start

    def _find_directory_64(self, end):
        """The last six fields of the end record with room for long numbers, if its place stands right before
        the old end.
        """
        what = "reading zip archive"
        if end < END_64_LOCATOR.size + END_64.size:
            return None
        locator = self._read(end - END_64_LOCATOR.size, END_64_LOCATOR.size, what)
        signature, _, place, disks = END_64_LOCATOR.unpack(locator)
        if signature != LOCATES_64:
            return None
        signature, length, _, _, *fields = END_64.unpack(self._read(place, END_64.size, what))
        if signature != ENDS_64:
            return None
        if disks != 1 or length < END_64.size - 12:
            raise _damaged(what, "invalid header or archive is corrupted")
        return fields

    def _index(self, records):
        prefix = self.archive_name + "/"
        found, seen = {}, set()
        for record in records:
            if not record.name.startswith(prefix):
                raise RuntimeError(f"file in archive is not in a subdirectory {prefix}: {record.name}")
            if record.name.lower() in seen:
                raise _damaged("reading zip archive", f"{record.name} is there twice")
            seen.add(record.name.lower())
            found[record.name[len(prefix) :]] = record
        return found

    def _check_version(self):
        name = ".data/version" if ".data/version" in self else "version"
        if name not in self:
            raise RuntimeError('Expected hasRecord("version") to be true, but got false.')
        text = self.text(name)
        if not text.strip().isdigit():
            raise RuntimeError(f"Couldn't parse the version {text} as Long Long.")
        if int(text) < OLDEST_VERSION:
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {int(text)}, but the minimum "
                "supported version "
                f"for reading is {OLDEST_VERSION}. Your PyTorch script module file is too "
                "old."
            )
        if int(text) > NEWEST_VERSION:
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {int(text)}, but the maximum "
                "supported version "
                f"for reading is {NEWEST_VERSION}."
            )

    # -------------------------------------------------------------------------------------------- the records

    def __contains__(self, name):
        return name in self._by_name

    def names(self):
        """All records' names, without the folder."""
        return list(self._by_name)

    def record(self, name):
        """The entry of a record. Raises RuntimeError if there is none."""
        if name not in self._by_name:
            raise _damaged(f"locating file {name}", "file not found")
        return self._by_name[name]

    def text(self, name, absent=""):
        """The text in a small record. Raises RuntimeError if it is none."""
        if name not in self:
            return absent
        data = self.read(name) if self.record(name).size <= _LONGEST_TEXT else None
        if data is None or not data.isascii():
            raise _damaged(f"reading file {name}", "the record is no short text")
        return data.decode()

    def serialization_id(self):
        """Forty digits that tell checkpoints apart, or an empty text if the file has none."""
        return self.text(SERIALIZATION_ID)

    def offset(self, name):
        """Where a record's data starts in the archive."""
        record = self.record(name)
        header = self._read(record.start, LOCAL_HEADER.size, f"reading file {name}")
        signature, *_, path_length, extra_length = LOCAL_HEADER.unpack(header)
        if signature != LOCAL:
            raise _damaged(f"reading file {name}", "invalid header or archive is corrupted")
        offset = record.start + LOCAL_HEADER.size + path_length + extra_length
        if offset + record.stored_size > self.size:
            raise _damaged(f"reading file {name}", "file read failed")
        return offset

    def read(self, name):
        """A record's bytes. Raises RuntimeError if it is longer than Note [ How far a compressed archive may
        expand ] allows.
        """
        record = self.record(name)
        if record.method != STORED:
            _check_expansion(name, record.size, record.stored_size, _OF_WHAT_IS_RUN)
        return self._expanded(name, record)

    def read_into(self, name, buffer):
        """Fill `buffer`, writable bytes of the record's size, with its data."""
        record = self.record(name)
        if record.method != STORED or not hasattr(self._file, "readinto"):
            buffer[:] = self._expanded(name, record)
            return
        self._file.seek(self._origin + self.offset(name))
        if self._file.readinto(buffer) != record.size:
            raise _damaged(f"reading file {name}", "file read failed")

    def _expanded(self, name, record):
        data = self._read(self.offset(name), record.stored_size, f"reading file {name}")
        return data if record.method == STORED else _expand(record, data)

    def _read(self, start, size, what):
        if start < 0 or start + size > self.size:
            raise _damaged(what, "file read failed")
        self._file.seek(self._origin + start)
        data = self._file.read(size)
        if len(data) != size:
            raise _damaged(what, "file read failed")
        return data


def _central_record(directory, at):
    """The entry at position `at` of the central directory, and where the next one starts."""
    what = "reading zip archive"
    if at + CENTRAL_HEADER.size > len(directory):
        raise _damaged(what, "invalid header or archive is corrupted")
    (
        signature,
        _,
        _,
        flags,
        method,
        _,
        _,
        _,
        stored_size,
        size,
        path_length,
        extra_length,
        comment_length,
        disk,
        _,
        attributes,
        start,
    ) = CENTRAL_HEADER.unpack_from(directory, at)
    path_at = at + CENTRAL_HEADER.size
    extra_at = path_at + path_length
    after = extra_at + extra_length + comment_length
    if signature != CENTRAL or after > len(directory):
        raise _damaged(what, "invalid header or archive is corrupted")
    if MOST_32 in (stored_size, size, start):
        extra = directory[extra_at : extra_at + extra_length]
        size, stored_size, start = _read_long_numbers(extra, size, stored_size, start)
    if disk > 1:
        raise _damaged(what, "unsupported multidisk archive")
    # Ordinary tools write folders, too; these are empty.
    folder_with_data = attributes & _IS_FOLDER and (size or stored_size)
    if flags & _ENCRYPTED_OR_PATCH or folder_with_data or method not in (STORED, DEFLATED):
        raise _damaged(what, "unsupported method")
    if method == STORED and stored_size != size or size > stored_size * _DEFLATE_AT_MOST:
        raise _damaged(what, "invalid header or archive is corrupted")
    try:
        name = directory[path_at:extra_at].decode()
    except UnicodeDecodeError:
        raise _damaged(what, "a file's name is not UTF-8") from None
    return Record(name, start, stored_size, size, method), after


def _read_long_numbers(extra, *fields):
    """`fields`, those that say 2**32 - 1 replaced by the long numbers of the extra field 1, which come in
    their order.
    """
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            numbers = iter(struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4))
            return [next(numbers, MOST_32) if field == MOST_32 else field for field in fields]
        at += 4 + length
    return fields


def _check_expansion(what, size, stored_size, limit):
    """Raise RuntimeError if `size` is implausible. limit: one of the two pairs above."""
    allowed, times = limit
    if size > max(allowed, times * stored_size):
        raise RuntimeError(
            f"{what} is compressed and would expand from {stored_size} to {size} bytes, which "
            "no checkpoint does that was not made to exhaust memory. If you trust the file, "
            "unpack it and zip it again without compression (zip -0)."
        )


def _expand(record, data):
    """The data of a compressed record. It never takes more memory than the record declares."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        expanded = inflater.decompress(data, record.size + 1)
    except zlib.error:
        expanded = b""
    if len(expanded) != record.size:
        raise _damaged(f"reading file {record.name}", "decompression failed or archive is corrupted")
    return expanded


def _damaged(doing, reason):
    return RuntimeError(
        f"PytorchStreamReader failed {doing}: {reason}. There is a high likelihood that the "
        "file is damaged: not "
        "saved properly, not transferred correctly, or changed afterwards."
    )
