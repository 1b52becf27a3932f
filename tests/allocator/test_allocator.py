"""What recordings do not show: reasons, the flaw of 2.13, finalizers, threads, and invariants."""

import gc
import logging
import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from readtorch.c10.caching_device_allocator import FAMILIES
from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.cuda_caching_allocator import CachingAllocator
from readtorch.c10.cuda.cuda_caching_allocator.snapshot import all_blocks
from readtorch.c10.cuda.cuda_exception import OutOfMemoryError
from readtorch.viz.told_driver import ToldDriver

MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_warnings(caplog):
    """Memory runs out often here, and is meant to."""
    caplog.set_level(logging.ERROR, "readtorch.c10.cuda")


def allocator(memory=512 * MIB, settings_text=""):
    config = AllocatorConfig()
    config.read(settings_text)
    made = CachingAllocator(ToldDriver(2, memory), config)
    made.record_history(True)
    return made


def reasons(made, action=None):
    return [entry["reason"] for entry in made.trace(0) if action in (entry["action"], None)]


# --------------------------------------------------------------------------------------------------- reasons


def test_reasons_of_every_kind():
    made = allocator()
    a, b = made.malloc(0, 3 * MIB), made.malloc(0, 3 * MIB)
    made.free(a)
    c = made.malloc(0, 2 * MIB)
    assert reasons(made) == [
        "new 20 MiB segment for 3 MiB: no free block in pool that fits",
        "new segment; split: remainder 17 MiB > 1 MiB",
        "the only free block that fits; split: remainder 14 MiB > 1 MiB",
        "back to its pool at once",
        "no free neighbour to merge with",
        "best fit of 2 candidates; not split: remainder 1 MiB ≤ 1 MiB",
    ]
    made.record_history(True, clear=True)
    made.record_stream(b, 2)
    made.free(c)
    made.free(b)
    made.driver.complete(0, 2, 0)
    made.free(made.malloc(0, 100))
    made.empty_cache()
    assert reasons(made) == [
        "back to its pool at once",
        "no free neighbour to merge with",
        "free deferred: used on stream 2",
        "other streams have passed its last use; merged with previous and next",
        "new 2 MiB segment for 512 B: no free block in pool that fits",
        "new segment; split: remainder 2.00 MiB ≥ 512 B",
        "back to its pool at once",
        "merged with next",
        "the cache is emptied",
        "the cache is emptied",
    ]


def test_reasons_when_memory_is_short():
    made = allocator(100 * MIB)
    made.free(made.malloc(0, 60 * MIB))
    kept = made.malloc(0, 70 * MIB)
    assert reasons(made)[-3:] == [
        "out of memory: all that is unused is given back",
        "new 70 MiB segment for 70 MiB: cached blocks released, retry",
        "new segment; exact fit",
    ]
    with pytest.raises(OutOfMemoryError):
        made.malloc(0, 70 * MIB)
    assert reasons(made)[-1] == (
        "70 MiB wanted in one piece; no free block in its pool; the driver has 30 MiB left, "
        "too little for a segment of 70 MiB, and no whole segment is free to be given back"
    )
    made.set_memory_fraction(0.5, 0)
    with pytest.raises(OutOfMemoryError):
        made.malloc(0, 100)
    assert reasons(made)[-1] == (
        "100 B asked for, rounded up to 512 B; no free block in its pool; "
        "2 MiB more would exceed the memory fraction: 50 MiB allowed"
    )
    assert kept.allocated


def out_of_memory(made, size):
    """Reason and details of the request that fails."""
    with pytest.raises(OutOfMemoryError) as error:
        made.malloc(0, size)
    entry = made.snapshot()["device_traces"][0][-1]
    return str(error.value), entry["reason"], entry["details"]


def test_the_reason_of_out_of_memory_names_what_there_is():
    """Six holes, and more left in the driver than the old reason admitted."""
    made = allocator(80 * MIB)
    blocks = [made.malloc(0, 5 * MIB) for _ in range(12)]
    for block in blocks[::2]:
        made.free(block)
    message, why, details = out_of_memory(made, 24 * MIB - 100)
    assert "20.00 MiB is free" in message
    assert why == (
        "25,165,724 B asked for, rounded up to 24 MiB; the largest of 6 free blocks has 5 MiB, together they "
        "have 30 MiB; the driver has 20 MiB left, too little for a segment of 24 MiB, and no whole segment is "
        "free to be given back"
    )
    assert (details["largest_free"], details["free"], details["device_free"]) == (5 * MIB, 30 * MIB, 20 * MIB)


def test_the_reason_of_out_of_memory_with_pages_with_a_limit_on_splits_and_elsewhere():
    made = allocator(100 * MIB, settings_text="max_split_size_mb:64")
    made.malloc(0, 512)
    kept = made.malloc(0, 80 * MIB)
    with pytest.raises(OutOfMemoryError):
        made.malloc(0, 30 * MIB)
    assert reasons(made)[-1].split("; ")[1:] == [
        "no free block in its pool",
        "2.00 MiB are free in other pools or on other streams",
        "the driver has 18 MiB left, too little for a segment of 30 MiB, and no whole segment is free to be given back",
    ]
    made = allocator(100 * MIB, settings_text="expandable_segments:True")
    made.malloc(0, 70 * MIB)
    _, why, _ = out_of_memory(made, 50 * MIB)
    assert "too little for the pages that are missing" in why
    assert kept.allocated


def test_reasons_of_expandable_segments_and_of_oversize_blocks():
    made = allocator(settings_text="expandable_segments:True")
    made.free(made.malloc(0, 30 * MIB))
    assert reasons(made)[:2] == [
        "2 pages of 20 MiB mapped for 30 MiB: no free block in pool that fits",
        "pages mapped in an expandable segment; split: remainder 10 MiB ≥ 512 B",
    ]
    made = allocator(settings_text="max_split_size_mb:32")
    made.free(made.malloc(0, 60 * MIB))
    made.malloc(0, 50 * MIB)
    assert reasons(made)[-1] == ("the only free block that fits; not split, oversize blocks are never: 10 MiB unused")
    made = allocator(settings_text="garbage_collection_threshold:0.1")
    made.set_memory_fraction(0.9, 0)
    made.free(made.malloc(0, 60 * MIB))
    made.malloc(0, 70 * MIB)
    assert "garbage collection: unused for 1 request" in reasons(made)


def test_details_say_the_same_in_numbers():
    made = allocator()
    a = made.malloc(0, 3 * MIB + 1)
    details = made.trace(0)[-1]["details"]
    assert details == {
        "block_size": a.size,
        "rounded_size": a.size,
        "pool": "large",
        "source": "segment",
        "candidates": 0,
        "retries": 0,
        "new_segment": True,
        "split": True,
        "chosen": {"address": a.address, "size": 20 * MIB},
        "remainder": 20 * MIB - a.size,
        "limit": MIB,
        "limit_is_enough": False,
    }


# ---------------------------------------------------------------------- Note [ A split block is no segment ]


def test_max_split_size_may_be_lowered_while_memory_is_in_use():
    """PyTorch 2.13 hands an interior address to cudaFree here, or frees a segment that somebody uses."""
    made = allocator(200 * MIB)
    whole = made.malloc(0, 100 * MIB)
    made.free(whole)
    low = made.malloc(0, 40 * MIB)  # the segment's first part; 60 MiB behind it are free
    made.set_settings("max_split_size_mb:20")
    with pytest.raises(OutOfMemoryError):
        made.malloc(0, 120 * MIB)
    assert made.driver.host(low.address, low.size).size == low.size  # still there
    assert [segment["total_size"] for segment in made.segments()] == [100 * MIB]
    check(made)
    high = made.malloc(0, 50 * MIB)  # and what is free of it may still be used
    assert high.address == low.address + low.size
    made.free(low)
    made.free(high)
    made.malloc(0, 180 * MIB)
    check(made)


# -------------------------------------------------------------------------- finalizers, threads, wrong calls


class Tensor:
    """Frees its block when the collector of cyclic garbage finds it."""

    def __init__(self, made, size, stream=0):
        self.made, self.block, self.me = made, made.malloc(0, size, stream), self

    def __del__(self):
        self.made.free(self.block)


def test_blocks_freed_by_the_collector_in_the_middle_of_a_request(monkeypatch):
    """Note [ Freed by a finalizer ]"""
    made = allocator()
    device = made.devices[0]
    Tensor(made, 1000)
    Tensor(made, 5 * MIB)
    inserted = type(device.small_blocks).insert

    def collect_first(pool, block):
        gc.collect()
        inserted(pool, block)

    monkeypatch.setattr(type(device.small_blocks), "insert", collect_first)
    gc.collect()
    Tensor(made, 1000)
    Tensor(made, 5 * MIB)
    kept = made.malloc(0, 3000)
    monkeypatch.undo()
    assert not device.postponed and device.stats.families["allocation"].current == 1
    check(made)
    made.free(kept)
    check(made)


def test_a_finalizer_may_not_ask_for_memory(monkeypatch):
    made = allocator()
    device = made.devices[0]
    monkeypatch.setattr(made.driver, "malloc", lambda device, nbytes: made.malloc(device, nbytes).address)
    with pytest.raises(RuntimeError, match="Freed by a finalizer"):
        made.malloc(0, 1000)
    monkeypatch.undo()
    made.malloc(0, 1000)
    assert not device.busy
    check(made)


def test_callbacks_may_free_memory_before_the_driver_is_asked():
    made = allocator()
    kept = [made.malloc(0, 30 * MIB)]
    address = kept[0].address

    def drop():
        dropped = len(kept)
        while kept:
            made.free(kept.pop())
        return dropped > 0

    made.devices[0].free_memory_callbacks.append(drop)
    assert made.malloc(0, 30 * MIB).address == address
    assert made.malloc(0, 30 * MIB).address != address
    check(made)


def test_observers_may_use_the_allocator():
    made = allocator(100 * MIB)
    kept = made.malloc(0, 60 * MIB)
    made.attach_out_of_memory_observer(lambda *what: (made.free(kept), made.empty_cache(), made.snapshot()))
    with pytest.raises(OutOfMemoryError, match="of which 40.00 MiB is free"):
        made.malloc(0, 60 * MIB)
    made.malloc(0, 60 * MIB)
    check(made)


def test_threads():
    made = allocator(2000 * MIB)
    failures = []

    def work(seed):
        try:
            mine = []
            for i in range(300):
                mine.append(made.malloc(i % 2, 1 + (seed * 7919 + i * 104729) % (4 * MIB)))
                if i % 3:
                    made.free(mine.pop(i % len(mine)))
            for block in mine:
                made.free(block)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    check(made)
    made.empty_cache()
    assert made.segments() == [] and made.driver.memory.used == [0, 0]


def test_private_pools_refuse_wrong_calls():
    device = allocator().devices[0]
    with pytest.raises(RuntimeError, match="no private pool"):
        device.release_pool((0, 1))
    with pytest.raises(RuntimeError, match="endAllocatePool: not currently recording to mempool_id"):
        device.end_allocate_to_pool((0, 1))
    device.begin_allocate_to_pool((0, 1), lambda stream: True)
    with pytest.raises(RuntimeError, match="beginAllocateToPool: already recording to mempool_id"):
        device.begin_allocate_to_pool((0, 1), lambda stream: True)
    device.release_pool((0, 1))
    device.release_pool((0, 1))
    with pytest.raises(RuntimeError, match="more often"):
        device.release_pool((0, 1))
    with pytest.raises(RuntimeError, match="left"):
        device.create_or_incref_pool((0, 1))


def test_blocks_freed_during_a_capture_wait_for_its_end():
    made = allocator()
    device = made.devices[0]
    before, during = made.malloc(0, 1000), made.malloc(0, 1000)
    made.record_stream(before, 1)
    device.mark_capture_begin()
    made.record_stream(during, 1)
    made.free(before)
    made.free(during)
    assert made.driver.pending == {}
    made.malloc(0, 1000)
    device.mark_capture_end()
    made.malloc(0, 100)
    assert len(made.driver.place) == 1  # only for the use from before the capture
    assert during.is_free and not before.is_free
    check(made)


def test_settings_of_the_device():
    made = allocator()
    with pytest.raises(RuntimeError, match=r"^invalid fraction:1.5. Please set within \[0, 1\].$"):
        made.set_memory_fraction(1.5, 0)
    with pytest.raises(RuntimeError, match="Invalid device argument 2: did you call init?"):
        made.stats(2)
    assert made.malloc(0, 0) is None
    made.free(None)
    made.record_stream(None, 1)


# ------------------------------------------------------------------------------------------------- invariants


def check(made):
    """Blocks tile segments; no two neighbours are both free; the books say what is there."""
    driver_used = [0] * len(made.devices)
    for index, device in enumerate(made.devices):
        blocks = all_blocks(device)
        seen = {block.address: block for block in blocks}
        assert len(seen) == len(blocks)
        for block in blocks:
            check_neighbours(block)
            assert block.mapped and block.size > 0 and block.size % 512 == 0
            assert block.size >= block.requested_size or block.is_free
        check_pools(device)
        check_books(device, blocks)
        driver_used[index] = device.total_allocated
        segments = [segment for segment in made.segments() if segment["device"] == index]
        for segment in segments:
            assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
            assert segment["total_size"] % (2 * MIB) == 0
        for one, other in zip(segments, segments[1:]):
            assert one["address"] + one["total_size"] <= other["address"]
    assert made.driver.memory.used == driver_used


def check_neighbours(block):
    for before, after in (block.prev, block), (block, block.next):
        if before is None or after is None:
            continue
        assert before.next is after and after.prev is before
        assert before.address + before.size == after.address
        assert before.pool is after.pool and before.stream == after.stream and before.counter == after.counter
        assert not (before.is_free and after.is_free and before.mapped == after.mapped)


def check_pools(device):
    pools = [device.small_blocks, device.large_blocks]
    for private in device.private_pools.values():
        pools += [private.small_blocks, private.large_blocks]
    for pool in pools:
        for stream, entries in pool.free.items():
            assert entries == sorted(entries)
            for size, counter, address, block in entries:
                assert (block.size, block.counter, block.address) == (size, counter, address)
                assert block.stream == stream
                assert block.is_free and block.mapped and block.address not in device.active_blocks
        for stream, entries in pool.unmapped.items():
            assert entries == sorted(entries)
            for address, block in entries:
                assert not block.mapped and block.address == address and block.stream == stream


def check_books(device, blocks):
    expected = {family: {"small_pool": 0, "large_pool": 0} for family in FAMILIES}
    for block in blocks:
        kind = f"{block.pool.kind}_pool"

        def count(family, family_of_bytes):
            expected[family][kind] += 1
            expected[family_of_bytes][kind] += block.size

        if block.allocated:
            count("allocation", "allocated_bytes")
        if not block.is_free:
            count("active", "active_bytes")
            expected["requested_bytes"][kind] += block.requested_size
        elif block.is_split and block.segment is None:
            count("inactive_split", "inactive_split_bytes")
        expected["reserved_bytes"][kind] += block.size
        if block.prev is None and block.segment is None:
            expected["segment"][kind] += 1
    for family in FAMILIES:
        stat = device.stats.families[family].as_dict()
        for kind in "small_pool", "large_pool":
            assert stat[kind]["current"] == expected[family][kind], (family, kind)
        for values in stat.values():
            assert values["current"] <= values["peak"] and values["freed"] >= 0
        assert stat["all"]["peak"] <= stat["small_pool"]["peak"] + stat["large_pool"]["peak"]
    reserved = sum(expected["reserved_bytes"].values())
    assert device.total_allocated == reserved


SETTINGS = [
    "",
    "max_split_size_mb:30",
    "max_split_size_mb:64,max_non_split_rounding_mb:40",
    "expandable_segments:True",
    "expandable_segments:False",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.5",
    "large_segment_size_mb:30",
    "large_segment_size_mb:20",
    "expandable_segments:True,max_split_size_mb:40",
]
SIZES = st.one_of(
    st.integers(1, 4096), st.integers(1, MIB), st.integers(MIB, 12 * MIB), st.integers(1, 90).map(MIB.__mul__)
)


class Use(RuleBasedStateMachine):
    """Anybody doing anything, in any order; changing settings, too, which the recordings do with care."""

    @initialize(settings_text=st.sampled_from(SETTINGS), downwards=st.booleans())
    def begin(self, settings_text, downwards):
        config = AllocatorConfig()
        config.read(settings_text)
        self.made = CachingAllocator(ToldDriver(2, 300 * MIB, "down" if downwards else "up"), config)
        self.made.record_history(True, context=None, max_entries=10)
        self.blocks = []
        self.pools = 0

    @rule(size=SIZES, stream=st.sampled_from([0, 0, 0, 1, 2]), device=st.sampled_from([0, 0, 0, 1]))
    def alloc(self, size, stream, device):
        try:
            block = self.made.malloc(device, size, stream)
        except OutOfMemoryError:
            return
        for other in self.blocks:
            assert block.address + block.size <= other.address or other.address + other.size <= block.address
        self.blocks.append(block)

    @precondition(lambda self: self.blocks)
    @rule(data=st.data())
    def free(self, data):
        self.made.free(self.blocks.pop(data.draw(st.integers(0, len(self.blocks) - 1))))

    @precondition(lambda self: self.blocks)
    @rule(data=st.data(), stream=st.integers(0, 3))
    def record_stream(self, data, stream):
        self.made.record_stream(data.draw(st.sampled_from(self.blocks)), stream)

    @rule(device=st.integers(0, 1), stream=st.integers(0, 3), n=st.integers(0, 2))
    def complete_events(self, device, stream, n):
        self.made.driver.complete(device, stream, n)

    @rule()
    def empty_cache(self):
        self.made.empty_cache()

    @rule(text=st.sampled_from(SETTINGS))
    def change_settings(self, text):
        self.made.set_settings(text)

    @rule(fraction=st.sampled_from([1.0, 0.8, 0.4]))
    def change_fraction(self, fraction):
        self.made.set_memory_fraction(fraction, 0)

    @rule(stream=st.integers(0, 2), helps=st.booleans(), splits=st.booleans())
    def enter_pool(self, stream, helps, splits):
        device = self.made.devices[0]
        self.pools += 1
        pool_id = 0, self.pools
        device.begin_allocate_to_pool(pool_id, lambda other: other == stream)
        device.set_use_on_oom(pool_id, helps)
        if not splits:
            device.set_no_split(pool_id)

    @precondition(lambda self: self.made.devices[0].redirections)
    @rule(data=st.data(), keep=st.booleans())
    def leave_pool(self, data, keep):
        device = self.made.devices[0]
        pool_id, _ = data.draw(st.sampled_from(device.redirections))
        device.end_allocate_to_pool(pool_id)
        if not keep:
            device.release_pool(pool_id)

    @rule()
    def reset(self):
        self.made.devices[0].reset_peak_stats()
        self.made.devices[0].reset_accumulated_stats()
        self.made.devices[0].reset_peak_stats()

    @invariant()
    def all_is_well(self):
        if hasattr(self, "made"):
            check(self.made)

    def teardown(self):
        """When everybody has gone and every pool is left, nothing is held any more."""
        if not hasattr(self, "made"):
            return
        for block in self.blocks:
            self.made.free(block)
        device = self.made.devices[0]
        device.redirections.clear()
        for pool in device.private_pools.values():
            while pool.use_count:
                device.release_pool(pool.id)
        self.made.empty_cache()
        assert self.made.segments() == [] and self.made.driver.memory.used == [0, 0]
        assert not device.private_pools
        assert sum(segment.mapped_size for segment in device.expandable_segments) == 0


TestUse = Use.TestCase
TestUse.settings = settings(max_examples=60, stateful_step_count=40)
