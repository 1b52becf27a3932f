"""Hostile files made by hand: each is refused in words, or opened, within 1 GB and a few seconds; and honest files that look like them
load.
"""

import io
import json
import pickle
import re
import zipfile

import pytest
import torch

import readtorch
from tests.attack import files_by_hand, limits
from tests.serialization.mutants import rezipped

CASES = {
    f"{subject}: {name}": message
    for subject, files in files_by_hand.SUBJECTS.items()
    for name, (_, message) in files().items()
}


@pytest.fixture(scope="module")
def outcomes():
    return json.loads(limits.run_module("tests.attack.files_by_hand"))


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file(name, outcomes):
    outcome = outcomes[name]
    assert "result" in outcome, outcome  # it neither died nor hung
    assert outcome["peak"] < limits.GIGABYTE
    if CASES[name] is None:
        assert outcome["result"] == "opened"
    else:
        assert re.search(CASES[name], outcome["result"]) and not outcome["result"].startswith("MemoryError")


# What looks like them, and is honest


def test_compressed_checkpoints_load():
    def model(T):
        return {
            "weights": T.arange(300_000.0).reshape(300, 1000),
            "steps": T.zeros(4_000_000),
            "losses": [0] * 1_000_000,
            **{f"layers.{i}.bias": T.zeros(8) for i in range(2000)},
        }

    file = io.BytesIO()
    torch.save(model(torch), file)
    archive = zipfile.ZipFile(file)
    data = rezipped([(name, archive.read(name)) for name in archive.namelist()], compress=True)
    assert len(data) < len(file.getvalue()) / 10
    loaded, expected = readtorch.load(io.BytesIO(data)), model(readtorch)
    assert loaded["losses"] == expected.pop("losses") and len(loaded) == 2003
    assert all(readtorch.equal(loaded[name], value) for name, value in expected.items())


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_snapshots_of_all_protocols_open(protocol, tmp_path):
    from readtorch.viz.memory_snapshot import load_snapshot
    from tests.viz.snapshots import snapshot_of

    snapshot = snapshot_of("small_03_split_merge")
    (tmp_path / "a").write_bytes(pickle.dumps(snapshot, protocol))
    assert load_snapshot(tmp_path / "a") == snapshot
