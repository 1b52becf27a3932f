"""The allocator's decisions in words: the facts of a history entry, and the sentence that is made of them.

PyTorch has no such file: its entries (`c10/cuda/CUDACachingAllocator.cpp`, `record_trace`) say what happened, not why.
Shown by the allocator explorer, explained in the chapter "The caching allocator".
"""

import os

from readtorch.c10.cuda.sizes import MIB, MIN_BLOCK, SMALL_SIZE, UNLIMITED, format_size, segment_size

# ------------------------------------------------------------------------------------------ the facts of a decision


def alloc_details(allocator, params, block, found_size, split):
    """Which block was handed out, and why it was split or not."""
    pool, least = params.pool, allocator.min_remainder(params)
    details = {
        "block_size": block.size,
        "rounded_size": params.size,
        "pool": pool.kind,
        "source": params.source,
        "candidates": params.candidates,
        "retries": params.retries,
        "new_segment": params.source == "segment",
        "split": split,
        "chosen": {"address": block.address, "size": found_size},
        "remainder": found_size - params.size,
    }
    if least == UNLIMITED:
        details["unsplit_because"] = "pool" if pool.id in allocator.no_split_pools else "oversize"
    else:  # "at least 512 bytes", but "more than 1 MiB"
        details["limit"], details["limit_is_enough"] = min(least, SMALL_SIZE), least == MIN_BLOCK
    if pool.owner is not None:
        details["pool_id"] = pool.id
    return details


def merge_details(block, before, after):
    """Which neighbours a freed block was merged with; `before` and `after` are their sizes, 0 if it was not."""
    return {
        "merged": ["previous"] * (before > 0) + ["next"] * (after > 0),
        "merged_into": {"address": block.address, "size": block.size},
    }


def oom_details(allocator, params, device_free):
    """What there is instead of memory for the request: free blocks that are too small, and what the driver has left."""
    sizes = [size for size, *_ in params.pool.free[params.stream]]
    pools = [
        allocator.small_blocks,
        allocator.large_blocks,
        *(pool for private in allocator.private_pools.values() for pool in private.pools),
    ]
    free = sum(block.size for pool in pools for block in pool.blocks())
    return {
        "limit": allocator.allowed_memory if params.stopped_by_limit else None,
        "retries": params.retries,
        "requested_size": params.requested_size,
        "rounded_size": params.size,
        "segment_size": segment_size(params.size, allocator.config),
        "expandable": params.expandable,
        "pool": params.pool.kind,
        "free_blocks": len(sizes),
        "largest_free": max(sizes, default=0),
        "free": sum(sizes),
        "free_elsewhere": free - sum(sizes),
        "device_free": device_free,
        "gave_back": not allocator.captures,
    }


# --------------------------------------------------------------------------------------------------------- in words


def out_of_memory_message(allocator, size, free, total):
    """What an OutOfMemoryError says."""
    allocated = allocator.stats.families["allocated_bytes"].current
    reserved = allocator.stats.families["reserved_bytes"].current
    private = sum(
        block.size for private in allocator.private_pools.values() for pool in private.pools for block in pool.blocks()
    )
    processes = "".join(
        f"{'Including non-PyTorch memory, this process' if pid == os.getpid() else f'Process {pid}'} has "
        f"{format_size(used)} memory in use. "
        for pid, used in allocator.driver.processes(allocator.device)
    )
    allowed = "" if allocator.allowed_memory is None else f"{format_size(allocator.allowed_memory)} allowed; "
    in_private_pools = f"with {format_size(private)} allocated in private pools (e.g., CUDA Graphs), "
    return (
        f"CUDA out of memory. Tried to allocate {format_size(size)}. GPU {allocator.device} has a total "
        f"capacity of {format_size(total)} of which {format_size(free)} is free. {processes}{allowed}"
        f"Of the allocated memory {format_size(allocated + private)} is allocated by PyTorch, "
        f"{in_private_pools if private else ''}and {format_size(reserved - allocated - private)} is "
        "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "
        "See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
        "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


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
    sign = (
        ("≥" if details["limit_is_enough"] else ">")
        if details["split"]
        else ("<" if details["limit_is_enough"] else "≤")
    )
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
    return f"new {amount(details['segment_size'])} segment for {amount(details['rounded_size'])}: {_tried(details)}"


def _segment_map(details):
    return (
        f"{plural(details['pages'], 'page')} of {amount(details['page_size'])} mapped for "
        f"{amount(details['rounded_size'])}: {_tried(details)}"
    )


def _segment_free(details):
    return {
        "out_of_memory": "out of memory: all that is unused is given back",
        "oversize": "out of memory: an oversize block is given back to make room",
        "garbage_collection": f"garbage collection: unused for {plural(details.get('age', 0), 'request')}",
        "empty_cache": "the cache is emptied",
    }[details["trigger"]]


def _oom(details):
    return "; ".join(filter(None, [_asked(details), _holes(details), _from_the_driver(details)]))


def _asked(details):
    asked, size = details["requested_size"], details["rounded_size"]
    if asked is None or asked == size:
        return f"{amount(size)} wanted in one piece"
    return f"{asked:,} B asked for, rounded up to {amount(size)}"


def _holes(details):
    """The free blocks that were looked through: those of the request's pool and stream."""
    number, largest, elsewhere = details["free_blocks"], details["largest_free"], details["free_elsewhere"]
    others = f"; {amount(elsewhere)} are free in other pools or on other streams" if elsewhere else ""
    if not number:
        return f"no free block in its pool{others}"
    misfit = "" if largest < details["rounded_size"] else ", which the settings keep for other requests"
    if number == 1:
        return f"the only free block has {amount(largest)}{misfit}{others}"
    together = f", together they have {amount(details['free'])}"
    return f"the largest of {number} free blocks has {amount(largest)}{misfit}{together}{others}"


def _from_the_driver(details):
    size, left = details["segment_size"], details["device_free"]
    wanted = "the pages that are missing" if details["expandable"] else f"a segment of {amount(size)}"
    if details["limit"] is not None:
        return f"{amount(size)} more would exceed the memory fraction: {amount(details['limit'])} allowed"
    if left is None:
        said = f"the driver did not give {wanted}"
    elif left < size:
        said = f"the driver has {amount(left)} left, too little for {wanted}"
    elif details["gave_back"] is None:
        said = f"the driver has {amount(left)} left: why it did not give {wanted} the trace does not say"
    else:
        said = f"the driver has {amount(left)} left and did not give {wanted}"
    return said + _GIVEN_BACK[details["gave_back"]]


_GIVEN_BACK = {  # whether all that is free as a whole was given back first; None: a trace does not say
    True: ", and no whole segment is free to be given back",
    False: ", and during a capture nothing is given back",
    None: "",
}

_REASONS = {
    "alloc": _alloc,
    "free_requested": _free_requested,
    "free_completed": _free_completed,
    "segment_alloc": _segment_alloc,
    "segment_map": _segment_map,
    "segment_free": _segment_free,
    "segment_unmap": _segment_free,
    "oom": _oom,
}
