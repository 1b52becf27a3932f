"""DTensors against the whole tensors that they are, and against PyTorch's DTensors where its fake process group can say what they do."""

import itertools

import pytest
import torch
import torch.distributed.tensor
from torch.testing._internal.distributed.fake_pg import FakeStore

import readtorch
from readtorch.distributed import init_device_mesh, run_threads
from readtorch.distributed.tensor import DTensor, Partial, Replicate, Shard, _StridedShard, distribute_tensor

KINDS = (Shard(0), Shard(1), Replicate())
CUTS = (*itertools.product(KINDS, repeat=2), (_StridedShard(0, split_factor=2), Shard(0)))


def whole(*shape):
    return readtorch.arange(float(readtorch.Size(shape).numel()), dtype=readtorch.float64).view(shape)


def test_every_way_from_every_placement_to_every_other():
    """Sizes that no number of ranks divides."""

    def program(rank):
        mesh, x = init_device_mesh("cpu", (2, 2)), whole(5, 7)
        for before, after in itertools.product(CUTS, repeat=2):
            moved = distribute_tensor(x, mesh, before).redistribute(placements=after)
            assert moved.placements == after
            assert readtorch.equal(moved.to_local(), distribute_tensor(x, mesh, after).to_local()), (before, after)
            assert readtorch.equal(moved.full_tensor(), x), (before, after)
        for after in CUTS[:-1]:
            parts = DTensor.from_local(x * (rank + 1), mesh, (Partial(), Partial()))
            assert readtorch.equal(parts.redistribute(placements=after).full_tensor(), x * 10), after
        return True

    assert all(run_threads(program, 4))


@pytest.mark.parametrize(("op", "expected"), [("sum", 10), ("avg", 2.5), ("max", 4), ("min", 1), ("product", 24)])
def test_what_is_partial_is_reduced(op, expected):
    def program(rank):
        mesh = init_device_mesh("cpu", (4,))
        parts = DTensor.from_local(readtorch.full((3, 2), rank + 1.0), mesh, [Partial(op)])
        cut = parts.redistribute(placements=[Shard(0)]).full_tensor()
        return parts.full_tensor().unique().tolist(), cut.unique().tolist()

    assert run_threads(program, 4) == [([expected], [expected])] * 4


def local_parts(t, shape, placements, rank):
    """(repr, local tensor, sizes and strides) of a tensor that each rank cuts itself."""
    tensor = t.distributed.tensor
    mesh = t.distributed.init_device_mesh("cpu", (4,))
    x = t.arange(float(t.Size(shape).numel())).view(shape)
    kinds = {"s0": tensor.Shard(0), "s1": tensor.Shard(-1), "r": tensor.Replicate()}
    d = tensor.distribute_tensor(x, mesh, [kinds[placements]], src_data_rank=None)
    return repr(d), d.to_local().tolist(), tuple(d.shape), d.stride(), d.requires_grad, d.is_leaf, str(d.placements)


@pytest.mark.parametrize("placements", ["s0", "s1", "r"])
@pytest.mark.parametrize("shape", [(8, 3), (5, 2), (3, 9), (1, 1)])
def test_shards_are_cut_where_pytorch_cuts(shape, placements):
    ours = run_threads(lambda rank: local_parts(readtorch, shape, placements, rank), 4)
    for rank in range(4):
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=4)
        try:
            assert ours[rank] == local_parts(torch, shape, placements, rank)
        finally:
            torch.distributed.destroy_process_group()


def test_gradients_flow_through_from_local_redistribute_and_to_local():
    def program(rank):
        mesh = init_device_mesh("cpu", (2,))
        local = (whole(2, 3) + rank).requires_grad_()
        d = DTensor.from_local(local, mesh, [Shard(0)])
        y = d.redistribute(placements=[Replicate()]) * 2
        (y.to_local() * whole(4, 3)).sum().backward()
        expected = 2 * whole(4, 3)[2 * rank : 2 * rank + 2]
        assert readtorch.equal(local.grad, expected)

        leaf = distribute_tensor(whole(5, 3), mesh, [Shard(1)]).requires_grad_()
        (leaf * leaf).redistribute(placements=[Shard(0)]).full_tensor().sum().backward()
        assert leaf.grad.placements == (Shard(1),)
        assert readtorch.equal(leaf.grad.full_tensor(), 2 * whole(5, 3))
        return True

    assert all(run_threads(program, 2))


def test_a_partial_tensor_has_the_gradient_of_the_sum():
    def program(rank):
        mesh = init_device_mesh("cpu", (2,))
        local = whole(2, 2).requires_grad_()
        d = DTensor.from_local(local, mesh, [Partial()])
        (d.redistribute(placements=[Shard(0)]) * 3).full_tensor().sum().backward()
        return local.grad.tolist()

    assert run_threads(program, 2) == [[[3.0, 3.0], [3.0, 3.0]]] * 2
