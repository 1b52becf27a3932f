"""FSDP2: the same steps as PyTorch's and as one process's, the memory that the formula says, checkpoints both ways."""

import gc
import os

import numpy as np
import pytest
import torch

import readtorch
from readtorch import distributed as dist
from readtorch.aten.simulated_cost import CostModel
from readtorch.c10.cuda.driver_api import DEFAULT_STREAM
from readtorch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, fully_shard, register_fsdp_forward_method
from tests.distributed import sharded_programs as programs
from tests.distributed.launch import results

RANKS = 4


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """(what our ranks see, what PyTorch's see, what ours see that go on from PyTorch's checkpoint)"""
    os.environ[programs.FOLDER] = str(tmp_path_factory.mktemp("checkpoints"))
    try:
        first = dist.run_threads(lambda rank: programs.exchange(readtorch, rank, None, "ours"), RANKS)
        theirs = results("fully_sharded", "torch", "gloo", RANKS, tmp_path_factory.mktemp("reference"))
        last = dist.run_threads(lambda rank: programs.exchange(readtorch, rank, "theirs", None), 2)
    finally:
        del os.environ[programs.FOLDER]
    ours = dist.run_threads(lambda rank: programs.all_cases(readtorch, rank), RANKS)
    return ours, theirs, first, last


def assert_same(ours, theirs, where="", rtol=1e-10):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}/{key}", 0.1 if key == "coarse" else rtol)
    elif isinstance(theirs, np.ndarray):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), where
        scale = float(np.abs(theirs).max()) if theirs.size else 1.0
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * (scale or 1.0), err_msg=where)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=rtol), where
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert_same(a, b, f"{where}[{i}]", rtol)
    else:
        assert ours == theirs, where


CASES = (
    "default",
    "whole after forward",
    "two ranks after forward",
    "copies",
    "columns",
    "prefetch",
    "checkpointed",
    "divided",
    "on the CPU",
    "accumulated",
    "tensor parallel",
    "own collectives",
    "unused",
    "precision",
    "groups",
    "states",
)


@pytest.mark.parametrize("case", CASES)
def test_every_rank_has_what_pytorchs_has(both, case):
    for rank in range(RANKS):
        assert_same(both[0][rank][case], both[1][rank]["cases"][case], f"rank {rank}: {case}")


def test_checkpoints_go_both_ways(both):
    """Two steps here, two in PyTorch, two here on half as many ranks: as six in one process."""
    ours, theirs, first, last = both
    model = programs.make_gpt(torch)
    optimizer = programs.optimizer_of(torch, model)
    for ranks in (first, [result["exchange"] for result in theirs], last):
        losses = programs.train(torch, model, optimizer, range(2))
        np.testing.assert_allclose(np.mean([r["losses"] for r in ranks], 0), losses, rtol=1e-10)
        expected = programs.plain(model.state_dict())
        assert ranks[0]["whole"].keys() == expected.keys() and all(r["whole"] == {} for r in ranks[1:])
        for name, value in expected.items():
            np.testing.assert_allclose(ranks[0]["whole"][name], value, rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("ranks", [2, 8])
def test_steps_are_those_of_one_process(ranks, steps=4):
    model = programs.make_gpt(torch)
    expected = programs.train(torch, model, programs.optimizer_of(torch, model), range(steps))

    def run(rank):
        sharded = programs.sharded_gpt(readtorch)
        losses = programs.train(
            readtorch, sharded, programs.optimizer_of(readtorch, sharded), range(steps), rank, ranks
        )
        return losses, {name: p.full_tensor().tolist() for name, p in sharded.named_parameters()}

    seen = dist.run_threads(run, ranks)
    np.testing.assert_allclose(np.mean([losses for losses, _ in seen], 0), expected, rtol=1e-10)
    for name, parameter in model.named_parameters():
        for _, whole in seen:
            np.testing.assert_allclose(whole[name], parameter.detach().numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2)])
def test_sharded_tensor_parallelism_takes_the_steps_of_one_process(shape, steps=3):
    """And of copies of it: the first of three dimensions."""
    model = programs.make_gpt(torch)
    expected = programs.train(torch, model, programs.optimizer_of(torch, model), range(steps))

    def run(rank):
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=("copies", "shards", "pieces")[-len(shape) :])
        sharded = programs.tensor_parallel_gpt(readtorch, mesh)
        losses = programs.train(
            readtorch, sharded, programs.optimizer_of(readtorch, sharded), range(steps), rank // 2, mesh.size() // 2
        )
        return losses, {name: p.full_tensor().tolist() for name, p in sharded.named_parameters()}

    seen = dist.run_threads(run, int(np.prod(shape)))
    np.testing.assert_allclose(np.mean([losses for losses, _ in seen], 0), expected, rtol=1e-10)
    for name, parameter in model.named_parameters():
        for _, whole in seen:
            np.testing.assert_allclose(whole[name], parameter.detach().numpy(), rtol=1e-10, atol=1e-10, err_msg=name)


# -- simulated devices --------------------------------------------------------------------------


@pytest.fixture
def devices():
    gc.collect()
    readtorch.cuda.simulate(RANKS, "256MiB", costs=CostModel(peer=1e4))
    yield readtorch.cuda
    readtorch.cuda.simulate(0)


def big_gpt(width=128, layers=4):
    return programs.make_gpt(readtorch, width, 64, layers).float()


def test_memory_is_as_the_formula_says(devices):
    """Parameters, gradients and two moments, of each 1/N; and while a block computes, what is whole: the root's parameters, the
    block's, and the output of its all-gather, which is kept for the next one.
    """

    def run(rank):
        devices.set_device(rank)
        model = big_gpt()
        block = 4 * sum(p.numel() for p in model.blocks[0].parameters())
        total = 4 * sum(p.numel() for p in model.parameters())
        root = total - len(model.blocks) * block
        model.cuda()
        for each in model.blocks:
            fully_shard(each)
        fully_shard(model)
        optimizer, ids, seen = programs.optimizer_of(readtorch, model), readtorch.ones(1, 4, dtype=readtorch.int64), []
        model.blocks[2].register_forward_pre_hook(lambda *args: seen.append(devices.memory_allocated()))
        sharded = devices.memory_allocated()
        for _ in range(2):
            model(ids.cuda()).sum().backward()
            reduced = devices.memory_allocated()
            optimizer.step()
            stepped = devices.memory_allocated()
        return {
            "sharded": (sharded, total / RANKS),
            "reduced": (reduced, 4 * total / RANKS),
            "stepped": (stepped, 4 * total / RANKS),
            "in forward": (seen[1], 4 * total / RANKS + root + 2 * block),
        }

    for result in dist.run_threads(run, RANKS):
        for where, (measured, formula) in result.items():
            assert measured == pytest.approx(formula, rel=0.05), where


COLLECTIVES = ("all_gather", "reduce_scatter", "barrier")


def spans(timeline, device, names):
    return [(start, end) for where, _, label, start, end in timeline if where == device and label in names]


def shared(these, those):
    """How long both run."""
    return sum(max(0, min(b, d) - max(a, c)) for a, b in these for c, d in those)


def test_collectives_run_beside_computation(devices):
    from readtorch.c10.cuda import runtime

    def run(rank, overlapping):
        devices.set_device(rank)
        model = big_gpt().cuda()
        for each in (*model.blocks, model):
            fully_shard(each)
            if not overlapping:
                each._set_unshard_async_op(True)  # everything on the current stream
        for step in range(2):
            dist.barrier()
            if rank == 0 and step == 1:
                runtime.driver().streams.timeline = []
            dist.barrier()
            model(readtorch.ones(8, 64, dtype=readtorch.int64, device="cuda")).sum().backward()
        devices.synchronize()

    hidden = {}
    for overlapping in (True, False):
        dist.run_threads(run, RANKS, args=(overlapping,))
        timeline, runtime.driver().streams.timeline = runtime.driver().streams.timeline, None
        for device in range(RANKS):
            gathers = spans(timeline, device, ("all_gather",))
            work = [
                (start, end)
                for where, stream, label, start, end in timeline
                if (where, stream) == (device, DEFAULT_STREAM) and label not in COLLECTIVES
            ]
            assert len(gathers) == 2 * 4 + 1  # a block is gathered twice, the root once
            assert len(spans(timeline, device, ("reduce_scatter",))) == 5
            hidden[device, overlapping] = shared(gathers, work) / sum(end - start for start, end in gathers)
    assert all(hidden[device, False] == 0 for device in range(RANKS))
    assert min(hidden[device, True] for device in range(RANKS)) > 0.5, hidden


def test_sharded_tensor_parallelism_on_devices(devices):
    """Collectives of both within backward, in the devices' own threads."""

    def run(rank):
        devices.set_device(rank)
        mesh = dist.init_device_mesh("cuda", (2, 2), mesh_dim_names=("shards", "pieces"))
        model = programs.tensor_parallel_gpt(readtorch, mesh)
        programs.loss_of(readtorch, model, programs.texts(readtorch, 0, rank // 2, 2).cuda()).backward()
        return {name: p.grad.full_tensor().cpu().numpy() for name, p in model.named_parameters()}

    whole = programs.make_gpt(torch)
    programs.loss_of(torch, whole, programs.texts(torch, 0)).backward()
    for seen in dist.run_threads(run, RANKS):
        for name, parameter in whole.named_parameters():
            np.testing.assert_allclose(seen[name], parameter.grad.numpy(), rtol=1e-9, atol=1e-12, err_msg=name)


def test_offloaded_shards_are_on_the_host(devices):
    def run(rank):
        devices.set_device(rank)
        model = big_gpt()
        for each in (*model.blocks, model):
            fully_shard(each, offload_policy=CPUOffloadPolicy())
        optimizer = programs.optimizer_of(readtorch, model)
        model(readtorch.ones(1, 4, dtype=readtorch.int64)).sum().backward()
        optimizer.step()
        kinds = {(p.device.type, p.grad.device.type, p.to_local().is_pinned()) for p in model.parameters()}
        return kinds, devices.memory_allocated()

    for kinds, used in dist.run_threads(run, RANKS):
        assert kinds == {("cpu", "cpu", True)} and used < 100_000


# -- details ------------------------------------------------------------------------------------


def test_after_an_exception():
    def run(rank):
        model = programs.sharded_gpt(readtorch)
        hook = model.blocks[1].register_forward_pre_hook(lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model(programs.texts(readtorch, 0)[:, :-1])
        hook.remove()
        model.reset_iter_state()
        return programs.train(readtorch, model, programs.optimizer_of(readtorch, model), range(2), rank, 2)

    clean = dist.run_threads(lambda rank: programs.trained(readtorch, rank, steps=2)["losses"], 2)
    assert dist.run_threads(run, 2) == clean


def test_another_method_than_forward():
    def run(rank):
        model = programs.make_gpt(readtorch)
        type(model).logits = lambda self, ids: self.head(self.embedding(ids))
        fully_shard(model)
        register_fsdp_forward_method(model, "logits")
        return model.logits(readtorch.tensor([1])).tolist()

    first, second = dist.run_threads(run, 2)
    assert first == second


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        (
            lambda nn: fully_shard(nn.ModuleList()),
            ValueError,
            "does not support containers that do not implement forward",
        ),
        (
            lambda nn: fully_shard(nn.Linear(2, 2), reshard_after_forward=3),
            ValueError,
            "it should be a factor of 2, not 3",
        ),
        (lambda nn: fully_shard(nn.Linear(2, 2), reshard_after_forward="no"), ValueError, "should be a bool or an int"),
        (lambda nn: fully_shard(fully_shard(nn.Linear(2, 2))), AssertionError, "only be applied to a module once"),
        (
            lambda nn: __import__("copy").deepcopy(fully_shard(nn.Linear(2, 2))),
            AssertionError,
            "does not support deepcopy",
        ),
        (
            lambda nn: fully_shard(nn.Linear(2, 2, device="meta"))(readtorch.ones(1, 2)),
            RuntimeError,
            "materialized from meta",
        ),
    ],
)
def test_errors(wrong, error, message):
    def run(rank):
        with pytest.raises(error, match=message):
            wrong(readtorch.nn)

    dist.run_threads(run, 2)


def test_methods_are_pytorchs():
    from torch.distributed.fsdp import FSDPModule as Theirs

    absent = {name for name in dir(Theirs) if not name.startswith("_")} - set(dir(FSDPModule))
    assert absent == {"set_allocate_memory_from_process_group_for_comm", "set_symm_mem_for_comm"}  # of NCCL
    for wrong, error in ((True, TypeError), ("2", TypeError), (0, ValueError)):
        with pytest.raises(error) as ours:
            FSDPModule.set_reduce_scatter_max_input_buffers(None, wrong)
        with pytest.raises(error) as theirs:
            Theirs.set_reduce_scatter_max_input_buffers(None, wrong)
        assert str(ours.value) == str(theirs.value)


def test_classes():
    def run(rank):
        model = fully_shard(readtorch.nn.Sequential(readtorch.nn.Linear(2, 2), readtorch.nn.ReLU()))
        assert isinstance(model, FSDPModule) and type(model).__name__ == "FSDPSequential"
        return type(model[:1]).__name__

    assert dist.run_threads(run, 1) == ["Sequential"]
