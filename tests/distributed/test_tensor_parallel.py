"""Layers over ranks against the same layers on one: outputs, gradients and a step of training, in float64."""

import warnings

import pytest
import torch
from torch.distributed.tensor import Shard as TheirShard
from torch.distributed.tensor import parallel as theirs

import readtorch
from readtorch import nn
from readtorch.distributed import init_device_mesh, run_threads
from readtorch.distributed.tensor import DTensor, Replicate, Shard, parallel
from readtorch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
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
