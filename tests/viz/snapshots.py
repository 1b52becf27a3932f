"""Snapshots as PyTorch writes them, made from recorded runs of its allocator (tests/allocator/traces)."""

import gzip
import json
import re
from pathlib import Path

TRACES = Path(__file__).parents[1] / "allocator" / "traces"
INTERVALS = [1 << i for i in range(16)]


def recorded(name):
    return json.loads(gzip.decompress((TRACES / f"{name}.json.gz").read_bytes()))


def snapshot_of(name, drop=0):
    """What `torch.cuda.memory._snapshot()` would have given after the run, less the first `drop` events."""
    run = recorded(name)
    traces = [[] for _ in range(run["devices"])]
    for result in run["results"]:
        for entry in result.get("trace", []):
            traces[entry["device"]].append(as_entry(entry, sum(map(len, traces))))
    last = next(result for result in reversed(run["results"]) if "segments" in result)
    return {
        "segments": [as_segment(segment) for segment in last["segments"]],
        "device_traces": [trace[drop:] for trace in traces],
        "allocator_settings": settings_of(run["alloc_conf"]),
        "external_annotations": [],
    }


def as_entry(entry, number):
    frames = [
        {"name": f"layer{number % 5}", "filename": "/home/me/net.py", "line": 10 + number % 5},
        {"name": "main", "filename": "/home/me/train.py", "line": 7},
    ]
    own = {key: value for key, value in entry.items() if key != "device"}
    return own | {
        "frames": frames,
        "time_us": 1_700_000_000_000_000 + 13 * number,
        "compile_context": "N/A",
        "user_metadata": "",
    }


def as_segment(segment):
    own = {key: value for key, value in segment.items() if key != "registration_counter"}
    blocks = [block | {"frames": []} for block in segment["blocks"]]
    return own | {"segment_pool_id": tuple(segment["segment_pool_id"]), "blocks": blocks, "frames": []}


def settings_of(conf):
    """`allocator_settings` of a snapshot, as far as the recorded runs use them."""
    split = re.search(r"max_split_size_mb:(\d+)", conf)
    number = re.search(r"roundup_power2_divisions:(\d+)", conf)
    table = re.search(r"roundup_power2_divisions:\[(.*?)]", conf)
    divisions = dict.fromkeys(INTERVALS, int(number[1]) if number else 0)
    last = 0
    for interval, value in (pair.split(":") for pair in (table[1].split(",") if table else [])):
        named = [i for i in INTERVALS if (i > last if interval == ">" else i == int(interval))]
        divisions.update(dict.fromkeys(named, int(value)))
        last = named[-1]
    return {
        "PYTORCH_CUDA_ALLOC_CONF": conf,
        "max_split_size": int(split[1]) << 20 if split else -1,
        "garbage_collection_threshold": 0.0,
        "expandable_segments": "expandable_segments:True" in conf,
        "roundup_power2_divisions": {str(interval): value for interval, value in divisions.items()},
    }


def long_history(name, times):
    """A recorded run that ends with nothing in use, again and again; its memory is given back in between."""
    snapshot = snapshot_of(name)
    end = [
        {
            "action": "segment_free",
            "addr": segment["address"],
            "size": segment["total_size"],
            "stream": segment["stream"],
            "frames": [],
            "time_us": 0,
        }
        for segment in snapshot["segments"]
    ]
    assert all(b["state"] == "inactive" for segment in snapshot["segments"] for b in segment["blocks"])
    snapshot["device_traces"][0] = (snapshot["device_traces"][0] + end) * times
    return snapshot | {"segments": []}
