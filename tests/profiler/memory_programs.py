"""Training loops whose memory is looked at on both sides. Each returns the tensors that it ends with, by name."""

from tests.training import models


def mlp(T):
    net = T.nn.Sequential(T.nn.Linear(64, 128), T.nn.ReLU(), T.nn.Linear(128, 10))
    x, y = T.randn(32, 64), T.randint(0, 10, (32,))
    return training(
        T, net, T.optim.SGD(net.parameters(), 0.1, momentum=0.9), lambda: classified(T, net, x, y), x=x, y=y
    )


def convolutions(T):
    nn = T.nn
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10)
    )
    x, y = T.randn(8, 1, 8, 8), T.randint(0, 10, (8,))
    optimizer = T.optim.Adam(net.parameters(), foreach=False)
    return training(T, net, optimizer, lambda: classified(T, net, x, y), x=x, y=y)


def transformer(T):
    net = models.gpt(T, layers=1, d=32, heads=2, context=16)
    tokens = T.randint(0, 64, (2, 17))
    x, y = tokens[:, :-1], tokens[:, 1:]

    def loss():
        return T.nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())

    return training(T, net, T.optim.AdamW(net.parameters(), foreach=False), loss, x=x)


def accumulated(T):
    """Two backward passes a step: the second adds to gradients that are there."""
    net = T.nn.Linear(16, 8)
    x = T.randn(4, 16)
    optimizer = T.optim.SGD(net.parameters(), 0.1)

    def step():
        optimizer.zero_grad(set_to_none=False)
        for _ in range(2):
            (net(x) ** 2).mean().backward()
        optimizer.step()

    return step, lambda: {"x": x, **parameters_of(net)}


def without_modules(T):
    """No module and no optimizer: what is a parameter follows from the flow of the data."""
    w, b = T.randn(16, 8, requires_grad=True), T.zeros(8, requires_grad=True)
    x, y = T.randn(4, 16), T.randn(4, 8)

    def step():
        w.grad = b.grad = None
        ((x.mm(w) + b - y) ** 2).mean().backward()
        with T.no_grad():
            for parameter in (w, b):
                parameter.sub_(parameter.grad, alpha=0.1)

    return step, lambda: {"x": x, "y": y, "w": w, "b": b, "w.grad": w.grad, "b.grad": b.grad}


def inference(T):
    net = T.nn.Linear(16, 8)
    x = T.randn(4, 16)

    def step():
        with T.no_grad():
            net(x).relu()

    return step, lambda: {"x": x, **parameters_of(net)}


PROGRAMS = [mlp, convolutions, transformer, accumulated, without_modules, inference]


def classified(T, net, x, y):
    return T.nn.functional.cross_entropy(net(x), y)


def parameters_of(net):
    named = dict(net.named_parameters())
    return named | {f"{name}.grad": p.grad for name, p in named.items() if p.grad is not None}


def training(T, net, optimizer, loss, **inputs):
    """(a step, what gives the tensors by name)"""

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    def kept():
        states = {
            f"{name}.{key}": state
            for name, p in net.named_parameters()
            for key, state in optimizer.state[p].items()
            if isinstance(state, T.Tensor)
        }
        return inputs | parameters_of(net) | states

    return step, kept
