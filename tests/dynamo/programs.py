"""Programs in which something changes between two calls of a compiled function.

`program(lib, compile, out)`: lib is `torch` or `readtorch`, compile the compiler (or nothing), out notes a result.
"""

import asyncio
import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import random
import re

import numpy as np

PROGRAMS = {}
G = {"scale": 2.0}
GLOBAL_K = 3
COUNTER = 0


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Box:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def values(lib, *shape):
    count = math.prod(shape)
    return (lib.arange(count, dtype=lib.float32) - count / 3).reshape(shape) / 4


@program
def closure_object_attribute(lib, compile, out):
    b = Box(k=2.0)
    f = compile(lambda x: x * b.k)
    for k in (2.0, 3.0, 2.0):
        b.k = k
        out(f(values(lib, 3)))


@program
def closure_dict(lib, compile, out):
    d = {"k": 2.0}
    f = compile(lambda x: x * d["k"] + len(d))
    out(f(values(lib, 3)))
    d["k"] = 5.0
    out(f(values(lib, 3)))
    d["new"] = 1
    out(f(values(lib, 3)))


@program
def closure_rebound(lib, compile, out):
    k = 2

    def f(x):
        return x * k

    g = compile(f)
    out(g(values(lib, 3)))
    k = 7
    out(g(values(lib, 3)))


@program
def global_value(lib, compile, out):
    global GLOBAL_K

    def f(x):
        return x * GLOBAL_K

    g = compile(f)
    out(g(values(lib, 3)))
    GLOBAL_K = 4
    out(g(values(lib, 3)))
    GLOBAL_K = 3
    out(g(values(lib, 3)))


@program
def global_dict(lib, compile, out):

    def f(x):
        return x * G["scale"]

    g = compile(f)
    out(g(values(lib, 3)))
    G["scale"] = 9.0
    out(g(values(lib, 3)))
    G["scale"] = 2.0


@program
def argument_attribute(lib, compile, out):
    f = compile(lambda x, b: x + b.v if b.on else x - b.v)
    b = Box(v=1.5, on=True)
    out(f(values(lib, 3), b))
    b.on = False
    out(f(values(lib, 3), b))
    b.v = 2
    out(f(values(lib, 3), b))
    out(f(values(lib, 3), Box(v=values(lib, 3), on=True)))


@program
def module_config_dict(lib, compile, out):

    class M(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.config = {"act": "relu", "scale": 2}

        def forward(self, x):
            y = lib.relu(x) if self.config["act"] == "relu" else lib.tanh(x)
            return y * self.config["scale"]

    m = M()
    f = compile(m)
    out(f(values(lib, 4)))
    m.config["act"] = "tanh"
    out(f(values(lib, 4)))
    m.config["scale"] = 3
    out(f(values(lib, 4)))


@program
def optimizer_lr(lib, compile, out):
    p = lib.nn.Parameter(values(lib, 3))
    o = lib.optim.SGD([p], lr=0.1)

    def step(g):
        with lib.no_grad():
            p.add_(g, alpha=-o.param_groups[0]["lr"])
        return p.sum()

    f = compile(step)
    out(f(lib.ones(3)))
    o.param_groups[0]["lr"] = 0.5
    out(f(lib.ones(3)))
    out(p)


@program
def list_contents(lib, compile, out):
    ks = [1, 2]

    def f(x):
        for k in ks:
            x = x * k + 1
        return x

    g = compile(f)
    out(g(values(lib, 3)))
    ks[1] = 5
    out(g(values(lib, 3)))
    ks.append(2)
    out(g(values(lib, 3)))
    ks.clear()
    out(g(values(lib, 3)))


@program
def default_arguments(lib, compile, out):

    def f(x, k=2, *, b=1):
        return x * k + b

    g = compile(f)
    out(g(values(lib, 3)))
    f.__defaults__ = (5,)
    out(f(values(lib, 3)))
    out(g(values(lib, 3), 3))
    out(g(values(lib, 3), b=4))
    out(g(values(lib, 3), k=7))


@program
def mutable_default(lib, compile, out):

    def f(x, seen=[]):
        seen.append(1)
        return x * len(seen)

    g = compile(f)
    for _ in range(3):
        out(g(values(lib, 3)))


@program
def inner_default(lib, compile, out):

    def h(x, k=2):
        return x * k

    def f(x):
        return h(x) + 1

    g = compile(f)
    out(g(values(lib, 3)))
    h.__defaults__ = (6,)
    out(g(values(lib, 3)))


@program
def module_attribute(lib, compile, out):

    class M(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2
            self.w = lib.nn.Parameter(values(lib, 3))

        def forward(self, x):
            return x * self.k + self.w

    m = M()
    f = compile(m)
    out(f(values(lib, 3)))
    m.k = 4
    out(f(values(lib, 3)))
    m.w = lib.nn.Parameter(lib.ones(3))
    out(f(values(lib, 3)))
    m.w.data = lib.zeros(3)
    out(f(values(lib, 3)))


@program
def forward_hook_added(lib, compile, out):
    m = lib.nn.Sequential(lib.nn.Linear(3, 2))
    lib.nn.init.ones_(m[0].weight)
    lib.nn.init.zeros_(m[0].bias)
    f = compile(m)
    out(f(values(lib, 3) + 1))
    h = m[0].register_forward_hook(lambda mod, a, o: o * 2)
    out(f(values(lib, 3) + 1))
    h.remove()
    out(f(values(lib, 3) + 1))


@program
def training_flag(lib, compile, out):

    class M(lib.nn.Module):
        def forward(self, x):
            return x * 2 if self.training else x * 3

    m = M()
    f = compile(m)
    out(f(values(lib, 3)))
    m.eval()
    out(f(values(lib, 3)))
    m.train()
    out(f(values(lib, 3)))


@program
def batchnorm_training(lib, compile, out):
    m = lib.nn.BatchNorm1d(3)
    f = compile(m)
    x = values(lib, 4, 3)
    out(f(x))
    out(f(x))
    out(m.running_mean)
    out(m.num_batches_tracked)
    m.eval()
    out(f(x))
    out(m.running_mean)


@program
def dtype_change(lib, compile, out):
    f = compile(lambda x: x * 2 + 1)
    out(f(values(lib, 3)))
    out(f(values(lib, 3).double()))
    out(f(lib.arange(3)))


@program
def shape_change(lib, compile, out):
    f = compile(lambda x: x.sum(0) / x.shape[0])
    for n in (2, 3, 4, 2):
        out(f(values(lib, n, 3)))


@program
def requires_grad_change(lib, compile, out):
    f = compile(lambda x: (x * x if x.requires_grad else x + 1).sum())
    out(f(values(lib, 3)))
    x = values(lib, 3).requires_grad_()
    y = f(x)
    out(y)
    y.backward()
    out(x.grad)


@program
def grad_mode(lib, compile, out):
    w = lib.nn.Parameter(values(lib, 3))
    f = compile(lambda x: x * w)
    out(f(values(lib, 3)))
    with lib.no_grad():
        out(f(values(lib, 3)))
    out(f(values(lib, 3)))


@program
def no_grad_inside(lib, compile, out):
    w = lib.nn.Parameter(values(lib, 3))

    def f(x):
        with lib.no_grad():
            a = x * w
        b = x * w
        return (a, b, lib.is_grad_enabled())

    g = compile(f)
    out(g(values(lib, 3)))
    with lib.no_grad():
        out(g(values(lib, 3)))


@program
def no_grad_with_print(lib, compile, out):
    w = lib.nn.Parameter(values(lib, 3))

    def f(x):
        with lib.no_grad():
            a = x * w
            print("inside", lib.is_grad_enabled())
            a = a + w
        return a * w

    g = compile(f)
    out(g(values(lib, 3)))
    out(g(values(lib, 3)))
    out(lib.is_grad_enabled())


@program
def no_grad_decorator(lib, compile, out):
    w = lib.nn.Parameter(values(lib, 3))

    @lib.no_grad()
    def h(x):
        return x * w

    f = compile(lambda x: h(x) + x * w)
    out(f(values(lib, 3)))
    out(f(values(lib, 3)))


@program
def set_grad_enabled_call(lib, compile, out):
    w = lib.nn.Parameter(values(lib, 3))

    def f(x, on):
        lib.set_grad_enabled(on)
        return x * w

    g = compile(f)
    out(g(values(lib, 3), False))
    out(lib.is_grad_enabled())
    out(g(values(lib, 3), True))
    out(lib.is_grad_enabled())


@program
def python_random(lib, compile, out):
    random.seed(0)
    f = compile(lambda x: x * random.random())
    for _ in range(3):
        out(f(values(lib, 3)))


@program
def numpy_random(lib, compile, out):
    np.random.seed(0)
    f = compile(lambda x: x * float(np.random.rand()))
    for _ in range(3):
        out(f(values(lib, 3)))


@program
def tensor_random(lib, compile, out):
    lib.manual_seed(3)
    f = compile(lambda x: x + lib.rand(3))
    for _ in range(3):
        out(f(values(lib, 3)))


@program
def dropout(lib, compile, out):
    lib.manual_seed(3)
    m = lib.nn.Dropout(0.5)
    f = compile(m)
    out(f(values(lib, 8)))
    out(f(values(lib, 8)))
    m.eval()
    out(f(values(lib, 8)))
    m.train()
    m.p = 0.9
    out(f(values(lib, 8)))


@program
def list_append(lib, compile, out):
    log = []

    def f(x):
        y = x + 1
        log.append(y)
        log.append("s")
        return y * len(log)

    g = compile(f)
    for _ in range(3):
        out(g(values(lib, 2)))
    out(log)


@program
def print_between(lib, compile, out):

    def f(x):
        y = x * 2
        print("here", y.shape)
        return y + 1

    g = compile(f)
    out(g(values(lib, 3)))
    out(g(values(lib, 3)))
    out(g(values(lib, 2)))


@program
def generator(lib, compile, out):
    ks = [1, 2, 3]

    def gen(x):
        for k in ks:
            yield (x * k)
        yield from (x - k for k in ks)

    f = compile(lambda x: sum(gen(x)))
    out(f(values(lib, 3)))
    ks.append(4)
    out(f(values(lib, 3)))


@program
def generator_returned(lib, compile, out):

    def f(x):
        y = x + 1
        return (y * i for i in range(3))

    g = compile(f)
    out(list(g(values(lib, 2))))
    out(list(g(values(lib, 2))))


@program
def generator_compiled(lib, compile, out):

    def f(x):
        for i in range(3):
            yield (x * i)

    g = compile(f)
    out(list(g(values(lib, 2))))
    out(list(g(values(lib, 2))))


@program
def try_except(lib, compile, out):
    d = {}

    def f(x):
        try:
            k = d["k"]
        except KeyError:
            k = 10
        finally:
            x = x + 1
        return x * k

    g = compile(f)
    out(g(values(lib, 3)))
    d["k"] = 3
    out(g(values(lib, 3)))
    del d["k"]
    out(g(values(lib, 3)))


@program
def raise_inside(lib, compile, out):
    log = []

    def f(x, n):
        log.append(n)
        y = x + 1
        if n < 0:
            raise ValueError(f"negative {n}")
        return y * n

    g = compile(f)
    for n in (1, -1, 2, -3):
        try:
            out(g(values(lib, 3), n))
        except ValueError as e:
            out(str(e))
    out(log)


@program
def raise_through_inlined(lib, compile, out):

    class E(Exception):
        def __init__(self, k):
            self.k = k
            super().__init__(k)

    def h(x, n):
        if n > 1:
            raise E(n)
        return x * n

    def f(x, n):
        try:
            return h(x, n)
        except (TypeError, E) as e:
            return x - e.k

    g = compile(f)
    for n in (1, 2, 3, 1):
        out(g(values(lib, 3), n))


@program
def shape_error_caught(lib, compile, out):

    def f(x, y):
        try:
            return x @ y
        except RuntimeError:
            return x * 0

    g = compile(f)
    out(g(values(lib, 2, 3), values(lib, 3, 2)))
    out(g(values(lib, 2, 3), values(lib, 2, 2)))


@program
def user_context_manager(lib, compile, out):

    class Add:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")
            return 5

        def __exit__(self, *a):
            self.log.append("out" if a[0] is None else a[0].__name__)
            return True

    log = []

    def f(x, bad):
        with Add(log) as k:
            x = x * k
            if bad:
                raise KeyError("z")
            x = x + 1
        return x

    g = compile(f)
    out(g(values(lib, 3), False))
    out(g(values(lib, 3), True))
    out(log)


@program
def contextmanager_function(lib, compile, out):
    log = []

    @contextlib.contextmanager
    def cm(k):
        log.append(k)
        yield k
        log.append(-k)

    def f(x, k):
        with cm(k) as v:
            x = x * v
        return x

    g = compile(f)
    out(g(values(lib, 3), 2))
    out(g(values(lib, 3), 3))
    out(log)


@program
def nested_functions(lib, compile, out):

    def f(x, n):
        total = 0

        def add(k):
            nonlocal total
            total += k
            return x * total

        return (add(n) + add(2), total)

    g = compile(f)
    out(g(values(lib, 3), 1))
    out(g(values(lib, 3), 4))


@program
def returned_closure(lib, compile, out):

    def f(x):
        y = x * 2
        n = 0

        def h(z):
            nonlocal n
            n += 1
            return y + z * n

        return h

    g = compile(f)
    h = g(values(lib, 3))
    out(h(1))
    out(h(1))
    out(g(values(lib, 3))(2))


@program
def args_kwargs(lib, compile, out):

    def h(x, *a, k=1, **kw):
        return x * sum(a) + k + kw.get("z", 0)

    f = compile(lambda *a, **kw: h(*a, **kw))
    out(f(values(lib, 3), 1, 2))
    out(f(values(lib, 3), 1, k=5))
    out(f(values(lib, 3), z=2, y=1))
    out(f(values(lib, 3), 1, 2, 3))


@program
def dataclass(lib, compile, out):

    @dataclasses.dataclass
    class P:
        a: object
        b: float = 2.0

        def scaled(self):
            return self.a * self.b

    def f(x, p):
        q = P(x + p.a, p.b)
        return (q.scaled(), q)

    g = compile(f)
    r, q = g(values(lib, 3), P(1))
    out(r)
    out((q.a, q.b, type(q).__name__))
    r, q = g(values(lib, 3), P(1, 5.0))
    out(r)
    out(q == q)


@program
def enums(lib, compile, out):

    class Mode(enum.Enum):
        A = 1
        B = 2

    def f(x, m):
        if m is Mode.A:
            return x + m.value
        return x * (2 if m == Mode.B else 0)

    g = compile(f)
    out(g(values(lib, 3), Mode.A))
    out(g(values(lib, 3), Mode.B))
    out(g(values(lib, 3), Mode.A))


@program
def string_formatting(lib, compile, out):

    def f(x, n):
        return (x * n, f"{n:>4}|{n!r}|{x.shape[0]}|%d" % n + "{}".format(n).upper())

    g = compile(f)
    out(g(values(lib, 3), 2))
    out(g(values(lib, 2), 3))


@program
def isinstance_dispatch(lib, compile, out):

    def f(x, k):
        if isinstance(k, lib.Tensor):
            return x + k
        if isinstance(k, (list, tuple)):
            return x * len(k)
        if type(k) is str:
            return x - len(k)
        return x * k

    g = compile(f)
    for k in (2, values(lib, 3), [1, 2], "abc", (1,), 2.5, True):
        out(g(values(lib, 3), k))


@program
def getattr_by_name(lib, compile, out):
    b = Box(a=1, b=2)
    f = compile(lambda x, n: x + getattr(b, n, 100) + (1 if hasattr(b, "z") else 0))
    out(f(values(lib, 3), "a"))
    out(f(values(lib, 3), "b"))
    out(f(values(lib, 3), "q"))
    b.z = 1
    out(f(values(lib, 3), "a"))
    b.q = 5
    out(f(values(lib, 3), "q"))


@program
def len_zip_enumerate(lib, compile, out):

    def f(xs, ks):
        r = []
        for i, (x, k) in enumerate(zip(xs, ks), 1):
            r.append(x * k + i)
        return (r, len(xs))

    g = compile(f)
    xs = [values(lib, 2), values(lib, 3)]
    out(g(xs, [1, 2]))
    out(g(xs[::-1], [1, 2]))
    out(g(xs, [3]))
    out(g(xs + xs, range(4)))


@program
def dict_methods(lib, compile, out):
    d = {"a": 1, "b": 2}

    def f(x):
        t = 0
        for k, v in d.items():
            t += v * len(k)
        return x * t + d.get("c", 0) + ("b" in d) + sum(d.values())

    g = compile(f)
    out(g(values(lib, 3)))
    d["c"] = 3
    out(g(values(lib, 3)))
    d.pop("b")
    out(g(values(lib, 3)))


@program
def dict_writes(lib, compile, out):
    d = {}

    def f(x, k):
        d[k] = x + 1
        d.setdefault("n", 0)
        d["n"] += 1
        if "old" in d:
            del d["old"]
        return x * d["n"]

    g = compile(f)
    out(g(values(lib, 2), "a"))
    d["old"] = 1
    out(g(values(lib, 2), "b"))
    out(g(values(lib, 2), "a"))
    out(d)
    out(list(d))


@program
def item_branch(lib, compile, out):

    def f(x):
        if x.sum().item() > 0:
            return x * 2
        return x - 1

    g = compile(f)
    out(g(lib.ones(3)))
    out(g(-lib.ones(3)))
    out(g(lib.ones(3)))


@program
def tensor_branch(lib, compile, out):

    def f(x, k):
        y = x * k
        if y.mean() > 0:
            y = y + 10
        else:
            y = y - 10
        return y * 2

    g = compile(f)
    out(g(lib.ones(3), 2))
    out(g(-lib.ones(3), 2))
    out(g(lib.ones(3), 3))


@program
def tensor_while(lib, compile, out):

    def f(x):
        n = 0
        while x.sum() < 100:
            x = x * 2
            n += 1
        return (x, n)

    g = compile(f)
    out(g(lib.ones(3)))
    out(g(lib.ones(3) * 20))
    out(g(lib.ones(3)))


@program
def shape_loop(lib, compile, out):

    def f(x):
        t = 0
        for i in range(x.shape[0]):
            t = t + x[i] * i
        return t

    g = compile(f)
    for n in (2, 4, 3):
        out(g(values(lib, n, 2)))


@program
def inplace_argument(lib, compile, out):

    def f(x, y):
        x.add_(1)
        x[0] = 5
        y += x
        return x * y

    g = compile(f)
    x, y = (values(lib, 3), values(lib, 3))
    out(g(x, y))
    out(x)
    out(y)
    out(g(x, x))
    out(x)


@program
def views(lib, compile, out):

    def f(x):
        v = x.view(-1)
        v[1:3] = 0
        w = x.t()
        w.mul_(2)
        return (v, w)

    g = compile(f)
    x = values(lib, 2, 3)
    v, w = g(x)
    out(x)
    out(v)
    v.add_(1)
    out(x)
    out(w)
    out(g(values(lib, 3, 2).contiguous()))


@program
def returns_structures(lib, compile, out):

    def f(x, n):
        if n == 0:
            return None
        if n == 1:
            return {"a": x + 1, "b": [x, (x * 2, n)]}
        return (x, n, "s", [x] * 2)

    g = compile(f)
    for n in (0, 1, 2, 1):
        out(g(values(lib, 2), n))


@program
def return_identity(lib, compile, out):

    def f(x, l):
        a = [x]
        l.append(a)
        return (a, l, x)

    g = compile(f)
    x, l = (values(lib, 2), [])
    a, m, y = g(x, l)
    out((l[0] is a, m is l, y is x, a[0] is x))
    a, m, y = g(x, l)
    out((l[1] is a, m is l, len(l)))


@program
def attribute_write(lib, compile, out):
    b = Box(n=0)

    def f(x):
        b.n += 1
        b.last = x * b.n
        return b.last

    g = compile(f)
    for _ in range(3):
        out(g(values(lib, 2)))
    out(b.n)
    out(b.last)


@program
def module_counter(lib, compile, out):

    class M(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("total", lib.zeros(2))

        def forward(self, x):
            self.calls += 1
            self.total += x
            return self.total * self.calls

    m = M()
    f = compile(m)
    for _ in range(3):
        out(f(values(lib, 2)))
    out(m.calls)
    out(m.total)


@program
def buffer_rebound(lib, compile, out):

    class M(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("s", lib.zeros(2))

        def forward(self, x):
            self.s = self.s + x
            return self.s * 2

    m = M()
    f = compile(m)
    for _ in range(3):
        out(f(values(lib, 2)))
    out(m.s)


@program
def global_write(lib, compile, out):
    global COUNTER
    COUNTER = 0

    def f(x):
        global COUNTER
        COUNTER += 1
        return x * COUNTER

    g = compile(f)
    for _ in range(3):
        out(g(values(lib, 2)))
    out(COUNTER)


@program
def nonlocal_write(lib, compile, out):
    n = 0

    def f(x):
        nonlocal n
        n = n + 1
        return x + n

    g = compile(f)
    for _ in range(3):
        out(g(values(lib, 2)))
    out(n)


@program
def aliased_lists(lib, compile, out):

    def f(x, a, b):
        a.append(x + 1)
        return x * len(b)

    g = compile(f)
    a, b = ([], [])
    out(g(values(lib, 2), a, b))
    a, b = ([], [])
    out(g(values(lib, 2), a, a))
    out(len(a))
    a = []
    out(g(values(lib, 2), a, []))
    out(len(a))


@program
def same_tensor_twice(lib, compile, out):
    f = compile(lambda x, y: x * 2 if x is y else x + y)
    x, y = (values(lib, 3), lib.ones(3))
    out(f(x, y))
    out(f(x, x))
    out(f(x, y))


@program
def method_patched(lib, compile, out):

    class A:
        def go(self, x):
            return x + 1

    a = A()
    f = compile(lambda x: a.go(x))
    out(f(values(lib, 3)))
    A.go = lambda self, x: x * 10
    out(f(values(lib, 3)))
    a.go = lambda x: x - 5
    out(f(values(lib, 3)))


@program
def function_rebound(lib, compile, out):
    h = lambda x: x + 1
    f = compile(lambda x: h(x) * 2)
    out(f(values(lib, 3)))
    h = lambda x: x - 1
    out(f(values(lib, 3)))


@program
def class_constant(lib, compile, out):

    class A:
        K = 2

        @property
        def twice(self):
            return self.K * 2

        @classmethod
        def make(cls):
            return cls.K

        @staticmethod
        def one():
            return 1

    a = A()
    f = compile(lambda x: x * a.twice + A.make() + a.one())
    out(f(values(lib, 3)))
    A.K = 3
    out(f(values(lib, 3)))
    a.K = 9
    out(f(values(lib, 3)))


@program
def inheritance_super(lib, compile, out):

    class A:
        def go(self, x, k=1):
            return x + k

    class B(A):
        def go(self, x):
            return super().go(x, k=self.k) * 2

    b = B()
    b.k = 3
    f = compile(lambda x: b.go(x))
    out(f(values(lib, 3)))
    b.k = 4
    out(f(values(lib, 3)))
    A.go = lambda self, x, k: x
    out(f(values(lib, 3)))


@program
def super_after_break(lib, compile, out):

    class A(lib.nn.Module):
        def forward(self, x):
            return x + 1

    class B(A):
        def forward(self, x):
            print("break")
            get = lambda: self
            return super().forward(x) * (2 if get() is self else 0)

    f = compile(B())
    out(f(values(lib, 3)))
    out(f(values(lib, 3)))


@program
def comprehensions(lib, compile, out):

    def f(x, ks):
        a = [x * k for k in ks if k]
        d = {k: x + k for k in ks}
        s = {k % 2 for k in ks}
        return (a, d, sorted(s), sum((k for k in ks)))

    g = compile(f)
    out(g(values(lib, 2), (1, 2, 0)))
    out(g(values(lib, 2), (3,)))


@program
def unpacking(lib, compile, out):

    def f(t):
        a, (b, *r), *_, z = t
        return (a + b, len(r), [*r, z], {**{"k": a}})

    g = compile(f)
    x = values(lib, 2)
    out(g((x, (x, 1, 2), 3, x)))
    out(g([x, [x], x]))


@program
def namedtuples(lib, compile, out):
    P = collections.namedtuple("P", "a b")

    def f(x, p):
        return P(x * p.a, b=p.b + 1)

    g = compile(f)
    r = g(values(lib, 2), P(2, 3))
    out((type(r).__name__, r.a, r.b))
    out(tuple(g(values(lib, 2), P(3, 3))))


@program
def user_operators(lib, compile, out):

    class V:
        def __init__(self, t):
            self.t = t

        def __add__(self, o):
            return V(self.t + o.t)

        def __rmul__(self, k):
            return V(self.t * k)

        def __getitem__(self, i):
            return self.t[i]

        def __len__(self):
            return self.t.shape[0]

        def __call__(self, y):
            return self.t - y

    def f(x):
        v = 3 * (V(x) + V(x * 2))
        return (v.t, v[1], len(v), v(1), bool(v))

    g = compile(f)
    out(g(values(lib, 3)))
    out(g(values(lib, 2)))


@program
def partial_and_map(lib, compile, out):

    def h(a, x, k=1):
        return x * a + k

    p = functools.partial(h, 2, k=3)

    def f(x, ks):
        return (list(map(lambda k: p(x) * k, filter(None, ks))), functools.reduce(lambda a, b: a + b, ks))

    g = compile(f)
    out(g(values(lib, 2), [1, 0, 2]))
    out(g(values(lib, 2), [4]))


@program
def recursion(lib, compile, out):

    def f(x, n):
        return x if n == 0 else f(x * 2, n - 1) + 1

    g = compile(f)
    out(g(values(lib, 2), 3))
    out(g(values(lib, 2), 5))


@program
def loop_with_break_inside(lib, compile, out):

    def f(x, n):
        for i in range(n):
            x = x + i
            print("i", i)
        return x

    g = compile(f)
    out(g(values(lib, 2), 3))
    out(g(values(lib, 2), 30))


@program
def unknown_call_in_callee(lib, compile, out):

    def h(x):
        y = x + 1
        print("h")
        return y * 2

    def f(x):
        return h(x * 3) - 1

    g = compile(f)
    out(g(values(lib, 2)))
    out(g(values(lib, 2)))


@program
def locals_call(lib, compile, out):

    def f(x):
        a = 1
        y = x + a
        return (y, sorted(locals()))

    g = compile(f)
    out(g(values(lib, 2)))
    out(g(values(lib, 2)))


@program
def module_list_dict(lib, compile, out):
    m = lib.nn.ModuleList([lib.nn.ReLU(), lib.nn.Tanh()])

    def f(x):
        for l in m:
            x = l(x) + 1
        return x

    g = compile(f)
    out(g(values(lib, 3)))
    m.append(lib.nn.Sigmoid())
    out(g(values(lib, 3)))
    m[0] = lib.nn.Identity()
    out(g(values(lib, 3)))


@program
def mask_indexing(lib, compile, out):
    f = compile(lambda x: x[x > 0].sum() + x[[0, 1]].sum())
    out(f(values(lib, 6)))
    out(f(values(lib, 6) + 1))


@program
def strides_change(lib, compile, out):
    f = compile(lambda x: (x.stride(), x.is_contiguous(), x * 2))
    out(f(values(lib, 2, 3)))
    out(f(values(lib, 3, 2).t()))


@program
def numpy_argument(lib, compile, out):
    f = compile(lambda x, a: x * float(a.sum()) + a.shape[0])
    out(f(values(lib, 3), np.ones(2)))
    out(f(values(lib, 3), np.ones(3) * 2))


@program
def unhashable_and_float(lib, compile, out):
    f = compile(lambda x, k: (x * k, 1 / (x * k)))
    for k in (0.0, -0.0, float("inf"), 1, 1.0, True):
        out(f(lib.ones(2), k))


@program
def training_step(lib, compile, out):
    lib.manual_seed(0)
    m = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.ReLU(), lib.nn.Linear(8, 2))
    o = lib.optim.SGD(m.parameters(), lr=0.1)

    def step(x, y):
        o.zero_grad()
        loss = lib.nn.functional.cross_entropy(m(x), y)
        loss.backward()
        o.step()
        return loss

    g = compile(step)
    for i in range(3):
        out(g(values(lib, 5, 4), lib.arange(5) % 2))
        if i == 1:
            o.param_groups[0]["lr"] = 0.01
    out(m[0].weight)


@program
def exception_from_operator(lib, compile, out):

    def f(x, i):
        try:
            return x[i]
        except IndexError:
            return x.sum()

    g = compile(f)
    out(g(values(lib, 3), lib.tensor([0, 1])))
    out(g(values(lib, 3), lib.tensor([0, 7])))
    out(g(values(lib, 3), lib.tensor([2, 1])))


@program
def iterator_argument(lib, compile, out):

    def f(x, it):
        for k in it:
            x = x * k
        return x

    g = compile(f)
    out(g(values(lib, 2), iter([1, 2])))
    out(g(values(lib, 2), (k for k in (3, 4))))
    it = iter([1, 2, 3])
    next(it)
    out(g(values(lib, 2), it))
    out(list(it))


@program
def builtin_shadowed(lib, compile, out):

    def f(x):
        return x * abs(-3)

    g = compile(f)
    out(g(values(lib, 2)))
    globals()["abs"] = lambda v: v * 10
    out(g(values(lib, 2)))
    del globals()["abs"]
    out(g(values(lib, 2)))


@program
def callback_from_c(lib, compile, out):
    seen = []

    def f(x):
        y = x + 1
        s = re.sub("a+", lambda m: seen.append(y * 2) or str(len(m.group())), "aabcaaa")
        return (y * len(s), s, len(seen))

    g = compile(f)
    out(g(values(lib, 2)))
    out(g(values(lib, 2)))
    out(seen)


@program
def custom_getattribute(lib, compile, out):

    class A:
        k = 1

        def __getattribute__(self, name):
            return 5 if name == "k" else object.__getattribute__(self, name)

    a = A()
    f = compile(lambda x: x * a.k)
    out(f(values(lib, 2)))
    out(f(values(lib, 2)))


@program
def slots_and_deque(lib, compile, out):

    class S:
        __slots__ = ("a", "b")

    s = S()
    s.a = 2
    q = collections.deque([1])
    dd = collections.defaultdict(list)

    def f(x):
        s.b = s.a + 1
        q.append(s.b)
        dd["z"].append(len(q))
        return x * s.b

    g = compile(f)
    out(g(values(lib, 2)))
    s.a = 5
    out(g(values(lib, 2)))
    out(list(q))
    out(dict(dd))
    out(s.b)


@program
def match_and_walrus(lib, compile, out):

    def f(x, v):
        if (n := len(v)) > 1:
            x = x + n
        match v:
            case [a, b]:
                return x * a - b
            case {"k": k}:
                return x * k
            case _:
                return x

    g = compile(f)
    for v in ([1, 2], {"k": 3}, "a", {"k": 5}):
        out(g(values(lib, 2), v))


@program
def class_statement(lib, compile, out):

    def f(x):

        class K:
            v = 3

        y = x * K.v
        return (y, K.__name__)

    g = compile(f)
    out(g(values(lib, 2)))
    out(g(values(lib, 2)))


@program
def finally_and_return(lib, compile, out):
    log = []

    def f(x, n):
        try:
            for i in range(5):
                if i == n:
                    return x * i
            else:
                x = x + 100
        finally:
            log.append(n)
        return x

    g = compile(f)
    out(g(values(lib, 2), 2))
    out(g(values(lib, 2), 9))
    out(log)


@program
def raise_from(lib, compile, out):

    def f(x, d):
        try:
            return x * d["k"]
        except KeyError as e:
            raise ValueError("no k") from e

    g = compile(f)
    out(g(values(lib, 2), {"k": 2}))
    for _ in range(2):
        try:
            g(values(lib, 2), {})
        except ValueError as e:
            out((str(e), type(e.__cause__).__name__))


@program
def tensor_in_fstring(lib, compile, out):
    f = compile(lambda x: (f"{(x + 1).tolist()}", x + 2))
    out(f(values(lib, 2)))
    out(f(lib.ones(2)))


@program
def generator_send(lib, compile, out):

    def gen():
        t = 0
        while True:
            v = yield t
            if v is None:
                return
            t = t + v

    def f(x):
        it = gen()
        next(it)
        a = it.send(x)
        b = it.send(x * 2)
        return (a, b)

    g = compile(f)
    out(g(values(lib, 2)))
    out(g(values(lib, 2)))


@program
def async_function(lib, compile, out):

    async def h(x):
        return x + 1

    async def f(x):
        return await h(x * 2)

    g = compile(f)
    out(asyncio.run(g(values(lib, 2))))
    out(asyncio.run(g(values(lib, 2))))


@program
def grad_attribute(lib, compile, out):
    p = lib.nn.Parameter(values(lib, 2))
    f = compile(lambda: p * 2 if p.grad is None else p - p.grad)
    out(f())
    p.grad = lib.ones(2)
    out(f())
    p.grad = lib.ones(2) * 3
    out(f())
    p.grad = None
    out(f())


@program
def subclass_override_later(lib, compile, out):

    class A:
        def go(self, x):
            return x + 1

    class B(A):
        pass

    b = B()
    f = compile(lambda x: b.go(x))
    out(f(values(lib, 2)))
    B.go = lambda self, x: x * 7
    out(f(values(lib, 2)))


@program
def module_replaced(lib, compile, out):
    m = lib.nn.Sequential(lib.nn.ReLU())
    f = compile(lambda x: m(x))
    out(f(values(lib, 3)))
    m[0] = lib.nn.Tanh()
    out(f(values(lib, 3)))
    m.forward = lambda x: x * 0 + 1
    out(f(values(lib, 3)))


# ------------------------------------------------------------------------------- hooks, optimizers, modes, devices


@program
def pre_hook_added_and_removed(lib, compile, out):
    model = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Tanh())
    compiled = compile(lambda x: model(x) + 1)
    out(compiled(values(lib, 4)))
    handle = model[1].register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    out(compiled(values(lib, 4)))
    handle.remove()
    out(compiled(values(lib, 4)))


@program
def hook_from_the_start(lib, compile, out):
    model, seen = lib.nn.Tanh(), []
    model.register_forward_hook(lambda module, args, result: seen.append(len(seen)) or result + 1)
    compiled = compile(lambda x: model(x) * 2)
    for _ in range(3):
        out(compiled(values(lib, 4)))
    out(seen)


@program
def hook_on_a_gradient(lib, compile, out):
    w = lib.ones(3).requires_grad_()
    compiled = compile(lambda x: (x * w).sum())
    compiled(values(lib, 3)).backward()
    out(w.grad)
    w.register_hook(lambda g: g * 10)
    compiled(values(lib, 3)).backward()
    out(w.grad)


@program
def param_groups_edited(lib, compile, out):
    p = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([{"params": [p], "lr": 0.1}], lr=1.0)

    def scaled(x):
        total = x
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                total = total + parameter * group["lr"]
        return total

    compiled = compile(scaled)
    out(compiled(lib.ones(2)))
    optimizer.param_groups[0]["lr"] = 0.5
    out(compiled(lib.ones(2)))
    optimizer.add_param_group({"params": [lib.nn.Parameter(lib.ones(2) * 2)]})
    out(compiled(lib.ones(2)))


@program
def optimizer_step_inside(lib, compile, out):
    p = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([p], lr=0.1, momentum=0.9)
    step = compile(lambda: optimizer.step())
    for i in range(3):
        p.grad = lib.ones(2) * i
        step()
        out(p)


@program
def seed_set_between(lib, compile, out):
    compiled = compile(lambda x: x + lib.rand(2))
    for seed in (0, 0, 1):
        lib.manual_seed(seed)
        out(compiled(lib.zeros(2)))


@program
def random_module_reseeded(lib, compile, out):
    compiled = compile(lambda x: x * random.randint(0, 100))
    for seed in (3, 3, 4):
        random.seed(seed)
        out(compiled(lib.ones(2)))


@program
def default_dtype_changed(lib, compile, out):
    compiled = compile(lambda x: x.sum() + lib.ones(2))
    out(compiled(lib.ones(2, dtype=lib.float32)))
    lib.set_default_dtype(lib.float64)
    out(compiled(lib.ones(2, dtype=lib.float32)))
    lib.set_default_dtype(lib.float32)
    out(compiled(lib.ones(2, dtype=lib.float32)))


@program
def inference_mode_outside(lib, compile, out):
    w = lib.ones(2).requires_grad_()
    compiled = compile(lambda x: x * w)
    out(compiled(lib.ones(2)))
    with lib.inference_mode():
        out(compiled(lib.ones(2)).requires_grad)
    out(compiled(lib.ones(2)))


@program
def enable_grad_inside(lib, compile, out):
    w = lib.ones(2).requires_grad_()

    def f(x):
        with lib.enable_grad():
            y = x * w
        return y, x * w

    compiled = compile(f)
    with lib.no_grad():
        out([t.requires_grad for t in compiled(lib.ones(2))])
    out([t.requires_grad for t in compiled(lib.ones(2))])


@program
def autocast_outside(lib, compile, out):
    compiled = compile(lambda x: x @ x)
    out(compiled(lib.ones(2, 2)).dtype is lib.float32)
    with lib.autocast("cpu", dtype=lib.bfloat16):
        out(compiled(lib.ones(2, 2)).dtype is lib.bfloat16)
    out(compiled(lib.ones(2, 2)).dtype is lib.float32)


@program
def meta_device(lib, compile, out):
    compiled = compile(lambda x: (x * 2, x.device.type))
    out(compiled(lib.ones(2)))
    result, where = compiled(lib.ones(2, device="meta"))
    out((tuple(result.shape), where, result.device.type))
    out(compiled(lib.ones(2)))


@program
def device_as_an_attribute(lib, compile, out):
    box = Box(device="cpu")
    compiled = compile(lambda x: (x + lib.ones(2, device=box.device).sum().to("cpu")) if box.device == "cpu" else x - 1)
    out(compiled(lib.ones(2)))
    box.device = "meta"
    out(compiled(lib.ones(2)))


@program
def ranks_change(lib, compile, out):
    compiled = compile(lambda x: x.flatten() * x.dim())
    for shape in ((2,), (2, 3), (1, 2, 3), ()):
        out(compiled(values(lib, *shape)))


@program
def sizes_zero_and_one(lib, compile, out):
    compiled = compile(lambda x: (x.squeeze(0).shape, x.sum()))
    for size in (3, 1, 0, 4):
        out(compiled(values(lib, size, 2)))


@program
def expanded_input(lib, compile, out):
    compiled = compile(lambda x: (x * 2, x.stride()))
    out(compiled(values(lib, 2, 3)))
    out(compiled(values(lib, 3).expand(2, 3)))


@program
def offset_view_as_input(lib, compile, out):
    compiled = compile(lambda x: x.add_(1))
    base = values(lib, 6)
    compiled(base[:3])
    compiled(base[3:])
    out(base)


@program
def overlapping_inputs(lib, compile, out):
    def f(a, b):
        a.add_(1)
        return a * b

    compiled = compile(f)
    base = lib.ones(4)
    out(compiled(base[:2], base[2:]))
    out(compiled(base[:2], base[:2]))
    out(base)


@program
def complex_and_bool_inputs(lib, compile, out):
    compiled = compile(lambda x: (x == x).sum() + x.shape[0])
    out(compiled(lib.ones(2)))
    out(compiled(lib.ones(2, dtype=lib.bool)))
    out(compiled(lib.ones(3, dtype=lib.complex64)))


@program
def list_of_modules(lib, compile, out):
    layers = [lib.nn.ReLU(), lib.nn.Tanh()]

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    compiled = compile(f)
    out(compiled(values(lib, 3)))
    layers.append(lib.nn.Sigmoid())
    out(compiled(values(lib, 3)))
    layers[0] = lib.nn.Identity()
    out(compiled(values(lib, 3)))


@program
def dict_keys_reordered(lib, compile, out):
    def f(x, table):
        for key, factor in table.items():
            x = x * factor + len(key)
        return x

    compiled = compile(f)
    out(compiled(values(lib, 2), {"a": 2, "bb": 3}))
    out(compiled(values(lib, 2), {"bb": 3, "a": 2}))
    out(compiled(values(lib, 2), {"a": 2, "bb": 3, "c": 4}))


@program
def nested_containers(lib, compile, out):
    tree = {"a": [1, {"b": (2, 3)}]}

    def f(x):
        return x * tree["a"][0] + tree["a"][1]["b"][1]

    compiled = compile(f)
    out(compiled(lib.ones(2)))
    tree["a"][1]["b"] = (2, 7)
    out(compiled(lib.ones(2)))
    tree["a"][0] = 5
    out(compiled(lib.ones(2)))


@program
def set_of_flags(lib, compile, out):
    flags = {"relu"}

    def f(x):
        x = lib.relu(x) if "relu" in flags else x
        return x * 2 if "double" in flags else x

    compiled = compile(f)
    out(compiled(values(lib, 3)))
    flags.add("double")
    out(compiled(values(lib, 3)))
    flags.discard("relu")
    out(compiled(values(lib, 3)))


@program
def function_attribute(lib, compile, out):
    def f(x):
        return x * f.factor

    f.factor = 2
    compiled = compile(f)
    out(compiled(lib.ones(2)))
    f.factor = 3
    out(compiled(lib.ones(2)))


@program
def closure_over_a_cell_of_another(lib, compile, out):
    def make():
        count = 0

        def increase():
            nonlocal count
            count += 1
            return count

        def read(x):
            return x * count

        return increase, read

    increase, read = make()
    compiled = compile(read)
    out(compiled(lib.ones(2)))
    increase()
    out(compiled(lib.ones(2)))


@program
def code_of_a_callee_replaced(lib, compile, out):
    def helper(x):
        return x + 1

    def other(x):
        return x - 5

    compiled = compile(lambda x: helper(x) * 2)
    out(compiled(lib.ones(2)))
    helper.__code__ = other.__code__
    out(compiled(lib.ones(2)))


@program
def global_function_rebound(lib, compile, out):
    def f(x):
        return scaled_by_global(x)

    compiled = compile(f)
    out(compiled(lib.ones(2)))
    globals()["scaled_by_global"] = lambda x: x * 11
    out(compiled(lib.ones(2)))
    globals()["scaled_by_global"] = _scaled_by_global


def scaled_by_global(x):
    return x * GLOBAL_K


_scaled_by_global = scaled_by_global


@program
def property_that_changes(lib, compile, out):
    class Rate:
        def __init__(self):
            self.steps = 0

        @property
        def value(self):
            return 1.0 / (1 + self.steps)

    rate = Rate()
    compiled = compile(lambda x: x * rate.value)
    for _ in range(3):
        out(compiled(lib.ones(2)))
        rate.steps += 1


@program
def training_flag_of_a_child(lib, compile, out):
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Dropout(1.0))
    compiled = compile(lambda x: model(x).sum() * 0 + (1 if model[1].training else 2))
    out(compiled(lib.ones(1, 2)))
    model[1].eval()
    out(compiled(lib.ones(1, 2)))


@program
def parameter_replaced(lib, compile, out):
    layer = lib.nn.Linear(2, 2, bias=False)
    compiled = compile(lambda x: layer(x))
    lib.nn.init.ones_(layer.weight)
    out(compiled(lib.ones(1, 2)))
    layer.weight = lib.nn.Parameter(lib.ones(2, 2) * 3)
    out(compiled(lib.ones(1, 2)))
    layer.weight.requires_grad_(False)
    out(compiled(lib.ones(1, 2)))


@program
def bias_removed(lib, compile, out):
    layer = lib.nn.Linear(2, 2)
    lib.nn.init.ones_(layer.weight)
    lib.nn.init.ones_(layer.bias)
    compiled = compile(lambda x: layer(x))
    out(compiled(lib.ones(1, 2)))
    layer.bias = None
    out(compiled(lib.ones(1, 2)))


@program
def buffer_updated(lib, compile, out):
    class Mean(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", lib.zeros(2))

        def forward(self, x):
            with lib.no_grad():
                self.mean.mul_(0.5).add_(x.mean(0), alpha=0.5)
            return x - self.mean

    model = Mean()
    compiled = compile(model)
    for _ in range(3):
        out(compiled(values(lib, 3, 2)))
    out(model.mean)


@program
def weight_decay_over_named_parameters(lib, compile, out):
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Linear(2, 1))
    for p in model.parameters():
        lib.nn.init.ones_(p)

    def penalty():
        return sum((p * p).sum() for name, p in model.named_parameters() if name.endswith("weight"))

    compiled = compile(penalty)
    out(compiled())
    with lib.no_grad():
        model[0].weight.mul_(2)
    out(compiled())


@program
def early_exit_by_size(lib, compile, out):
    def f(x):
        if x.numel() > 4:
            return x[:2] * 2
        return x + 1

    compiled = compile(f)
    for size in (3, 6, 4, 6):
        out(compiled(values(lib, size)))


@program
def ints_that_count(lib, compile, out):
    compiled = compile(lambda x, step: x * step)
    for step in (1, 2, 3, 4):
        out(compiled(lib.ones(2), step))


@program
def strings_select(lib, compile, out):
    def f(x, mode):
        return {"a": lambda t: t + 1, "b": lambda t: t * 2}[mode](x)

    compiled = compile(f)
    for mode in ("a", "b", "a"):
        out(compiled(lib.ones(2), mode))


@program
def none_or_tensor(lib, compile, out):
    compiled = compile(lambda x, mask=None: x if mask is None else x * mask)
    out(compiled(lib.ones(2)))
    out(compiled(lib.ones(2), lib.zeros(2)))
    out(compiled(lib.ones(2), mask=None))


@program
def tuple_of_tensors_grows(lib, compile, out):
    compiled = compile(lambda *xs: lib.stack(xs).sum(0))
    out(compiled(lib.ones(2)))
    out(compiled(lib.ones(2), lib.ones(2)))
    out(compiled(lib.ones(2), lib.ones(2), lib.ones(2)))


@program
def cache_that_fills(lib, compile, out):
    cache = {}

    def f(x, key):
        if key not in cache:
            cache[key] = x * 2
        return cache[key] + 1

    compiled = compile(f)
    out(compiled(lib.ones(2), "a"))
    out(compiled(lib.zeros(2), "a"))
    out(compiled(lib.zeros(2), "b"))
    out(sorted(cache))


@program
def history_in_a_deque(lib, compile, out):
    history = collections.deque(maxlen=2)

    def f(x):
        history.append(x.sum())
        return sum(history)

    compiled = compile(f)
    for i in range(4):
        out(compiled(lib.ones(2) * i))


@program
def counter_in_an_object(lib, compile, out):
    box = Box(calls=collections.defaultdict(int))

    def f(x, name):
        box.calls[name] += 1
        return x * box.calls[name]

    compiled = compile(f)
    for name in "aba":
        out(compiled(lib.ones(2), name))
    out(dict(box.calls))


@program
def itertools_inside(lib, compile, out):
    ks = [1, 2]

    def f(x):
        for i, j in itertools.product(ks, range(2)):
            x = x + i * j
        return x * sum(itertools.chain(ks, [3])), list(itertools.accumulate(ks))

    compiled = compile(f)
    out(compiled(lib.ones(2)))
    ks.append(3)
    out(compiled(lib.ones(2)))


@program
def break_inside_a_with(lib, compile, out):
    w = lib.ones(2).requires_grad_()

    def f(x):
        with lib.no_grad():
            y = x * w
            print("in the block")
            y = y + w
        return y * w

    compiled = compile(f)
    for _ in range(2):
        out(compiled(lib.ones(2)))


@program
def break_inside_a_try(lib, compile, out):
    def f(x, text):
        try:
            y = x * 2
            number = int(text) if print("parse") is None else 0
            y = y * number
        except ValueError:
            y = x - 1
        return y + 1

    compiled = compile(f)
    for text in ("3", "no", "4"):
        out(compiled(lib.ones(2), text))


@program
def item_as_a_factor(lib, compile, out):
    compiled = compile(lambda x: x * x.max().item())
    out(compiled(lib.ones(2)))
    out(compiled(lib.ones(2) * 3))


@program
def where_instead_of_if(lib, compile, out):
    compiled = compile(lambda x: lib.where(x > 0, x, -x).sum())
    out(compiled(values(lib, 4)))
    out(compiled(-values(lib, 4)))


@program
def gradient_inside(lib, compile, out):
    w = lib.ones(2).requires_grad_()

    def f(x):
        loss = (x * w * w).sum()
        loss.backward()
        return loss

    compiled = compile(f)
    for _ in range(2):
        out(compiled(lib.ones(2)))
        out(w.grad)


@program
def detach_and_data(lib, compile, out):
    w = lib.ones(2).requires_grad_()
    compiled = compile(lambda x: (x * w.detach(), w.data + x))
    out(compiled(lib.ones(2)))
    w.data = lib.ones(2) * 4
    out(compiled(lib.ones(2)))


@program
def subclass_of_a_module_method(lib, compile, out):
    class Base(lib.nn.Module):
        def forward(self, x):
            return self.core(x) + 1

        def core(self, x):
            return x

    class Double(Base):
        def core(self, x):
            return super().core(x) * 2

    def f(model, x):
        return model(x)

    compiled = compile(f)
    for model in (Base(), Double(), Base()):
        out(compiled(model, lib.ones(2)))


@program
def two_instances_of_one_class(lib, compile, out):
    class Scale(lib.nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        def forward(self, x):
            return x * self.k

    compiled = compile(lambda model, x: model(x))
    for k in (2, 3, 2):
        out(compiled(Scale(k), lib.ones(2)))


@program
def state_keyed_by_parameters(lib, compile, out):
    parameters = [lib.nn.Parameter(lib.ones(2)), lib.nn.Parameter(lib.ones(1))]
    state = collections.defaultdict(dict)

    def step():
        with lib.no_grad():
            for p in parameters:
                own = state[p]
                own["steps"] = own.get("steps", 0) + 1
                own["sum"] = p * own["steps"] + own.get("sum", 0)
                p.sub_(own["sum"])
        return len(state)

    compiled = compile(step)
    for i in range(4):
        out(compiled())
        out([p for p in parameters])
        if i == 1:
            parameters.append(lib.nn.Parameter(lib.zeros(3)))
        if i == 2:
            state.clear()


@program
def a_dictionary_of_objects(lib, compile, out):
    boxes = [Box(k=1), Box(k=2)]
    names = {boxes[0]: "first"}

    def f(x, box):
        names.setdefault(box, "later")
        return x * len(names[box]), [names[each] for each in boxes if each in names]

    compiled = compile(f)
    for box in (boxes[0], boxes[1], boxes[0], boxes[1]):
        out(compiled(lib.ones(2), box))
    names[boxes[0]] = "other"
    out(compiled(lib.ones(2), boxes[0]))


@program
def tensors_that_were_seen(lib, compile, out):
    def f(*xs):
        seen, total = set(), 0
        for x in xs:
            if x not in seen:
                seen.add(x)
                total = total + x.sum()
        return total, len(seen)

    compiled = compile(f)
    a, b = lib.ones(2), lib.ones(2)
    out(compiled(a, b, b + 1))
    out(compiled(a, a, a))
    out(compiled(a, b, a))
    out(compiled(b, a, b))


@program
def fields_that_come_and_go(lib, compile, out):
    box = Box()

    def f(x):
        if hasattr(box, "cache"):
            del box.cache
            return x + 1
        box.cache = x
        return x - 1

    compiled = compile(f)
    for _ in range(4):
        out(compiled(lib.ones(2)))
        out(sorted(vars(box)))
