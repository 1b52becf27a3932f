"""Some of the runs of `python -m tests.distributed.faults`: every surviving rank gets an error, in time."""

import subprocess
import time
from datetime import timedelta

import pytest

import readtorch
from readtorch import distributed as dist
from tests.distributed import faults
from tests.distributed.launch import needs_mpi


def plans(backend, count, skip=()):
    """The first plans of a backend."""
    drawn = (faults.draw(seed, [backend]) for seed in range(1000))
    chosen = (plan for plan in drawn if plan["kind"] not in skip)
    return [next(chosen) for _ in range(count)]


def name(plan):
    return f"{plan['seed']}-{plan['kind'].replace(' ', '_')}"


@pytest.mark.parametrize("plan", plans("threads", 30), ids=name)
def test_threads(plan):
    assert faults.problems(plan) == []


@pytest.mark.parametrize("plan", plans("tcp", 3, skip=["hangs", *faults.SOCKETS]), ids=name)
def test_sockets(plan):
    assert faults.problems(plan) == []


@pytest.mark.parametrize("kind", faults.SOCKETS)
def test_connections(kind):
    """A rank that stops, one that loses its connections, and a stranger who talks to all that listens."""
    plan = {"seed": 5, "backend": "tcp", "ranks": 2, "program": "collectives", "kind": kind, "culprit": 1, "step": 2}
    assert faults.problems(plan) == []


@needs_mpi
@pytest.mark.parametrize("plan", plans("mpi", 2, skip=["hangs", "returns"]), ids=name)
def test_mpi(plan):
    assert faults.problems(plan) == []


def test_the_judge_notices():
    """A run in which nobody fails is not good, nor is an error that says nothing."""
    plan = faults.draw(0, ["threads"]) | {"program": "collectives", "kind": "none", "culprit": 1, "ranks": 2}
    assert faults.problems(plan) == ["rank 0: noticed nothing"]
    left = subprocess.Popen(["sleep", "60"], start_new_session=True)
    assert faults.left_by_processes(left.pid) == [f"process {left.pid} (sleep) is left"]
    left.kill()
    vague = {"rank": 0, "error": "RuntimeError: failed", "seconds": 0.0}
    assert len(faults.problems_of(vague, plan)) == 2


def test_a_broken_group_says_so_at_once():
    def fn(rank):
        if rank == 1:
            raise faults.Culprit("on purpose")
        for _ in range(2):
            with pytest.raises(dist.DistBackendError, match="rank 1 will not come, it failed with Culprit: on purpose"):
                dist.all_reduce(readtorch.ones(2))

    with pytest.raises(faults.Culprit) as caught:
        dist.run_threads(fn, 2)
    assert caught.value.__notes__ == ["raised on rank 1 of 2"]


def test_a_mismatch_does_not_break_the_group():
    """All ranks learn of it before data moves, and may go on."""

    def fn(rank):
        with pytest.raises(dist.DistBackendError, match=r"Tensor shapes: \[\d\] vs \[\d\]"):
            dist.all_reduce(readtorch.ones(2 + rank))
        t = readtorch.ones(1)
        dist.all_reduce(t)
        return t.item()

    assert dist.run_threads(fn, 2) == [2.0, 2.0]


def test_a_mismatch_names_root_0():
    def fn(rank):
        with pytest.raises(dist.DistBackendError, match="Root rank: 0 vs 1"):
            dist.broadcast(readtorch.ones(2), int(rank > 0))

    dist.run_threads(fn, 3)


def test_uneven_all_to_all_that_does_not_fit():
    def fn(rank):
        with pytest.raises(dist.DistBackendError, match="Rank 0 sends 1 elements to Rank 0, which expects 2"):
            dist.all_to_all_single(readtorch.empty(4), readtorch.ones(4), [2, 2], [1, 3] if rank == 0 else [2, 2])

    dist.run_threads(fn, 2)


def test_monitored_barrier():
    def fn(rank):
        if rank == 1:
            time.sleep(0.5)
            return
        with pytest.raises(RuntimeError, match="(?s)failed to pass monitoredBarrier in 200 ms.*rank 1 did not come"):
            dist.monitored_barrier(timeout=timedelta(milliseconds=200))

    dist.run_threads(fn, 2)


def test_a_receiver_whose_sender_has_gone():
    def fn(rank):
        if rank == 0:
            with pytest.raises(
                dist.DistBackendError, match="recv from rank 1.*rank 1 will not come, its function has returned"
            ):
                dist.recv(readtorch.empty(1), 1)
            with pytest.raises(
                dist.DistBackendError, match=r"got a tensor of shape \[3\] and type float32, expected \[2\]"
            ):
                dist.recv(readtorch.empty(2), 2)
        if rank == 2:
            dist.send(readtorch.ones(3), 0)

    dist.run_threads(fn, 3)
