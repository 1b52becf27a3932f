"""The files are the same, byte for byte, but for the identification at their ends."""

import io
import os
import struct
import zipfile

import numpy as np
import pytest
import torch

import readtorch
from tests.reference import seed_both

SERIALIZATION_ID = ".data/serialization_id"


def value(T):
    a = T.arange(6.0)
    marked = T.ones(2)
    marked.note = 3
    model = T.nn.Sequential(T.nn.Linear(3, 2), T.nn.BatchNorm1d(2))
    return {
        "a": a,
        "view": a[2:5],
        "columns": T.ones(3, 4).t(),
        "empty": T.empty(0, 3),
        "number": T.tensor(3),
        "marked": marked,
        "state": model.state_dict(),
        "model": model,
        "parameter": T.nn.Parameter(T.ones(2).to(T.bfloat16)),
        "uint16": T.ones(2, dtype=T.int32).to(T.uint16),
        "float8": T.ones(2).to(T.float8_e5m2),
        "size": T.Size([1, 2]),
        "dtype": T.float16,
        "layout": T.strided,
        "python": [1, 2.5, None, True, "text", b"bytes", {1, 2}, 1j],
        "results": T.ones(2, requires_grad=True) * 2,
        "bytes": T.ones(4).untyped_storage(),
        "buffer": T.nn.Buffer(T.ones(2)),
    }


def masked(data):
    """The file with the identification, and its checksums, blanked out."""
    data = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entry = next(e for e in archive.infolist() if e.filename.endswith(SERIALIZATION_ID))
        name, extra = struct.unpack_from("<HH", data, entry.header_offset + 26)
        start = entry.header_offset + 30 + name + extra
        data[start : start + 20] = b"0" * 20  # the part that comes from the names
        data[start + 44 : start + 48] = bytes(4)  # its checksum, in the data descriptor
        directory = data.index(b"PK\x01\x02", start)
        headers = [i for i in range(directory, len(data) - 4) if data[i : i + 4] == b"PK\x01\x02"]
        data[headers[-1] + 16 : headers[-1] + 20] = bytes(4)
    return bytes(data)


def assert_same(theirs, ours):
    assert len(theirs) == len(ours)
    a, b = (np.frombuffer(masked(data), np.uint8) for data in (theirs, ours))
    assert np.flatnonzero(a != b).tolist() == []


@pytest.mark.parametrize("options", [{}, {"pickle_protocol": 3}, {"_disable_byteorder_record": True}])
def test_a_buffer(options):
    files = []
    for T in (torch, readtorch):
        seed_both(0)
        files.append(io.BytesIO())
        T.save(value(T), files[-1], **options)
    assert_same(*(file.getvalue() for file in files))


@pytest.mark.parametrize("name", ["model.pt", "model.tar.pth", "no_extension"])
def test_a_path(tmp_path, name):
    files = []
    for T in (torch, readtorch):
        T.save([T.ones(3)], tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert_same(*files)


@pytest.mark.parametrize("alignment", [1, 16, 4096])
def test_alignment_checksums_and_room_for_data(alignment):
    files = []
    for T in (torch, readtorch):
        config = __import__(f"{T.__name__}.utils.serialization.config", fromlist=["config"])
        config.save.storage_alignment = alignment
        T.serialization.set_crc32_options(False)
        try:
            files.append(io.BytesIO())
            with T.serialization.skip_data():
                T.save([T.ones(3), T.ones(5)], files[-1])
        finally:
            config.save.storage_alignment = 64
            T.serialization.set_crc32_options(True)
    assert_same(*(file.getvalue() for file in files))


@pytest.mark.slow
def test_more_than_four_gigabytes(tmp_path):
    """With room for the data instead of data: the file is as long, the disk holds only the headers."""
    paths = []
    for T in (torch, readtorch):
        folder = tmp_path / T.__name__
        folder.mkdir()
        paths.append(folder / "huge.pt")
        huge = T.empty(4_500_000_000, dtype=T.uint8)  # never touched
        with T.serialization.skip_data():
            T.save({"huge": huge, "after": T.ones(2), "empty": T.empty(0)}, paths[-1])
    theirs, ours = ((path.stat().st_size, path.open("rb")) for path in paths)
    assert theirs[0] == ours[0]
    for position, length in ((0, 4096), (theirs[0] - 4096, 3000)):  # before the identification
        theirs[1].seek(position), ours[1].seek(position)
        head = theirs[1].read(length), ours[1].read(length)
        cut = head[0].find(b"serialization_id") if position else -1
        assert head[0][:cut] == head[1][:cut]
    for T in (torch, readtorch):
        for path in paths:
            loaded = T.load(path, mmap=True)
            assert (
                loaded["huge"].shape == (4_500_000_000,) and loaded["huge"][-1] == 0 and loaded["after"].shape == (2,)
            )
    for path in paths:
        os.unlink(path)
