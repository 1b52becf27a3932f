"""Why the allocator did what it did, worked out from a trace.

PyTorch's snapshots say what happened, not why. But the rules are known, so the books before an event tell
the reason: which free blocks there were, how many were large enough, what was left over. What cannot be known
from a trace is said to be unknown. Our own allocator writes its reasons down: then nothing is derived.
"""

from __future__ import annotations

from bisect import bisect_left

from readtorch.c10.cuda.cuda_caching_allocator.reasons import amount, reason
from readtorch.c10.cuda.sizes import LARGE_SEGMENT, SMALL_SEGMENT, SMALL_SIZE, segment_size

from .memory_history import kind_of, pool_of


def explain(books, event):
    """A function of the event's outcome that gives the sentence; it knows the books before the event."""
    write = WRITERS.get(event["action"])
    return write(books, event) if write else lambda done: ""


def following(books, skip=()):
    """The next event that is none of `skip`, or None; the events of one request follow one another."""
    events, i = books.history.events, books.now
    while i < len(events) and events[i]["action"] in skip:
        i += 1
    return events[i] if i < len(events) else None


def previous(books):
    return books.history.events[books.now - 2] if books.now > 1 else {"action": "nothing"}


def blocks_text(sizes):
    """sizes: ascending"""
    many = "block" if len(sizes) == 1 else "blocks, the largest"
    return f"{len(sizes)} free {many} of {amount(sizes[-1])}"


# -- allocations


def why_alloc(books, event):
    there = books.block_at(event["addr"])
    if there is None or there.state or there.address != event["addr"]:
        return lambda done: "the trace does not say which free block this was"
    size = books.rules.round_size(event["size"])
    limit, remainder = books.rules.split_limit(size, there.row), there.size - size
    sizes = books.free_sizes[there.row.shelf]
    candidates = len(sizes) - bisect_left(sizes, size)
    details = {
        "source": _source(books, there),
        "candidates": candidates,
        "remainder": remainder,
        "split": books.rules.splits(size, remainder, there.row),
        "unsplit_because": "oversize",
    }
    if limit:
        details["limit"], details["limit_is_enough"] = limit
    return lambda done: reason("alloc", details)


def _source(books, there):
    before = previous(books)
    if before["action"] == "segment_alloc" and before["addr"] == there.address:
        return "segment"
    mapped = before["action"] == "segment_map" and there.address <= before["addr"] < there.end
    return "pages" if mapped else "pool"


# -- frees


def why_free_requested(books, event):
    after = following(books)
    if after and after["action"] == "free_completed" and after["addr"] == event["addr"]:
        return lambda done: reason("free_requested", {"waits_for": []})
    return lambda done: "free deferred: used on another stream, which the trace does not name"


def why_free_completed(books, event):
    before = previous(books)
    deferred = not (before["action"] == "free_requested" and before["addr"] == event["addr"])

    def sentence(done):
        if done is None:
            return "the trace does not say which block this was"
        return reason("free_completed", {"deferred": deferred, "merged": done[1]})

    return sentence


# -- the driver


def why_segment_alloc(books, event):
    after = following(books)
    if not after or after["action"] != "alloc":
        return lambda done: "new memory from the driver; the trace does not say for what"
    kind = kind_of(event["size"])
    page = SMALL_SEGMENT if kind == "small" else LARGE_SEGMENT
    size = books.rules.round_size(after["size"])
    details = {
        "retries": 0,
        "segment_size": event["size"],
        "rounded_size": size,
        "pages": event["size"] // page,
        "page_size": page,
    }
    known = books.free_sizes.get((event["stream"], pool_of(event), kind))
    held = [blocks_text(known)] if known else []
    if previous(books)["action"] in ("segment_free", "segment_unmap"):
        held.append("cached memory was given back just before")
    note = f" ({'; '.join(held)})" if held else ""
    return lambda done: reason(event["action"], details) + note


def why_segment_free(books, event):
    after = following(books, skip=("segment_free", "segment_unmap"))
    what = "its pages are" if event["action"] == "segment_unmap" else "the segment is"
    start = f"nothing in it is in use: {what} given back"
    if after and after["action"] in ("segment_alloc", "segment_map"):
        return lambda done: f"{start}, and then the driver is asked for more"
    if after and after["action"] == "oom":
        return lambda done: f"{start}, and yet memory runs out"
    return lambda done: f"{start}; the trace does not say at whose wish"


def why_oom(books, event):
    details = oom_details(books, event)
    return lambda done: reason("oom", details)


def oom_details(books, event):
    """What our own allocator writes down of such an event, as far as it follows from the books."""
    size = event["size"]
    kind = "small" if size <= SMALL_SIZE else "large"
    shelf = event["stream"], pool_of(event), kind
    sizes, free = books.free_sizes.get(shelf, []), books.free_bytes[shelf]
    return {
        "limit": None,
        "requested_size": None,
        "rounded_size": size,
        "segment_size": segment_size(size, books.rules.config),
        "expandable": books.rules.config.expandable_segments,
        "pool": kind,
        "free_blocks": len(sizes),
        "largest_free": sizes[-1] if sizes else 0,
        "free": free,
        "free_elsewhere": books.all_free_bytes - free,
        "device_free": event.get("device_free"),
        "gave_back": None,
    }


WRITERS = {
    "alloc": why_alloc,
    "free_requested": why_free_requested,
    "free_completed": why_free_completed,
    "segment_alloc": why_segment_alloc,
    "segment_map": why_segment_alloc,
    "segment_free": why_segment_free,
    "segment_unmap": why_segment_free,
    "oom": why_oom,
}
