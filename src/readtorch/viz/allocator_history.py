"""A history of the caching allocator as the allocator explorer gets it: columns of numbers, packed.

A hundred thousand events are tens of megabytes as JSON. Here every property of events, blocks and allocations
is a column of numbers of one width; the bytes of a column lie sorted by significance, since neighbours differ
in the low ones only, and the whole is deflated, which a browser undoes: some three to six bytes an event.
"""

from __future__ import annotations

import base64
import itertools
import json
import zlib

import numpy as np

from .memory_history import read_history
from .memory_replay import Replay

UNIT = 512  # addresses and sizes of blocks are multiples of it


def allocator_history(source=None, device=None) -> dict:
    """JSON for the explorer. source, device: as `read_history` takes them."""
    history = read_history(source, device)
    replay = Replay(history)
    tables = Tables()
    columns = [*event_columns(replay, tables), *life_columns(replay), *allocation_columns(replay, tables)]
    return {
        "device": history.device,
        "events": len(history.events),
        "reasons": "recorded" if any("reason" in event for event in history.events) else "derived",
        "differing": replay.segments_that_differ(),
        "segments": len(history.final),
        "columns": [[name, values.dtype.str[1:], len(values)] for name, values in columns],
        "numbers": deflated(b"".join(shuffled(values) for _, values in columns)),
        "tables": deflated(
            json.dumps({"rows": rows(replay), "outOfMemory": replay.out_of_memory, **tables.lists()}).encode()
        ),
    }


class Tables:
    """Texts that come back again and again, each kept once; columns hold their numbers."""

    def __init__(self):
        self.actions, self.reasons, self.streams = {}, {}, {}
        self.frames, self.stacks = {}, {}
        self._read = {}  # id of a list of frames -> that list, whose id it stays, and its number

    @staticmethod
    def number(table, value):
        return table.setdefault(value, len(table))

    def stack(self, frames):
        """The number of a stack. One list may stand at any number of events: it is read once."""
        if id(frames) not in self._read:
            texts = (f"{frame['name']}\n{place_of(frame)}:{frame['line']}" for frame in own_frames(frames))
            self._read[id(frames)] = (
                frames,
                self.number(self.stacks, tuple(self.number(self.frames, text) for text in texts)),
            )
        return self._read[id(frames)][1]

    def lists(self):
        return {name: list(table) for name, table in vars(self).items() if not name.startswith("_")}


def own_frames(frames):
    """The frames up to the notebook's cell; who runs the cell is of no interest."""
    runner = "IPython/core/interactiveshell.py"
    return itertools.takewhile(lambda frame: not frame["filename"].endswith(runner), frames)


def place_of(frame):
    return "cell" if "ipykernel_" in frame["filename"] else frame["filename"]


def event_columns(replay, tables):
    events = replay.history.events
    began = events[0].get("time_us", 0)

    def numbers(table, values):
        return [tables.number(table, value) for value in values]

    yield "action", np.array(numbers(tables.actions, (event["action"] for event in events)), "<u4")
    # the address of an oom: what the driver had left
    addresses = [event.get("addr", event.get("device_free", 0)) for event in events]
    yield "address", np.array(addresses, "<f8")
    yield "size", np.array([event["size"] for event in events], "<f8")
    yield "time", np.array([event.get("time_us", began) - began for event in events], "<f8")
    yield "stream", np.array(numbers(tables.streams, (event["stream"] for event in events)), "<u4")
    yield "stack", np.array([tables.stack(event.get("frames", [])) for event in events], "<u4")
    yield "reason", np.array(numbers(tables.reasons, replay.reasons), "<u4")


def life_columns(replay):
    """Of the lives, by birth: row, place and size in it, state, whose, when it begins and ends."""
    row, offset, size, state, owner, born, died = (
        np.array(sorted(replay.lives, key=lambda life: life[5]), dtype=np.int64).reshape(-1, 7).T
    )
    yield "lifeRow", row.astype("<u4")
    yield "lifeOffset", (offset // UNIT).astype("<u4")
    yield "lifeSize", (size // UNIT).astype("<u4")
    yield "lifeState", state.astype("<u1")
    yield "lifeOwner", (owner + 1).astype("<u4")  # 0: nobody's
    yield "lifeBirth", np.diff(born, prepend=0).astype("<u4")  # since the one before
    yield "lifeLength", (died - born).astype("<u4")


def allocation_columns(replay, tables):
    made = replay.allocations
    yield "allocSize", np.array([allocation.requested for allocation in made], "<f8")
    yield "allocBirth", np.array([allocation.born for allocation in made], "<u4")
    yield "allocStack", np.array([tables.stack(allocation.frames) for allocation in made], "<u4")


def rows(replay):
    """Each row's [address, size, stream, kind, private pool or None, expandable]; addresses as text."""
    return [
        [hex(row.address), row.size, row.stream, row.kind, list(row.pool) if any(row.pool) else None, row.expandable]
        for row in replay.rows
    ]


def shuffled(values) -> bytes:
    """The bytes of a column: first the lowest of every number, then the next ones …"""
    return values.view("u1").reshape(len(values), values.itemsize).T.tobytes()


def deflated(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")
