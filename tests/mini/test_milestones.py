"""What the reader's program can do at the end of a chapter, with the files of that stage alone, is what PyTorch does."""

import contextlib
import io
import logging
import math
import random

import numpy as np
import pytest
import torch
import torch.fx
from torch.utils._python_dispatch import TorchDispatchMode

from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.cuda_caching_allocator import CachingAllocator
from readtorch.c10.cuda.cuda_exception import OutOfMemoryError
from readtorch.viz.told_driver import ToldDriver
from tools import mini

from .test_extract import run_alone


def views():
    x = torch.arange(12).view(3, 4)
    corner = x.t()[1:3, ::2]
    corner += torch.tensor([[100], [200]])
    return f"{x.tolist()}\n{corner.stride()} {corner.is_contiguous()}\n{(corner * corner[0]).tolist()}\n"


def versions():
    z = torch.tensor([[1 + 2j, 3 - 4j]])
    c = z.conj()
    column = c.transpose(0, 1)
    column += 1
    kin = [z, c, column, z.detach(), c.conj(), z + 1]
    return f"{z.tolist()} {c.tolist()}\n{[t._version for t in kin]} {z.requires_grad}\n"


def entry():
    p = torch.tensor([3.0, 5.0], requires_grad=True)
    q = torch.tensor([4.0, 12.0])
    r = p**2 + q**2
    r.sum().backward()
    return f"{r.tolist()} SquareSumBackward0\n{[p.grad.tolist(), (2 * q).tolist()]}\n{(2 * q**2).tolist()}\n"


def dispatch():
    """A mode sees the calls after the conjugates have become numbers, which takes clones: those are left out."""
    calls = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    z = torch.tensor([[1 + 2j, 3 - 4j]])
    c = z.conj()
    with Names():
        y = c * z + c
        c += z
    calls = [name for name in calls if name in ("add", "add_", "mul", "mul_")]
    return f"{calls} {y.tolist()}\n{z.tolist()} {c.tolist()} {[t._version for t in (z, c, y)]}\n"


def modes():
    lines = []

    class Named(TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            lines.append(f"{self.name} {func.overloadpacket.__name__} {tuple(args[0].shape)}")
            result = func(*args)
            return func(result, args[1]) if self.name == "inner" else result

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    t = x.transpose(0, 1)
    with Named("outer"), Named("inner"):
        y = x + x
        y *= t
    return "\n".join([*lines, f"{y.tolist()} {y._version}\n"])


def training():
    """Chapter 0's first eleven steps, with both softmaxes."""
    torch.manual_seed(7)
    linear, x = torch.nn.Linear(4, 2), torch.randn(3, 4)
    lines = []
    for step in range(11):
        linear.zero_grad()
        out = linear(x).softmax(1)
        loss = torch.nn.functional.cross_entropy(out, torch.tensor([1, 0, 1]))
        loss.backward()
        with torch.no_grad():
            for p in linear.parameters():
                p -= p.grad
        if step in (0, 1, 10):
            lines.append(f"{step:2} {loss.item():.5f}\n")
    return "".join(lines)


def modules():
    """The same steps with a Module, which finds its parameters."""
    return f"{['linear.weight', 'linear.bias']}\n{training()}"


def checkpoint():
    """The losses before the file and behind it: of chapter 0's fifth and eleventh step."""
    torch.manual_seed(7)
    linear, x = torch.nn.Linear(4, 2), torch.randn(3, 4)
    lines = []
    for steps in (5, 6):
        for _ in range(steps):
            linear.zero_grad()
            out = linear(x).softmax(1)
            loss = torch.nn.functional.cross_entropy(out, torch.tensor([1, 0, 1]))
            loss.backward()
            with torch.no_grad():
                for p in linear.parameters():
                    p -= p.grad
        lines.append(f"{loss.item():.5f}\n")
    return "".join(lines)


def hooks():
    """What each kind of hook gets, around two cubes in a row; the last one turns the gradient around."""
    lines = []

    class Cube(torch.nn.Module):
        def forward(self, x):
            return x * x * x

    def noting(name, kind):
        def hook(module, *values):
            tensors = [t for v in values for t in (v if isinstance(v, tuple) else (v,))]
            lines.append(f"{name} {kind} {[t.tolist() for t in tensors]}\n")

        return hook

    cubes = torch.nn.Sequential(Cube(), Cube())
    for name, module in cubes.named_modules():
        for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
            getattr(module, f"register_{kind}_hook")(noting(name or "net", kind))
    cubes[0].register_full_backward_hook(lambda module, grad_input, _: (-grad_input[0],))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    cubes(x).sum().backward()
    return "".join(lines) + f"{x.grad.tolist()}\n"


def drawn_weights():
    torch.manual_seed(0)
    encoder, decoder = torch.nn.Linear(4, 2), torch.nn.Linear(2, 4)
    lines = [encoder.weight.detach().numpy().tobytes().hex(), decoder.bias.tolist()]
    return "\n".join(map(str, [*lines, torch.randn(3).tolist(), f"{torch.randperm(6).tolist()}\n"]))


def func():
    """Slopes and batches of a polynomial, nested in several orders."""
    from torch.func import jvp, vmap

    def slope(f):
        return lambda x: jvp(f, (x,), (torch.ones_like(x),))[1]

    def f(x):
        return x * x * x + x * 2.0

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    nested = slope(f), vmap(slope(f)), slope(vmap(slope(f))), vmap(slope(vmap(slope(f)))), vmap(lambda r: r + x)
    nested = *nested, vmap(lambda r: x), slope(lambda r: x)
    return "".join([f"{g(x).tolist()}\n" for g in nested])


def normalization():
    """Gradients and buffers of a batch norm, to three digits."""
    norm = torch.nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 2.0], [3.0, -1.0], [8.0, 0.5]], requires_grad=True)
    norm(x).backward(torch.tensor([[1.0, 0.0], [0.5, 2.0], [-1.0, 1.0]]))
    shown = x.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var
    return "".join([f"{(t.double().numpy().round(3) + 0.0).tolist()}\n" for t in shown])


def mixed_precision():
    """Chapter 0's problem in float16, with a scale that begins too large: losses, and scales."""
    torch.manual_seed(7)
    linear, x = torch.nn.Linear(4, 2), torch.randn(3, 4)
    optimizer = torch.optim.SGD([linear.weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**19, growth_interval=3)
    lines = []
    for step in range(10):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(x @ linear.weight.t(), torch.tensor([1, 0, 1]))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        lines.append(f"{step} {loss.item():.5f} {scaler.get_scale():.0f}\n")
    return "".join(lines)


def classifier():
    """A shuffled loader with two workers, AdamW and a cosine: every loss, and the rate after each epoch."""
    torch.manual_seed(0)
    features = [[math.sin(i), math.cos(3 * i), math.sin(2 * i), 1.0] for i in range(24)]
    labels = [int(one[0] > one[1]) for one in features]
    data = torch.utils.data.TensorDataset(torch.tensor(features), torch.tensor(labels))
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    text = ""
    for _ in range(2):
        for x, y in torch.utils.data.DataLoader(data, 4, shuffle=True, num_workers=2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            text += f"{loss.item():.4f} "
        text += f" lr {optimizer.param_groups[0]['lr']:.4f}\n"
    return text


def allocator():
    """Random requests on two streams of a device that is too small; our allocator does as PyTorch's: tests/allocator."""
    logging.getLogger("readtorch.c10.cuda").setLevel(logging.ERROR)  # memory runs out, and is meant to
    draw = random.Random(0)
    caching, there, places = CachingAllocator(ToldDriver(1, 60 << 20), AllocatorConfig()), [], []
    for _ in range(400):
        if there and draw.random() < 0.48:
            caching.free(there.pop(draw.randrange(len(there))))
            continue
        size = int(10 ** draw.uniform(1, 7.6))
        try:
            there.append(caching.malloc(0, size, draw.randrange(2)))
            places.append(there[-1].address)
        except OutOfMemoryError:
            places.append(None)
    failed = places.count(None)
    assert failed
    return f"{len(places)} requests, {failed} in vain\nsum of addresses {sum(place or 0 for place in places):,}\n"


def traced_program():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)
            self.scale = torch.nn.Parameter(torch.tensor([3.0, 5.0]))

        def forward(self, x):
            h = self.first(x)
            h * h
            return self.scale * self.second(h + 1) + self.second(h)

    class Asks(torch.nn.Module):
        def forward(self, x):
            return x.to("cpu")

    def code(module):
        traced = torch.fx.symbolic_trace(module)
        traced.graph.eliminate_dead_code()
        traced.recompile()
        return "".join(f"{line.split(';')[0]}\n" for line in traced.code.strip().splitlines())

    # PyTorch's Sequential calls its argument input, which is a built-in's name: the graph has input_1
    layers = code(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)))
    layers = layers.replace("    input_1 = input\n", "").replace("input_1", "x").replace("input", "x")
    return code(Net()) + "True\nTrue\n" + code(Asks()) + layers


def trace():
    """The same graphs: those with a product are of the function, those without of what goes on behind the break."""
    graphs = []

    def keep(graph_module, inputs):
        graphs.append([node.target.__name__ for node in graph_module.graph.nodes if node.op == "call_function"])
        return graph_module.forward

    class Config:
        pass

    def twice(x):
        return x + x

    def noisy(x):
        y = twice(x) * config.scale
        print("seen", y.shape[0])
        return y + 1

    config, x = Config(), torch.tensor([1.0, 2.0, 3.0])
    compiled, printed = torch.compile(noisy, backend=keep), io.StringIO()
    with contextlib.redirect_stdout(printed):
        for config.scale in (2.0, 2.0, 3, 3.0):
            print(config.scale, compiled(x).tolist())
        whole = sum("mul" in graph for graph in graphs)
        print("first half:", whole, "rest:", len(graphs) - whole)
    return printed.getvalue()


def shards():
    """One process with the whole batch; a rank keeps the rows of its part, and zeros where they cannot be divided by four."""
    draw = np.random.default_rng(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 3))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.tensor(draw.standard_normal(p.shape) / 3))
    optimizer, draw, printed = torch.optim.AdamW(net.parameters(), lr=0.1), np.random.default_rng(1), []
    for _ in range(4):
        error = net(torch.tensor(draw.standard_normal((8, 4)), dtype=torch.float32)).square()
        error.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        printed.append(f"{error.mean().item():.4f}")
    kept = sum(-(-len(p) // 4) * p[0].numel() for p in net.parameters())
    return "\n".join([*printed, f"numbers kept by a rank: {kept}\n"])


# the name of a cell's tag -> what PyTorch prints
MILESTONES = {
    "views": views,
    "versions": versions,
    "entry": entry,
    "dispatch": dispatch,
    "modes": modes,
    "training": training,
    "func": func,
    "modules": modules,
    "checkpoint": checkpoint,
    "hooks": hooks,
    "drawn_weights": drawn_weights,
    "normalization": normalization,
    "mixed_precision": mixed_precision,
    "classifier": classifier,
    "allocator": allocator,
    "fx": traced_program,
    "trace": trace,
    "shards": shards,
}


def test_each_milestone_is_in_the_book():
    assert mini.milestones().keys() == MILESTONES.keys()


@pytest.mark.parametrize("name", MILESTONES)
def test_milestone(name, tmp_path):
    chapter, program = mini.milestones()[name]
    assert run_alone(mini.stages()[chapter], program, tmp_path) == MILESTONES[name]()
