"""The figure "What a rank holds over a step" says what simulated devices measure, to the byte; and what PyTorch's shards are."""

import gc
import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import readtorch
from readtorch import cuda, nn
from readtorch import distributed as dist
from readtorch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from readtorch.distributed.optim import ZeroRedundancyOptimizer
from readtorch.viz.figures import shard_memory as figure

WIDTH, BLOCKS, ROWS = 128, 3, 24


class Tell(readtorch.autograd.Function):
    """The identity, which says when the gradient comes by."""

    @staticmethod
    def forward(ctx, x, anchor, note, name):
        ctx.tell = note, name
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        note, name = ctx.tell
        note(name)
        return grad, None, None, None


class Block(nn.Module):
    def __init__(self, width, number, note):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        anchor = readtorch.ones(1, requires_grad=True)
        self.at_input = lambda x: Tell.apply(x, anchor, note, f"backward, block {number}")
        self.at_end = lambda: note(f"forward, block {number}")

    def forward(self, x):
        x = self.down(readtorch.relu(self.up(self.at_input(x))))
        self.at_end()
        return x


def wrapped(net, strategy, precision):
    """(what is called, its optimizer)"""
    optimizer = readtorch.optim.AdamW
    if strategy in figure.COPIES:
        model = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
        made = (
            optimizer(net.parameters()) if strategy == "ddp" else ZeroRedundancyOptimizer(net.parameters(), optimizer)
        )
        return model, made
    policy = MixedPrecisionPolicy(param_dtype=readtorch.bfloat16 if precision == "mixed" else None)
    for block in net:
        fully_shard(block, reshard_after_forward=strategy == "zero3", mp_policy=policy)
    fully_shard(net, mp_policy=policy)
    return net, optimizer(net.parameters())


def measured(strategy, precision, width, blocks, rows, ranks):
    """For each rank the bytes at each point of the third step."""
    barrier = threading.Barrier(ranks, timeout=60)

    def run(rank):
        cuda.set_device(rank)
        points = []

        def note(name):
            barrier.wait()  # no collective is under way
            points.append((name, cuda.memory_stats(rank)["requested_bytes.all.current"]))
            barrier.wait()

        dtype = readtorch.bfloat16 if precision == "bfloat16" else readtorch.float32
        net = nn.Sequential(*[Block(width, i + 1, note) for i in range(blocks)]).to("cuda", dtype)
        model, optimizer = wrapped(net, strategy, precision)
        casts = precision == "mixed" and strategy in figure.COPIES
        for _ in range(3):
            gc.collect()
            points.clear()
            note("between steps")
            x = readtorch.ones(rows, width, device="cuda", dtype=dtype)
            with readtorch.autocast("cuda", readtorch.bfloat16, enabled=casts):
                y = model(x)
            note("the loss")
            y.sum().backward()
            del x, y
            note("the optimizer's step")
            optimizer.step()
            optimizer.zero_grad()
        return points

    cuda.simulate(ranks, "256MiB")
    try:
        return dist.run_threads(run, ranks)
    finally:
        cuda.simulate(0)


CASES = [
    ("ddp", "mixed", 2),
    ("zero1", "float32", 4),
    ("zero2", "float32", 2),
    ("zero3", "mixed", 2),
    ("zero3", "bfloat16", 2),
]


@pytest.mark.parametrize("strategy, precision, ranks", CASES)
def test_each_point_is_what_a_device_measures(strategy, precision, ranks):
    inputs = {"strategy": strategy, "precision": precision, "ranks": str(ranks), "width": str(WIDTH)}
    assert_measured(inputs | {"blocks": BLOCKS, "tokens": ROWS})


def test_one_block():
    assert_measured(
        {"strategy": "zero3", "precision": "float32", "ranks": "2"} | {"width": "256", "blocks": 1, "tokens": 5}
    )


def assert_measured(inputs):
    """On the first rank. (The device is looked at before the optimizer's step, as if it needed nothing more.)"""
    inputs = figure.FIGURE.read(inputs | {"optimizer": "fused"})
    expected = [(point["name"], figure.total(point)) for point in figure.points_of(inputs)]
    asked = inputs["strategy"], inputs["precision"], int(inputs["width"]), inputs["blocks"], inputs["tokens"]
    assert measured(*asked, int(inputs["ranks"]))[0] == expected


def test_blocks_have_as_many_numbers_as_pytorchs():
    block = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256))
    assert figure.numbers_of({"width": "256"}) == sum(p.numel() for p in block.parameters())


def test_the_sentence():
    said = figure.FIGURE.result(strategy="ddp", precision="float32", blocks=1, width="1024", ranks="2")["say"]
    assert "With DDP with bucket views a rank holds 134.30 MB between steps" in said and "it sends 33.57 MB" in said
    assert "does not fit in 1 GB" in figure.FIGURE.result(device=1)["say"]


class Asked(TorchDispatchMode):
    """How many bytes the operators of an optimizer allocate."""

    nbytes = 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        found = op(*args, **(kwargs or {}))
        if op is torch.ops.aten._foreach_sqrt.default:
            self.nbytes += sum(t.nbytes for t in found)
        return found


@pytest.mark.parametrize("way", ["foreach", "fused"])
def test_the_optimizers_temporary_is_pytorchs(way):
    width, blocks = 128, 2
    net = torch.nn.Sequential()
    for _ in range(blocks):
        net.extend([torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)])
    optimizer = torch.optim.AdamW(net.parameters(), **{way: True})
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    with Asked() as asked:
        optimizer.step()
    inputs = {"strategy": "ddp", "precision": "float32", "width": str(width), "blocks": blocks, "optimizer": way}
    assert figure.points_of(figure.FIGURE.read(inputs))[-1]["temp"] == asked.nbytes


def test_with_few_rows_the_step_of_the_optimizer_is_the_top():
    assert "8.05 GB at most (the optimizer's step)" in figure.FIGURE.result(tokens=1)["say"]
    assert "7.38 GB at most (backward, block 2)" in figure.FIGURE.result(tokens=1, optimizer="fused")["say"]
    assert "64.43 GB at most (the optimizer's step)" in figure.FIGURE.result(tokens=1, strategy="ddp")["say"]
