"""Layers over ranks against the same layers on one: outputs, gradients and a step of training, in float64."""

import warnings

import pytest
import torch
from torch.distributed import tensor as their_tensor
from torch.distributed.tensor import Shard as TheirShard
from torch.distributed.tensor import parallel as theirs
from torch.testing._internal.distributed.fake_pg import FakeStore

import readtorch
from readtorch import nn
from readtorch.distributed import init_device_mesh, run_threads
from readtorch.distributed import tensor as our_tensor
from readtorch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, parallel
from readtorch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

F = nn.functional


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16, dtype=readtorch.float64), nn.Linear(16, 8, dtype=readtorch.float64)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Attention(nn.Module):
    """Heads are divided among the ranks: `view(…, -1, head_dim)` takes as many as a rank has."""

    def __init__(self, head_dim=4):
        super().__init__()
        self.head_dim = head_dim
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16, bias=False, dtype=readtorch.float64) for _ in range(4))

    def forward(self, x):
        batch, length, _ = x.shape
        heads = [layer(x).view(batch, length, -1, self.head_dim).transpose(1, 2) for layer in (self.q, self.k, self.v)]
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 16, dtype=readtorch.float64)
        self.norm, self.attention = nn.LayerNorm(16, dtype=readtorch.float64), Attention()
        self.mlp_norm = nn.LayerNorm(16, dtype=readtorch.float64)
        self.up, self.down = nn.Linear(16, 32, dtype=readtorch.float64), nn.Linear(32, 16, dtype=readtorch.float64)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + self.attention(self.norm(x))
        return x + self.down(F.silu(self.up(self.mlp_norm(x))))


PLANS = {
    MLP: {"up": ColwiseParallel(), "down": RowwiseParallel()},
    Attention: {"[qkv]": ColwiseParallel(), "out": RowwiseParallel()},
    Block: {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
        "norm": SequenceParallel(),
        "attention": PrepareModuleInput(
            input_layouts=Shard(1), desired_input_layouts=Replicate(), use_local_output=True
        ),
        "attention.[qkv]": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "mlp_norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "": PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate()),
    },
}


def inputs(kind):
    if kind is Block:
        return readtorch.arange(24).remainder(10).view(3, 8)
    return readtorch.randn(3, 8, 8 if kind is MLP else 16, dtype=readtorch.float64)


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def close(a, b):
    return readtorch.allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("kind", "ranks"), [(MLP, 4), (Attention, 4), (Block, 2)])
def test_it_trains_as_on_one_rank(kind, ranks):
    def program(rank):
        readtorch.manual_seed(1)
        model, x = kind(), inputs(kind)
        readtorch.manual_seed(1)
        spread = kind()
        parallelize_module(spread, init_device_mesh("cpu", (ranks,)), PLANS[kind])
        for step in range(2):
            optimizers = [readtorch.optim.AdamW(m.parameters(), lr=0.1, foreach=False) for m in (model, spread)]
            expected, got = model(x), spread(x)
            assert close(whole(got), expected), step
            for output in (expected, got):
                (output**2).sum().backward()
            for (name, p), q in zip(model.named_parameters(), spread.parameters(), strict=True):
                assert close(whole(q.grad), p.grad), (step, name)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            for (name, p), q in zip(model.named_parameters(), spread.parameters(), strict=True):
                assert close(whole(q), p), (step, name)
        return {name: str(p.placements) for name, p in spread.named_parameters()}

    placements = run_threads(program, ranks)[0]
    if kind is MLP:
        assert placements == {
            "up.weight": "(Shard(dim=0),)",
            "up.bias": "(Shard(dim=0),)",
            "down.weight": "(Shard(dim=1),)",
            "down.bias": "(Replicate(),)",
        }


def test_inputs_by_name_and_both_ways():
    class Sum(nn.Module):
        def forward(self, x, y):
            assert isinstance(x, DTensor) and x.placements == (Replicate(),) and not isinstance(y, DTensor)
            return x + y

    def program(rank):
        mesh = init_device_mesh("cpu", (2,))
        style = PrepareModuleInputOutput(
            input_layouts=(Shard(0),),
            desired_input_layouts=(Replicate(),),
            input_kwarg_layouts={},
            desired_input_kwarg_layouts={},
            output_layouts=Replicate(),
            desired_output_layouts=Shard(0),
        )
        module = parallelize_module(Sum(), mesh, style)
        return module(readtorch.full((1, 2), rank + 1.0), y=readtorch.tensor(1.0)).tolist()

    assert run_threads(program, 2) == [[[2.0, 2.0]], [[3.0, 3.0]]]


def test_styles_are_shown_as_pytorchs():
    def shown(api, shard):
        return [
            repr(style)
            for style in (
                api.ColwiseParallel(),
                api.RowwiseParallel(output_layouts=shard(1)),
                api.SequenceParallel(sequence_dim=0),
                api.PrepareModuleInput(input_layouts=shard(0), desired_input_layouts=shard(1)),
                api.PrepareModuleOutput(output_layouts=(shard(0),), desired_output_layouts=shard(1)),
                api.PrepareModuleInputOutput(output_layouts=shard(0), desired_output_layouts=shard(1)),
            )
        ]

    assert shown(parallel, Shard) == shown(theirs, TheirShard)


def test_refusals_are_pytorchs():
    def refused(api, nn, shard, tensor):
        messages = []
        for call in (
            lambda: api.ColwiseParallel()._apply(nn.ReLU(), None),
            lambda: api.RowwiseParallel()._apply(nn.ReLU(), None),
            lambda: api.parallelize_module(nn.ReLU(), "mesh", [1]),
            lambda: api.PrepareModuleInput(input_layouts=shard(0)),
            lambda: api.PrepareModuleInput(input_layouts=shard(0), desired_input_layouts=(shard(0), shard(0))),
            lambda: api.PrepareModuleOutput(output_layouts=(), desired_output_layouts=shard(0)),
        ):
            with pytest.raises(Exception) as caught:
                call()
            messages.append((caught.type, str(caught.value)))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            api.parallelize_module(nn.ReLU(), "mesh", {"no.such": api.ColwiseParallel()})
            api.parallelize_module(nn.ReLU(), "mesh")
        return messages, [str(w.message) for w in said]

    ours = refused(parallel, nn, Shard, readtorch.tensor)
    assert ours == refused(theirs, torch.nn, TheirShard, torch.tensor)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_of_divided_classes(reduction, weighted):
    """Of numbers of classes that the ranks do not divide, of one even, of several positions, and with a target that does not count."""

    def program(rank):
        mesh = init_device_mesh("cpu", (2,))
        for shape in ((6, 5), (5,), (3, 5, 4), (6, 1)):
            readtorch.manual_seed(0)
            dim = min(1, len(shape) - 1)
            x = readtorch.randn(*shape, dtype=readtorch.float64)
            target = readtorch.randint(shape[dim], shape[:dim] + shape[dim + 1 :])
            if target.ndim:
                target.view(-1)[1] = -100
            weight = readtorch.rand(shape[dim], dtype=readtorch.float64) if weighted else None
            whole = x.clone().requires_grad_()
            expected = F.cross_entropy(whole, target, weight, reduction=reduction)
            (expected * expected).sum().backward()
            parts = distribute_tensor(x, mesh, [Shard(dim)]).requires_grad_()
            with loss_parallel():
                loss = F.cross_entropy(parts, target, weight, reduction=reduction)
                (loss * loss).sum().backward()
            assert loss.placements == (Replicate(),) and parts.grad.placements == (Shard(dim),)
            assert close(loss.full_tensor(), expected), shape
            assert close(parts.grad.full_tensor(), whole.grad), shape
        return True

    assert all(run_threads(program, 2))


def test_cross_entropy_of_divided_classes_and_positions():
    def program(rank):
        mesh, cuts = init_device_mesh("cpu", (2, 2)), [Shard(0), Shard(1)]
        x, target = readtorch.randn(6, 5, dtype=readtorch.float64), readtorch.tensor([0, 4, 2, -100, 1, 3])
        whole, parts = x.clone().requires_grad_(), distribute_tensor(x, mesh, cuts).requires_grad_()
        placed = distribute_tensor(target, mesh, [Shard(0), Replicate()])
        expected = F.cross_entropy(whole, target, reduction="sum")
        expected.backward()
        with loss_parallel():
            loss = F.cross_entropy(parts, placed, reduction="sum")
            assert str(loss.placements) == "(Partial(sum), Replicate())" and close(loss.full_tensor(), expected)
            loss.backward()
        assert parts.grad.placements == tuple(cuts) and close(parts.grad.full_tensor(), whole.grad)
        with pytest.raises(ZeroDivisionError), loss_parallel():
            1 / 0
        return F.cross_entropy(parts, placed).placements  # by the rule, which makes the classes whole first

    readtorch.manual_seed(0)
    assert "Shard(dim=1)" not in str(run_threads(program, 4)[0])


WRONG_LOSSES = {
    "classes are whole": ([0, "R"], [0, "R"], {}),
    "classes are cut twice": ([1, 1], ["R", "R"], {}),
    "a sum": (["P", 1], ["R", "R"], {}),
    "a plain target": ([0, 1], None, {"reduction": "sum"}),
    "another target": ([0, 1], ["R", "R"], {"reduction": "sum"}),
    "a mean": ([0, 1], [0, "R"], {}),
}


@pytest.mark.parametrize("case", WRONG_LOSSES)
def test_refusals_of_divided_losses_are_pytorchs(case):
    def refused(t, api, block):
        mesh = t.distributed.init_device_mesh("cpu", (2, 2))

        def placed(kinds):
            named = {"R": api.Replicate(), "P": api.Partial()}
            return [named.get(kind) or api.Shard(kind) for kind in kinds]

        logits, of_target, settings = WRONG_LOSSES[case]
        x = api.distribute_tensor(t.randn(4, 8), mesh, placed(logits), src_data_rank=None)
        target = t.zeros(4, dtype=t.int64)
        if of_target is not None:
            target = api.distribute_tensor(target, mesh, placed(of_target), src_data_rank=None)
        with block(), pytest.raises(Exception) as caught:
            t.nn.functional.cross_entropy(x, target, **settings)
        return caught.type, str(caught.value)

    mine = run_threads(lambda rank: refused(readtorch, our_tensor, loss_parallel), 4)[0]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        expected = refused(torch, their_tensor, theirs.loss_parallel)
    finally:
        torch.distributed.destroy_process_group()
    assert mine == expected
