"""A snapshot of the caching allocator, read for the explorer: one device's events and where they began.

A snapshot holds the segments as they are now and the last events, oldest first; nothing says how things were
before the first event. `rewind` finds that out by undoing the events one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from readtorch.c10.cuda.allocator_config import ROUNDUP_INTERVALS, AllocatorConfig
from readtorch.c10.cuda.sizes import MIN_BLOCK, SMALL_SEGMENT, SMALL_SIZE, UNLIMITED, round_size

from .memory_snapshot import load_snapshot

PENDING = "active_pending_free"


@dataclass
class Segment:
    """Memory from the driver; of an expandable segment, one stretch of it that has pages."""

    address: int
    size: int
    stream: int
    kind: str  # "small" or "large"
    pool: tuple = (0, 0)  # other than (0, 0): a private pool
    expandable: bool = False

    @property
    def end(self):
        return self.address + self.size


@dataclass
class Used:
    """A block that is not free."""

    size: int
    requested: int
    pending: bool  # freed, but another stream may still use it
    frames: list


@dataclass
class History:
    device: int
    events: list  # trace entries, as the snapshot has them
    settings: dict
    final: list  # the snapshot's segments of this device
    segments: list = field(default_factory=list)  # before the first event
    used: dict = field(default_factory=dict)  # address -> Used, before the first event


def read_history(source=None, device=None) -> History:
    """source: a snapshot, the path of one that `_dump_snapshot` wrote (PyTorch's or ours), or None: ours.

    device: its number; the one with the most events if None. ValueError for a snapshot without a history and for
    what is no snapshot, UnpicklingError for a file with more than plain data.
    """
    snapshot = load_snapshot(source)
    traces = snapshot.get("device_traces", [])
    if "segments" not in snapshot or not any(traces):
        raise ValueError("no history in this snapshot: call _record_memory_history() before the run")
    if device is None:
        device = max(range(len(traces)), key=lambda number: len(traces[number]))
    final = [segment for segment in snapshot["segments"] if segment.get("device", 0) == device]
    history = History(device, traces[device], snapshot.get("allocator_settings", {}), final)
    rewind(history)
    return history


# -- how it was before the first event ------------------------------------------------------------------


def rewind(history: History) -> None:
    """Find the segments and used blocks before the first event by undoing the events, the last one first."""
    rules = Rules(history.settings)
    kinds = Kinds(history)
    segments = [
        Segment(
            s["address"],
            s["total_size"],
            s["stream"],
            s["segment_type"],
            tuple(s.get("segment_pool_id", (0, 0))),
            s.get("is_expandable", False),
        )
        for s in history.final
    ]
    used = {
        block["address"]: Used(
            block["size"], block["requested_size"], block["state"] == PENDING, block.get("frames", [])
        )
        for s in history.final
        for block in s["blocks"]
        if block["state"] != "inactive"
    }
    for event in reversed(history.events):
        address, size = event.get("addr"), event["size"]
        match event["action"]:
            case "alloc":
                used.pop(address, None)
            case "free_requested" | "free":
                if address not in used:
                    used[address] = Used(rules.block_size(event), size, False, event.get("frames", []))
                used[address].pending = False
            case "free_completed":
                used[address] = Used(rules.block_size(event), size, True, event.get("frames", []))
            case "segment_alloc":
                segments = [s for s in segments if s.address != address]
            case "segment_map":
                segments = without(segments, address, address + size)
            case "segment_free" | "segment_unmap":
                segments.append(kinds.segment_of(event))
    history.segments = joined(segments)
    history.used = {}
    for segment in history.segments:
        starts = sorted(address for address in used if segment.address <= address < segment.end)
        for start, stop in zip(starts, [*starts[1:], segment.end]):
            history.used[start] = filled(used[start], stop - start, segment, rules)


def filled(block, room, segment, rules):
    """The block with what follows it, if that is no free block: it would not have been split off."""
    if not rules.splits(block.size, room - block.size, segment):
        block.size = room
    return block


def without(segments, start, end):
    """The segments less the pages from start to end."""
    left = []
    for s in segments:
        if not s.expandable or end <= s.address or s.end <= start:
            left.append(s)
            continue
        left += [
            Segment(a, b - a, s.stream, s.kind, s.pool, True) for a, b in ((s.address, start), (end, s.end)) if a < b
        ]
    return left


def joined(segments):
    """The segments by address, with the touching stretches of an expandable segment made one."""
    result = []
    for s in sorted(segments, key=lambda s: s.address):
        last = result[-1] if result else None
        if s.expandable and last and last.end == s.address and key_of(last) == key_of(s):
            last.size += s.size
        else:
            result.append(s)
    return result


def key_of(segment):
    return segment.stream, segment.pool, segment.kind, segment.expandable


class Kinds:
    """Whether memory that the driver gave is for small or for large blocks, which an event does not say.

    Of expandable segments, also the stretch of addresses that ever had pages: a row of the picture. Two
    stretches of one pool and stream are told apart when something else lies between them.
    """

    def __init__(self, history: History):
        pages = [
            (
                s["address"],
                s["address"] + s["total_size"],
                _key(s["stream"], s.get("segment_pool_id", (0, 0)), s["segment_type"]),
            )
            for s in history.final
            if s.get("is_expandable")
        ]
        pages += [_pages(event) for event in history.events if event["action"] == "segment_map"]
        self.extents = _stretches(pages)  # (first address, end, key), ascending
        unmapped = [event for event in history.events if event["action"] == "segment_unmap"]
        unknown = [_pages(event) for event in unmapped if self.extent_of(event["addr"]) is None]
        if unknown:
            self.extents = _stretches(pages + unknown)

    def extent_of(self, address):
        """(first address, end, key) of the expandable segment there, or None."""
        i = bisect_right(self.extents, address, key=lambda extent: extent[0]) - 1
        return self.extents[i] if i >= 0 and address < self.extents[i][1] else None

    def segment_of(self, event) -> Segment:
        """What a driver event is about."""
        expandable = event["action"] in ("segment_map", "segment_unmap")
        extent = self.extent_of(event["addr"]) if expandable else None
        kind = extent[2][2] if extent else kind_of(event["size"])
        return Segment(event["addr"], event["size"], event["stream"], kind, pool_of(event), expandable)


def _key(stream, pool, kind):
    return stream, tuple(pool), kind


def _pages(event):
    start, size = event["addr"], event["size"]
    return start, start + size, _key(event["stream"], pool_of(event), kind_of(size))


def _stretches(pages):
    result = []
    for start, end, key in sorted(pages):
        if result and result[-1][2] == key:
            result[-1] = result[-1][0], max(end, result[-1][1]), key
        else:
            result.append((start, end, key))
    return result


def pool_of(event):
    return tuple(event.get("pool_id", (0, 0)))


def kind_of(size):
    return "small" if size <= SMALL_SEGMENT else "large"


# -- the rules that decide sizes ------------------------------------------------------------------------


class Rules:
    """Rounding and splitting, as the snapshot's settings ask for them; the defaults where it has none."""

    def __init__(self, settings: dict):
        self.config = config = AllocatorConfig()
        if 0 < settings.get("max_split_size", -1) < UNLIMITED // 2:  # else none: -1, or all bits of 64
            config.max_split_size = settings["max_split_size"]
        config.expandable_segments = bool(settings.get("expandable_segments", False))
        table = settings.get("roundup_power2_divisions") or {}  # by power of two, in MiB
        config.roundup_power2_divisions = [table.get(str(1 << i), 0) for i in range(ROUNDUP_INTERVALS)]
        config.rounds_up = any(config.roundup_power2_divisions)

    def block_size(self, event):
        """The size of the block that the event is about. PyTorch's history tells only what was asked for."""
        return event.get("details", {}).get("block_size") or self.round_size(event["size"])

    def round_size(self, size):
        return round_size(size, self.config)

    def split_limit(self, size, row):
        """(a number, whether a remainder of just as much is split off); None: such a block is never split.

        In PyTorch: `should_split` in c10/cuda/CUDACachingAllocator.cpp.
        """
        if row.kind == "small" or row.expandable or self.config.expandable_segments:
            return MIN_BLOCK, True
        return (SMALL_SIZE, False) if size < self.config.max_split_size else None

    def splits(self, size, remainder, row):
        """Whether a block of the row is split that is larger by `remainder` than what is needed."""
        limit = self.split_limit(size, row)
        return limit is not None and (remainder > limit[0] or limit[1] and remainder == limit[0])
