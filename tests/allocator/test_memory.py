"""`readtorch.cuda.memory` against what `torch.cuda.memory` makes of its numbers, and PyTorch's viewer."""

import gc
import pickle
import threading

import pytest
import torch
import torch.cuda._memory_viz as viz

import readtorch
from readtorch.c10.cuda import runtime
from readtorch.cuda import memory

MIB = 1 << 20


@pytest.fixture(autouse=True)
def devices():
    readtorch.cuda.simulate(2, "256MiB")
    yield runtime.allocator()
    readtorch.cuda.simulate(0)


def train(steps=3):
    nn = readtorch.nn
    model = nn.Sequential(nn.Linear(300, 600), nn.ReLU(), nn.Linear(600, 10)).to("cuda")
    optimizer = readtorch.optim.Adam(model.parameters())
    for _ in range(steps):
        loss = model(readtorch.randn(500, 300, device="cuda")).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, optimizer


# ------------------------------------------------------------------------------------------------ statistics


def test_stats_are_those_of_the_reference_by_name():
    block = runtime.allocator().malloc(0, 3 * MIB)
    stats = memory.memory_stats()
    assert list(stats) == sorted(stats)
    recorded = 7 + 9 * 3 * 4 + 2 * 4
    assert len(stats) == recorded and stats["allocated_bytes.large_pool.current"] == 3 * MIB
    assert memory.memory_allocated() == 3 * MIB and memory.memory_reserved() == 20 * MIB
    assert memory.memory_allocated("cuda:1") == memory.memory_reserved(1) == 0
    runtime.allocator().free(block)
    assert memory.memory_allocated() == 0 and memory.max_memory_allocated() == 3 * MIB
    memory.reset_peak_memory_stats()
    memory.reset_accumulated_memory_stats()
    assert memory.max_memory_allocated() == 0
    assert memory.memory_stats()["allocation.all.allocated"] == 0
    with pytest.warns(FutureWarning, match="reset_peak_memory_stats"):
        memory.reset_max_memory_allocated()
    with pytest.warns(FutureWarning, match="renamed"):
        assert memory.memory_cached() == 20 * MIB


def test_without_devices():
    readtorch.cuda.simulate(0)
    assert memory.memory_stats() == {} and memory.memory_allocated() == memory.max_memory_reserved() == 0
    memory.empty_cache()
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        memory.mem_get_info()


@pytest.mark.parametrize("abbreviated", [False, True])
@pytest.mark.parametrize("scale", [1, 40_000])
def test_summary_is_the_reference_s_to_the_letter(monkeypatch, abbreviated, scale):
    kept = train()
    stats = {name: count * scale for name, count in memory.memory_stats().items()}
    monkeypatch.setattr(torch.cuda.memory, "memory_stats", lambda device=None: stats)
    monkeypatch.setattr(memory, "memory_stats", lambda device=None: stats)
    assert memory.memory_summary(1, abbreviated) == torch.cuda.memory.memory_summary(1, abbreviated)
    assert kept


# ----------------------------------------------------------------------------------------- blocks and limits


def test_alloc_and_delete():
    address = memory.caching_allocator_alloc(1000, "cuda:1")
    assert memory.memory_allocated(1) == 1024
    memory.caching_allocator_delete(address)
    assert memory.memory_allocated(1) == 0
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        memory.caching_allocator_delete(address)
    with pytest.raises(TypeError, match="Invalid type for stream"):
        memory.caching_allocator_alloc(1000, stream="1")
    stream = readtorch.cuda.Stream()
    memory.caching_allocator_delete(memory.caching_allocator_alloc(1000, stream=stream))
    assert [segment["stream"] for segment in memory.memory_snapshot()] == [stream.cuda_stream, 0]


def test_memory_fraction():
    with pytest.raises(TypeError, match="must be `float`"):
        memory.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match="Allowed range"):
        memory.set_per_process_memory_fraction(1.5)
    memory.set_per_process_memory_fraction(0.25)
    assert memory.get_per_process_memory_fraction() == 0.25
    assert memory.get_per_process_memory_fraction(1) == 1.0
    with pytest.raises(readtorch.cuda.OutOfMemoryError, match="64.00 MiB allowed"):
        readtorch.empty(65 * MIB, dtype=readtorch.uint8, device="cuda")


def test_training_goes_on_after_running_out_of_memory():
    kept = train()
    before = memory.memory_allocated()
    message = "^CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0"
    with pytest.raises(readtorch.OutOfMemoryError, match=message):
        readtorch.empty(256 * MIB, dtype=readtorch.uint8, device="cuda")
    assert issubclass(readtorch.OutOfMemoryError, RuntimeError)
    assert memory.memory_allocated() == before
    assert memory.memory_stats()["num_ooms"] == 1
    assert kept and train()


def test_out_of_memory_observers(devices):
    seen = []
    devices.attach_out_of_memory_observer(lambda *what: seen.append(what))
    with pytest.raises(readtorch.OutOfMemoryError):
        devices.malloc(1, 300 * MIB)
    assert seen == [(1, 300 * MIB, 256 * MIB, 256 * MIB)]
    with pytest.raises(readtorch.OutOfMemoryError, match="more than 1EB"):
        devices.malloc(0, 1 << 60)


def test_mem_get_info_and_processes():
    kept = readtorch.empty(30 * MIB, dtype=readtorch.uint8, device="cuda")
    assert memory.mem_get_info() == (226 * MIB, 256 * MIB)
    assert "30.000 MB GPU memory" in memory.list_gpu_processes()
    del kept
    memory.empty_cache()
    assert memory.mem_get_info("cuda") == (256 * MIB, 256 * MIB)
    assert memory.get_allocator_backend() == "native"


def test_without_caching():
    with memory.caching_allocator_disabled():
        x = readtorch.ones(1000, device="cuda")
        assert memory.mem_get_info()[0] == 254 * MIB and memory.memory_reserved() == 0
        assert x.sum().item() == 1000
    del x
    gc.collect()
    assert memory.mem_get_info()[0] == 256 * MIB


def test_settings_warn_that_they_are_deprecated(devices):
    with pytest.warns(FutureWarning, match="_accelerator_setAllocatorSettings"):
        memory._set_allocator_settings("expandable_segments:True")
    x = readtorch.arange(10 * MIB, dtype=readtorch.int64, device="cuda")
    assert memory.memory_snapshot()[0]["is_expandable"] and x[-1].item() == 10 * MIB - 1


# -------------------------------------------------------------------------------------------- private pools


def test_private_pool():
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        assert pool.use_count() == 2
        inside = readtorch.ones(3 * MIB, dtype=readtorch.uint8, device="cuda")
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(readtorch.ones(10, device="cuda")))
        thread.start()
        thread.join()
    outside = readtorch.ones(3 * MIB, dtype=readtorch.uint8, device="cuda")
    assert [segment["segment_pool_id"] for segment in pool.snapshot()] == [pool.id]
    assert [s["segment_pool_id"] for s in memory.memory_snapshot()] == [pool.id, (0, 0), (0, 0)]
    name = "_".join(map(str, pool.id))
    assert memory.memory_stats()[f"reserved_bytes_by_private_pools.{name}.all.current"] == 20 * MIB
    del inside
    memory.empty_cache()
    assert len(pool.snapshot()) == 1  # somebody uses the pool: its memory is kept
    pool_id = pool.id
    del pool
    assert memory.memory_snapshot(pool_id) == []
    assert outside.sum().item() == 3 * MIB and elsewhere


def test_private_pool_helps_out():
    pool = memory.MemPool(use_on_oom=True)
    with memory.use_mem_pool(pool):
        readtorch.empty(200 * MIB, dtype=readtorch.uint8, device="cuda")
    helped = readtorch.empty(190 * MIB, dtype=readtorch.uint8, device="cuda")
    assert memory.memory_snapshot()[0]["segment_pool_id"] == pool.id
    assert memory.memory_stats()["num_ooms"] == 0
    del helped


def test_private_pool_that_does_not_split():
    pool = memory.MemPool(no_split=True)
    with memory.use_mem_pool(pool):
        kept = [readtorch.empty(2 * MIB, dtype=readtorch.uint8, device="cuda") for _ in range(2)]
    assert [len(segment["blocks"]) for segment in pool.snapshot()] == [1, 1]
    with pytest.raises(TypeError, match="allocator must be None"):
        memory.MemPool(object())
    del kept


# ------------------------------------------------------------------------------------------------- history


def test_pytorch_s_viewer_opens_our_snapshots(tmp_path):
    memory._record_memory_history()
    kept = train()
    with pytest.raises(readtorch.OutOfMemoryError):
        readtorch.empty(300 * MIB, dtype=readtorch.uint8, device="cuda")
    memory._dump_snapshot(tmp_path / "snapshot.pickle")
    with open(tmp_path / "snapshot.pickle", "rb") as file:
        snapshot = pickle.load(file)
    text = viz.segsum(snapshot)
    assert f"segments: {len(snapshot['segments'])}" in text
    assert "raise OutOfMemoryError # 300.0MiB requested" in viz.trace(snapshot)
    pages = viz.trace_plot(snapshot), viz.segment_plot(snapshot), viz.trace_plot(snapshot, plot_segments=True)
    assert all("<html" in page for page in pages)
    assert "train" in viz.memory(snapshot, format_flamegraph=str)
    assert "active_allocated" in viz.segments(snapshot, format_flamegraph=str)
    assert kept


def test_the_snapshot_and_the_statistics_tell_the_same_story():
    memory._record_memory_history()
    kept = train()
    snapshot, stats = memory._snapshot(), memory.memory_stats()
    segments = [segment for segment in snapshot["segments"] if segment["device"] == 0]
    for key, total in (
        ("total_size", "reserved_bytes"),
        ("allocated_size", "allocated_bytes"),
        ("active_size", "active_bytes"),
        ("requested_size", "requested_bytes"),
    ):
        assert sum(segment[key] for segment in segments) == stats[f"{total}.all.current"]
    assert len(segments) == stats["segment.all.current"]
    alive = {}
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "alloc":
            alive[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_requested":
            del alive[entry["addr"]]
    assert sum(alive.values()) == stats["requested_bytes.all.current"]
    assert kept


def test_whose_stacks_are_kept():
    def frames(context, stacks="python"):
        memory._record_memory_history(context=context, stacks=stacks, clear_history=True)
        kept = readtorch.ones(10, device="cuda")
        readtorch.ones(10, device="cuda")
        events = {entry["action"]: entry for entry in memory._snapshot()["device_traces"][0]}
        in_use = memory._allocation_traceback(kept.untyped_storage().data_ptr())
        memory._record_memory_history(None)
        return [
            names(found) for found in (events["alloc"].get("frames"), events["free_requested"].get("frames"), in_use)
        ]

    def names(found):
        return found and [frame["name"] for frame in found][:2]

    here = ["frames", "test_whose_stacks_are_kept"]
    assert frames(None) == [None, None, None]
    assert frames("state") == [None, None, here]
    assert frames("alloc") == [here, here, here]  # who frees is taken from who asked
    assert frames("all") == [here, here, here]
    assert frames("all", "all")[0] != here  # … and the rooms below


def test_what_is_kept_of_the_history():
    memory._record_memory_history(max_entries=3)
    for _ in range(5):
        readtorch.ones(10, device="cuda")
    assert len(memory._snapshot()["device_traces"][0]) == 3
    memory._record_memory_history(clear_history=True, skip_actions=["alloc", "snapshot"])
    memory._set_memory_metadata("here")
    readtorch.ones(10, device="cuda")
    memory._set_memory_metadata("")
    trace = memory._snapshot()["device_traces"][0]
    assert [entry["action"] for entry in trace] == ["free_requested", "free_completed"]
    assert {entry["user_metadata"] for entry in trace} == {"here"} and memory._get_memory_metadata() == ""
    memory._record_memory_history("state")
    memory._record_memory_history(True, trace_alloc_max_entries=10, trace_alloc_record_context=True)
    assert memory._snapshot()["device_traces"][0][0]["action"] == "free_completed"
    memory._record_memory_history(False)
    assert memory._snapshot()["device_traces"] == [[], []]
    for argument, word in ("enabled", "state"), ("context", "context"), ("stacks", "stacks"):
        with pytest.raises(RuntimeError, match=f"^expected {word} to be"):
            memory._record_memory_history(**{argument: "some"})
