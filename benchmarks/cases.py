"""What is timed. Each case is written once, over `api`: the module `torch` or the module `readtorch`.

A case prepares its data and returns the function to time; or (function, k) when a call does k units of work.
`GROUPS` says what the ratios of a group are held to (time here / time of torch eager, one thread).
"""
import dataclasses

CASES = {}


@dataclasses.dataclass
class Group:
    target: float
    geometric_mean: bool  # the target is for the mean of the group, not for each case


GROUPS = {
    "small operators": Group(0.9, geometric_mean=True),
    "chain": Group(1.1, geometric_mean=False),
    "module": Group(1.0, geometric_mean=False),
    "training step": Group(0.9, geometric_mean=False),
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


def _mlp_step(api, optimizer_class, lr):
    nn = api.nn
    api.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    images, labels = api.rand(64, 784), api.randint(0, 10, (64,))
    optimizer = optimizer_class(model.parameters(), lr=lr)
    loss_of = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
    return step


@case("training step", "MLP 784-256-10, batch 64, SGD")
def _(api):
    return _mlp_step(api, api.optim.SGD, 1e-3)


@case("training step", "MLP 784-256-10, batch 64, Adam")
def _(api):
    return _mlp_step(api, api.optim.Adam, 1e-5)
