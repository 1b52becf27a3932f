"""What is timed. Each case is written once, over `api`: the module `torch` or the module `readtorch`.

A case prepares its data and returns the function to time; or (function, k) when a call does k units of work.
`GROUPS` says what the ratios of a group are held to (time here / time of torch eager).
"""

import dataclasses
import os
import tempfile
import time

from tests.training import models, tasks

CASES = {}


@dataclasses.dataclass
class Group:
    mean: float | None = None  # what the geometric mean of the group's ratios is held to
    each: float | None = None  # what each of them is held to
    threads: int = 1


GROUPS = {
    "small operators": Group(mean=0.9),
    "chain": Group(each=1.1),
    "module": Group(each=1.0),
    "MLP step": Group(each=0.9),
    "optimizer step, 100 small parameters": Group(mean=0.75),
    "optimizer step, 10 million elements": Group(mean=0.95),
    "training step": Group(mean=1.0, each=1.25),
    "training step, two threads": Group(mean=1.15, each=1.5, threads=2),
    "inference": Group(mean=1.15),
    "function transforms": Group(each=1.2),
    "fused chain, 100 elements": Group(each=0.2),
    "fused chain, in the cache": Group(each=0.35),
    "fused chain, in memory": Group(each=0.15),
    "fused chain, forward and backward": Group(each=0.4),
    "checkpoint": Group(each=1.2),
    "data loader": Group(each=1.11),
    "data loader, workers": Group(each=1.11, threads=2),
}


@dataclasses.dataclass
class Case:
    name: str
    group: str
    prepare: object


def case(group, name=None):
    def register(prepare):
        full = name or prepare.__name__.replace("_", " ").strip()
        CASES[full] = Case(full, group, prepare)
        return prepare

    return register


def small_operator(name):
    """Registers `prepare(api, grad)` twice: on plain tensors, and on ones that require grad (forward)."""

    def register(prepare):
        case("small operators", name)(lambda api: prepare(api, False))
        case("small operators", f"{name}, grad")(lambda api: prepare(api, True))
        return prepare

    return register


# Small operators: ten elements


@small_operator("add")
def _(api, grad):
    a, b = api.randn(10, requires_grad=grad), api.randn(10)
    return lambda: a + b


@small_operator("add_")
def _(api, grad):
    """A hundred writes on a fresh tensor: with grad each adds a node, so the graph must not grow for ever."""
    a, b = api.randn(10, requires_grad=grad), api.randn(10)

    def run():
        y = a.clone()
        for _ in range(100):
            y.add_(b)

    return run, 100


@small_operator("add a Python number")
def _(api, grad):
    a = api.randn(10, requires_grad=grad)
    return lambda: a + 2.0


@small_operator("mul")
def _(api, grad):
    a, b = api.randn(10, requires_grad=grad), api.randn(10)
    return lambda: a * b


@small_operator("relu")
def _(api, grad):
    a = api.randn(10, requires_grad=grad)
    relu = api.relu
    return lambda: relu(a)


@small_operator("sum")
def _(api, grad):
    a = api.randn(10, requires_grad=grad)
    return lambda: a.sum()


@small_operator("matmul 4x4")
def _(api, grad):
    a, b = api.randn(4, 4, requires_grad=grad), api.randn(4, 4)
    return lambda: a @ b


@small_operator("view")
def _(api, grad):
    a = api.randn(10, requires_grad=grad)
    return lambda: a.view(2, 5)


@small_operator("transpose")
def _(api, grad):
    a = api.randn(2, 5, requires_grad=grad)
    return lambda: a.transpose(0, 1)


@small_operator("index")
def _(api, grad):
    a = api.randn(10, requires_grad=grad)
    return lambda: a[3]


@small_operator("linear 8x16")
def _(api, grad):
    x = api.randn(1, 8)
    weight, bias = (api.randn(*shape, requires_grad=grad) for shape in ((16, 8), (16,)))
    linear = api.nn.functional.linear
    return lambda: linear(x, weight, bias)


# Larger pieces


@case("chain", "100 operators, forward and backward")
def _(api):
    x, scale, shift = api.randn(10, requires_grad=True), api.randn(10), api.randn(10)

    def run():
        x.grad = None
        y = x
        for _ in range(25):
            y = y * scale
            y = y + shift
            y = api.relu(y)
            y = y - 0.5
        y.sum().backward()

    return run


@case("module", "empty Module.__call__")
def _(api):
    class Empty(api.nn.Module):
        def forward(self, x):
            return x

    module, x = Empty(), api.randn(10)
    return lambda: module(x)


# The networks of tests/training/models.py


def _training(api, network, lr=1e-3, optimizer=None):
    """A whole step: zero_grad, forward, loss, backward, update."""
    api.manual_seed(0)
    model, batch, loss_of = NETWORKS[network](api)
    optimizer = (optimizer or api.optim.SGD)(model.parameters(), lr=lr)

    def step():
        optimizer.zero_grad()
        loss_of(api, model, *batch).backward()
        optimizer.step()

    return step


def _inference(api, network):
    api.manual_seed(0)
    model, (inputs, *_), loss_of = NETWORKS[network](api)
    model.eval()
    inputs = inputs[:, :-1] if loss_of is tasks.language_loss else inputs

    def forward():
        with api.no_grad():
            model(inputs)

    return forward


def _classifier(api, model, batch):
    return model, batch, tasks.classification_loss


def _language(api, model, batch, context, vocabulary=65):
    return model, tasks.texts(api, batch, context, vocabulary), tasks.language_loss


NETWORKS = {
    "MLP 784-256-10, batch 64": lambda api: _classifier(api, models.mlp(api), tasks.vectors(api, 64)),
    "MNIST CNN, batch 64": lambda api: _classifier(api, models.mnist_cnn(api), tasks.images(api, 64, 1, 28)),
    "ResNet-18, batch 32": lambda api: _classifier(api, models.resnet18(api), tasks.images(api, 32)),
    "GPT d=128, batch 8": lambda api: _language(api, models.gpt(api), 8, 64),
    "GPT d=384, batch 4": lambda api: _language(api, models.gpt(api, layers=6, d=384, heads=6, context=256), 4, 256),
    "LSTM 64-128, batch 16": lambda api: _language(api, models.lstm_language_model(api), 16, 32, 100),
}


@case("MLP step", "MLP 784-256-10, batch 64, SGD")
def _(api):
    return _training(api, "MLP 784-256-10, batch 64")


@case("MLP step", "MLP 784-256-10, batch 64, Adam")
def _(api):
    return _training(api, "MLP 784-256-10, batch 64", 1e-5, api.optim.Adam)


# The best form of each side: its fused operator


def _optimizer_step(api, name, shapes):
    params = [api.nn.Parameter(api.randn(*shape)) for shape in shapes]
    for p in params:
        p.grad = api.randn(*p.shape)
    return getattr(api.optim, name)(params, lr=1e-3, fused=True).step


for _name in ("SGD", "Adam", "AdamW"):
    for _words, _shapes in (("100 small parameters", [(10, 10)] * 100), ("10 million elements", [(10**7,)])):
        case(f"optimizer step, {_words}", f"{_name}, {_words}")(
            lambda api, name=_name, shapes=_shapes: _optimizer_step(api, name, shapes)
        )


for _network in NETWORKS:
    for _threads in ("", ", two threads"):
        case(f"training step{_threads}", f"train {_network}{_threads}")(
            lambda api, network=_network: _training(api, network)
        )
    case("inference", f"infer {_network}")(lambda api, network=_network: _inference(api, network))


# Function transforms


@case("function transforms", "per-sample gradients of a CNN, batch 64")
def _(api):
    api.manual_seed(0)
    net = models.small_cnn(api)
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    images, labels = api.randn(64, 1, 28, 28), api.arange(64) % 10

    def loss(parameters, image, label):
        output = api.func.functional_call(net, parameters, (image.unsqueeze(0),))
        return api.nn.functional.cross_entropy(output, label.unsqueeze(0))

    gradients = api.func.vmap(api.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(parameters, images, labels)


# Checkpoints, to and from a file on the disk: the processor's time, without the disk's


def _checkpoint(api, shapes, work):
    """A state_dict in a directory of its own, saved beforehand."""
    tensors = {f"layer{i}.weight": api.randn(*shape) for i, shape in enumerate(shapes)}
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "model.pt")
    api.save(tensors, path)
    actions = {
        "save": lambda: api.save(tensors, path),
        "load": lambda: api.load(path),
        "load, mapped": lambda: api.load(path, mmap=True),
    }

    def run(folder=folder):  # the directory lives as long as the function
        actions[work]()

    return run


for _work in ("save", "load", "load, mapped"):
    for _words, _shapes in (("100 MB", [(5_000_000,)] * 5), ("1,000 small tensors", [(10,)] * 1000)):
        case("checkpoint", f"{_work}, {_words}")(lambda api, work=_work, shapes=_shapes: _checkpoint(api, shapes, work))


# Data loader: a pass over the data; workers are kept from pass to pass


def _loader(api, elements, seconds, length, batch_size, workers):
    """Samples are (tensor of `elements` numbers, int); each takes the processor `seconds`."""

    class Samples(api.utils.data.Dataset):
        tensor = api.randn(elements)

        def __len__(self):
            return length

        def __getitem__(self, i):
            end = time.thread_time() + seconds
            while seconds and time.thread_time() < end:
                pass
            return self.tensor, i

    loader = api.utils.data.DataLoader(Samples(), batch_size, num_workers=workers, persistent_workers=workers > 0)

    def run():
        for _ in loader:
            pass

    return run, length


for _name, _sizes in {
    "4 KB samples": (1024, 0, 4096, 32),
    "600 KB samples": (150_000, 0, 256, 16),
    "5 ms samples": (1024, 0.005, 64, 8),
}.items():
    for _workers in (0, 1, 2):
        case("data loader, workers" if _workers else "data loader", f"data loader, {_name}, {_workers} workers")(
            lambda api, sizes=_sizes, workers=_workers: _loader(api, *sizes, workers)
        )


# Fused chains: eight pointwise operators, compiled here, eager there. `python -m benchmarks.fusion` also times torch.jit
# and torch.compile


def eight_operators(api, x, y):
    return api.tanh((x * y + 1.0) * 0.5) * api.sigmoid(x) + api.exp(y)


def six_functions_two_products(api, x, y):
    return api.log1p(api.exp(api.tanh(api.sigmoid(api.sin(api.exp(x)) * y)))) * y


CHAINS = {"eight operators": eight_operators, "six functions, two products": six_functions_two_products}


def _fused(api, n, backward):
    def function(x, y):
        return eight_operators(api, x, y)

    if api.__name__ == "readtorch":
        function = api.compile(function)
    x, y = api.randn(n, requires_grad=backward), api.rand(n, requires_grad=backward)
    if not backward:
        return lambda: function(x, y)
    ones = api.ones(n)

    def run():
        x.grad = y.grad = None
        function(x, y).backward(ones)

    return run


for _size, _where in (
    (100, "100 elements"),
    (10_000, "in the cache"),
    (100_000, "in the cache"),
    (1_000_000, "in memory"),
    (10_000_000, "in memory"),
):
    case(f"fused chain, {_where}", f"fused chain, {_size} elements")(lambda api, n=_size: _fused(api, n, False))
    case("fused chain, forward and backward", f"fused chain, {_size} elements, forward and backward")(
        lambda api, n=_size: _fused(api, n, True)
    )
