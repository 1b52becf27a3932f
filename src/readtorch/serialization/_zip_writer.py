"""The zip archive that `save` writes, byte for byte as PyTorch lays it out.

In PyTorch: `PyTorchStreamWriter` (`caffe2/serialize/inline_container.cc`), which calls the C library miniz.
Explained in the chapter "state_dict, save and load".

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
"""
import hashlib
import struct
import sys
import zlib

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
        """The extra field of a local header: long numbers if there are any, then padding up to the alignment.
        """
        long = _long_numbers(sizes, start)
        before = start + LOCAL_HEADER.size + path_length + len(long) + 4
        padding = -before % self._alignment
        return long + b"FB" + padding.to_bytes(2, "little") + b"Z" * padding

    def _descriptor(self, crc32, size, start):
        self._combined_crc32 = _hash_combine(self._combined_crc32, crc32)
        layout = DESCRIPTOR_64 if max(size, start) >= MOST_32 else DESCRIPTOR
        return layout.pack(DESCRIBES, crc32, size, size)

    def write_end_of_file(self):
        """Add what every archive has, then the directory."""
        if "version" not in self._names:
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


def _long_numbers(sizes, start):
    """The extra field for sizes (packed, or nothing) and a position that do not fit into 32 bits."""
    numbers = sizes + (struct.pack("<Q", start) if start >= MOST_32 else b"")
    return struct.pack("<HH", 1, len(numbers)) + numbers if numbers else b""


def _central_header(path, flags, crc32, size, start):
    long = _long_numbers(struct.pack("<QQ", size, size) if size >= MOST_32 else b"", start)
    size, start = min(size, MOST_32), min(start, MOST_32)
    header = CENTRAL_HEADER.pack(CENTRAL, 0, 0, flags, 0, 0, 0, crc32, size, size, len(path), len(long),
                                 0, 0, 0, 0, start)
    return header + path + long


def _end(count, start, size):
    """The end of the archive. start, size: of the central directory."""
    made_by_unix, needs = 0x031E, 0x002D
    return (END_64.pack(ENDS_64, END_64.size - 12, made_by_unix, needs, 0, 0, count, count, size, start)
            + END_64_LOCATOR.pack(LOCATES_64, 0, start + size, 1)
            + END.pack(ENDS, 0, 0, min(count, MOST_16), min(count, MOST_16), min(size, MOST_32),
                       min(start, MOST_32), 0))
