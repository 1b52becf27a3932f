"""Paths and file objects; a save to a path is all or nothing."""

import fcntl
import io
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch

import readtorch


class Unpicklable:
    def __reduce__(self):
        raise RuntimeError("cannot be pickled")


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "model.pt"
    readtorch.save({"a": 1}, path)
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        readtorch.save([readtorch.ones(3), Unpicklable()], path)
    assert path.read_bytes() == before and names(tmp_path) == ["model.pt"]
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        readtorch.save(Unpicklable(), tmp_path / "new.pt")
    assert names(tmp_path) == ["model.pt"]


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    readtorch.save(1, path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        readtorch.save(readtorch.ones(1000), path)
    assert readtorch.load(path) == 1 and names(tmp_path) == ["model.pt"]


def test_a_killed_save_never_leaves_half_a_file(tmp_path):
    """A process saves again and again and is killed in the middle of it, twelve times."""
    path = tmp_path / "model.pt"
    script = textwrap.dedent("""
        import sys, readtorch
        big = {"n": 0, "a": readtorch.zeros(500_000)}
        readtorch.save(big, sys.argv[1])
        print("saved", flush=True)
        while True:
            big["n"] += 1
            big["a"] += 1
            readtorch.save(big, sys.argv[1])
    """)
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(readtorch.__file__).parents[1])}
    for i in range(4):
        process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=environment)
        process.stdout.readline()
        for _ in range(3):
            time.sleep(0.003 * (i + 1))
            loaded = readtorch.load(path)
            assert set(loaded["a"].tolist()) == {float(loaded["n"])}  # whole, and of one save
        process.send_signal(signal.SIGKILL)
        process.communicate()
        loaded = torch.load(path)
        assert loaded["a"].eq(loaded["n"]).all()


def test_the_next_save_removes_what_a_killed_one_left(tmp_path):
    script = "import os, sys, readtorch\nos.fsync = lambda _: os.kill(os.getpid(), 9)\nreadtorch.save(1, sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(readtorch.__file__).parents[1])}
    path = tmp_path / "model.pt"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script, str(path)], env=environment)
        assert len(names(tmp_path)) == 1 and names(tmp_path)[0].startswith("model.pt.")
    readtorch.save(1, path)
    assert names(tmp_path) == ["model.pt"]


def test_only_leftovers_are_removed(tmp_path):
    """Not other names, not links, not folders and pipes, not another user's."""
    kept = [
        "model.pt.20261122.tmp",
        "model.pt.0123abcd",
        "model.pt.0123ABCD.tmp",
        "model.pt.0123abcde.tmp",
        "other.pt.0123abcd.tmp",
        "model.pt.x.0123abcd.tmp",
    ]
    for name in kept:
        (tmp_path / name).write_bytes(b"somebody's")
    (tmp_path / "model.pt.aaaaaaaa.tmp").symlink_to(tmp_path / kept[0])
    (tmp_path / "model.pt.bbbbbbbb.tmp").mkdir()
    os.mkfifo(tmp_path / "model.pt.cccccccc.tmp")
    kept += [f"model.pt.{letter * 8}.tmp" for letter in "abc"]
    (tmp_path / "model.pt.0000000e.tmp").write_bytes(b"left")
    if os.geteuid() == 0:
        (tmp_path / "model.pt.dddddddd.tmp").write_bytes(b"another user's")
        os.chown(tmp_path / "model.pt.dddddddd.tmp", 65534, 65534)
        kept.append("model.pt.dddddddd.tmp")
    readtorch.save(1, tmp_path / "model.pt")
    assert names(tmp_path) == sorted([*kept, "model.pt"])
    assert (tmp_path / kept[0]).read_bytes() == b"somebody's"


class SlowToPickle:
    def __init__(self, during):
        self.during = during

    def __reduce__(self):
        self.during()
        return int, ()


def test_a_save_that_goes_on_is_no_leftover(tmp_path):
    path = tmp_path / "model.pt"
    seen = []

    def another_save():
        readtorch.save("inner", path)
        seen.append(names(tmp_path))

    readtorch.save(SlowToPickle(another_save), path)
    assert len(seen[0]) == 2 and readtorch.load(path, weights_only=False) == 0 and names(tmp_path) == ["model.pt"]


def test_many_saves_of_one_path_at_the_same_time(tmp_path):
    """Threads and processes, of which one is killed again and again: no save fails, nothing is left in the end."""
    path = tmp_path / "model.pt"
    script = "import sys, readtorch\nprint(flush=True)\nwhile True: readtorch.save([readtorch.ones(1000)], sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(readtorch.__file__).parents[1])}
    failed = []

    def save_often():
        try:
            for _ in range(150):
                readtorch.save([readtorch.ones(1000)], path)
        except BaseException as error:
            failed.append(error)

    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=environment)
    process.stdout.readline()
    threads = [threading.Thread(target=save_often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process.kill()
    process.communicate()
    readtorch.save(1, path)
    assert not failed and names(tmp_path) == ["model.pt"]


def test_where_there_are_no_locks_a_save_works(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(95, "Operation not supported")

    (tmp_path / "model.pt.0123abcd.tmp").write_bytes(b"who knows")
    monkeypatch.setattr(fcntl, "flock", no_locks)
    readtorch.save(1, tmp_path / "model.pt")
    assert names(tmp_path) == ["model.pt", "model.pt.0123abcd.tmp"]


def test_permissions_are_those_of_open_or_of_the_old_file(tmp_path):
    previous = os.umask(0o027)
    try:
        readtorch.save(1, tmp_path / "new.pt")
        with open(tmp_path / "opened", "wb"):
            pass
    finally:
        os.umask(previous)
    assert (tmp_path / "new.pt").stat().st_mode == (tmp_path / "opened").stat().st_mode
    (tmp_path / "new.pt").chmod(0o604)
    readtorch.save(2, tmp_path / "new.pt")
    assert stat.S_IMODE((tmp_path / "new.pt").stat().st_mode) == 0o604


class SeesTheNewFile:
    """Notes the permissions of what is beside the old file while it is being saved."""

    def __init__(self, path):
        self.path = path
        self.seen = []

    def __reduce__(self):
        beside = [other for other in self.path.parent.iterdir() if other != self.path]
        self.seen += [stat.S_IMODE(other.stat().st_mode) for other in beside]
        return int, ()


def test_a_private_file_is_never_replaced_by_an_open_one(tmp_path):
    path = tmp_path / "model.pt"
    readtorch.save(1, path)
    path.chmod(0o600)
    readtorch.save(saved := SeesTheNewFile(path), path)
    assert saved.seen == [0o600]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to everything")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path):
    path = tmp_path / "model.pt"
    readtorch.save(1, path)
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        readtorch.save(2, path)
    assert readtorch.load(path) == 1


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "real").mkdir()
    readtorch.save(1, tmp_path / "real" / "a.pt")
    (tmp_path / "link.pt").symlink_to(tmp_path / "real" / "a.pt")
    readtorch.save(2, tmp_path / "link.pt")
    assert (tmp_path / "link.pt").is_symlink()
    assert readtorch.load(tmp_path / "real" / "a.pt") == 2 and names(tmp_path / "real") == ["a.pt"]
    (tmp_path / "dangling.pt").symlink_to(tmp_path / "real" / "b.pt")
    readtorch.save(3, tmp_path / "dangling.pt")
    assert readtorch.load(tmp_path / "real" / "b.pt") == 3


def test_a_pipe_and_a_device_are_written_to(tmp_path):
    readtorch.save([readtorch.ones(3)], os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    readtorch.save({"a": 1}, tmp_path / "pipe")
    reader.join(10)
    assert torch.load(io.BytesIO(got[0])) == {"a": 1} and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_kinds_of_files(tmp_path):
    value = {"a": readtorch.arange(3)}
    for path in (str(tmp_path / "a.pt"), tmp_path / "größe.pt", tmp_path / "no_extension"):
        readtorch.save(value, path)
        assert readtorch.load(path)["a"].tolist() == torch.load(path)["a"].tolist() == [0, 1, 2]
    with open(tmp_path / "b.pt", "w+b") as file:
        file.write(b"before")
        readtorch.save(value, file)
        file.seek(6)
        assert readtorch.load(file)["a"].tolist() == [0, 1, 2]
    with open(tmp_path / "no_extension", "rb", buffering=0) as file:
        assert readtorch.load(file)["a"].tolist() == [0, 1, 2]


class WriteOnly:
    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += bytes(data)
        return len(data)


def test_a_file_that_was_unpacked_and_packed_by_an_ordinary_tool(tmp_path):
    """Its folders have entries of their own, and its records are compressed."""
    torch.save({"a": torch.ones(3)}, tmp_path / "model.pt")
    shutil.unpack_archive(tmp_path / "model.pt", tmp_path / "unpacked", "zip")
    packed = shutil.make_archive(tmp_path / "packed", "zip", tmp_path / "unpacked")
    assert torch.load(packed)["a"].tolist() == readtorch.load(packed)["a"].tolist() == [1, 1, 1]


def test_a_file_object_needs_only_write():
    target = WriteOnly()
    readtorch.save([readtorch.ones(2)], target)
    assert torch.load(io.BytesIO(target.data))[0].tolist() == [1.0, 1.0]


def refusals(T, folder):
    """(name, function that raises)"""
    pipe = os.fdopen(os.pipe()[0], "rb")
    return {
        "no file": lambda: T.load(folder / "absent.pt"),
        "a folder": lambda: T.load(folder),
        "a number": lambda: T.load(3),
        "bytes": lambda: T.load(b"PK"),
        "a pipe": lambda: T.load(pipe),
        "save to a number": lambda: T.save(1, 3),
        "no such folder": lambda: T.save(1, folder / "absent" / "x.pt"),
        "mmap of a buffer": lambda: T.load(io.BytesIO((folder / "good.pt").read_bytes()), mmap=True),
        "mmap of a legacy file": lambda: T.load(str(folder / "legacy.pt"), mmap=True),
        "pickle_module": lambda: T.load(folder / "good.pt", pickle_module=__import__("pickle"), weights_only=True),
        "map_location": lambda: T.load(folder / "good.pt", map_location="nowhere"),
        "cuda": lambda: T.load(folder / "good.pt", map_location="cuda"),
        "xpu": lambda: T.load(
            folder / "good.pt",
            map_location=lambda storage, tag: T.serialization.default_restore_location(storage, "xpu"),
        ),
        "lambda": lambda: T.save(lambda: 1, io.BytesIO()),
    }


@pytest.mark.parametrize("name", refusals(torch, pathlib.Path(".")))
def test_refusals_are_the_reference_s(name, tmp_path):
    torch.save([torch.ones(1)], tmp_path / "good.pt")
    torch.save([torch.ones(1)], tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    errors = []
    for T in (torch, readtorch):
        with pytest.raises(Exception) as caught:
            refusals(T, tmp_path)[name]()
        errors.append((caught.type, str(caught.value).replace("refusals.<locals>", "")))
    assert errors[0] == errors[1]
