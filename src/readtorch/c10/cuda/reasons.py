"""The allocator's decisions in words: from the details of a history entry to one sentence.

Ours: PyTorch has no such thing. Shown by the allocator explorer, explained in the chapter "The caching
allocator".
"""
from .sizes import MIB


def reason(action, details):
    """Why the allocator did that, in one sentence without a full stop."""
    return _REASONS[action](details)


def amount(nbytes):
    """Like `format_size`, without needless decimals: "20 MiB", "512 B", "1.50 KiB"."""
    for unit, name in (1 << 30, "GiB"), (MIB, "MiB"), (1 << 10, "KiB"):
        if nbytes >= unit:
            return f"{nbytes // unit} {name}" if nbytes % unit == 0 else f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} B"


def plural(count, thing):
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _alloc(details):
    return f"{_where_from(details)}; {_split(details)}"


def _where_from(details):
    source, candidates = details["source"], details["candidates"]
    if source == "segment":
        return "new segment"
    if source == "pages":
        return "pages mapped in an expandable segment"
    if source == "private pool":
        return f"out of memory: free block of the private pool {details['pool_id']}"
    return "the only free block that fits" if candidates == 1 else f"best fit of {candidates} candidates"


def _split(details):
    remainder = details["remainder"]
    if remainder == 0:
        return "exact fit"
    if "limit" not in details:
        why = "its pool does not" if details["unsplit_because"] == "pool" else "oversize blocks are never"
        return f"not split, {why}: {amount(remainder)} unused"
    sign = ("≥" if details["limit_is_enough"] else ">") if details["split"] else (
        "<" if details["limit_is_enough"] else "≤")
    done = "split" if details["split"] else "not split"
    return f"{done}: remainder {amount(remainder)} {sign} {amount(details['limit'])}"


def _free_requested(details):
    streams = details["waits_for"]
    if not streams:
        return "back to its pool at once"
    return f"free deferred: used on stream{'s' if len(streams) > 1 else ''} {', '.join(map(str, streams))}"


def _free_completed(details):
    passed = "other streams have passed its last use; " if details["deferred"] else ""
    merged = details["merged"]
    return passed + (f"merged with {' and '.join(merged)}" if merged else "no free neighbour to merge with")


def _tried(details):
    if details["retries"]:
        return "cached blocks released, retry"
    return "no free block in pool that fits"


def _segment_alloc(details):
    return (f"new {amount(details['segment_size'])} segment for {amount(details['rounded_size'])}: "
            f"{_tried(details)}")


def _segment_map(details):
    return (f"{plural(details['pages'], 'page')} of {amount(details['page_size'])} mapped for "
            f"{amount(details['rounded_size'])}: {_tried(details)}")


def _segment_free(details):
    return {
        "out_of_memory": "out of memory: all that is unused is given back",
        "oversize": "out of memory: an oversize block is given back to make room",
        "garbage_collection": f"garbage collection: unused for {plural(details.get('age', 0), 'request')}",
        "empty_cache": "the cache is emptied",
    }[details["trigger"]]


def _oom(details):
    if details["limit"] is not None:
        return f"more than the memory fraction allows: {amount(details['limit'])}"
    return "the device has no memory left, and nothing more can be given back"


_REASONS = {"alloc": _alloc, "free_requested": _free_requested, "free_completed": _free_completed,
            "segment_alloc": _segment_alloc, "segment_map": _segment_map, "segment_free": _segment_free,
            "segment_unmap": _segment_free, "oom": _oom}
