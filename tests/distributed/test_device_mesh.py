"""Meshes of ranks, compared with PyTorch's, which needs no ranks for it: its fake process group says what each of them would see."""

import functools

import pytest
import torch
from torch.testing._internal.distributed.fake_pg import FakeStore

import readtorch
from readtorch.distributed import run_threads


def of_pytorch(program, rank, world_size):
    """What `program(torch)` returns as one of `world_size` ranks of PyTorch."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
    try:
        return program(torch)
    finally:
        torch.distributed.destroy_process_group()


def on_all_ranks(program, world_size):
    """Asserts that every rank gets from `program` what PyTorch gives it."""
    ours = run_threads(lambda rank: program(readtorch), world_size)
    for rank in range(world_size):
        assert ours[rank] == of_pytorch(program, rank, world_size), rank


def described(mesh):
    return (
        repr(mesh),
        mesh.mesh.tolist(),
        mesh.ndim,
        mesh.shape,
        mesh.size(),
        mesh.mesh_dim_names,
        mesh.get_coordinate(),
        [mesh.get_local_rank(dim) for dim in range(mesh.ndim)],
    )


def members(t, mesh):
    return [t.distributed.get_process_group_ranks(group) for group in mesh.get_all_groups()]


@pytest.mark.parametrize("shape", [(4,), (2, 2), (2, 1, 2)])
def test_a_mesh_knows_where_each_rank_stands(shape):
    names = ("pp", "dp", "tp")[-len(shape) :]

    def program(t):
        mesh = t.distributed.init_device_mesh("cpu", shape, mesh_dim_names=names)
        return described(mesh), members(t, mesh)

    on_all_ranks(program, 4)


def test_slices_flattened_and_unflattened_meshes():
    def program(t):
        mesh = t.distributed.init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
        made = [mesh["tp"], mesh["pp", "tp"], mesh["pp", "dp"], mesh["pp", "tp"]._flatten("both")]
        made.append(made[3]._unflatten("both", (2, 2), ("a", "b")))
        made.append(type(mesh)._concatenate([mesh["pp"], mesh["tp"]]))
        return [described(m) + (members(t, m),) for m in made], mesh["tp"] == mesh["tp"], mesh["tp"] == mesh["dp"]

    on_all_ranks(program, 8)


def test_meshes_of_lists_and_of_groups():
    def program(t):
        mesh = t.distributed.DeviceMesh("cpu", [[3, 1], [0, 2]], mesh_dim_names=("a", "b"))
        same = t.distributed.DeviceMesh.from_group(mesh.get_group("b"), "cpu", mesh_dim_names=("c",))
        return described(mesh), described(mesh["a"]), described(same), members(t, same)

    on_all_ranks(program, 4)


def test_a_rank_that_is_not_in_the_mesh():
    def program(t):
        mesh = t.distributed.DeviceMesh("cpu", [0, 2])
        return mesh.get_coordinate(), mesh.mesh.tolist(), repr(mesh)

    on_all_ranks(program, 3)


REFUSED = [
    lambda t, mesh: mesh["c"],
    lambda t, mesh: mesh["b", "a"],
    lambda t, mesh: mesh.get_group(),
    lambda t, mesh: mesh.get_group("c"),
    lambda t, mesh: mesh.get_local_rank(),
    lambda t, mesh: mesh._flatten("a"),
    lambda t, mesh: mesh._unflatten("a", (2, 2), ("x", "y")),
    lambda t, mesh: t.distributed.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a")),
    lambda t, mesh: t.distributed.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a",)),
    lambda t, mesh: t.distributed.init_device_mesh("cpu:0", (4,)),
    lambda t, mesh: t.distributed.init_device_mesh("cpu", (8,)),
    lambda t, mesh: t.distributed.init_device_mesh("cpu", (4,))["a"],
    lambda t, mesh: t.distributed.DeviceMesh("cpu", [0, 0]),
    lambda t, mesh: t.distributed.DeviceMesh("cpu"),
    lambda t, mesh: t.distributed.DeviceMesh.from_group([], "cpu"),
    lambda t, mesh: t.distributed.DeviceMesh.from_group(mesh.get_all_groups(), "cpu"),
]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_refusals_are_pytorchs(call):
    def program(t):
        mesh = t.distributed.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        with pytest.raises(Exception) as caught:
            call(t, mesh)
        return type(caught.value), caught.value.args

    ours = run_threads(functools.partial(lambda rank: program(readtorch)), 4)[0]
    assert ours == of_pytorch(program, 0, 4)
