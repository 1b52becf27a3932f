"""Collectives on every backend, next to PyTorch's with Gloo."""

import datetime

import numpy as np
import pytest

import readtorch
from readtorch import distributed as dist
from tests.distributed import programs
from tests.distributed.launch import needs_mpi, results

RANKS = 3


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What PyTorch's ranks see."""
    return results("collectives", "torch", "gloo", RANKS, tmp_path_factory.mktemp("reference"))


def assert_same(ours, theirs, where=""):
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}: {key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(theirs, np.ndarray):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), where
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13, err_msg=where)
    else:
        assert ours == theirs, where


def test_threads(reference):
    ours = dist.run_threads(lambda rank: programs.collectives(readtorch, rank), RANKS)
    assert_same(ours, reference)


def test_processes_connected_by_sockets(reference, tmp_path):
    assert_same(results("collectives", "readtorch", "gloo", RANKS, tmp_path), reference)


@needs_mpi
def test_processes_of_mpi(reference, tmp_path):
    assert_same(results("collectives", "readtorch", "mpi", RANKS, tmp_path), reference)


@pytest.mark.parametrize("ranks", [1, 2, 4, 5])
def test_reductions_over_other_numbers_of_ranks(ranks):
    values = [np.random.default_rng(r).standard_normal(33) for r in range(ranks)]

    def reduce(rank):
        t = readtorch.tensor(values[rank])
        dist.all_reduce(t)
        return t.numpy()

    for result in dist.run_threads(reduce, ranks):
        np.testing.assert_allclose(result, sum(values), rtol=1e-13)


# -- handles ------------------------------------------------------------------------------------


def test_async_work():
    """A handle is complete when all have come; its future passes the tensors on."""

    def fn(rank):
        t = readtorch.ones(3) * (rank + 1)
        work = dist.all_reduce(t, async_op=True)
        future = work.get_future()
        doubled = future.then(lambda f: f.value()[0] * 2)
        work.wait()
        assert work.is_completed() and work.is_success() and work.exception() is None
        assert work.result()[0] is t and future.done() and work.get_future() is future
        return doubled.wait().tolist()

    assert dist.run_threads(fn, 3) == [[12.0] * 3] * 3


def test_works_overlap_in_order():
    """Several are under way at once, and each gets its own values."""

    def fn(rank):
        tensors = [readtorch.full((2,), float(10 * i + rank)) for i in range(20)]
        works = [dist.all_reduce(t, async_op=True) for t in tensors]
        for work in reversed(works):
            work.wait()
        return [t[0].item() for t in tensors]

    expected = [sum(10.0 * i + rank for rank in range(4)) for i in range(20)]
    assert dist.run_threads(fn, 4) == [expected] * 4


def test_group_names_and_numbers():
    def fn(rank):
        odd, even = dist.new_group([1, 3]), dist.new_group([2, 0])
        mine = odd if rank % 2 else even
        assert (odd if rank % 2 == 0 else even) == dist.GroupMember.NON_GROUP_MEMBER
        own, subgroups = dist.new_subgroups(2)
        assert own in subgroups and len(subgroups) == 2
        assert dist.get_pg_count() == 3
        return (
            dist.get_rank(mine),
            dist.get_world_size(mine),
            dist.get_process_group_ranks(mine),
            dist.get_process_group_ranks(own),
            dist.get_backend(mine),
            mine.name(),
        )

    assert dist.run_threads(fn, 4) == [
        (0, 2, [0, 2], [0, 1], "threads", "threads"),
        (0, 2, [1, 3], [0, 1], "threads", "threads"),
        (1, 2, [0, 2], [2, 3], "threads", "threads"),
        (1, 2, [1, 3], [2, 3], "threads", "threads"),
    ]


def test_a_group_in_another_order():
    def fn(rank):
        group = dist.new_group([2, 0, 1], sort_ranks=False)
        parts = [readtorch.zeros(1) for _ in range(3)]
        dist.all_gather(parts, readtorch.tensor([float(rank)]), group=group)
        return dist.get_rank(group), [t.item() for t in parts]

    order = [2.0, 0.0, 1.0]
    assert dist.run_threads(fn, 3) == [(1, order), (2, order), (0, order)]


def test_not_in_the_group():
    def fn(rank):
        group = dist.new_group([0])
        t = readtorch.ones(1)
        if rank == 1:
            with pytest.warns(UserWarning, match="Running all_reduce on global rank 1 which does not belong"):
                assert dist.all_reduce(t, group=group) is None
            assert dist.get_world_size(group) == dist.get_rank(group) == -1

    dist.run_threads(fn, 2)


# -- what is refused ----------------------------------------------------------------------------

one = readtorch.ones


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda: dist.all_reduce(3),
            TypeError,
            r"Expected parameter `tensor` of type torch.Tensor\s+but got <class 'int'>",
        ),
        (
            lambda: dist.all_reduce(one(3), dist.ReduceOp.BAND),
            RuntimeError,
            "Cannot use ReduceOp.BAND with non-integral dtype",
        ),
        (
            lambda: dist.all_reduce(readtorch.arange(3), dist.ReduceOp.AVG),
            RuntimeError,
            "result type Float can't be cast to the desired output type Long",
        ),
        (
            lambda: dist.all_reduce(one(3) * 1j, dist.ReduceOp.MAX),
            ValueError,
            "all_reduce does not support .*MAX.* on complex",
        ),
        (
            lambda: dist.all_gather([one(3)], one(3)),
            RuntimeError,
            r"invalid output tensor list at index 0 \(expected length 2, got 1",
        ),
        (
            lambda: dist.all_gather([one(3), one(2)], one(3)),
            RuntimeError,
            r"invalid tensor size at index 1 \(expected \(3\), got \(2\)",
        ),
        (
            lambda: dist.all_gather([one(3), one(3)], one(3).double()),
            ValueError,
            "Invalid usage of tensors with different dtypes",
        ),
        (lambda: dist.all_gather((one(3), one(3)), one(3)), TypeError, r"of type List\[torch.Tensor\]"),
        (
            lambda: dist.gather(one(3), None, dst=dist.get_rank()),
            ValueError,
            "``gather_list`` must be specified on destination",
        ),
        (
            lambda: dist.scatter(one(3), [one(3)] * 2, src=1 - dist.get_rank()),
            ValueError,
            "must NOT be specified on non-source",
        ),
        (
            lambda: dist.all_to_all_single(one(4), one(4), [1, 2], [2, 2]),
            RuntimeError,
            "Split sizes doesn't match total dim 0 size",
        ),
        (lambda: dist.reduce(one(4), dst=7), RuntimeError, "invalid root rank: 7"),
        (lambda: dist.broadcast(one(4)), ValueError, "Must specify global_rank or group_rank"),
        (
            lambda: dist.send(one(2), dist.get_rank()),
            ValueError,
            "destination rank should not be the same as the rank of the current",
        ),
        (lambda: dist.batch_isend_irecv([3]), ValueError, "Invalid ``p2p_op_list``"),
        (
            lambda: dist.init_process_group("threads"),
            ValueError,
            "trying to initialize the default process group twice!",
        ),
        (lambda: dist.new_group([0, 5]), ValueError, "Rank 5 is out of range. Valid ranks are 0 to 1"),
        (lambda: dist.get_group_rank("x", 0), ValueError, "Group x is not registered"),
        (lambda: dist.monitored_barrier(timeout=3), TypeError, "datetime.timedelta, got 3"),
    ],
)
def test_refusals(call, error, words):
    """On the rank that calls, at once, so that no other has to wait."""

    def fn(rank):
        with pytest.raises(error, match=words):
            call()

    dist.run_threads(fn, 2, timeout=datetime.timedelta(seconds=5))


def test_outside_of_any_group():
    assert not dist.is_initialized() and dist.is_available()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.get_rank()
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("tcp", init_method="env://")
    with pytest.raises(RuntimeError, match="Distributed package doesn't have NCCL built in"):
        dist.init_process_group("nccl", init_method="env://")


def test_threads_that_meet_at_a_store():
    """Ranks that the caller starts himself, as in a script."""
    import threading

    store, seen = dist.HashStore(), []

    def rank(number):
        dist.init_process_group("threads", store=store, rank=number, world_size=3)
        t = readtorch.ones(2) * number
        dist.all_reduce(t)
        seen.append((dist.get_rank(), t.tolist()))
        dist.destroy_process_group()

    threads = [threading.Thread(target=rank, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(seen) == [(i, [3.0, 3.0]) for i in range(3)]
