"""A snapshot of the caching allocator, read from a file that may be anybody's.

A snapshot holds dictionaries, lists, numbers and texts, so the pickle may build nothing else. Then every value that
the explorer uses is looked at once: what comes after may believe it.
"""

from __future__ import annotations

import os
import struct
from pickle import UnpicklingError

from readtorch._weights_only_unpickler import Unpickler

_PLAIN = b"N\x88\x89)]}JKMG\x8aXhjqraesu(t\x85\x86\x87"  # the checkpoints' instructions that make plain data


class PlainUnpickler(Unpickler):
    """Dictionaries, lists, numbers and texts only: a snapshot needs no more, so no file gets more.

    Knows the protocols 2 to 5, in which Python's `pickle` writes them. Raises UnpicklingError for all else.
    """

    instructions = {code: Unpickler.instructions[code] for code in _PLAIN} | {
        0x80: "_protocol",
        0x8C: "_short_text",
        0x8D: "_long_text",
        0x94: "_memoize",
        0x95: "_frame",
        ord("c"): "_global",
        0x93: "_stack_global",
    }

    def find_global(self, module, name):
        raise UnpicklingError(f"a snapshot holds plain data; this file asks for {module}.{name}")

    def _protocol(self):
        if self.read(1)[0] not in (2, 3, 4, 5):
            raise self.damaged("a protocol of pickle that snapshots are not written in")

    def _short_text(self):
        self.stack.append(str(self.read(self.read(1)[0]), "utf-8", "surrogatepass"))

    def _long_text(self):
        self.stack.append(str(self.read(struct.unpack("<Q", self.read(8))[0]), "utf-8", "surrogatepass"))

    def _memoize(self):
        self.memo[len(self.memo)] = self.stack[-1]

    def _frame(self):
        self.read(8)

    def _stack_global(self):
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise self.damaged("a class whose name is no text")
        self.find_global(module, name)


def load_snapshot(source):
    """The snapshot in the file of that name, or `source` itself, checked; None: ours, as it is now.

    Raises UnpicklingError for a file with more than plain data, ValueError for what is no snapshot.
    """
    if source is None:
        from readtorch.cuda import memory

        return memory._snapshot()
    if isinstance(source, (str, os.PathLike)):
        source = _from_file(source)
    check(source)
    return source


def _from_file(path):
    with open(path, "rb") as file:
        try:
            return PlainUnpickler(file).load()
        except (UnpicklingError, EOFError) as error:
            raise UnpicklingError(f"{os.fspath(path)} is no snapshot: {error}") from None


# -- is everything there that the explorer uses, and of the right kind? -----------------------------------

_MOST = 1 << 62  # no address and no size is that large
_FRAME = {"name": str, "filename": str, "line": int}
_BLOCK = {"address": int, "size": int, "requested_size": int, "state": str}
_SEGMENT = {"address": int, "total_size": int, "stream": int, "segment_type": str, "blocks": list}
_EVENT = {"action": str, "size": int, "stream": int}
_OF_MEMORY = {
    "alloc",
    "free",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
}  # events that have an address
_STATES = {"inactive", "active_allocated", "active_pending_free"}


def check(snapshot):
    """Raise ValueError that says which part of a snapshot is missing or wrong."""
    seen = set()
    _require(type(snapshot) is dict, "it", "a dictionary")
    for number, segment in enumerate(_list(snapshot, "segments", "it")):
        _check_segment(segment, f"segments[{number}]", seen)
    for device, trace in enumerate(_list(snapshot, "device_traces", "it")):
        _require(type(trace) is list, f"device_traces[{device}]", "a list")
        _check_own(trace, f"device_traces[{device}]", seen)
        for number, event in enumerate(trace):
            _check_event(event, f"device_traces[{device}][{number}]", seen)
    _check_settings(snapshot.get("allocator_settings", {}))


def _check_segment(segment, where, seen):
    _check_fields(segment, _SEGMENT, where)
    _require(type(segment.get("device", 0)) is int, f"{where}['device']", "a number")
    _check_pool(segment, "segment_pool_id", where)
    _check_own(segment["blocks"], f"{where}['blocks']", seen)
    for number, block in enumerate(segment["blocks"]):
        here = f"{where}['blocks'][{number}]"
        _check_fields(block, _BLOCK, here)
        _require(block["state"] in _STATES, f"{here}['state']", "the state of a block")
        _check_frames(block, here, seen)


def _check_event(event, where, seen):
    _check_fields(event, _EVENT, where)
    for name in ("addr", "device_free", "time_us"):
        needed = name == "addr" and event["action"] in _OF_MEMORY
        _require(_is_size(event.get(name, None if needed else 0)), f"{where}[{name!r}]", "a number of 62 bits")
    _require(type(event.get("reason")) in (str, type(None)), f"{where}['reason']", "a text")
    details = event.get("details", {})
    _require(
        type(details) is dict and _is_size(details.get("block_size") or 0),
        f"{where}['details']",
        "a dictionary whose block_size is a number",
    )
    _check_pool(event, "pool_id", where)
    _check_frames(event, where, seen)


def _check_settings(settings):
    _require(type(settings) is dict, "allocator_settings", "a dictionary")
    _require(type(settings.get("max_split_size", -1)) is int, "allocator_settings['max_split_size']", "a number")
    table = settings.get("roundup_power2_divisions") or {}
    _require(
        type(table) is dict and all(_is_size(n) for n in table.values()),
        "allocator_settings['roundup_power2_divisions']",
        "a dictionary of numbers",
    )


def _check_fields(entry, kinds, where):
    _require(type(entry) is dict, where, "a dictionary")
    for name, kind in kinds.items():
        value = entry.get(name)
        if kind is int and name not in ("line", "stream"):
            _require(_is_size(value), f"{where}[{name!r}]", "a number of 62 bits")
        else:
            _require(type(value) is kind, f"{where}[{name!r}]", _WORDS[kind])


_WORDS = {int: "a number", str: "a text", list: "a list"}


def _check_frames(entry, where, seen):
    """A list of frames stands in many places: it is looked at once."""
    frames = entry.get("frames", [])
    if id(frames) in seen:
        return
    seen.add(id(frames))
    _require(type(frames) is list, f"{where}['frames']", "a list")
    for number, frame in enumerate(frames):
        if id(frame) not in seen:
            seen.add(id(frame))
            _check_fields(frame, _FRAME, f"{where}['frames'][{number}]")


def _check_own(entries, where, seen):
    """Blocks and events stand in one place: a list in a hundred thousand places is a small file, but a long work."""
    _require(not entries or id(entries) not in seen, where, "a list of its own")
    seen.add(id(entries))


def _check_pool(entry, name, where):
    pool = entry.get(name, (0, 0))
    good = type(pool) in (tuple, list) and len(pool) == 2 and all(type(n) is int for n in pool)
    _require(good, f"{where}[{name!r}]", "a pair of numbers")


def _list(snapshot, name, where):
    value = snapshot.get(name, [])
    _require(type(value) is list, f"{where}[{name!r}]", "a list")
    return value


def _is_size(value):
    return type(value) is int and 0 <= value < _MOST


def _require(truth, where, what):
    if not truth:
        raise ValueError(f"this is no snapshot of the allocator: {where} must be {what}")
