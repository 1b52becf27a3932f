"""The allocator's decisions in words: from the details of a history entry to one sentence.

Ours: PyTorch has no such thing. Shown by the allocator explorer, explained in the chapter "The caching allocator".
"""
from .sizes import format_size


def reason(action, details):
    """Why the allocator did that; "" where there is nothing to choose."""
    return _REASONS.get(action, _nothing)(details)


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
    left = f"remainder of {format_size(remainder)}"
    if details["split"]:
        return f"split: {left} is {'at least' if details['limit'] == 512 else 'more than'} {format_size(details['limit'])}"
    if details["limit"] is None:
        return f"not split: {details['unsplit_because']}, {left} stays unused"
    return f"not split: {left} is {'less than' if details['limit'] == 512 else 'at most'} {format_size(details['limit'])}"


def _free_requested(details):
    if not details["waits_for"]:
        return "goes back to its pool at once"
    streams = ", ".join(map(str, details["waits_for"]))
    return f"deferred: used on stream{'s' if len(details['waits_for']) > 1 else ''} {streams}"


def _free_completed(details):
    passed = "the other streams have passed its last use; " if details["deferred"] else ""
    merged = details["merged"]
    if len(merged) == 2:
        return passed + "merged with the free blocks before and after it"
    if merged:
        return passed + f"merged with the free block {'before' if merged == ['previous'] else 'after'} it"
    return passed + "no free neighbour to merge with"


def _segment_alloc(details):
    tried = "no free block of the pool fits"
    if details["retries"]:
        tried = "cached blocks were given back, and the driver asked again"
    return f"{tried}: segment of {format_size(details['segment_size'])} for {format_size(details['rounded_size'])}"


def _segment_map(details):
    tried = "no free block of the pool fits"
    if details["retries"]:
        tried = "cached blocks were given back, and the driver asked again"
    return (f"{tried}: {plural(details['pages'], 'page')} of {format_size(details['page_size'])} "
            f"for {format_size(details['rounded_size'])}")


def _segment_free(details):
    trigger = details["trigger"]
    if trigger == "out_of_memory":
        return "the driver has no memory left: every unused segment is given back"
    if trigger == "oversize":
        return "the driver has no memory left: an oversize block is given back to make room"
    if trigger == "garbage_collection":
        return f"garbage collection: unused for {plural(details['age'], 'request')}, the average or more"
    return "the cache is emptied"


def _oom(details):
    if details["limit"] is not None:
        return f"more than the memory fraction allows ({format_size(details['limit'])})"
    return "the driver has no memory left, and nothing cached can be given back"


def _nothing(details):
    return ""


_REASONS = {"alloc": _alloc, "free_requested": _free_requested, "free_completed": _free_completed,
            "segment_alloc": _segment_alloc, "segment_map": _segment_map, "segment_free": _segment_free,
            "segment_unmap": _segment_free, "oom": _oom}
