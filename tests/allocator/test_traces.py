"""Every decision of PyTorch's own allocator, as recorded, is ours, too: see replay.py."""
from pathlib import Path

import pytest

from tests.allocator.replay import Replay, difference, load, replay

TRACES = sorted((Path(__file__).parent / "traces").glob("*.json.gz"))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_every_decision_is_the_same(path):
    assert replay(path) is None


def recording(name):
    return load(Path(__file__).parent / "traces" / f"{name}.json.gz")


@pytest.mark.parametrize("key, change", [
    ("ptr", lambda result: result.update(ptr=result["ptr"] + 512)),
    ("crc", lambda result: result.update(crc=result["crc"] ^ 1)),
    ("counts", lambda result: result["counts"][0].__setitem__(0, -1)),
    ("trace", lambda result: result["trace"][-1].update(size=1)),
    ("segments", lambda result: result["segments"][0]["blocks"][0].update(state="inactive")),
    ("stats", lambda result: result["stats"][0].update(num_ooms=7)),
])
def test_a_difference_is_seen(key, change):
    changed = recording("small_03_split_merge")
    change(changed["results"][2])
    found = Replay(changed).run()
    assert found.startswith(f"op 2 {changed['ops'][2]}: {key}")


def test_a_difference_is_named_exactly():
    assert difference("stats", [{"a": {"b": 1}}], [{"a": {"b": 2}}]) == "stats[0].a.b is 2, not 1"
