"""Operators on DTensors: random programs give what whole tensors give, and are placed as PyTorch places them."""

import itertools
import re
import warnings

import numpy as np
import pytest
import torch
import torch.distributed.tensor as theirs
from torch.distributed.tensor._ops import _view_ops as their_views
from torch.testing._internal.distributed.fake_pg import FakeStore

import readtorch
from readtorch.distributed import init_device_mesh, run_threads
from readtorch.distributed import tensor as ours
from readtorch.distributed.tensor import DTensor, Partial, Replicate, Shard, _StridedShard, distribute_tensor
from readtorch.distributed.tensor._ops import _view_ops as our_views
from readtorch.distributed.tensor._ops.utils import has_empty_shards, ops_with_rules
from readtorch.distributed.tensor.experimental import implicit_replication

from .dtensor_programs import differences, make_program, placements

WORLDS = {seed: int(torch.tensor(make_program(seed, readtorch, 0)[0]).prod()) for seed in range(40)}
SMALL = [seed for seed, world in WORLDS.items() if world <= 4]


@pytest.mark.parametrize("seed", SMALL[:6])
def test_random_programs_compute_what_whole_tensors_do(seed):
    """`python -m tests.distributed.dtensor_programs` runs 300."""
    program = make_program(seed, readtorch)
    for wrong, _ in run_threads(lambda rank: differences(program, gradients=True), WORLDS[seed]):
        assert wrong == []


@pytest.mark.parametrize("seed", range(20, 30))
def test_random_programs_are_placed_as_pytorchs(seed):
    """But where PyTorch's result would be wrong: extrema of shards of which one is empty, booleans counted as a sum."""
    program, world = make_program(seed, readtorch), WORLDS[seed]
    got, results = run_threads(lambda rank: placements(program, readtorch, ours), world)[0]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, _ = placements(program, torch, theirs)
    finally:
        torch.distributed.destroy_process_group()
    first, differ = len(program[1]), set()
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        name, operands = program[2][i - first][:2] if i >= first else ("", [])
        on_purpose = name == "any above" or any(has_empty_shards(results[j]._spec) for j in operands)
        if on_purpose or differ & set(operands):
            differ.add(i)
        else:
            assert a == b, (program[0], program[2][i - first], [expected[j] for j in operands])


VIEWS = [
    ((4, 8), (32,)),
    ((32,), (4, 8)),
    ((2, 4, 8), (8, 8)),
    ((8, 8), (2, 4, 8)),
    ((8, 6), (6, 8)),
    ((16, 4), (4, 16)),
]


def cuts(shape, mesh):
    """All ways to cut a tensor along a mesh in which strided shards have parts of one size."""
    one = [Replicate(), *(Shard(d) for d in range(len(shape)))]
    one += [_StridedShard(d, split_factor=n) for d in range(len(shape)) for n in (2, 4)]
    for cut in itertools.product(one, repeat=len(mesh)):
        sizes, even = list(shape), True
        for p, n in zip(cut, mesh, strict=True):
            if not p.is_replicate():
                even &= sizes[p.dim] % (n * getattr(p, "split_factor", n)) == 0 or isinstance(p, Shard)
                sizes[p.dim] //= n
        if even:
            yield cut


def on_rank(array, mesh, placements, coordinate):
    for p, n, i in zip(placements, mesh, coordinate, strict=True):
        if not p.is_replicate():
            pieces = p._ranges(array.shape[p.dim], n)[i]
            array = np.concatenate([array.take(range(r.start, r.stop), p.dim) for r in pieces], p.dim)
    return array.ravel()


def same_elements(before, after, mesh, cut_before, cut_after):
    """Whether on every rank a view of what it has is what it has of the view."""
    whole = np.arange(np.prod(before))
    return all(
        np.array_equal(
            on_rank(whole.reshape(before), mesh, cut_before, at), on_rank(whole.reshape(after), mesh, cut_after, at)
        )
        for at in np.ndindex(*mesh)
    )


def pytorchs_view(placements, before, after, mesh):
    """What PyTorch makes of placements in a view, as text; None if it refuses."""

    def in_pytorch(p):
        if isinstance(p, _StridedShard):
            return theirs.placement_types._StridedShard(p.dim, split_factor=p.split_factor)
        return theirs.Replicate() if p.is_replicate() else theirs.Shard(p.dim)

    rule = their_views.view_groups(before, after)
    try:
        made = their_views.propagate_shape_and_sharding([*map(in_pytorch, placements)], before, rule, mesh, True)
    except (RuntimeError, AssertionError, KeyError):
        return None
    return [[str(p) for p in part] for part in made]


@pytest.mark.parametrize("mesh", [(2, 2), (4, 2)])
def test_views_of_cut_dimensions(mesh):
    """As PyTorch cuts the view, or where it refuses or would mix up elements, so that every rank has its own."""
    same = better = 0
    for before, after in VIEWS:
        groups = our_views.view_groups(before, after)
        for cut in cuts(before, mesh):
            expected = pytorchs_view(cut, before, after, mesh)
            try:
                mine = our_views.propagate_shape_and_sharding(cut, before, groups, mesh, True)
            except RuntimeError:
                mine = None
            else:
                assert same_elements(before, after, mesh, *mine), (before, after, cut, mine)
            as_expected = mine is not None and expected == [[str(p) for p in part] for part in mine]
            same, better = same + as_expected, better + (mine is not None and not as_expected)
            if expected is not None and not as_expected:
                wrong = [[placement_of(text) for text in part] for part in expected]
                assert not same_elements(before, after, mesh, *wrong), (before, after, cut, mine, expected)
    assert same > 50 and better > 20, (same, better)


def placement_of(text):
    if text == "R":
        return Replicate()
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    return Shard(numbers[0]) if len(numbers) == 1 else _StridedShard(numbers[0], split_factor=numbers[1])


def test_the_gradient_of_a_dimension_that_two_dimensions_of_the_mesh_cut():
    """In PyTorch the flattened gradient cannot be viewed as it was; the product with it is made whole, for another reason."""

    def program(rank):
        mesh, x = init_device_mesh("cpu", (2, 2)), readtorch.randn(3, 4, 8, dtype=readtorch.float64)
        d = distribute_tensor(x, mesh, [Shard(2), Shard(2)]).requires_grad_()
        flat = d.view(3, 32)
        (flat * flat).sum().backward()
        assert flat.placements == (_StridedShard(1, split_factor=4),) * 2
        assert readtorch.equal(d.grad.full_tensor(), 2 * d.detach().full_tensor())
        return True

    assert all(run_threads(program, 4))


def test_rules_do_not_remember_a_mesh_whose_groups_are_gone():
    """In PyTorch they do: the result of an operator names groups that are not there."""
    for meshes_before in (0, 1):
        store = readtorch.distributed.HashStore()
        readtorch.distributed.init_process_group("gloo", rank=0, world_size=1, store=store)
        try:
            for _ in range(meshes_before):
                init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "b"))
            mesh = init_device_mesh("cpu", (1, 1))
            assert (ours.ones(6, 4, device_mesh=mesh) * 2).device_mesh is mesh
        finally:
            readtorch.distributed.destroy_process_group()


def test_many_operators_have_a_rule():
    names = {op._opname for op in ops_with_rules()}
    assert len(names) > 400, len(names)
    assert names >= {
        "add",
        "mm",
        "sum",
        "view",
        "embedding",
        "_softmax",
        "native_layer_norm",
        "index_put_",
        "sort",
        "native_dropout",
    }


REFUSED = {
    "a plain tensor beside it": lambda t, a, d: d + t.ones(8, 4),
    "no rule": lambda t, a, d: t.searchsorted(d, d),
    "another mesh": lambda t, a, d: d + a.distribute_tensor(t.ones(8, 4), other(t), [a.Shard(0)], src_data_rank=None),
    "another mesh, of a list": lambda t, a, d: t.stack(
        [d, a.distribute_tensor(t.ones(8, 4), other(t), [a.Shard(0)], src_data_rank=None)]
    ),
    "a view of what is cut unevenly": lambda t, a, d: a.distribute_tensor(
        t.ones(5, 4), d.device_mesh, [a.Shard(0)], src_data_rank=None
    ).view(-1),
    "a view that splits a cut": lambda t, a, d: d.view(2, 4, 4),
    "unbind along a cut": lambda t, a, d: d.unbind(0),
    "as_strided": lambda t, a, d: d.as_strided((2, 2), (1, 1)),
    "to Partial": lambda t, a, d: d.redistribute(placements=[a.Partial()]),
    "without placements": lambda t, a, d: d.redistribute(),
    "a DTensor as local tensor": lambda t, a, d: a.DTensor.from_local(d, d.device_mesh, [a.Shard(0)]),
    "two kinds of Partial": lambda t, a, d: a.DTensor.from_local(
        t.ones(2), t.distributed.init_device_mesh("cpu", (2, 2)), [a.Partial("max"), a.Partial("max2")]
    ),
    "too many placements": lambda t, a, d: a.distribute_tensor(t.ones(2), d.device_mesh, [a.Shard(0), a.Shard(0)]),
    "no leaf": lambda t, a, d: a.distribute_tensor(t.ones(2, requires_grad=True) * 2, d.device_mesh),
    "distributed already": lambda t, a, d: a.distribute_tensor(d, d.device_mesh, [a.Replicate()]),
    "in place, elsewhere": lambda t, a, d: a.DTensor.from_local(t.ones(8, 4), d.device_mesh, [a.Partial()]).relu_(),
    "shape without stride": lambda t, a, d: a.DTensor.from_local(t.ones(2), d.device_mesh, shape=(2,)),
    "factories with too many placements": lambda t, a, d: a.zeros(
        4, device_mesh=d.device_mesh, placements=[a.Shard(0), a.Shard(0)]
    ),
}


def other(t):
    return t.distributed.init_device_mesh("cpu", (4,), mesh_dim_names=("other",))


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_pytorchs(case):
    def refused(t, api):
        mesh = t.distributed.init_device_mesh("cpu", (4,))
        d = api.distribute_tensor(t.ones(8, 4), mesh, [api.Shard(0)], src_data_rank=None)
        with pytest.raises(Exception) as caught:
            REFUSED[case](t, api, d)
        text = re.sub(r"\{[^}]*\}", "{…}", str(caught.value))  # a set
        return caught.type, text.replace("readtorch", "torch")

    mine = run_threads(lambda rank: refused(readtorch, ours), 4)[0]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        expected = refused(torch, theirs)
    finally:
        torch.distributed.destroy_process_group()
    assert mine[0] == expected[0]
    if case.endswith("of a list"):  # the list is shown as its elements are written
        mine, expected = ((kind, text.partition("\n\n")[0]) for kind, text in (mine, expected))
    assert " ".join(mine[1].split()) == " ".join(expected[1].split())


def test_factories():
    def made(t, api):
        mesh = t.distributed.init_device_mesh("cpu", (4,))
        several = [
            api.zeros(5, 4, device_mesh=mesh, placements=[api.Shard(0)]),
            api.ones((5, 4), device_mesh=mesh, placements=[api.Shard(1)], dtype=t.int64),
            api.full((5,), 3, device_mesh=mesh),
            api.empty(3, device_mesh=mesh, placements=[api.Shard(0)], requires_grad=True),
        ]
        with mesh:
            several.append(api.zeros(2, 2))
        shown = [(str(d.placements), tuple(d.shape), d.stride(), str(d.dtype)[-7:], d.requires_grad) for d in several]
        return shown, [tuple(d.to_local().shape) for d in several], [d.to_local().tolist() for d in several[:3]]

    mine = run_threads(lambda rank: made(readtorch, ours), 4)
    for rank in range(4):
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=4)
        try:
            assert mine[rank] == made(torch, theirs)
        finally:
            torch.distributed.destroy_process_group()


def test_random_tensors_do_not_depend_on_how_they_are_cut():
    def program(rank):
        mesh = init_device_mesh("cpu", (2, 2))
        wholes = []
        for cut in ([Replicate(), Replicate()], [Shard(0), Shard(1)], [Shard(1), Shard(1)]):
            readtorch.manual_seed(3)
            wholes.append(ours.randn(5, 6, device_mesh=mesh, placements=cut).full_tensor())
        readtorch.manual_seed(3)
        expected = readtorch.randn(5, 6)
        assert all(readtorch.equal(whole, expected) for whole in wholes)
        return True

    assert all(run_threads(program, 4))


def test_shards_on_devices_draw_numbers_of_their_own():
    """Simulated GPUs: a shard begins where the ones before it end; replicas draw the same, and all stand at one offset afterwards."""

    def program(rank):
        readtorch.cuda.set_device(rank)
        mesh = init_device_mesh("cuda", (2,))
        readtorch.cuda.manual_seed(5)
        parts = ours.rand(8, 4, device_mesh=mesh, placements=[Shard(0)])
        state = readtorch.cuda.get_rng_state()[8:].view(readtorch.int64).item()
        same = ours.rand(8, 4, device_mesh=mesh)
        parts.uniform_()
        return parts.full_tensor().unique().numel(), same.to_local().cpu().tolist(), state, parts.to_local().tolist()

    readtorch.cuda.simulate(devices=2)
    try:
        (count, same, state, first), (_, other_same, other_state, second) = run_threads(program, 2)
    finally:
        readtorch.cuda.simulate(0)
    assert count == 32 and same == other_same and state == other_state == 32 and first != second


def test_plain_tensors_are_replicated_if_asked():
    def program(rank):
        d = distribute_tensor(readtorch.ones(4, 2), init_device_mesh("cpu", (2,)), [Shard(0)])
        with implicit_replication():
            result = d + readtorch.ones(4, 2)
        return result.placements, result.full_tensor().sum().item()

    assert run_threads(program, 2) == [((Shard(0),), 16.0)] * 2


def test_rows_of_an_embedding_may_be_used_twice():
    def program(rank):
        mesh = init_device_mesh("cpu", (2,))
        table = distribute_tensor(readtorch.arange(12.0).view(6, 2), mesh, [Shard(0)]).requires_grad_()
        found = readtorch.nn.functional.embedding(
            distribute_tensor(readtorch.tensor([5, 0, 3]), mesh, [Replicate()]), table
        )
        ((found * found).sum() + found.sum()).full_tensor().backward()
        assert str(found.placements) == "(_MaskPartial(reduce_op=sum, offset_shape=torch.Size([6, 2]), offset_dim=0),)"
        assert found.full_tensor().tolist() == [[10.0, 11.0], [0.0, 1.0], [6.0, 7.0]]
        return table.grad.full_tensor().tolist()

    expected = [[1.0, 3.0], [0.0, 0.0], [0.0, 0.0], [13.0, 15.0], [0.0, 0.0], [21.0, 23.0]]
    assert run_threads(program, 2) == [expected] * 2


def test_optimizers_on_lists_of_tensors():
    """`foreach`: each pair of elements as the operator on one tensor would."""

    def program(rank):
        mesh = init_device_mesh("cpu", (2,))
        start = [readtorch.arange(6.0).view(3, 2), readtorch.ones(5)]
        results = []
        for spread in (False, True):
            params = [
                readtorch.nn.Parameter(distribute_tensor(x.clone(), mesh, [Shard(0)]) if spread else x.clone())
                for x in start
            ]
            for _ in range(2):
                optimizer = readtorch.optim.Adam(params, lr=0.1, foreach=True)
                sum((p * p).sum() for p in params).backward()
                readtorch.nn.utils.clip_grad_norm_(params, 1.0, foreach=True)
                optimizer.step()
            results.append([p.full_tensor() if spread else p for p in params])
        assert all(readtorch.allclose(a, b) for a, b in zip(*results, strict=True))
        return True

    assert all(run_threads(program, 2))


def test_partial_results_wait_where_they_can():
    def program(rank):
        mesh = init_device_mesh("cpu", (2,))
        d = DTensor.from_local(readtorch.ones(2, 2), mesh, [Partial()])
        seen = [
            d * 2,
            d + d,
            d.sum(),
            d.t(),
            d.mm(distribute_tensor(readtorch.ones(2, 2), mesh, [Replicate()])),
            d.exp(),
            d + 1,
        ]
        return [x.placements[0] for x in seen]

    waiting = [Partial()] * 5 + [Replicate(), Replicate()]
    assert run_threads(program, 2)[0] == waiting
