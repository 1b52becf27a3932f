"""Training steps of small models: PyTorch eager, torch.compile and readtorch.compile, in turns, one thread.

    python -m benchmarks.steps [names …]

Forward and backward, without the optimizer. How it is measured stands in fusion.py.
"""

import multiprocessing
import sys

from benchmarks import record
from benchmarks.__main__ import stay_on_cores
from benchmarks.contestants import libraries
from benchmarks.fusion import Contestant, compiled, eager, measured

CLASSES = 65


def ours(readtorch, function):
    return readtorch.compile(function, dynamic=False)


WAYS = {"torch eager": ("torch", eager), "torch.compile": ("torch", compiled), "readtorch.compile": ("readtorch", ours)}


def pointwise(api, rows):
    x, w = api.randn(rows, 512, requires_grad=True), api.randn(512, requires_grad=True)
    return lambda x, w: ((x * w).tanh() * x.sigmoid() + (x * 0.5).exp() + x * x).mean(), (x, w), (x, w)


def mlp(api, inputs, width, batch):
    nn = api.nn
    layers = nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, CLASSES)
    model, loss = nn.Sequential(*layers), nn.functional.cross_entropy
    data = api.randn(batch, inputs), api.arange(batch) % CLASSES
    return lambda x, y: loss(model(x), y), data, tuple(model.parameters())


def gpt(api, width, length, batch, heads=4, depth=2):
    nn, F = api.nn, api.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            parts = self.qkv(self.before(x)).split(width, -1)
            q, k, v = [part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts]
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.down(F.gelu(self.up(self.between(x))))

    tokens, places = nn.Embedding(CLASSES, width), nn.Embedding(length, width)
    blocks, head = nn.Sequential(*[Block() for _ in range(depth)]), nn.Linear(width, CLASSES, bias=False)
    data = [api.arange(batch * length).view(batch, length) * step % CLASSES for step in (7, 11)]

    def loss(x, y):
        scores = head(blocks(tokens(x) + places(api.arange(length))))
        return F.cross_entropy(scores.flatten(0, 1), y.flatten())

    return loss, data, [p for module in (tokens, places, blocks, head) for p in module.parameters()]


PROGRAMS = {  # name -> (function that makes (the loss, its arguments, what gets gradients), its arguments)
    "pointwise": (pointwise, (512,)),
    "MLP": (mlp, (784, 256, 64)),
    "small MLP": (mlp, (32, 64, 32)),
    "GPT": (gpt, (128, 64, 8)),
    "small GPT": (gpt, (32, 16, 4)),
}


def prepared(api, make, name):
    """The step, and how many make a sample."""
    program, sizes = PROGRAMS[name]
    api.manual_seed(0)
    function, data, parameters = program(api, *sizes)
    loss = make(api, function)

    def step():
        for p in parameters:
            p.grad = None
        loss(*data).backward()

    for _ in range(3):
        step()
    return step, 1 if name == "GPT" else 20


def main(names):
    stay_on_cores(1)
    contestants, rows = {way: Contestant(way, *how, prepared) for way, how in WAYS.items()}, []
    for name in names:
        times, ratios = measured(contestants, name)
        shown = "  ".join(f"{way} {ratio:.2f}" for way, ratio in ratios.items() if way != "torch eager")
        print(f"{name}: torch eager {times['torch eager']:.0f} us; over it: {shown}", flush=True)
        rows.append({"program": name} | times)
    for contestant in contestants.values():
        contestant.connection.send(("stop",))
    record.write("steps", rows, libraries=libraries())


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main(sys.argv[1:] or list(PROGRAMS))
