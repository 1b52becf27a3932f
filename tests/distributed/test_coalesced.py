"""Several tensors in one message, groups of a backend of one's own, and what is known of collectives that stand still."""

import json
import logging
import threading
import time
import weakref
from datetime import timedelta

import pytest
import torch
import torch.distributed as reference

import readtorch
from readtorch import distributed as dist
from readtorch.csrc.distributed.process_group import RECORDER, WATCHDOG
from readtorch.distributed import distributed_c10d

LATE = timedelta(milliseconds=300)


def several(api, rank):
    return [api.arange(3.0) + rank, api.ones(2, 2) * rank]


def test_all_reduce_coalesced():
    def fn(rank):
        tensors = several(readtorch, rank)
        future = dist.all_reduce_coalesced(tensors, async_op=True)
        assert future.wait()[0] is tensors[0]
        return [t.tolist() for t in tensors]

    wanted = [(a + b).tolist() for a, b in zip(several(torch, 0), several(torch, 1))]
    assert dist.run_threads(fn, 2) == [wanted, wanted]


def test_all_gather_coalesced_of_several_types():
    def fn(rank):
        inputs = [
            readtorch.full((2,), rank, dtype=readtorch.int64),
            readtorch.full((1, 2), rank, dtype=readtorch.int64),
        ]
        outputs = [[readtorch.empty_like(t) for t in inputs] for _ in range(2)]
        dist.all_gather_coalesced(outputs, inputs)
        group = dist.group.WORLD
        mixed = [inputs[0], readtorch.full((3,), rank + 0.5)]
        taken = [[readtorch.empty_like(t) for t in mixed] for _ in range(2)]
        group.allgather_coalesced(taken, mixed).wait()
        return [[t.tolist() for t in row] for row in outputs + taken]

    one = [[[0, 0], [[0, 0]]], [[1, 1], [[1, 1]]], [[0, 0], [0.5] * 3], [[1, 1], [1.5] * 3]]
    assert dist.run_threads(fn, 2) == [one, one]


@pytest.mark.parametrize("async_ops", [True, False])
def test_coalescing_manager(async_ops):
    def fn(rank):
        sums = several(readtorch, rank)
        with dist._coalescing_manager(async_ops=async_ops) as manager:
            for tensor in sums:
                dist.all_reduce(tensor)
        gathered = [readtorch.empty(2), readtorch.empty(4)]
        with dist._coalescing_manager(async_ops=async_ops) as second:
            dist.all_gather_into_tensor(gathered[0], readtorch.ones(1) * rank)
            dist.all_gather_into_tensor(gathered[1], readtorch.ones(2) * rank)
        manager.wait()
        second.wait()
        assert len(manager.works) == int(async_ops)
        return [t.tolist() for t in sums + gathered]

    wanted = [(a + b).tolist() for a, b in zip(several(torch, 0), several(torch, 1))] + [[0, 1], [0, 0, 1, 1]]
    assert dist.run_threads(fn, 2) == [wanted, wanted]


def test_coalescing_refuses_a_mixture():
    def fn(rank):
        with pytest.raises(RuntimeError, match="requires all collectives to be the same type, but got mixed types"):
            with dist._coalescing_manager():
                dist.all_reduce(readtorch.ones(1))
                dist.all_gather_into_tensor(readtorch.empty(2), readtorch.ones(1))

    dist.run_threads(fn, 2)


def test_several_tensors_of_one_rank():
    def fn(rank):
        group, tensors = dist.group.WORLD, [readtorch.ones(2) * (rank + 1), readtorch.ones(2) * 10]
        group.allreduce(tensors).wait()
        outputs = [[readtorch.empty(1) for _ in range(4)] for _ in range(2)]
        group.allgather(outputs, [readtorch.full((1,), 2.0 * rank), readtorch.full((1,), 2.0 * rank + 1)]).wait()
        return [t.tolist() for t in tensors], [[t.item() for t in row] for row in outputs]

    assert dist.run_threads(fn, 2) == [([[23.0, 23.0]] * 2, [[0.0, 1.0, 2.0, 3.0]] * 2)] * 2


def test_the_sum_of_sparse_tensors():
    def fn(rank):
        t = readtorch.sparse_coo_tensor([[0, rank + 1]], [1.0, 2.0], (4,))
        dist.all_reduce(t)
        return t.to_dense().tolist()

    assert dist.run_threads(fn, 2) == [[2.0, 2.0, 2.0, 0.0]] * 2


class Doubling(dist.ProcessGroup):
    """A backend that a program brings along."""

    def getBackendName(self):
        return "doubling"

    def allreduce(self, tensors, opts=None):
        assert opts.reduceOp == dist.ReduceOp.SUM
        tensors[0].mul_(2)
        work = dist._Work()
        work.finish()
        return work


def test_a_backend_of_ones_own():
    def make(store, rank, size, timeout):
        return Doubling(rank, size)

    dist.Backend.register_backend("doubling", make, devices=["cpu"])
    assert dist.Backend.DOUBLING == "doubling" and dist.is_backend_available("doubling")
    dist.init_process_group("doubling", store=dist.HashStore(), rank=0, world_size=1)
    try:
        t = readtorch.ones(2)
        dist.all_reduce(t)
        assert t.tolist() == [2, 2] and dist.get_backend() == "doubling" and dist.get_backend_config() == "cpu:doubling"
        assert dist.new_group([0]).name() == "doubling"
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("text", ["gloo", "nccl", "mpi", "ucc", "cpu:gloo,cuda:nccl", "GLOO", "undefined"])
def test_backend_configs(text):
    assert repr(dist.BackendConfig(text)) == repr(reference.BackendConfig(text))


@pytest.mark.parametrize("text", ["cpu:gloo,", "cpu:gloo,cpu:nccl", "cpu:gloo:x"])
def test_backend_configs_that_are_none(text):
    for api in (dist, reference):
        with pytest.raises(ValueError, match="Invalid device:backend pairing|Duplicate device type"):
            api.BackendConfig(text)


def test_the_watchdog_sees_what_nobody_waits_for(caplog, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_FR_DUMP_TEMP_FILE", str(tmp_path / "rank_"))

    def fn(rank):
        if rank == 1:
            time.sleep(1.5)
            return None
        dist.group.WORLD.set_timeout(LATE)
        work = dist.all_reduce(readtorch.ones(3), async_op=True)
        deadline = time.monotonic() + 30
        while not work.is_completed() and time.monotonic() < deadline:
            time.sleep(0.02)
        return str(work.exception())

    with caplog.at_level(logging.ERROR):
        error = dist.run_threads(fn, 2)[0]
    assert "timed out after 300 ms: rank 1 did not come" in error
    assert (
        "[Rank 0] Watchdog caught collective operation timeout: Work(SeqNum=1, OpType=ALLREDUCE, NumelIn=3"
        in caplog.text
    )
    dumped = json.loads((tmp_path / "rank_0").read_bytes())
    assert [e["state"] for e in dumped["entries"] if e["profiling_name"] == "threads:all_reduce"][-1] == "scheduled"


def test_the_watchdog_holds_no_tensors_while_it_sleeps():
    """It has looked at a Work that was under way, and sleeps until its time would be over."""
    looked = threading.Event()

    def fn(rank):
        if rank == 1:
            assert looked.wait(30)
        work = dist.all_reduce(readtorch.ones(3), async_op=True)
        if rank == 0:
            with WATCHDOG.changed:
                WATCHDOG.wakes_at = None
                WATCHDOG.changed.notify()
            assert comes_true(lambda: WATCHDOG.wakes_at is not None)
            looked.set()
        work.wait()
        return weakref.ref(work)

    reference = dist.run_threads(fn, 2)[0]
    assert comes_true(lambda: reference() is None)


def test_the_thread_of_a_group_holds_no_tensors_while_it_waits():
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        tensor = readtorch.ones(3)
        dist.all_reduce(tensor)
        reference = weakref.ref(tensor)
        del tensor
        assert comes_true(lambda: reference() is None)
    finally:
        dist.destroy_process_group()


def comes_true(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_the_flight_recorder():
    def fn(rank):
        dist.all_reduce(readtorch.ones(2, 3))
        if rank == 0:
            dist.send(readtorch.ones(1), 1)
        else:
            dist.recv(readtorch.ones(1), 0)

    RECORDER.clear()
    dist.run_threads(fn, 2)
    entries = json.loads(RECORDER.dump_json())["entries"]
    assert {e["state"] for e in entries} == {"completed"}
    first = next(e for e in entries if not e["is_p2p"])
    assert first["input_sizes"] == [[2, 3]] and first["input_dtypes"] == ["Float"] and first["collective_seq_id"] == 1
    assert any("test_coalesced" in frame["filename"] for frame in first["frames"])
    assert {e["profiling_name"] for e in entries if e["is_p2p"]} == {"threads:send 0->1", "threads:recv 1<-0"}
    assert "all_reduce" in RECORDER.text()


def test_reductions_compare_as_pytorchs():
    for api in (dist, reference):
        op, summed = api.ReduceOp, api.ReduceOp(api.ReduceOp.SUM)
        assert isinstance(op.SUM, op) and summed == op.SUM and not op.SUM == summed
        assert api._make_nccl_premul_sum(2.0) == api._make_nccl_premul_sum(3.0)


def test_a_store_barrier_says_who_is_missing():
    store = dist.HashStore()
    with pytest.raises(dist.DistStoreError, match=r"store based barrier on rank 0.*num_workers_joined=1"):
        distributed_c10d._store_based_barrier(0, store, "g", 2, timedelta(seconds=0.1))
