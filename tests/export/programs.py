"""Small modules, each written once for both libraries: name -> function of the library that returns (module, args, kwargs)."""

from collections import namedtuple

PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def module(T, forward, **members):
    """A Module with these members: parameters, buffers (tuples: tensor, whether it is persistent), modules, plain attributes."""

    class M(T.nn.Module):
        def __init__(self):
            super().__init__()
            for name, member in members.items():
                if isinstance(member, tuple):
                    self.register_buffer(name, *member)
                else:
                    setattr(self, name, member)

    M.forward = forward
    return M()


@program
def counter(T):
    def forward(self, x):
        self.n.add_(1)
        return x * self.n

    return module(T, forward, n=(T.zeros(1), True)), (T.ones(2),), {}


@program
def assigned_buffer(T):
    def forward(self, x):
        self.n = self.n + 1
        return x * self.n

    return module(T, forward, n=(T.zeros(2), True)), (T.ones(2),), {}


@program
def several_buffers(T):
    def forward(self, x):
        self.a.copy_(x)
        self.c.mul_(2)
        return self.a + self.b + self.c

    buffers = dict(a=(T.zeros(2), True), b=(T.ones(2), True), c=(T.full((2,), 3.0), False))
    return module(T, forward, **buffers), (T.ones(2),), {}


@program
def constants(T):
    def forward(self, x):
        return x * self.scale + T.tensor([1.0, 2.0]) - self.inner.scale

    inner = module(T, lambda self, x: x, scale=T.ones(2))
    return module(T, forward, scale=T.full((2,), 3.0), inner=inner), (T.ones(2),), {}


@program
def one_constant_twice(T):
    def forward(self, x):
        return x * self.a + self.b

    a = T.full((2,), 3.0)
    return module(T, forward, a=a, b=a), (T.ones(2),), {}


@program
def tied(T):
    def forward(self, x):
        return self.b(self.a(x))

    a, b = T.nn.Linear(2, 2), T.nn.Linear(2, 2)
    b.weight = a.weight
    return module(T, forward, a=a, b=b), (T.ones(1, 2),), {}


@program
def called_twice(T):
    def forward(self, x):
        return self.a(self.a(x))

    return module(T, forward, a=T.nn.Linear(2, 2)), (T.ones(1, 2),), {}


@program
def keywords(T):
    def forward(self, x, *, scale, shift=None):
        return x * scale if shift is None else x * scale + shift

    return module(T, forward), (T.ones(2),), {"shift": T.ones(2), "scale": T.full((2,), 2.0)}


@program
def nested(T):
    def forward(self, batch, others):
        a, (b, c) = batch["a"], batch["b"]
        return {"sum": a + b, "rest": [c, (a * others[0],)], "n": len(others)}

    return module(T, forward), ({"a": T.ones(2), "b": (T.ones(2), T.zeros(3))}, [T.ones(2)]), {}


@program
def several_arguments(T):
    def forward(self, x, *xs):
        for y in xs:
            x = x + y
        return x

    return module(T, forward), (T.ones(2), T.ones(2), T.zeros(2)), {}


@program
def plain_values(T):
    def forward(self, x, n, flag, name, nothing):
        x = x * n if flag else x
        return x, n, nothing

    return module(T, forward), (T.ones(2), 3, True, "name", None), {}


@program
def writes_to_its_input(T):
    def forward(self, x, y):
        x.add_(y)
        return x * 2

    return module(T, forward), (T.ones(2), T.ones(2)), {}


@program
def returns_what_it_gets(T):
    def forward(self, x, y):
        return x, self.p, x + y

    return module(T, forward, p=T.nn.Parameter(T.ones(2))), (T.ones(2), T.ones(2)), {}


@program
def ignores_an_argument(T):
    def forward(self, x, y):
        return x + 1

    return module(T, forward, unused=T.nn.Linear(2, 2)), (T.ones(2), T.ones(2)), {}


@program
def indexing(T):
    def forward(self, x):
        return x[0], x[:, 1:], x[..., None], x[x > 0.5].sum() if x.dim() == 9 else x[-1, ::2]

    return module(T, forward), (T.arange(12.0).reshape(3, 4),), {}


@program
def views_and_writes(T):
    def forward(self, x):
        y = x.clone()
        y[0] = 5
        y.view(-1)[1:3] += 1
        return y.t(), y.sum(0)

    return module(T, forward), (T.arange(6.0).reshape(2, 3),), {}


@program
def several_results(T):
    def forward(self, x):
        values, indices = x.max(dim=1)
        first, second = x.split(2, 1)
        return values, x.topk(2)[1], first + second

    return module(T, forward), (T.arange(8.0).reshape(2, 4),), {}


@program
def dtypes(T):
    def forward(self, x, i):
        return x.to(T.float64) + i, i.float() / 2, (i > 1).to(T.uint8), x.half()

    return module(T, forward), (T.ones(3), T.tensor([0, 1, 2])), {}


@program
def factories(T):
    def forward(self, x):
        return x + T.zeros(2) + T.full((2,), 1.5) + T.arange(2, dtype=T.float32) + T.ones_like(x)

    return module(T, forward), (T.ones(2),), {}


@program
def numbers(T):
    def forward(self, x):
        return x.clamp(min=0.5, max=float("inf")), x / 3, x**2, 2 - x, x.masked_fill(x > 1, float("-inf"))

    return module(T, forward), (T.tensor([0.0, 1.0, 2.0]),), {}


Point = namedtuple("Point", ["x", "y"])


@program
def named_tuples(T):
    def forward(self, p):
        return Point(p.x + p.y, p.x)

    return module(T, forward), (Point(T.ones(2), T.ones(2)),), {}
