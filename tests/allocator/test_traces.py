"""Every decision of PyTorch's own allocator, as recorded, is ours, too: see replay.py."""

from collections import Counter
from pathlib import Path

import pytest

from readtorch.c10.cuda.cuda_exception import MemoryAllocationError
from tests.allocator.replay import Replay, difference, load, replay

TRACES = sorted((Path(__file__).parent / "traces").glob("*.json.gz"))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_every_decision_is_the_same(path):
    assert replay(path) is None


def recording(name):
    return load(Path(__file__).parent / "traces" / f"{name}.json.gz")


@pytest.mark.parametrize(
    "key, change",
    [
        ("ptr", lambda result: result.update(ptr=result["ptr"] + 512)),
        ("crc", lambda result: result.update(crc=result["crc"] ^ 1)),
        ("counts", lambda result: result["counts"][0].__setitem__(0, -1)),
        ("trace", lambda result: result["trace"][-1].update(size=1)),
        ("segments", lambda result: result["segments"][0]["blocks"][0].update(state="inactive")),
        ("stats", lambda result: result["stats"][0].update(num_ooms=7)),
    ],
)
def test_a_difference_is_seen(key, change):
    changed = recording("small_03_split_merge")
    change(changed["results"][2])
    found = Replay(changed).run()
    assert found.startswith(f"op 2 {changed['ops'][2]}: {key}")


def test_a_difference_is_named_exactly():
    assert difference("stats", [{"a": {"b": 1}}], [{"a": {"b": 2}}]) == "stats[0].a.b is 2, not 1"


CALLS = {  # our driver's calls by CUDA's names
    "cudaMalloc": "malloc",
    "cudaFree": "free",
    "cuMemCreate": "mem_create",
    "cuMemRelease": "mem_release",
    "cuMemMap": "mem_map",
    "cuMemUnmap": "mem_unmap",
    "cuMemAddressReserve": "mem_address_reserve",
    "cuMemAddressFree": "mem_address_free",
    "cudaEventCreate": "event_create",
    "cudaEventRecord": "event_record",
    "cudaEventQuery": "event_query",
    "cudaEventSynchronize": "event_synchronize",
    "cudaStreamSynchronize": "stream_synchronize",
    "cudaDeviceSynchronize": "device_synchronize",
}


@pytest.mark.parametrize("name", ["fuzz_02_default_tight", "fuzz_11_expandable_streams_tight", "real_02_cnn_tight"])
def test_the_driver_is_asked_as_often(name):
    """Not only with the same results: with the same calls, those that fail included."""
    recorded = recording(name)
    calls = Counter()
    run = Replay(recorded, history=False)
    for theirs, ours in CALLS.items():
        setattr(run.driver, ours, counted(calls, theirs, getattr(run.driver, ours)))
    for op in recorded["ops"]:
        getattr(run, op[0])(*op[1:])
    used = recorded["fake"].pop("used")
    assert {call: calls[call] for call in recorded["fake"]} == recorded["fake"]
    assert run.driver.memory.used[: len(used)] == used


def counted(calls, name, function):
    def call(*arguments):
        calls[name] += 1
        try:
            return function(*arguments)
        except MemoryAllocationError:
            calls[f"{name}_failed"] += 1
            raise

    return call
