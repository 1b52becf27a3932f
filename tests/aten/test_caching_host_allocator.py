"""Pinned memory: what the caching host allocator hands out, when it does so again, and who waits for copies."""

import gc
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch as rt
from readtorch import cuda
from readtorch.aten.caching_host_allocator import CachingHostAllocator, HostBlock
from readtorch.aten.simulated_cost import CostModel
from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.cuda_exception import AcceleratorError
from readtorch.c10.cuda.simulated_driver import SimulatedDriver
from readtorch.utils.data import DataLoader

KIB = 1 << 10


def allocator(text="", **options):
    config = AllocatorConfig()
    config.read(text)
    return CachingHostAllocator(SimulatedDriver(**options), config)


def current(made, name):
    return made.stats.as_nested_dict()[name]["current"]


# ------------------------------------------------------------------------------------------------- the allocator


def test_sizes_are_rounded_and_the_block_freed_last_is_used_first():
    made = allocator()
    blocks = [made.allocate(nbytes) for nbytes in (1, 1000, 1024, 1025)]
    assert [block.size for block in blocks] == [1, 1024, 1024, 2048]
    for block in blocks:
        made.free(block)
    assert made.allocate(600) is blocks[2] and made.allocate(513) is blocks[1] and made.allocate(513) not in blocks
    assert current(made, "allocations") == 5 and current(made, "active_requests") == 3
    made.empty_cache()
    assert current(made, "allocations") == 3 and len(made.driver.host_memory) == 3


def test_a_block_waits_for_the_streams_that_use_it():
    made = allocator(devices=2)
    driver, block = made.driver, made.allocate(KIB)
    streams = [(0, 0), (1, driver.stream_create(1))]
    for i, (device, stream) in enumerate(streams):
        driver.enqueue(device, stream, lambda: None, duration=10 * (i + 1))
        block.streams.add((device, stream))
    made.free(block)
    for time in (0, 10, 15):
        driver.streams.wait_until(time)
        made.free(made.allocate(KIB))
        assert block.event_count and block not in made._free[block.index]
    driver.streams.wait_until(20)
    assert block in (made.allocate(KIB), made.allocate(KIB)) and not block.event_count


def test_an_event_is_used_again():
    made = allocator()
    for _ in range(5):
        block = made.allocate(10)
        block.streams.add((0, 0))
        made.free(block)
    assert len(made.driver.streams._events) == 1


@pytest.mark.parametrize(
    "text, sizes",
    [
        ("pinned_max_round_threshold_mb:1", [1 << 20, (1 << 20) + 1]),
        ("pinned_max_cached_size_mb:1", [1 << 20, (1 << 20) + 1]),
        ("", [1 << 20, 1 << 21]),
    ],
)
def test_what_is_rounded(text, sizes):
    made = allocator(text)
    assert [made.allocate(nbytes).size for nbytes in ((1 << 20) - 5, (1 << 20) + 1)] == sizes


def test_a_block_that_is_too_large_to_be_kept():
    made = allocator("pinned_max_cached_size_mb:1")
    small, large = made.allocate(1 << 20), made.allocate(1 << 21)
    made.free(large)
    made.free(small)
    assert current(made, "allocated_bytes") == 1 << 20 and current(made, "active_bytes") == 0


def test_sizes_that_are_not_rounded_find_blocks_that_are_large_enough():
    made = allocator("pinned_max_round_threshold_mb:1")
    small, large = made.allocate(5 << 20), made.allocate(6 << 20)
    made.free(large)
    made.free(small)
    assert made.allocate((5 << 20) + 1) is large


def test_a_segment_for_small_requests():
    made = allocator("pinned_reserve_segment_size_mb:1")
    a, b = made.allocate(10), made.allocate(5000)
    assert b.address - a.address == 4096 and len(made.driver.host_memory) == 1
    rest = made.allocate(1 << 20)
    assert not made._reserve.owns(rest.address)
    for block in (a, b, rest):
        made.free(block)
    made.empty_cache()
    assert list(made.driver.host_memory) == [made._reserve.start] and current(made, "allocations") == 0


def test_memory_that_is_locked_afterwards():
    made = allocator("pinned_use_cuda_host_register:True")
    block = made.allocate(100)
    assert made.driver.is_host_pinned(block.address + 99) and block.registered.nbytes == 128
    made.config.read("pinned_use_cuda_host_register:False")
    made.free(block)
    made.empty_cache()  # as it came, whatever the setting is now
    assert not made.driver.host_memory
    with pytest.raises(AcceleratorError, match="invalid argument"):
        made.driver.host_free(block.address)


@pytest.mark.parametrize("suppressed", [False, True])
def test_a_device_that_takes_no_events(suppressed):
    made = allocator(f"pinned_free_catch_all:{suppressed}")
    block = made.allocate(10)
    block.streams.add((0, 12345))
    with pytest.warns(UserWarning, match="free failed") if suppressed else pytest.raises(AcceleratorError):
        made.free(block)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["allocate", "free", "use", "time", "empty"]), st.integers(0, 5000)), max_size=60
    )
)
def test_nobody_gets_what_another_uses(steps):
    made = allocator()
    driver, held, until = made.driver, [], {}
    for what, number in steps:
        if what == "allocate":
            block = made.allocate(number + 1)
            assert block not in held and until.pop(block, 0) <= driver.streams.now and block.size > number
            held.append(block)
        elif what == "time":
            driver.streams.wait_until(driver.streams.now + number % 7)
        elif what == "empty":
            made.empty_cache()
        elif held and what == "use":
            driver.enqueue(0, 0, lambda: None, duration=number % 5)
            held[number % len(held)].streams.add((0, 0))
        elif held:
            block = held.pop(number % len(held))
            until[block] = driver.streams._stream(0, 0).done_at if block.streams else 0
            made.free(block)
    assert current(made, "active_requests") == len(held) + sum(block.event_count > 0 for block in until)
    assert current(made, "allocated_bytes") == sum(block.size for block in made._blocks.values())
    assert isinstance(HostBlock(0, 1).streams, set)


# ------------------------------------------------------------------------------------------------------- tensors


@pytest.fixture(params=["cpu kernels", "cuda kernels"])
def device(request):
    options = {"latencies": None, "costs": CostModel(shortest=1.0, memory=1000.0, host=10.0)}
    cuda.simulate(2, "64MiB", kernels=request.param == "cuda kernels", **options)
    yield rt.device("cuda", 0)
    gc.collect()
    cuda.simulate(0)


def clock():
    return cuda.runtime.driver().streams.now


def test_who_waits_for_a_copy(device):
    pageable, pinned = rt.ones(1000), rt.ones(1000).pin_memory()
    for source, non_blocking, waits in [
        (pageable, False, 1),
        (pageable, True, 1),
        (pinned, False, 1),
        (pinned, True, 0),
    ]:
        before = clock()
        there = source.to(device, non_blocking=non_blocking)
        assert (clock() - before == 400) == bool(waits)
        cuda.synchronize()
        before = clock()
        source.copy_(there, non_blocking=non_blocking)
        assert (clock() - before == 400) == bool(waits)
        cuda.synchronize()
        assert there.cpu().equal(source)


def test_memory_that_is_still_being_copied_is_not_handed_out(device):
    x = rt.arange(1000.0).pin_memory()
    address, expected = x.data_ptr(), x.clone()
    there = x.to(device, non_blocking=True)
    del x
    other = rt.empty(1000, pin_memory=True)
    assert other.data_ptr() != address
    cuda.synchronize()
    assert rt.empty(1000, pin_memory=True).data_ptr() == address and there.cpu().equal(expected)


def test_a_copy_to_the_host_that_nobody_waits_for_goes_to_pinned_memory(device):
    x = rt.arange(12.0).view(3, 4).to(device)
    fetched = x.t().to("cpu", rt.float64, non_blocking=True)
    assert fetched.is_pinned() and fetched.stride() == (1, 4) and not x.cpu().is_pinned()
    cuda.synchronize()
    assert fetched.tolist() == rt.arange(12.0).view(3, 4).t().tolist()


@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("to", [rt.float32, rt.float64, rt.int32])
def test_copies_that_convert_broadcast_and_have_gaps(device, non_blocking, to):
    rows = rt.arange(20.0).view(4, 5)
    for source in (rows, rows.t(), rows[:, ::2], rows[1]):
        source = source.pin_memory()
        there = rt.empty(3, *source.shape, dtype=to, device=device).copy_(source, non_blocking=non_blocking)
        here = rt.empty(3, *source.shape, pin_memory=True).copy_(there, non_blocking=non_blocking)
        cuda.synchronize()
        assert here.equal(source.expand(3, *source.shape)) and there.dtype == to


def test_what_is_pinned(device):
    x = rt.ones(4, 6).pin_memory()
    pinned = [
        x,
        x.t(),
        x[2:],
        x.view(-1)[::5],
        rt.from_numpy(x.numpy()),
        rt.zeros(3, pin_memory=True),
        x.untyped_storage(),
    ]
    assert all(t.is_pinned() for t in pinned) and x.pin_memory() is x
    assert not any(t.is_pinned() for t in (rt.ones(2), x.clone(), x.to(device), rt.ones(2).untyped_storage()))
    assert not rt.empty(0, pin_memory=True).is_pinned()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.untyped_storage().resize_(1000)
    with pytest.raises(
        RuntimeError, match=re.escape("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned")
    ):
        x.to(device).pin_memory()


def test_statistics(device):
    cuda.memory._host_allocator().empty_cache()
    x = rt.ones(100, pin_memory=True)
    stats = cuda.host_memory_stats()
    assert list(stats) == sorted(stats) and stats["active_bytes.current"] == stats["allocated_bytes.current"] == 512
    del x
    rt.accelerator.empty_host_cache()
    cuda.reset_accumulated_host_memory_stats()
    cuda.reset_peak_host_memory_stats()
    assert set(cuda.host_memory_stats().values()) == {0}


def test_statistics_have_the_names_that_the_reference_lists(device):
    listed = set()
    for names, parts in re.findall(r'- ``"([^`.]+)(?:\.\{([^}]+)\})?"``(?=:| /)', torch.cuda.host_memory_stats.__doc__):
        listed |= {f"{names}.{part}" for part in parts.split(",")} if parts else {names}
    listed |= {"num_host_free"}  # on one line with the name before it
    assert set(cuda.host_memory_stats()) == listed
    assert rt.cuda.memory.__all__ and set(torch.cuda.memory.__all__) >= {n for n in cuda.memory.__all__ if "host" in n}


def test_a_loader_s_batches_are_pinned_by_it(device):
    batches = list(DataLoader(rt.arange(8.0), batch_size=4, pin_memory=True))
    assert all(batch.is_pinned() for batch in batches) and cuda.host_memory_stats()["active_requests.current"] == 2
    del batches
    gc.collect()
    assert cuda.host_memory_stats()["active_requests.current"] == 0


def test_a_captured_copy_keeps_its_block():
    cuda.simulate(1, "64MiB", kernels=True)
    try:
        there, graph = rt.zeros(1000, device="cuda"), cuda.CUDAGraph()
        waits = rt.ones(4, pin_memory=True)
        waits.to("cuda", non_blocking=True)
        del waits
        with cuda.graph(graph):
            source, other = rt.ones(1000, pin_memory=True), rt.ones(1000, pin_memory=True)
            there.copy_(source, non_blocking=True)
            addresses = source.data_ptr(), other.data_ptr()
            del source, other
        cuda.synchronize()
        again = [rt.full((1000,), 7.0, pin_memory=True) for _ in range(3)]
        assert addresses[0] not in [t.data_ptr() for t in again] and addresses[1] in [t.data_ptr() for t in again]
        graph.replay()
        assert there.sum().item() == 1000
    finally:
        gc.collect()
        cuda.simulate(0)


@pytest.mark.parametrize("call", ["t.pin_memory()", "t.is_pinned()", "m.pin_memory()", "m.is_pinned()"])
def test_without_a_device_it_is_as_in_the_reference(call):
    outcomes = []
    for module in (torch, rt):
        names = {"t": module.ones(2), "m": module.ones(2, device="meta")}
        try:
            outcomes.append(eval(call, names))
        except RuntimeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_a_device_that_is_named(device):
    with pytest.warns(
        DeprecationWarning, match=re.escape("The argument 'device' of Tensor.is_pinned() is deprecated.")
    ):
        assert not rt.ones(2).is_pinned("cuda")
    with pytest.warns(
        DeprecationWarning, match=re.escape("The argument 'device' of Tensor.pin_memory() is deprecated.")
    ):
        assert rt.ones(2).pin_memory("cuda").is_pinned()
