"""A share of the spoiled files of `tests.attack.files`: no fault in any of them. The whole run is recorded in `results/files.json`."""

import json
import pathlib

import pytest

from tests.attack import files, limits

RESULTS = pathlib.Path(__file__).parent / "results" / "files.json"


def test_two_hundred_spoiled_files(tmp_path):
    report = tmp_path / "report.json"
    try:
        limits.run_module("tests.attack.files", "--count", "200", "--seed", "7", "--report", str(report))
    finally:
        told = json.loads(report.read_text())
        assert told["first faults"] == []
    assert told["files"] == 200 and set(told["outcomes"]) == set(files.SHARES)
    loaded = sum(
        count for outcomes in told["outcomes"].values() for name, count in outcomes.items() if name.startswith("loaded")
    )
    assert 20 < loaded < 150  # both happen, or the test tests nothing


def test_the_whole_run_was_made_and_found_nothing():
    told = json.loads(RESULTS.read_text())
    assert told["files"] >= 22_000 and told["faults"] == 0
    assert all(sum(told["outcomes"][kind].values()) > 0.9 * share for kind, share in files.SHARES.items())


# The machinery sees what it is there to see


def answer(monkeypatch, opener):
    watch = limits.Watch(files.harmless)
    monkeypatch.setattr(files, "open_ours", lambda kind, data: opener())
    monkeypatch.setattr(files, "file_of", lambda kind, seed: b"")
    files.signal.signal(files.signal.SIGALRM, lambda *_: (_ for _ in ()).throw(files.Late()))
    return files.many([("jit", 0)], lambda kind, seed: files.try_ours(kind, seed, watch))[0]


def reaches_out():
    import readtorch

    tensor = readtorch.ones(4)
    tensor.untyped_storage()._impl.buffer = tensor.untyped_storage()._impl.buffer[:8]
    return [tensor], None


def shows_freed_memory():
    import readtorch

    return [readtorch.tensor(list(files.CANARY), dtype=readtorch.uint8)], None


@pytest.mark.parametrize(
    "opener, fault",
    [
        (lambda: exec("1"), "ran exec"),
        (lambda: open("/dev/null").close(), "ran open"),
        (lambda: __import__("os").system("true"), "ran os.system"),
        (lambda: {}["key"], "unclear error KeyError"),
        (lambda: files.os.kill(files.os.getpid(), 9), "died"),
        (lambda: (len(bytes(5 << 30)), None), "MemoryError"),
        (lambda: ([bytearray(b"x") * (3 << 29)], None), "more than 1 GB"),
        (reaches_out, "reaches out"),
        (shows_freed_memory, "freed memory"),
    ],
)
def test_a_fault_is_seen(opener, fault, monkeypatch):
    assert any(fault in each for each in answer(monkeypatch, opener)[2])


def test_what_hangs_is_seen(monkeypatch):
    monkeypatch.setattr(files, "SECONDS", 0.5)

    def hang():
        while True:
            pass

    assert answer(monkeypatch, hang)[2] == ["late"]


def test_the_same_seed_gives_the_same_files():
    assert files.plan(50, 3) == files.plan(50, 3) != files.plan(50, 4)
    assert all(files.file_of(kind, seed) == files.file_of(kind, seed) for kind, seed in files.plan(50, 3))
