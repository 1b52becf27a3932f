"""`local_map` and `register_sharding`: the numbers of whole tensors, and PyTorch's placements and refusals."""

import re

import pytest
import torch
from torch.distributed import tensor as theirs
from torch.distributed.tensor import experimental as their_experimental
from torch.testing._internal.distributed.fake_pg import FakeStore

import readtorch
from readtorch.distributed import run_threads
from readtorch.distributed import tensor as ours
from readtorch.distributed.tensor import Replicate, Shard, distribute_tensor
from readtorch.distributed.tensor import experimental as our_experimental
from readtorch.distributed.tensor._ops.utils import propagator


def both(program, ranks=2):
    """What a program of (library, its DTensors, its experimental functions) returns on the first rank: ours, PyTorch's."""
    mine = run_threads(lambda rank: program(readtorch, ours, our_experimental), ranks)[0]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    try:
        return mine, program(torch, theirs, their_experimental)
    finally:
        torch.distributed.destroy_process_group()


def matrices(t, api):
    mesh = t.distributed.init_device_mesh("cpu", (2,))
    a, b = t.arange(12.0).view(3, 4), t.arange(8.0).view(4, 2)
    return mesh, *(api.distribute_tensor(x, mesh, [api.Shard(d)], src_data_rank=None) for x, d in ((a, 1), (b, 0)))


def test_a_function_of_local_tensors():
    def program(rank):
        mesh, a, b = matrices(readtorch, ours)
        a.requires_grad_()

        @our_experimental.local_map(
            out_placements=([ours.Partial()], None),
            in_placements=([Shard(1)], [Shard(0)], None),
            redistribute_inputs=True,
        )
        def product(x, y, factor):
            assert type(x) is type(y) is readtorch.Tensor
            return x @ y * factor, factor

        result, factor = product(a, b.redistribute(placements=[Replicate()]), 2)
        result.full_tensor().sum().backward()
        expected = a.full_tensor().detach() @ b.full_tensor() * 2
        assert factor == 2 and readtorch.equal(result.full_tensor(), expected)
        return a.grad.placements, a.grad.full_tensor().tolist()

    rows = [[2.0, 10.0, 18.0, 26.0]] * 3
    assert run_threads(program, 2) == [((Shard(1),), rows)] * 2


def test_the_gradient_of_an_input_is_placed_as_one_says():
    def program(rank):
        mesh = readtorch.distributed.init_device_mesh("cpu", (2,))
        w = distribute_tensor(readtorch.ones(3), mesh, [Replicate()]).requires_grad_()
        scale = our_experimental.local_map(
            lambda x: x * (rank + 1), out_placements=[Shard(0)], in_grad_placements=([ours.Partial()],)
        )
        scale(w).sum().full_tensor().backward()
        return w.grad.full_tensor().tolist()

    assert run_threads(program, 2) == [[3.0, 3.0, 3.0]] * 2


def test_a_function_of_plain_tensors_stays_one():
    double = our_experimental.local_map(lambda x: x * 2, out_placements=[Shard(0)], in_placements=([Shard(0)],))
    assert type(double(readtorch.ones(2))) is readtorch.Tensor


WRONG = {
    "other placements": lambda api, a, b: ([api.Partial()], ([api.Shard(0)], [api.Shard(0)]), (a, b)),
    "too few placements": lambda api, a, b: ([api.Partial()], ([api.Shard(0)],), (a, b)),
    "no placements": lambda api, a, b: ([api.Partial()], (None, [api.Shard(0)]), (a, b)),
    "placements of a number": lambda api, a, b: ([api.Shard(1)], ([api.Shard(1)], [api.Shard(0)]), (a, 2)),
    "two outputs": lambda api, a, b: (([api.Partial()], None), None, (a, b)),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals_of_local_maps_are_pytorchs(case):
    def program(t, api, experimental):
        _, a, b = matrices(t, api)
        outs, ins, args = WRONG[case](api, a, b)
        with pytest.raises((AssertionError, ValueError)) as caught:
            experimental.local_map(lambda x, y: x * 1, outs, ins)(*args)
        return caught.type, re.sub(r"DTensor\(.*?placements=\(.*?\)\)", "DTensor", str(caught.value), flags=re.S)

    mine, expected = both(program)
    assert mine == expected


def halves(t):
    """A custom operator."""

    def function(x, dim):
        return x.flip(dim) * 0.5

    function.__annotations__ = {"x": t.Tensor, "dim": int, "return": t.Tensor}
    op = t.library.custom_op("readtorch_tests::halves", function, mutates_args=())
    op.register_fake(lambda x, dim: t.empty_like(x))
    return op


def test_the_rule_of_a_custom_operator():
    """Which has none, so it is refused first."""
    ops = {t: halves(t) for t in (readtorch, torch)}

    def refused(t, api, experimental):
        _, a, _ = matrices(t, api)
        with pytest.raises(NotImplementedError) as caught:
            ops[t](a, 0)
        return str(caught.value)

    def placed(t, api, experimental):
        _, a, _ = matrices(t, api)
        return [str(ops[t](a, dim).placements) for dim in (0, 1)], ops[t](a, 0).to_local().tolist()

    mine, expected = both(refused)
    assert mine == expected
    for t, api, experimental in ((readtorch, ours, our_experimental), (torch, theirs, their_experimental)):

        @experimental.register_sharding(t.ops.readtorch_tests.halves.default)
        def rule(x, dim, api=api):
            uncut = [([api.Shard(d)], [api.Shard(d), None]) for d in range(x.ndim) if d != dim]
            return [([api.Replicate()], [api.Replicate(), None]), *uncut]

    mine, expected = both(placed)
    assert mine == expected and mine[0] == ["(Shard(dim=1),)", "(Replicate(),)"]


def test_a_rule_in_place_of_another():
    softmax = readtorch.ops.aten._softmax.default
    before = propagator.op_strategy_funcs[softmax]

    def program(rank):
        mesh = readtorch.distributed.init_device_mesh("cpu", (2,))
        x = distribute_tensor(readtorch.randn(4, 6), mesh, [Shard(0)])
        return readtorch.softmax(x, 1).placements

    assert run_threads(program, 2)[0] == (Shard(0),)
    our_experimental.register_sharding([softmax])(lambda x, dim, half: [([Replicate()], [Replicate(), None, None])])
    try:
        assert run_threads(program, 2)[0] == (Replicate(),)
    finally:
        propagator.register_op_strategy(softmax, before)
        propagator.propagate_op_sharding.cache_clear()
