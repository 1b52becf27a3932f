"""Spoiled and hostile checkpoints: each loads as the reference loads it, or raises a clear error; nothing runs, nothing hangs."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def run_fuzz(count, first=0, *options):
    """In a process of its own: what the audit hook sees there is what loading does."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.serialization.fuzz",
            "--json",
            "--count",
            str(count),
            "--first",
            str(first),
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_five_hundred_spoiled_checkpoints():
    result = run_fuzz(500)
    assert result["failures"] == []
    loaded, refused = (sum(counts) for counts in zip(*result["outcomes"].values()))
    assert loaded > 50 and refused > 200  # both happen, or the test tests nothing
    assert result["outcomes"]["hostile"][0] == 0


def test_five_hundred_in_the_old_formats():
    result = run_fuzz(500, 0, "--old")
    assert result["failures"] == []
    loaded, refused = (sum(counts) for counts in zip(*result["outcomes"].values()))
    assert loaded > 15 and refused > 200
    assert result["outcomes"]["hostile"][0] == result["outcomes"]["tar archive"][0] == 0


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("READTORCH_FULL_FUZZ"), reason="set READTORCH_FULL_FUZZ for 20,000 files")
def test_twenty_thousand():
    assert run_fuzz(20_000)["failures"] == run_fuzz(20_000, 0, "--old")["failures"] == []


def test_the_watch_sees_what_a_pickle_runs():
    """Against a loader that does run pickles the same checks must complain."""
    program = """
import os, pickle, zipfile, io, sys
import readtorch, tracemalloc
from tests.serialization import fuzz
tracemalloc.start()
readtorch.load = lambda file: pickle.loads(zipfile.ZipFile(file).read("archive/data.pkl"))
from tests.serialization.mutants import with_pickle
_, error, complaints = fuzz.load_watched(with_pickle(b"cos\\nsystem\\nX\\x04\\0\\0\\0true\\x85R."), fuzz.Watch())
assert any("os.system" in c for c in complaints), complaints
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
