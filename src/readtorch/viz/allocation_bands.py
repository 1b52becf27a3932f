"""A snapshot of the caching allocator as bands over time: every allocation, from the event that made it to the one that
freed it, and who asked for it (the chapter "The caching allocator").

The page has a twin, `static/_bands.js`, for snapshots that the reader drops on the figure; tests compare the two.
"""

from __future__ import annotations

import json
from itertools import accumulate

from .allocator_history import Tables, deflated
from .memory_snapshot import load_snapshot

PARAMETERS, OPTIMIZER, FORWARD, BACKWARD, ELSEWHERE = range(5)
MAKES_PARAMETERS = {"_apply", "__init__", "reset_parameters", "empty_like", "convert"}


def allocation_bands(source=None, device=None) -> dict:
    """JSON for the figure. source, device: as `read_history` takes them. ValueError for what is no snapshot, or has no
    history, UnpicklingError for a file with more than plain data."""
    found = bands_of(load_snapshot(source), device)
    found["peak"] = peak_of(found)
    numbers = {name: found.pop(name) for name in ("allocations", "stacks", "frames")}
    return {**found, "numbers": deflated(json.dumps(numbers, separators=(",", ":")).encode())}


def bands_of(snapshot, device=None) -> dict:
    """Of one device, that with the most events if None. allocations: [born, freed, bytes asked for, stack, category],
    born and freed being numbers of events, 0 before the first and one more than the last if it is there still."""
    traces = snapshot.get("device_traces", [])
    if not any(traces):
        raise ValueError("no history in this snapshot: call _record_memory_history() before the run")
    if device is None:
        device = max(range(len(traces)), key=lambda number: len(traces[number]))
    tables, events = Tables(), traces[device]

    def allocation(born, freed, size, frames):
        return [born, freed, size, tables.stack(frames), category(frames)]

    end, made, before, there = len(events) + 1, [], [], {}
    for number, event in enumerate(events, 1):
        if event["action"] == "alloc":
            there[event["addr"]] = len(made)
            made.append(allocation(number, end, event["size"], event.get("frames", [])))
        elif event["action"] in ("free_requested", "free"):
            place = there.pop(event["addr"], None)
            if place is None:
                before.append(allocation(0, number, event["size"], event.get("frames", [])))
            else:
                made[place][1] = number
    for segment in snapshot.get("segments", []):
        for block in segment["blocks"] if segment.get("device", 0) == device else []:
            if block["state"] == "active_allocated" and block["address"] not in there:
                before.append(allocation(0, end, block["requested_size"], block.get("frames", [])))
    lists = tables.lists()
    return {
        "device": device,
        "events": len(events),
        "allocations": before + made,
        "stacks": lists["stacks"],
        "frames": lists["frames"],
    }


def peak_of(bands) -> int:
    """The number of events after which the most memory is in use."""
    changes = [0] * (bands["events"] + 2)
    for born, freed, size, *_ in bands["allocations"]:
        changes[born] += size
        changes[freed] -= size
    total = list(accumulate(changes))
    return total.index(max(total))


def category(frames) -> int:
    """Who asked, by the innermost frame that says it. Backward runs in a thread of its own: no frame of the program is in it,
    and in PyTorch, where that thread is C++, often none at all."""
    for frame in frames:
        if "/optim/" in frame["filename"]:
            return OPTIMIZER
        if frame["name"] == "forward":
            return FORWARD
        if frame["name"] in MAKES_PARAMETERS and "/nn/" in frame["filename"]:
            return PARAMETERS
        if "/autograd/" in frame["filename"] or "torch::autograd::" in frame["name"]:
            return BACKWARD
    return BACKWARD if frames and frames[-1]["filename"].endswith("threading.py") else ELSEWHERE
