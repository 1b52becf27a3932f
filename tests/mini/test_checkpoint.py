"""The reader's checkpoints: torch.load opens what mini writes, mini what torch.save writes, and neither runs what a file asks for."""

import io
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest
import torch

from readtorch.mini.checkpoint import TYPES, Writer, fetch, load, load_named, save
from readtorch.mini.tensor import Tensor

DTYPES = {np.dtype(code): torch.from_numpy(np.empty(0, code)).dtype for code in TYPES.values()}


def written(value):
    file = io.BytesIO()
    save(value, file)
    file.seek(0)
    return file


def random_tensor(generator, tensors):
    """A new tensor, or a view of one that is there."""
    if tensors and generator.random() < 0.4:
        tensor = generator.choice(tensors)
        dims = len(tensor.shape)
        view = tensor.transpose(0, dims - 1) if dims and generator.random() < 0.5 else tensor
        return view.narrow(0, 0, view.shape[0] // 2) if dims and view.shape[0] > 1 else view
    shape = [generator.randrange(5) for _ in range(generator.randrange(4))]
    dtype = generator.choice(list(DTYPES))
    return Tensor.of(np.random.default_rng(generator.randrange(99)).integers(0, 2, shape).astype(dtype))


def random_value(generator, tensors, depth=0):
    kind = generator.randrange(8 if depth < 3 else 6)
    if kind < 2:
        tensors.append(random_tensor(generator, tensors))
        return tensors[-1]
    if kind < 6:
        constants = [None, True, False, 0, -1, 2**40, 0.1, float("inf"), "", "größe", "weight"]
        return generator.choice(constants)
    parts = [random_value(generator, tensors, depth + 1) for _ in range(generator.randrange(4))]
    if kind == 6:
        return parts if generator.random() < 0.5 else tuple(parts)
    return {f"{i}.weight": part for i, part in enumerate(parts)}


def assert_equal(mine, theirs):
    if isinstance(mine, Tensor):
        assert DTYPES[mine.dtype] == theirs.dtype and mine.shape == tuple(theirs.shape)
        assert mine.strides == theirs.stride() and mine.offset == theirs.storage_offset()
        assert mine.tolist() == theirs.tolist()
    elif isinstance(mine, dict):
        assert list(mine) == list(theirs)
        for name in mine:
            assert_equal(mine[name], theirs[name])
    elif isinstance(mine, (list, tuple)):
        assert type(mine) is type(theirs) and len(mine) == len(theirs)
        for one, other in zip(mine, theirs):
            assert_equal(one, other)
    else:
        assert type(mine) is type(theirs) and mine == theirs


@pytest.mark.parametrize("seed", range(200))
def test_both_open_both_files(seed):
    generator = random.Random(seed)
    value = {"root": [random_value(generator, []) for _ in range(4)]}
    theirs = torch.load(written(value))
    assert_equal(value, theirs)
    assert_equal(load(written(value)), theirs)
    file = io.BytesIO()
    torch.save(theirs, file)
    assert_equal(load(file), theirs)


def test_what_shares_memory_shares_it_again():
    whole = Tensor.of([[1.0, 2.0], [3.0, 4.0]])
    value = {"w": whole, "t": whole.transpose(0, 1)}
    theirs, mine = torch.load(written(value)), load(written(value))
    theirs["w"][0, 1] = 9.0
    mine["w"][0, 1] = 9.0
    assert theirs["t"][1, 0] == 9.0 and mine["t"].tolist()[1][0] == 9.0


def test_a_state_dict_of_pytorch():
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Embedding(3, 4))
    net.half()
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "parameter": torch.nn.Parameter(torch.ones(2)), "epoch": 3}, file)
    loaded = load(file)
    assert_equal(dict(loaded["net"]), dict(net.state_dict()))
    assert loaded["net"]._metadata == net.state_dict()._metadata
    assert loaded["parameter"].tolist() == [1.0, 1.0] and loaded["epoch"] == 3


def test_records_begin_at_multiples_of_64():
    file = written({"a": Tensor.of([1.0]), "b": Tensor.of([[2, 3]])})
    data = file.getvalue()
    for record in zipfile.ZipFile(file).infolist():
        name, extra = struct.unpack_from("<HH", data, record.header_offset + 26)
        assert (record.header_offset + 30 + name + extra) % 64 == 0
    torch.load(written({}), map_location="meta")


def test_mmap_of_its_file(tmp_path):
    save({"w": Tensor.of([1.0, 2.0])}, tmp_path / "w.pt")
    assert torch.load(tmp_path / "w.pt", mmap=True)["w"].tolist() == [1.0, 2.0]


def test_locations():
    file = io.BytesIO()
    save({"w": Tensor.of([1.0])}, file, location="cuda:3")
    file.seek(0)
    seen = []
    torch.load(file, map_location=lambda storage, location: seen.append(location) or storage)
    assert seen == ["cuda:3"]


def run(program):
    """What a file with this program gives. It holds eight bytes as storage 0."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + program + b".")
        archive.writestr("a/data/0", bytes(8))
    return load(file)


WRITE = Writer()
TENSOR = WRITE.of(Tensor.of([0.0, 0.0]))
HOSTILE = {
    "a function": fetch("posix", "system") + WRITE.of(("true",)) + b"R",
    "a class": fetch("builtins", "eval"),
    "a call of a string": WRITE.of("w") + b")R",
    "a call of a dtype": fetch("torch", "FloatStorage") + b")R",
    "an item of a tensor": TENSOR + WRITE.of(0) + WRITE.of(5) + b"s",
    "an item of a list": b"]" + WRITE.of(0) + WRITE.of(5) + b"s",
    "attributes of a tensor": TENSOR + b"}b",
    "an element of a dict": b"}" + WRITE.of(0) + b"a",
    "another instruction": b"\x93",
    "an instance": fetch("collections", "OrderedDict") + b")\x81",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_refuses(name):
    with pytest.raises(pickle.UnpicklingError):
        run(HOSTILE[name])


def test_a_tensor_stays_within_its_storage():
    with pytest.raises(RuntimeError, match="needs 4000 bytes"):
        run(TENSOR.replace(WRITE.of((2,)), WRITE.of((1000,))))


@pytest.mark.parametrize("count", [0, 1, 3, 2**40, -2])
def test_a_record_is_as_long_as_the_program_says(count):
    claim, two = WRITE.of(["0", "cpu", count])[2:-1], WRITE.of(["0", "cpu", 2])[2:-1]
    assert run(TENSOR).tolist() == [0.0, 0.0] and two in TENSOR
    with pytest.raises(pickle.UnpicklingError, match="record 0 has 8 bytes"):
        run(TENSOR.replace(two, claim))


def test_pickles_of_python():
    """What pickle.dumps writes with protocol 2 of plain values."""
    values = [
        None,
        True,
        -1,
        2**31,
        -(2**40),
        2.5,
        "é",
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        [],
        [1],
        [1, [2]],
        {},
    ]
    values += [{"a": 1}, {"a": {"b": [1.0]}, "c": 2}, list(range(300)), [str(i) for i in range(300)] * 2]
    for value in values:
        program = pickle.dumps(value, protocol=2)
        assert run(program[2:-1]) == value


def test_load_named():
    own = {"a": Tensor.of([0.0]), "b": Tensor.of([0.0])}
    saved = {"a": Tensor.of([1.0]), "c": Tensor.of([2.0])}
    with pytest.raises(RuntimeError, match=r"missing \['b'\], unexpected \['c'\]"):
        load_named(own, saved)
    assert own["a"].tolist() == [1.0]
    assert load_named(own, saved, strict=False) == (["b"], ["c"])
    with pytest.raises(RuntimeError, match="size mismatch for a"):
        load_named(own, {"a": Tensor.of([1.0, 2.0])}, strict=False)


def test_what_cannot_be_saved():
    with pytest.raises(TypeError, match="cannot save set"):
        save({"a": {1}}, io.BytesIO())
    floats = Tensor.of([1.0, 2.0])
    ints = Tensor(floats.storage, np.dtype("i4"), (2,), (1,))
    with pytest.raises(TypeError, match="one storage under two dtypes"):
        save([floats, ints], io.BytesIO())
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([torch.ones(2), (one := torch.ones(2)), one.view(torch.int32)], io.BytesIO())


@pytest.mark.parametrize(
    "tensor", [torch.tensor([1 + 2j]).conj(), torch._neg_view(torch.tensor([5.0])), torch.tensor([1 + 2j]).conj().imag]
)
def test_lazy_conjugates_and_negatives_are_refused(tensor):
    file = io.BytesIO()
    torch.save({"t": tensor}, file)
    with pytest.raises(pickle.UnpicklingError, match="cannot read {'(conj|neg)': True}"):
        load(file)
    file = io.BytesIO()
    torch.save(tensor.resolve_conj().resolve_neg().clone(), file)
    assert load(file).tolist() == tensor.tolist()


def test_another_order_of_bytes_is_refused():
    source, file = zipfile.ZipFile(written(Tensor.of([1.0, 2.0]))), io.BytesIO()
    other = {"archive/byteorder": b"big", "archive/data/0": np.array([1.0, 2.0], ">f4").tobytes()}
    with zipfile.ZipFile(file, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, other.get(name, source.read(name)))
    file.seek(0)
    assert torch.load(file).tolist() == [1.0, 2.0]
    with pytest.raises(pickle.UnpicklingError, match="bytes in another order"):
        load(file)
