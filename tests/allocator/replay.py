"""Replays recorded runs of PyTorch's caching allocator against ours: `python tests/allocator/replay.py FILE…`

Prints the first difference of each file and exits with the number of files that differ. The schema is that
of the files in `traces/`: what PyTorch 2.13.0's own allocator did on a fake GPU, operation by operation:
returned addresses, segments, blocks and their states, statistics, messages, events, and a checksum of the
whole state.
"""

import gzip
import json
import logging
import sys
import zlib
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.cuda_caching_allocator import CachingAllocator
from readtorch.c10.cuda.cuda_caching_allocator.snapshot import segments_of
from readtorch.c10.cuda.cuda_exception import OutOfMemoryError
from readtorch.viz.told_driver import ToldDriver

DEVICES = 2  # whatever the file reports on
VISITED = [None, {1: 0, 2: 1, 0: 2, 3: 3}.get]  # the order in which a device's streams are looked at


class Replay:
    """One recording and an allocator that does the same."""

    def __init__(self, recording, history=True):
        self.recording = recording
        self.config = AllocatorConfig()
        if recording["alloc_conf"]:
            self.config.read(recording["alloc_conf"])
        self.driver = ToldDriver(DEVICES, recording["capacity"], recording["addresses"])
        self.allocator = CachingAllocator(self.driver, self.config)
        for device, order in zip(self.allocator.devices, VISITED):
            device.stream_order = order
        self.blocks = {}
        if history:
            self.allocator.record_history(True, context=None)

    def run(self):
        """Do everything again; a sentence about the first difference, or None."""
        snapshots = self.recording["snapshot_every"]
        last = len(self.recording["ops"]) - 1
        for i, (op, expected) in enumerate(zip(self.recording["ops"], self.recording["results"])):
            result = getattr(self, op[0])(*op[1:]) or {}
            self.look(result, i == last or (i + 1) % snapshots == 0)
            for key in expected.keys() | result.keys():
                if expected.get(key) != result.get(key):
                    return f"op {i} {op}: {difference(key, expected.get(key), result.get(key))}"
        return None

    # ------------------------------------------------------------------------------------ the operations

    def alloc(self, name, size, stream, device):
        try:
            block = self.allocator.malloc(device, size, stream)
        except OutOfMemoryError as error:
            return {"error": type(error).__name__, "message": str(error)}
        self.blocks[name] = block
        return {"ptr": block.address if block else 0}

    def free(self, name):
        if name not in self.blocks:
            return {"skipped": True}
        self.allocator.free(self.blocks.pop(name))

    def record_stream(self, name, stream):
        if name not in self.blocks:
            return {"skipped": True}
        self.allocator.record_stream(self.blocks[name], stream)

    def complete_events(self, device=None, stream=None, n=0):
        for key in list(self.driver.pending) if device is None else [(device, stream)]:
            self.driver.complete(*key, n)
        return {"pending_events": len(self.driver.place)}

    def empty_cache(self):
        self.allocator.empty_cache()

    def reset_peak_stats(self, device):
        self.allocator.devices[device].reset_peak_stats()

    def reset_accumulated_stats(self, device):
        self.allocator.devices[device].reset_accumulated_stats()

    def set_memory_fraction(self, fraction, device):
        self.allocator.set_memory_fraction(fraction, device)

    def get_memory_fraction(self, device):
        return {"value": self.allocator.get_memory_fraction(device)}

    def mem_get_info(self, device):
        return {"value": list(self.driver.mem_get_info(device))}

    def set_allocator_settings(self, text):
        self.allocator.set_settings(text)

    def pool_create(self, device, n):
        self.allocator.devices[device].create_or_incref_pool((0, n))

    def pool_begin(self, device, n):
        self.allocator.devices[device].begin_allocate_to_pool((0, n), lambda stream: True)

    def pool_end(self, device, n):
        self.allocator.devices[device].end_allocate_to_pool((0, n))

    def pool_release(self, device, n):
        self.allocator.devices[device].release_pool((0, n))

    def pool_use_count(self, device, n):
        return {"value": self.allocator.devices[device].pool_use_count((0, n))}

    # ------------------------------------------------------------------------------------------ what is seen

    def look(self, result, whole):
        """Add to an operation's result what the recording has of every operation."""
        devices = self.allocator.devices[: self.recording["devices"]]
        trace = [event for device in self.allocator.devices for event in take_events(device)]
        if trace:
            result["trace"] = trace
        stats = [flat(device.stats.as_nested_dict()) for device in devices]
        result["counts"] = [[of[name] for name in self.recording["counts_names"]] for of in stats]
        segments = [as_recorded(segment) for device in devices for segment in segments_of(device)]
        result["crc"] = checksum(segments)
        if whole:
            result["segments"], result["stats"] = segments, stats


def take_events(device):
    """The events since the last call, as they were recorded."""
    events = [entry.as_dict() for entry in device.history.entries]
    device.history.entries.clear()
    for event in events:
        assert event.pop("reason") and event.pop("details")
        del event["time_us"], event["compile_context"], event["user_metadata"]
        if "pool_id" in event:
            event["pool_id"] = list(event["pool_id"])
    return events


def as_recorded(segment):
    """Without stacks, and without what inactive blocks were once asked for."""
    del segment["frames"]
    segment["segment_pool_id"] = list(segment["segment_pool_id"])
    for block in segment["blocks"]:
        del block["frames"]
        if block["state"] == "inactive":
            del block["requested_size"]
    return segment


def without_old_sizes(segments):
    """The recording's segments, likewise."""
    return [
        segment
        | {
            "blocks": [
                {key: value for key, value in block.items() if key != "requested_size" or block["state"] != "inactive"}
                for block in segment["blocks"]
            ]
        }
        for segment in segments
    ]


def checksum(segments):
    text = ""
    for s in segments:
        first, second = s["segment_pool_id"]
        text += (
            f"{s['device']} {s['address']} {s['total_size']} {s['stream']} {s['segment_type']} "
            f"{int(s['is_expandable'])} {first} {second}\n"
        )
        for b in s["blocks"]:
            text += f" {b['size']} {b.get('requested_size', 0)} {b['state']}\n"
    return zlib.crc32(text.encode())


def flat(nested, prefix=""):
    """{"segment": {"all": {"current": 1}}} as {"segment.all.current": 1}."""
    stats = {}
    for key, value in nested.items():
        name = "_".join(map(str, key)) if isinstance(key, tuple) else key
        stats.update(flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value})
    return stats


def difference(key, expected, result):
    """What differs, as far down as it can be said."""
    if isinstance(expected, dict) and isinstance(result, dict):
        for inner in sorted(expected.keys() | result.keys()):
            if expected.get(inner) != result.get(inner):
                return difference(f"{key}.{inner}", expected.get(inner), result.get(inner))
    if isinstance(expected, list) and isinstance(result, list) and len(expected) == len(result):
        for i, (a, b) in enumerate(zip(expected, result)):
            if a != b:
                return difference(f"{key}[{i}]", a, b)
    return f"{key} is {result}, not {expected}"


def load(path):
    with gzip.open(path, "rt", encoding="utf8") as file:
        recording = json.load(file)
    if recording["schema"] != "readtorch-cuda-allocator-golden/1":
        raise ValueError(f"{path}: unknown schema {recording['schema']}")
    for result in recording["results"]:
        if "segments" in result:
            result["segments"] = without_old_sizes(result["segments"])
    return recording


def replay(path):
    """A sentence about the first difference between the recording and our allocator, or None."""
    logging.getLogger("readtorch.c10.cuda").setLevel(logging.ERROR)  # memory runs out often, and is meant to
    return Replay(load(path)).run()


def main(paths):
    differing = 0
    for path in paths:
        found = replay(path)
        differing += found is not None
        print(f"{path}: {found or 'equal'}")
    return differing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
