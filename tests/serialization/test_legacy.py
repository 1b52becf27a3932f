"""Checkpoints in the formats of before PyTorch 1.6: written and read as PyTorch writes and reads them."""

import gzip
import io
import os
import pathlib
import pickle
import warnings

import pytest
import torch

import readtorch
from tests.serialization.describe import describe
from tests.serialization.old_files import archive, legacy, tar

BOTH = (torch, readtorch)


def same(program):
    """`program(T)` on both sides: equal results, or errors of equal type and text."""
    seen = []
    for T in BOTH:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                seen.append(describe(program(T)))
            except Exception as error:
                seen.append((type(error), str(error).replace("readtorch", "torch")))
    assert seen[0] == seen[1]
    return seen[0]


def test_views_empty_storages_and_tied_tensors():
    def program(T):
        a = T.arange(6.0)
        empty = T.empty(0)
        value = {
            "a": a,
            "b": a[1:5:2],
            "again": a,
            "empty": empty,
            "int8": T.empty(0, dtype=T.int8),
            "c": empty.view(0, 3),
        }
        return T.load(io.BytesIO(legacy(T, value)))

    same(program)
    ours = readtorch.load(io.BytesIO(legacy(readtorch, [a := readtorch.arange(4.0), a[1:]])))
    ours[0][1] = 7
    assert ours[1].tolist() == [7, 2, 3]


def test_the_bytes_are_those_of_the_reference_but_for_the_addresses():
    theirs, ours = (legacy(T, {"a": T.arange(3), "b": [1, None, "c"]}) for T in BOTH)
    addresses = [
        [op[1] for op in __import__("pickletools").genops(f.split(b".}q", 1)[0]) if op] for f in (theirs, ours)
    ]
    assert addresses[0] == addresses[1]  # what comes before them
    assert theirs.count(b"_rebuild_tensor_v2") == ours.count(b"_rebuild_tensor_v2") == 1
    assert theirs[-32:] == ours[-32:]  # number of elements, elements


@pytest.mark.parametrize("protocol", range(1, 6))
def test_whole_modules_of_either_side_open_on_the_other(protocol):
    def build(T):
        return T.nn.Sequential(T.nn.Linear(2, 3), T.nn.ReLU(), T.nn.Linear(3, 1))

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # above all no SourceChangeWarning
        theirs, ours = build(torch), build(readtorch)
        read = readtorch.load(io.BytesIO(legacy(torch, theirs, pickle_protocol=protocol)), weights_only=False)
        back = torch.load(io.BytesIO(legacy(readtorch, ours, pickle_protocol=protocol)), weights_only=False)
    assert repr(read) == repr(theirs) and describe(read.state_dict()) == describe(theirs.state_dict())
    assert type(back) is torch.nn.Sequential and describe(back.state_dict()) == describe(ours.state_dict())


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("weights_only", [True, False])
def test_protocols(protocol, weights_only):
    def program(T):
        data = legacy(T, [1, T.ones(2)], pickle_protocol=protocol)
        return T.load(io.BytesIO(data), weights_only=weights_only)

    same(program)


class Mine(torch.nn.Module):
    pass


class MineHere(readtorch.nn.Module):
    pass


CLASSES = {torch: Mine, readtorch: MineHere}


@pytest.mark.parametrize("dump_patches", [False, True])
def test_a_class_whose_source_has_changed_is_warned_of(dump_patches, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    for T in BOTH:
        cls = CLASSES[T]
        data = legacy(T, cls()).replace(b"    pass\n", b"    cats\n")
        monkeypatch.setattr(cls, "dump_patches", dump_patches)
        told = []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert type(T.load(io.BytesIO(data), weights_only=False)) is cls
            told += [(w.category.__name__, str(w.message).replace("MineHere", "Mine")) for w in caught]
        patch = pathlib.Path(f"{cls.__name__}.patch")
        written = patch.read_text().replace("MineHere", "Mine").replace("readtorch", "torch") if dump_patches else None
        if dump_patches:
            patch.write_text("somebody's")
            with pytest.warns(T.serialization.SourceChangeWarning, match="Tried to save a patch"):
                T.load(io.BytesIO(data), weights_only=False)
        seen.append((told, written))
    assert seen[0] == seen[1] and seen[0][0][0][0] == "SourceChangeWarning"


def test_a_class_without_source_is_warned_of():
    for T in BOTH:
        cls = type("Made", (T.nn.Module,), {"__module__": __name__})
        globals()["Made"] = cls
        with pytest.warns(UserWarning, match="Couldn't retrieve source code for container of type Made"):
            legacy(T, cls())


def spoiled():
    """{name: bytes of a file that is not whole}"""
    good = legacy(torch, [torch.ones(3)])
    return {
        "nothing": b"",
        "a number": pickle.dumps(3, 2),
        "another version": pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1002, 2),
        "an end too early": good[:-3],
        "another size": good[:-20] + b"\4" + good[-19:],
        "a name": b"cos\nsystem\n.",
        "zeros": bytes(2048),
        "no pickle": b"\xffhello",
        "mmap": good,
    }


@pytest.mark.parametrize("name", spoiled())
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("on_disk", [True, False])
def test_refusals_are_the_reference_s(name, weights_only, on_disk, tmp_path):
    (tmp_path / "a.pt").write_bytes(spoiled()[name])
    errors = []
    for T in BOTH:
        source = str(tmp_path / "a.pt") if on_disk else io.BytesIO(spoiled()[name])
        with pytest.raises(Exception) as caught:
            T.load(source, weights_only=weights_only, mmap=name == "mmap")
        text = str(caught.value).replace("readtorch", "torch")
        errors.append((caught.type, "" if text == "the pickle breaks off" else text))
    assert errors[0] == errors[1]


class Plain:
    """A file object with the least that it needs."""

    def __init__(self, data):
        self.file = io.BytesIO(data)

    def __getattr__(self, name):
        if name not in ("read", "readline", "seek", "tell"):
            raise AttributeError(name)
        return getattr(self.file, name)


def file_objects(T, folder, new):
    """(name, function that loads from, or saves to, such a file)"""
    value = {"a": T.arange(3)}
    path = folder / f"{T.__name__}.pt"
    T.save(value, path, _use_new_zipfile_serialization=new)
    data = path.read_bytes()
    options = {"_use_new_zipfile_serialization": new}

    def written(file):
        T.save(value, file, **options)
        file.seek(0)
        return T.load(file)

    def after_others():
        file = io.BytesIO()
        file.write(b"before")
        T.save(value, file, **options)
        file.seek(6)
        return T.load(file)

    def two_in_one():
        with open(folder / "two", "w+b") as file:
            T.save(value, file, **options)
            T.save([2], file, **options)
            file.seek(0)
            return T.load(file), T.load(file)

    def by_gzip():
        with gzip.open(folder / "a.gz", "wb") as file:
            T.save(value, file, **options)
        with gzip.open(folder / "a.gz") as file:
            return T.load(file)

    def pipe(end, mode):
        return os.fdopen(os.pipe()[end], mode)

    class NoFlush:
        write = len

    class NoCall:
        write, flush = 3, print

    return {
        "str": lambda: T.load(str(path)),
        "pathlike": lambda: T.load(path),
        "bytes are no path": lambda: T.load(os.fsencode(path)),
        "rb": lambda: T.load(open(path, "rb")),
        "unbuffered": lambda: T.load(open(path, "rb", buffering=0)),
        "r+b": lambda: T.load(open(path, "r+b")),
        "a+b": lambda: T.load(open(path, "a+b")),
        "ab": lambda: T.load(open(path, "ab")),
        "text": lambda: T.load(open(path)),
        "latin text": lambda: T.load(open(path, encoding="latin1")),
        "StringIO": lambda: T.load(io.StringIO("abc")),
        "BytesIO": lambda: written(io.BytesIO()),
        "w+b": lambda: written(open(folder / "w", "w+b")),
        "unbuffered w+b": lambda: written(open(folder / "w", "w+b", buffering=0)),
        "plain": lambda: T.load(Plain(data)),
        "after others": after_others,
        "gzip": by_gzip,
        "a pipe": lambda: T.load(pipe(0, "rb")),
        "save to text": lambda: T.save(value, open(folder / "t", "w"), **options),
        "save to StringIO": lambda: T.save(value, io.StringIO(), **options),
        "save to rb": lambda: T.save(value, open(path, "rb"), **options),
        "save to no file": lambda: T.save(value, 3, **options),
        "save to NoCall": lambda: T.save(value, NoCall(), **options),
        **({} if new else {"two in one": two_in_one, "save to NoFlush": lambda: T.save(value, NoFlush(), **options)}),
    }


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("name", file_objects(torch, pathlib.Path("/tmp"), False))
@pytest.mark.filterwarnings("ignore")
def test_file_objects(name, new, tmp_path):
    if name not in file_objects(torch, tmp_path, new):
        pytest.skip("the zip format is found from its end")
    seen = []
    for T in BOTH:
        try:
            seen.append(describe(file_objects(T, tmp_path, new)[name]()))
        except Exception as error:
            text = str(error).replace(f"{T.__name__}.pt", "pt")
            text = text if text != "the pickle breaks off" else ""
            seen.append((type(error), text if not isinstance(error, UnicodeDecodeError) else ""))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("map_location", ["cpu", "meta", {"cpu": "meta"}, torch.device("cpu"), lambda s, tag: None])
def test_map_location(map_location):
    def program(T):
        a = T.arange(4.0)
        place = T.device("cpu") if isinstance(map_location, torch.device) else map_location
        loaded = T.load(io.BytesIO(legacy(T, [a, a[1:]])), map_location=place)
        return [(str(t.device), t.shape, t.stride(), t.dtype) for t in loaded]

    same(program)


def test_untyped_storages_are_read():
    """Those of dtypes younger than the classes of storages: PyTorch writes them in the old format, and cannot read them back."""
    value = [torch.arange(3).to(torch.uint16), torch.ones(2).to(torch.float8_e5m2)]
    data = legacy(torch, value)
    with pytest.raises(AttributeError, match="has no attribute 'dtype'"):
        torch.load(io.BytesIO(data))
    assert describe(readtorch.load(io.BytesIO(data))) == describe(value)
    assert describe(readtorch.load(io.BytesIO(legacy(readtorch, readtorch.load(io.BytesIO(data)))))) == describe(value)


def test_skip_data():
    data = legacy(torch, [torch.ones(3)])
    for T in BOTH:
        with T.serialization.skip_data():
            assert T.load(io.BytesIO(data))[0].shape == (3,)
            with pytest.raises(
                RuntimeError, match="Cannot use skip_data=True with _use_new_zipfile_serialization=False"
            ):
                legacy(T, [T.ones(1)])


def python_2():
    """A checkpoint of Python 2: its texts are byte strings."""
    text = lambda s: b"U" + bytes([len(s)]) + s  # noqa: E731
    reference = b"(" + text(b"storage") + b"ctorch\nFloatStorage\n" + text(b"77") + text(b"cpu") + b"K\x02NtQ"
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + reference
        + b"K\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
    )
    return (
        b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {}))
        + b"\x80\x02}(" + text(b"w") + tensor + text(b"gr\xf6\xdfe") + b"K\x01u."
        + b"\x80\x02]" + text(b"77") + b"a."
        + b"\x02\0\0\0\0\0\0\0\0\0\x80?\0\0\0@"
    )  # fmt: skip


@pytest.mark.parametrize("encoding", ["latin1", "bytes", "utf-8", "ascii"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_encodings_of_python_2(encoding, weights_only):
    seen = []
    for T in BOTH:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seen.append(describe(T.load(io.BytesIO(python_2()), weights_only=weights_only, encoding=encoding)))
        except Exception as error:
            seen.append(isinstance(error, UnicodeDecodeError | pickle.UnpicklingError))
    assert seen[0] == seen[1] and (seen[0] is True) == (encoding in ("utf-8", "ascii"))


REFERENCE = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x02\0\0\x0077X\x03\0\0\0cpuK\x02NtQ"
REBUILT = b"ctorch._utils\n_rebuild_tensor\n(" + REFERENCE + b"K\x00K\x02\x85K\x01\x85tR"
NO_HOOKS = b"ccollections\nOrderedDict\n)R"
PLACE = b"(" + REFERENCE + b"K\x00K\x02\x85K\x01\x85t"
OLD_TENSORS = {
    "rebuilt": REBUILT,
    "FloatTensor": b"ctorch\nFloatTensor\n)\x81" + PLACE + b"b",
    "FloatTensor called": b"ctorch\nFloatTensor\n)R" + PLACE + b"b",
    "Tensor": b"ctorch\nTensor\n)R" + PLACE + b"b",
    "Parameter of 0.1": b"ctorch.nn.parameter\nParameter\n)\x81(" + REBUILT + b"N" + NO_HOOKS + b"\x88\x89tb",
    "Parameter without gradient": b"ctorch.nn.parameter\nParameter\n)\x81(" + REBUILT + b"N" + NO_HOOKS + b"\x89\x89tb",
    "Parameter of 0.3": b"ctorch.nn.parameter\nParameter\n" + REBUILT + b"\x85\x81(\x89N" + NO_HOOKS + b"tb",
    "Parameter called": b"ctorch.nn.parameter\nParameter\n" + REBUILT + b"\x88\x86R",
}
REFUSED = {  # PyTorch makes the storage longer, takes the hooks, or says something less clear
    "beyond its storage": b"ctorch\nFloatTensor\n)\x81(" + REFERENCE + b"K\x00\x8a\x08\0\0\0\0\0\1\0\0\x85K\x01\x85tb",
    "with hooks": b"ctorch\nTensor\n)R(\x88N" + b"ccollections\nOrderedDict\n](K\x01K\x02\x86e\x85R" + b"tb",
    "of a size": b"ctorch\nFloatTensor\n\x8a\x08\0\0\0\0\0\1\0\0\x85R",
    "of another dtype": b"ctorch\nLongTensor\n)R" + PLACE + b"b",
    "of nothing": b"ctorch\nTensor\n)RNb",
}


def one_storage(program):
    """A checkpoint of before 0.4 with one storage of two elements."""
    head = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {}))
    return head + b"\x80\x02" + program + b".\x80\x02]X\x02\0\0\x0077a.\x02\0\0\0\0\0\0\0\0\0\x80?\0\0\0@"


@pytest.mark.parametrize("name", OLD_TENSORS)
@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_that_are_made_empty_and_given_a_state(name, weights_only):
    def program(T):
        made = T.load(io.BytesIO(one_storage(OLD_TENSORS[name])), weights_only=weights_only)
        return type(made).__name__, made.tolist(), made.requires_grad, made.is_leaf

    assert "2.0" in str(same(program))


@pytest.mark.parametrize("name", REFUSED)
def test_states_that_are_refused(name):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        readtorch.load(io.BytesIO(one_storage(REFUSED[name])))


# ----------------------------------------------------------------------------------------------------- tar archives


def a_tar_file():
    a = torch.arange(6.0)
    part, number = a[2:5], torch.tensor(3, dtype=torch.int64)
    return tar({"a": a, "part": part, "again": a, "n": [number, 1, "text"]}, [a, part, number], [(1, 2, 3)])


def test_tar_archives_are_read(tmp_path):
    (tmp_path / "old.pt").write_bytes(a_tar_file())
    loaded = [T.load(tmp_path / "old.pt", weights_only=False) for T in BOTH]
    for part in ("a", "part", "n"):
        assert describe(loaded[0][part]) == describe(loaded[1][part])
    for value in loaded:
        value["a"][3] = 9
        assert value["part"].tolist() == [2, 9, 4] and value["again"] is value["a"]


def test_tar_archives_are_not_read_with_weights_only(tmp_path):
    """CVE-2025-32434: until 2.6 the pickles of such an archive were run with weights_only=True as well."""
    runs = b"cos\nsystem\n" + b"X\x04\0\0\0true\x85R."
    hostile = archive({"storages": b"\x80\x02" + runs, "tensors": b"\x80\x02" + runs, "pickle": b"\x80\x02" + runs})
    for data in (a_tar_file(), hostile, bytes(4096)):
        (tmp_path / "old.pt").write_bytes(data)
        errors = []
        for T in BOTH:
            with pytest.raises(
                RuntimeError, match="Cannot use ``weights_only=True`` with files saved in the legacy .tar"
            ) as caught:
                T.load(tmp_path / "old.pt")
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


def test_a_tar_archive_in_memory_is_none(tmp_path):
    """It is read from a file of the system alone, as in PyTorch."""
    same(lambda T: T.load(io.BytesIO(a_tar_file()), weights_only=False))
    for T, error in (
        (torch, IndexError),
        (readtorch, pickle.UnpicklingError),
    ):  # with weights_only it is a damaged pickle
        with pytest.raises(error):
            T.load(io.BytesIO(a_tar_file()))


def test_nothing_of_a_tar_archive_is_unpacked_to_the_disk(tmp_path, monkeypatch):
    (tmp_path / "old.pt").write_bytes(a_tar_file())
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    readtorch.load(tmp_path / "old.pt", weights_only=False)
    assert sorted(tmp_path.rglob("*")) == before
