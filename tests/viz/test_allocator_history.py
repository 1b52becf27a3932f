"""The allocator explorer's model, against recorded runs of PyTorch's allocator: it shows what there was."""

import base64
import io
import json
import pickle
import zlib

import numpy as np
import pytest
from torch.cuda import _memory_viz

import readtorch
from readtorch import viz
from readtorch.c10.cuda.cuda_caching_allocator.snapshot import segments_of
from readtorch.viz.allocator_history import allocator_history
from readtorch.viz.memory_history import read_history
from readtorch.viz.memory_replay import ACTIVE, FREE, STATES, Replay
from readtorch.viz.memory_snapshot import PlainUnpickler
from tests.allocator.replay import Replay as Recording

from .snapshots import TRACES, recorded, snapshot_of

NAMES = sorted(file.name.removesuffix(".json.gz") for file in TRACES.glob("*.json.gz"))
# Settings that change while the program runs are not in a snapshot.
STEADY = [name for name in NAMES if "settings" not in name]


def moment(replay, t):
    """What there is after t events: address -> (size, state, what was asked for)."""
    return {
        replay.rows[row].address + offset: (size, state, replay.allocations[owner].requested if owner >= 0 else None)
        for row, offset, size, state, owner, born, died in replay.lives
        if born <= t < died
    }


def blocks_of(segments, device=0):
    """The same from a snapshot. What a free block was asked for is a leftover and not compared."""
    return {
        block["address"]: (
            block["size"],
            STATES[block["state"]],
            block["requested_size"] if block["state"] != "inactive" else None,
        )
        for segment in segments
        if segment["device"] == device
        for block in segment["blocks"]
    }


def test_there_are_runs_to_compare_with():
    assert len(STEADY) >= 30 and any("expandable" in name for name in STEADY)


@pytest.mark.parametrize("name", STEADY)
def test_every_recorded_moment_is_found_from_events_alone(name):
    """The events say nothing of block sizes, of splits or of merges: those follow from the rules."""
    run, replay = recorded(name), Replay(read_history(snapshot_of(name), device=0))
    t = compared = 0
    for result in run["results"]:
        t += sum(entry["device"] == 0 for entry in result.get("trace", []))
        if "segments" in result:
            assert moment(replay, t) == blocks_of(result["segments"])
            compared += 1
    assert compared > 1
    assert replay.surprises == 0 and replay.segments_that_differ() == 0


@pytest.mark.parametrize(
    "name",
    [
        "small_03_split_merge",
        "small_06_record_stream",
        "small_16_expandable",
        "fuzz_12_two_devices",
        "real_01_mlp_roomy",
    ],
)
def test_a_history_that_begins_in_the_middle(name):
    """Of 100,000 entries only the last are kept; what was there before them is found by going back."""
    whole = Replay(read_history(snapshot_of(name), device=0))
    events = len(whole.history.events)
    for drop in (1, events // 3, events // 2, events - 1):
        part = Replay(read_history(snapshot_of(name, drop), device=0))
        assert moment(part, 0) == moment(whole, drop)
        assert moment(part, events - drop) == moment(whole, events)


def test_reasons_are_those_of_the_rules():
    replay = Replay(read_history(snapshot_of("small_04_best_fit")))
    said = [(event["action"], reason) for event, reason in zip(replay.history.events, replay.reasons)]
    assert said[0][0] == "segment_alloc" and said[0][1].startswith("new 64 MiB segment for 64 MiB")
    assert any(action == "alloc" and "best fit of 3 candidates" in reason for action, reason in said)
    for event, reason in zip(replay.history.events, replay.reasons):
        assert reason and "does not say which" not in reason, event


def test_what_no_trace_tells_is_not_made_up():
    replay = Replay(read_history(snapshot_of("small_06_record_stream")))
    assert "free deferred: used on another stream, which the trace does not name" in replay.reasons
    assert any("other streams have passed its last use" in reason for reason in replay.reasons)


def test_recorded_reasons_are_taken_as_they_are():
    snapshot = snapshot_of("small_03_split_merge")
    for number, entry in enumerate(snapshot["device_traces"][0]):
        entry["reason"] = f"because of {number}"
    assert Replay(read_history(snapshot)).reasons[:2] == ["because of 0", "because of 1"]
    assert allocator_history(snapshot)["reasons"] == "recorded"
    assert allocator_history(snapshot_of("small_03_split_merge"))["reasons"] == "derived"


def test_an_end_that_contradicts_the_snapshot_is_reported():
    snapshot = snapshot_of("small_03_split_merge")
    snapshot["segments"][0]["blocks"][0]["size"] += 512
    assert allocator_history(snapshot)["differing"] == 1
    assert allocator_history(snapshot_of("small_03_split_merge"))["differing"] == 0


def test_a_snapshot_in_pytorchs_format_opens_from_its_pickle(tmp_path):
    """The same file is well-formed for PyTorch's own tools."""
    file, snapshot = tmp_path / "snapshot.pickle", snapshot_of("real_01_mlp_roomy")
    file.write_bytes(pickle.dumps(snapshot))
    assert "real_01" not in _memory_viz.segsum(snapshot)
    assert "cudaMalloc" in _memory_viz.trace(snapshot)
    assert _memory_viz.memory(snapshot, format_flamegraph=str).startswith("stream_0;")
    assert allocator_history(file) == allocator_history(str(file)) == allocator_history(snapshot)


def test_a_strangers_pickle_runs_nothing():
    class Bad:
        def __reduce__(self):
            return print, ("gotcha",)

    with pytest.raises(pickle.UnpicklingError, match="plain data; this file asks for"):
        PlainUnpickler(io.BytesIO(pickle.dumps(Bad()))).load()


@pytest.mark.parametrize("empty", [{}, {"segments": []}, {"segments": [], "device_traces": [[], []]}])
def test_no_history_is_an_error_that_says_what_to_call(empty):
    with pytest.raises(ValueError, match="_record_memory_history"):
        read_history(empty)


def test_the_device_with_most_events_is_shown():
    snapshot = snapshot_of("small_18_two_devices")
    assert [len(trace) for trace in snapshot["device_traces"]] == [10, 14]
    assert allocator_history(snapshot)["device"] == 1
    assert allocator_history(snapshot, device=0)["events"] == 10


def unpacked(data):
    raw, at = zlib.decompress(base64.b64decode(data["numbers"])), 0
    for name, type, length in data["columns"]:
        width = np.dtype(type).itemsize
        planes = np.frombuffer(raw[at : at + width * length], "u1").reshape(width, length)
        yield name, planes.T.copy().view(type)[:, 0]
        at += width * length
    assert at == len(raw)


def test_the_packed_columns_are_the_replay():
    snapshot = snapshot_of("small_16_expandable")
    replay, data = Replay(read_history(snapshot)), allocator_history(snapshot)
    assert json.loads(json.dumps(data)) == data
    columns = dict(unpacked(data))
    tables = json.loads(zlib.decompress(base64.b64decode(data["tables"])))
    events = replay.history.events
    assert [tables["actions"][i] for i in columns["action"]] == [event["action"] for event in events]
    assert [tables["reasons"][i] for i in columns["reason"]] == replay.reasons
    assert columns["address"].tolist() == [event.get("addr", event.get("device_free")) for event in events]
    assert columns["lifeBirth"].cumsum().tolist() == sorted(life[5] for life in replay.lives)
    assert (columns["lifeSize"] * 512.0).sum() == sum(life[2] for life in replay.lives)
    assert [tables["frames"][i] for i in tables["stacks"][columns["stack"][1]]] == [
        "layer1\n/home/me/net.py:11",
        "main\n/home/me/train.py:7",
    ]


def test_any_number_of_actions_and_streams():
    events = [{"action": f"later {i % 300}", "size": 1, "stream": i} for i in range(1 << 16 | 1)]
    data = allocator_history({"segments": [], "device_traces": [events]})
    columns, tables = dict(unpacked(data)), json.loads(zlib.decompress(base64.b64decode(data["tables"])))
    assert [tables["actions"][i] for i in columns["action"]] == [event["action"] for event in events]
    assert [tables["streams"][i] for i in columns["stream"]] == [event["stream"] for event in events]


def test_a_stack_ends_at_the_notebooks_cell():
    frames = [
        {"name": name, "filename": file, "line": 1}
        for name, file in [
            ("step", "/tmp/ipykernel_7/123.py"),
            ("run_code", "/usr/lib/IPython/core/interactiveshell.py"),
            ("main", "/usr/bin/jupyter"),
        ]
    ]
    snapshot = snapshot_of("small_03_split_merge")
    for entry in snapshot["device_traces"][0]:
        entry["frames"] = frames
    tables = json.loads(zlib.decompress(base64.b64decode(allocator_history(snapshot)["tables"])))
    assert tables["frames"] == ["step\ncell:1"]


def test_lives_of_a_moment_tile_their_segments():
    replay = Replay(read_history(snapshot_of("real_01_mlp_roomy")))
    for t in range(0, len(replay.history.events), 97):
        blocks = sorted(moment(replay, t).items())
        assert all(a + size <= b for (a, (size, *_)), (b, _) in zip(blocks, blocks[1:]))
        assert {state for _, (_, state, _) in blocks} <= {FREE, ACTIVE, STATES["active_pending_free"]}


def test_the_figure_counts_steps_from_the_end_too():
    snapshot = snapshot_of("small_03_split_merge")
    events = len(snapshot["device_traces"][0])
    assert viz.allocator(snapshot, step=-1).step == events
    assert viz.allocator(snapshot, step=3, address="0x700000000000").address == "0x700000000000"


def run_again(name):
    """The recorded run by our own allocator, which writes its reasons down: (entries, segments)"""
    again = Recording(recorded(name))
    for op in again.recording["ops"]:
        getattr(again, op[0])(*op[1:])
    device = again.allocator.devices[0]
    return [entry.as_dict() for entry in device.history.entries], segments_of(device)


@pytest.mark.parametrize(
    "name",
    [
        "small_04_best_fit",
        "small_06_record_stream",
        "small_10_max_split",
        "small_12_roundup",
        "small_16_expandable",
        "small_20_private_pool",
        "fuzz_03_streams_tight",
    ],
)
def test_what_is_worked_out_is_what_our_allocator_says(name):
    entries, segments = run_again(name)
    bare = [{key: entry[key] for key in entry.keys() - {"reason", "details"}} for entry in entries]
    settings = snapshot_of(name)["allocator_settings"]
    derived, told = (
        Replay(read_history({"segments": segments, "device_traces": [trace], "allocator_settings": settings}))
        for trace in (bare, entries)
    )
    assert moment(derived, len(entries)) == moment(told, len(entries))
    assert told.reasons == [entry["reason"] for entry in entries]
    for entry, ours, theirs in zip(entries, derived.reasons, told.reasons):
        if entry["action"] in ("alloc", "free_completed") and "stream" not in theirs:
            assert ours == theirs, entry
        if entry["action"] in ("segment_alloc", "segment_map") and not entry["details"]["retries"]:
            assert ours.startswith(theirs), entry


def test_a_live_run_and_its_pickle_tell_the_same(tmp_path):
    readtorch.cuda.simulate(1, "64MiB")
    try:
        readtorch.cuda.memory._record_memory_history(stacks="python")
        kept = [readtorch.ones(700, 700, device="cuda") for _ in range(4)]
        del kept[1]
        readtorch.cuda.memory._dump_snapshot(tmp_path / "ours.pickle")
        read, live = allocator_history(tmp_path / "ours.pickle"), allocator_history()
        assert (read["reasons"], read["differing"], live["differing"]) == ("recorded", 0, 0)
        assert read["events"] == 7 and live["events"] == 8, "taking a snapshot is an event, too"
        tables = json.loads(zlib.decompress(base64.b64decode(read["tables"])))
        assert tables["actions"] == ["segment_alloc", "alloc", "free_requested", "free_completed"]
        assert any("test_a_live_run" in frame for frame in tables["frames"])
    finally:
        readtorch.cuda.simulate(0)


def test_out_of_memory_is_worked_out_of_a_trace_too():
    """What the allocator writes down of a failure follows from the books, but for a limit that the program set."""
    replay = Replay(read_history(snapshot_of("small_09_fragmentation")))
    ((number, details),) = replay.out_of_memory.items()
    assert replay.reasons[number - 1] == (
        "30 MiB wanted in one piece; the largest of 3 free blocks has 14 MiB, together they have 42 MiB; "
        "the driver has 10 MiB left, too little for a segment of 30 MiB"
    )
    assert (details["largest_free"], details["free"], details["device_free"]) == (14 << 20, 42 << 20, 10 << 20)
    replay = Replay(read_history(snapshot_of("small_14_memory_fraction")))
    number = min(replay.out_of_memory)
    assert replay.reasons[number - 1].endswith("left: why it did not give a segment of 46 MiB the trace does not say")
