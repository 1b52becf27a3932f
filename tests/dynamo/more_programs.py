"""Programs that are compared with themselves as they are written, and with nothing else: numbers that change, aliases, classes
that are edited, exceptions, modes, views. See `programs.py` for those that PyTorch compiles, too.
"""

import collections
import dataclasses
import enum
import functools
import sys
import types

import readtorch as rt

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Box:
    def __init__(self, **fields):
        self.__dict__.update(fields)


@program
def sym_list_index(compile, out):
    l = [10, 20, 30, 40, 50]
    f = compile(lambda x, k: x * l[k])
    for k in (1, 2, 3, 1, -1):
        out(f(rt.ones(2), k))


@program
def sym_range(compile, out):

    def f(x, n):
        for i in range(n):
            x = x + i
        return x

    g = compile(f)
    for n in (2, 3, 4, 5, 2):
        out(g(rt.ones(1), n))


@program
def sym_shape(compile, out):
    f = compile(lambda x, n: x[:n] * n + rt.zeros(n))
    for n in (2, 3, 4, 5, 2, 0):
        out(f(rt.ones(6), n))


@program
def sym_view(compile, out):
    f = compile(lambda x, n: x.view(n, -1) * n)
    for n in (2, 3, 4, 6):
        out(f(rt.arange(12.0), n))


@program
def sym_float_branch(compile, out):
    f = compile(lambda x, k: x * k if k < 0.5 else x - k)
    for k in (0.1, 0.2, 0.3, 0.7, 0.8, 0.4, float("nan"), float("inf"), -0.0, 0.0):
        out(f(rt.ones(1), k))


@program
def sym_bool_int(compile, out):
    f = compile(lambda x, k: x * k)
    for k in (2, 3, True, False, 4, 2.5, 3.5, 10**30):
        out(f(rt.ones(1, dtype=rt.float64), k))


@program
def sym_str(compile, out):
    f = compile(lambda x, k: (x * k, f"{k}-{k + 1}", str(k), [k, k * 2], {k: 1}))
    for k in (2, 3, 4, 5):
        out(f(rt.ones(1), k))


@program
def sym_div(compile, out):

    def f(x, a, b):
        try:
            return x * (a // b)
        except ZeroDivisionError:
            return x - 1

    g = compile(f)
    for a, b in ((6, 2), (7, 3), (8, 0), (9, 2), (9, 0)):
        out(g(rt.ones(1), a, b))


@program
def sym_int_tensor_types(compile, out):
    f = compile(lambda x, k: (x + k).dtype == rt.int64 and x + k)
    for k in (2, 3, 4.5, 5.5, 6):
        out(f(rt.arange(3), k))


@program
def sym_global_counter(compile, out):
    d = {"n": 0}

    def f(x):
        d["n"] += 1
        if d["n"] % 3 == 0:
            x = x * 100
        return x + d["n"]

    g = compile(f)
    for _ in range(8):
        out(g(rt.ones(1)))
    out(d)


@program
def sym_default(compile, out):

    def f(x, *, lr=0.1):
        return x * lr

    g = compile(f)
    for lr in (0.1, 0.2, 0.3, 0.4):
        out(g(rt.ones(1), lr=lr))
    out(g(rt.ones(1)))


@program
def sym_pow(compile, out):
    f = compile(lambda x, k: x**k)
    for k in (2, 3, 4, 0, 1, -1):
        out(f(rt.ones(2) * 2, k))


@program
def sym_mixed_types_key(compile, out):
    f = compile(lambda x, k: x * (k * 1) + x * (k * 1.0))
    for k in (2, 3, 4):
        out(f(rt.arange(3), k))


@program
def sym_max(compile, out):
    f = compile(lambda x, k: x * max(k, 3) + min(k, 5) + abs(k) + int(k) + float(k) + round(k))
    for k in (2, 3, 4, 6, -7):
        out(f(rt.ones(1), k))


@program
def sym_in_tuple(compile, out):
    f = compile(lambda x, k: x + 1 if k in (2, 5, 9) else x - 1)
    for k in (2, 3, 4, 5, 9):
        out(f(rt.ones(1), k))


@program
def sym_slice_list(compile, out):
    l = [1, 2, 3, 4]
    f = compile(lambda x, k: x * sum(l[:k]))
    for k in (1, 2, 3, 4):
        out(f(rt.ones(1), k))


@program
def sym_is(compile, out):
    f = compile(lambda x, k: x * 2 if k is None else x * k)
    for k in (None, 2, 3, None, 4):
        out(f(rt.ones(1), k))


@program
def sym_return(compile, out):
    f = compile(lambda x, k: (k, x + k, k + 1, -k, k / 2, k % 3))
    for k in (2, 3, 4, 5):
        out(f(rt.ones(1), k))


@program
def sym_write_box(compile, out):
    b = Box(n=1)

    def f(x):
        b.n = b.n * 2 + 1
        return x * b.n

    g = compile(f)
    for _ in range(5):
        out(g(rt.ones(1)))
        out(b.n)


@program
def sym_kwarg_dim(compile, out):
    f = compile(lambda x, d: x.sum(d))
    for d in (0, 1, -1, 0):
        out(f(rt.arange(6.0).view(2, 3), d))


@program
def sym_clamp(compile, out):
    f = compile(lambda x, a: x.clamp(a, a + 1).clamp_min(a))
    for a in (0.1, 0.2, 0.3, 2):
        out(f(rt.arange(3.0), a))


@program
def sym_dropout(compile, out):

    def f(x, p):
        return rt.nn.functional.dropout(x, p)

    g = compile(f)
    for p in (0.1, 0.5, 0.9):
        rt.manual_seed(0)
        out(g(rt.ones(8), p))


@program
def skip_then_ops(compile, out):

    def f(x, n):
        return None if n == 0 else x * n

    g = compile(f)
    for n in (0, 1, 2, 0):
        out(g(rt.ones(1), n))


@program
def skip_side_effects(compile, out):
    log = []

    def f(x):
        log.append(len(log))
        return x

    g = compile(f)
    for _ in range(3):
        out(g(rt.ones(1)))
    out(log)


@program
def class_attr_added(compile, out):

    class A:
        pass

    a = A()
    f = compile(lambda x: x * getattr(a, "k", 1))
    out(f(rt.ones(1)))
    A.k = 5
    out(f(rt.ones(1)))
    del A.k
    out(f(rt.ones(1)))
    a.k = 7
    out(f(rt.ones(1)))


@program
def class_bool_added(compile, out):

    class A:
        pass

    a = A()
    f = compile(lambda x: x + 1 if a else x - 1)
    out(f(rt.ones(1)))
    A.__bool__ = lambda s: False
    out(f(rt.ones(1)))


@program
def base_changes(compile, out):

    class B1:
        def go(s, x):
            return x + 1

    class B2:
        def go(s, x):
            return x + 2

    class A(B1):
        pass

    a = A()
    f = compile(lambda x: a.go(x))
    out(f(rt.ones(1)))
    A.__bases__ = (B2,)
    out(f(rt.ones(1)))


@program
def obj_class_changes(compile, out):

    class A:
        k = 1

    class B:
        k = 2

    a = A()
    f = compile(lambda x: x * a.k)
    out(f(rt.ones(1)))
    a.__class__ = B
    out(f(rt.ones(1)))


@program
def instance_method_shadow(compile, out):

    class A:
        def go(s, x):
            return x + 1

    a = A()
    f = compile(lambda x: a.go(x))
    out(f(rt.ones(1)))
    a.go = lambda x: x * 9
    out(f(rt.ones(1)))
    del a.go
    out(f(rt.ones(1)))


@program
def dict_order_write(compile, out):
    d = {"a": 1, "b": 2}

    def f(x):
        d.pop("a", None)
        d["a"] = x.sum()
        d["c"] = 3
        return x * len(d)

    g = compile(f)
    for _ in range(3):
        out(g(rt.ones(2)))
        out(list(d))


@program
def dict_iter_mutation(compile, out):
    d = {"a": 1}

    def f(x):
        for k in list(d):
            d[k + "x"] = d.pop(k) + 1
        return x * sum(d.values())

    g = compile(f)
    for _ in range(3):
        out(g(rt.ones(1)))
        out(d)


@program
def aliased_dicts(compile, out):

    def f(x, a, b):
        a["k"] = 2
        return x * b.get("k", 1)

    g = compile(f)
    out(g(rt.ones(1), {}, {}))
    d = {}
    out(g(rt.ones(1), d, d))
    out(g(rt.ones(1), {}, {"k": 7}))


@program
def aliased_objects(compile, out):

    def f(x, a, b):
        a.k = 2
        return x * b.k

    g = compile(f)
    out(g(rt.ones(1), Box(k=1), Box(k=1)))
    b = Box(k=1)
    out(g(rt.ones(1), b, b))
    out(g(rt.ones(1), Box(k=1), Box(k=5)))


@program
def nested_alias(compile, out):

    def f(x, a, b):
        a.l.append(1)
        return x * len(b)

    g = compile(f)
    out(g(rt.ones(1), Box(l=[]), []))
    l = []
    out(g(rt.ones(1), Box(l=l), l))
    out(g(rt.ones(1), Box(l=[]), [1, 2]))


@program
def list_self_extend(compile, out):
    l = [1]

    def f(x):
        l.extend(l)
        l.insert(0, 9)
        del l[-1]
        l[0:1] = [5, 6]
        return x * sum(l)

    g = compile(f)
    for _ in range(3):
        out(g(rt.ones(1)))
        out(l)


@program
def tensor_list_inplace(compile, out):
    ts = [rt.ones(2), rt.ones(2)]

    def f():
        for t in ts:
            t.mul_(2)
        ts[0] = ts[0] + ts[1]
        return ts[0].sum()

    g = compile(f)
    for _ in range(3):
        out(g())
        out(ts)
    ts[1] = ts[0]
    out(g())
    out(ts)


@program
def closure_cell_shared(compile, out):
    n = 0

    def inc():
        nonlocal n
        n += 1

    def f(x):
        inc()
        inc()
        return x * n

    g = compile(f)
    for _ in range(3):
        out(g(rt.ones(1)))
        out(n)


@program
def nested_gen_state(compile, out):

    def gen():
        t = 0
        while True:
            r = yield t
            t += 1 if r is None else r

    it = gen()

    def f(x):
        return x * next(it)

    g = compile(f)
    for _ in range(4):
        out(g(rt.ones(1)))


@program
def exc_in_with(compile, out):
    log = []

    class C:
        def __enter__(s):
            log.append("e")
            return s

        def __exit__(s, t, v, tb):
            log.append(t and t.__name__)
            return t is ValueError

    def f(x, k):
        with C():
            if k == 1:
                raise ValueError("a")
            if k == 2:
                raise KeyError("b")
            x = x + 1
        return x

    g = compile(f)
    for k in (0, 1, 2, 0):
        try:
            out(g(rt.ones(1), k))
        except KeyError as er:
            out(repr(er))
    out(log)


@program
def try_else_finally(compile, out):
    log = []

    def f(x, d):
        try:
            v = d["k"]
        except KeyError:
            v = 0
            log.append("miss")
        else:
            log.append("hit")
        finally:
            log.append("fin")
        return x * v

    g = compile(f)
    for d in ({"k": 1}, {}, {"k": 2}, {"k": 3}):
        out(g(rt.ones(1), d))
    out(log)


@program
def exc_var_scope(compile, out):

    def f(x):
        try:
            [][0]
        except IndexError as er:
            m = str(er)
        try:
            er  # noqa: F821
        except UnboundLocalError:
            m += "!"
        return (x, x + 1, m)

    g = compile(f)
    out(g(rt.ones(1)))
    out(g(rt.ones(1)))


@program
def print_in_try_graph(compile, out):

    def f(x, k):
        try:
            x = x * 2
            print("p", k)
            if k:
                raise RuntimeError("z")
            x = x + 1
        except RuntimeError as er:
            x = x - 5
            print("caught", er)
        finally:
            x = x * 3
        return x

    g = compile(f)
    for k in (0, 1, 0, 1):
        out(g(rt.ones(1), k))


@program
def break_in_for_with_state(compile, out):

    def f(x, n):
        acc = []
        for i in range(n):
            acc.append(x * i)
            if i == 1:
                print("one")
            x = x + acc[-1]
        return (x, len(acc), acc)

    g = compile(f)
    for n in (1, 2, 3, 4, 3):
        out(g(rt.ones(1), n))


@program
def grad_modes(compile, out):
    w = rt.ones(1, requires_grad=True)

    def f(x, k):
        with rt.set_grad_enabled(k):
            a = x * w
        with rt.no_grad():
            with rt.enable_grad():
                b = x * w
        return (a.requires_grad, b.requires_grad, rt.is_grad_enabled(), a + b)

    g = compile(f)
    for k in (True, False, True):
        out(g(rt.ones(1), k))
    with rt.no_grad():
        out(g(rt.ones(1), True))


@program
def inference(compile, out):

    def f(x):
        with rt.inference_mode():
            y = x * 2
        return (y.is_inference(), y + 0)

    g = compile(f)
    out(g(rt.ones(1))[0])
    out(g(rt.ones(1))[0])


@program
def views_alias(compile, out):

    def f(x):
        y = x.view(-1)
        z = x.t()
        y[0] = 100
        z.add_(1)
        x.mul_(2)
        return (y, z, x, y is x, z.is_contiguous(), x.stride())

    g = compile(f)
    a = rt.ones(2, 3)
    out(g(a))
    out(a)
    out(g(rt.ones(3, 2)))
    b = rt.ones(2, 3).t()
    try:
        out(g(b))
    except RuntimeError:
        out("err")
        out(b)


@program
def contiguous_is(compile, out):
    f = compile(
        lambda x: (
            x.contiguous() is x,
            x.to(rt.float32) is x,
            x.detach() is x,
            x.expand(2, 2) is x,
            x.float() is x,
            x.reshape(2, 2) is x,
            x + 1,
        )
    )
    out(f(rt.ones(2, 2)))
    out(f(rt.ones(2, 2).t()))
    out(f(rt.arange(4.0).view(2, 2).t()))
    out(f(rt.ones(2, 2, dtype=rt.float64)))


@program
def out_requires(compile, out):
    f = compile(
        lambda x, w: (
            (x * w).requires_grad,
            (x * w).detach().requires_grad,
            (x > w).requires_grad,
            x.argmax().requires_grad,
            x * w,
        )
    )
    out(f(rt.ones(2), rt.ones(2)))
    out(f(rt.ones(2), rt.ones(2, requires_grad=True)))
    with rt.no_grad():
        out(f(rt.ones(2), rt.ones(2, requires_grad=True)))


@program
def module_setattr(compile, out):

    class M(rt.nn.Module):
        def __init__(s):
            super().__init__()
            s.l = rt.nn.Linear(2, 2, bias=False)
            s.h = None
            s.n = 0

        def forward(s, x):
            s.h = s.l(x) if s.h is None else s.h * 0.5 + s.l(x)
            s.n += 1
            return s.h * s.n

    m = M()
    rt.nn.init.ones_(m.l.weight)
    f = compile(m)
    for _ in range(4):
        out(f(rt.ones(1, 2)))
    out(m.n)
    out(m.h)


@program
def module_param_shared(compile, out):
    a = rt.nn.Linear(2, 2, bias=False)
    b = rt.nn.Linear(2, 2, bias=False)
    rt.nn.init.ones_(a.weight)
    rt.nn.init.zeros_(b.weight)
    m = rt.nn.Sequential(a, b)
    f = compile(m)
    out(f(rt.ones(1, 2)))
    b.weight = a.weight
    out(f(rt.ones(1, 2)))
    with rt.no_grad():
        a.weight.mul_(2)
    out(f(rt.ones(1, 2)))


@program
def hooks_order(compile, out):
    log = []
    m = rt.nn.ReLU()
    m.register_forward_pre_hook(lambda mo, a: log.append("pre"))
    m.register_forward_hook(lambda mo, a, o: log.append("post") or o * 2)
    f = compile(lambda x: m(x) + 1)
    out(f(rt.ones(1)))
    h = m.register_forward_hook(lambda mo, a, o: o + 10)
    out(f(rt.ones(1)))
    h.remove()
    out(f(rt.ones(1)))
    out(log)


@program
def global_hook(compile, out):
    m = rt.nn.ReLU()
    f = compile(lambda x: m(x) + 1)
    out(f(rt.ones(1)))
    h = rt.nn.modules.module.register_module_forward_hook(lambda mo, a, o: o * 7)
    out(f(rt.ones(1)))
    h.remove()
    out(f(rt.ones(1)))


@program
def dataclass_frozen(compile, out):

    @dataclasses.dataclass(frozen=True)
    class D:
        a: int
        b: object = None

    f = compile(lambda x, d: (x * d.a, D(d.a + 1, x), dataclasses.replace(d, a=9).a, d == D(2)))
    for a in (2, 3, 4):
        r = f(rt.ones(1), D(a))
        out((r[0], r[1].a, r[2], r[3]))


@program
def slots_del(compile, out):

    class S:
        __slots__ = ("a",)

    s = S()

    def f(x):
        if hasattr(s, "a"):
            k = s.a
            del s.a
        else:
            k = 1
            s.a = 5
        return x * k

    g = compile(f)
    for _ in range(4):
        out(g(rt.ones(1)))
        out(hasattr(s, "a"))


@program
def prop_setter(compile, out):

    class A:
        def __init__(s):
            s._v = 1

        v = property(lambda s: s._v, lambda s, x: setattr(s, "_v", x * 2))

    a = A()

    def f(x):
        a.v = a.v + 1
        return x * a.v

    g = compile(f)
    for _ in range(4):
        out(g(rt.ones(1)))
        out(a._v)


@program
def getattr_dynamic(compile, out):

    class A:
        def __init__(s):
            s.d = {}

        def __getattr__(s, n):
            if n in ("d",):
                raise AttributeError(n)
            return s.d.get(n, 1)

    a = A()
    f = compile(lambda x: x * a.foo)
    out(f(rt.ones(1)))
    a.d["foo"] = 4
    out(f(rt.ones(1)))
    a.foo = 6
    out(f(rt.ones(1)))


@program
def staticmeth_replaced(compile, out):

    class A:
        @staticmethod
        def s(x):
            return x + 1

        @classmethod
        def scaled(cls, x):
            return x * cls.K

        K = 2

    f = compile(lambda x: A.s(x) + A().scaled(x))
    out(f(rt.ones(1)))
    A.s = staticmethod(lambda x: x - 9)
    out(f(rt.ones(1)))
    A.K = 3
    out(f(rt.ones(1)))
    A.scaled = classmethod(lambda cls, x: x)
    out(f(rt.ones(1)))


@program
def enum_dict(compile, out):

    class E(enum.IntEnum):
        A = 1
        B = 2

    d = {E.A: 2, E.B: 3}
    f = compile(lambda x, e_: x * d[e_] + e_)
    out(f(rt.ones(1), E.A))
    out(f(rt.ones(1), E.B))
    out(f(rt.ones(1), 1))
    d[E.A] = 8
    out(f(rt.ones(1), E.A))


@program
def namedtuple_sub(compile, out):

    class N(collections.namedtuple("N", "a b")):
        @property
        def s(self):
            return self.a + self.b

    f = compile(lambda x, n: x * n.s + n[0])
    out(f(rt.ones(1), N(1, 2)))
    out(f(rt.ones(1), N(1, 5)))
    N.s = property(lambda self: 100)
    out(f(rt.ones(1), N(1, 5)))


@program
def kw_only_default_mut(compile, out):

    def h(x, *, k=[1]):
        k.append(2)
        return x * len(k)

    f = compile(lambda x: h(x))
    for _ in range(3):
        out(f(rt.ones(1)))
    out(h.__kwdefaults__)


@program
def lambda_defaults_loop(compile, out):

    def f(x):
        fs = [lambda t, i=i: t * i for i in range(3)]
        gs = [lambda t: t * i for i in range(3)]
        return ([h(x) for h in fs], [h(x) for h in gs])

    g = compile(f)
    out(g(rt.ones(1)))
    out(g(rt.ones(1)))


@program
def tensor_attr(compile, out):
    x = rt.ones(1)
    x.tag = 3
    f = compile(lambda t: t * getattr(t, "tag", 1))
    out(f(x))
    x.tag = 4
    out(f(x))
    del x.tag
    out(f(x))
    out(f(rt.ones(1)))


@program
def sorted_keys(compile, out):
    l = [3, 1, 2]

    def f(x, rev):
        l.sort(key=lambda v: -v, reverse=rev)
        return (x * l[0], sorted(l, key=lambda v: v % 2), max(l, key=lambda v: -v))

    g = compile(f)
    out(g(rt.ones(1), False))
    l.append(7)
    out(g(rt.ones(1), True))
    out(l)


@program
def walrus_comp(compile, out):
    f = compile(lambda x, ks: [y for k in ks if (y := (x * k)).shape[0] > 0] + [{k: v for k, v in zip("ab", ks)}])
    out(f(rt.ones(1), [1, 2]))
    out(f(rt.ones(1), [3]))


@program
def string_keys(compile, out):
    d = {f"l{i}": rt.ones(1) * i for i in range(3)}
    f = compile(lambda x: sum((d[f"l{i}"] for i in range(len(d)))) * x + len("-".join(d)))
    out(f(rt.ones(1)))
    d["l3"] = rt.ones(1) * 10
    out(f(rt.ones(1)))


@program
def random_state(compile, out):
    f = compile(lambda x: (x + rt.rand(1), rt.randn(1), rt.randperm(3), rt.nn.functional.dropout(rt.ones(4), 0.5)))
    rt.manual_seed(5)
    for _ in range(3):
        out(f(rt.ones(1)))
    out(rt.rand(1))


@program
def generator_arg(compile, out):
    gen = rt.Generator()
    gen.manual_seed(3)
    f = compile(lambda x: x + rt.rand(1, generator=gen))
    for _ in range(3):
        out(f(rt.ones(1)))


@program
def backward_twice(compile, out):
    w = rt.ones(2, requires_grad=True)
    f = compile(lambda x: ((x * w) ** 3).sum())
    for _ in range(2):
        l = f(rt.ones(2))
        (g,) = rt.autograd.grad(l, w, create_graph=True)
        (g2,) = rt.autograd.grad(g.sum(), w)
        out([g, g2])


@program
def amp_inside(compile, out):

    def f(x):
        with rt.autocast("cpu", dtype=rt.bfloat16):
            y = x @ x
        return (str(y.dtype), y.float() + x)

    g = compile(f)
    out(g(rt.ones(2, 2)))
    out(g(rt.ones(2, 2)))


@program
def autocast_dtypes(compile, out):
    f = compile(lambda x: str((x @ x).dtype) + str(x.sum()))
    for dt in (rt.bfloat16, rt.float16, rt.bfloat16):
        with rt.autocast("cpu", dtype=dt):
            out(f(rt.ones(2, 2)))
    out(f(rt.ones(2, 2)))


@program
def default_device(compile, out):
    f = compile(lambda x: (x + 1, rt.ones(1).device.type))
    out(f(rt.ones(1)))
    with rt.device("meta"):
        out(f(rt.ones(1, device="cpu"))[1])
    out(f(rt.ones(1)))


@program
def tensor_subclass(compile, out):

    class S(rt.Tensor):
        pass

    f = compile(lambda x: (x * 2).sum())
    out(f(rt.ones(2)))
    r = f(rt.ones(2).as_subclass(S))
    out(type(r).__name__)
    out(f(rt.ones(2)))


@program
def function_mode(compile, out):

    class M(rt.overrides.TorchFunctionMode):
        def __torch_function__(s, fn, ty, a=(), k=None):
            r = fn(*a, **k or {})
            return r * 3 if isinstance(r, rt.Tensor) and fn is rt.relu else r

    f = compile(lambda x: rt.relu(x))
    out(f(rt.ones(1)))
    with M():
        out(f(rt.ones(1)))
    out(f(rt.ones(1)))


@program
def vmap_inside(compile, out):
    f = compile(lambda x: rt.vmap(lambda r: r * 2 + 1)(x))
    out(f(rt.ones(2, 2)))
    out(f(rt.ones(2, 2)))


@program
def vmap_outside(compile, out):
    f = compile(lambda x: x * 2 + 1 if x.dim() == 1 else x * 0)
    out(rt.vmap(f)(rt.ones(2, 2)))
    out(f(rt.ones(2)))
    out(rt.vmap(f)(rt.ones(2, 2)))


@program
def recursion_mutual(compile, out):

    def a(x, n):
        return x if n <= 0 else b(x + 1, n - 1)

    def b(x, n):
        return x if n <= 0 else a(x * 2, n - 1)

    f = compile(a)
    for n in (1, 2, 3, 4, 2):
        out(f(rt.ones(1), n))


@program
def star_exprs(compile, out):

    def h(*a, **k):
        return sum(a) + sum(k.values())

    f = compile(lambda x, l, d: h(*l, x, **d))
    out(f(rt.ones(1), [1, 2], {"a": 3}))
    out(f(rt.ones(1), (1,), {}))
    out(f(rt.ones(1), [], {"b": x1 for x1 in [4]}))


@program
def chained_cmp(compile, out):
    f = compile(lambda x, k: x + 1 if 1 < k < 5 else x - 1)
    for k in (0, 2, 3, 5, 4, 9):
        out(f(rt.ones(1), k))


@program
def delete_global(compile, out):
    globals()["GG"] = 3

    def f(x):
        try:
            return x * GG
        except NameError:
            return x - 1

    g = compile(f)
    out(g(rt.ones(1)))
    del globals()["GG"]
    out(g(rt.ones(1)))
    globals()["GG"] = 5
    out(g(rt.ones(1)))


@program
def import_inside(compile, out):

    def f(x):
        import math
        from collections import OrderedDict as OD

        return x * math.sqrt(4) + len(OD(a=1))

    g = compile(f)
    out(g(rt.ones(1)))
    out(g(rt.ones(1)))


@program
def unpack_err(compile, out):

    def f(x, t):
        try:
            a, b = t
        except ValueError as er:
            return (x, str(er))
        return (x * a + b, "")

    g = compile(f)
    for t in ((1, 2), (1,), (1, 2, 3), [4, 5]):
        out(g(rt.ones(1), t))


@program
def assert_msg(compile, out):

    def f(x, k):
        assert k > 0, f"bad {k}"
        return x * k

    g = compile(f)
    for k in (1, 2, -1, 3, -2):
        try:
            out(g(rt.ones(1), k))
        except AssertionError as er:
            out(str(er))


@program
def cached_property(compile, out):

    class A:
        def __init__(s):
            s.k = 2

        @functools.cached_property
        def v(s):
            return s.k * 10

    a = A()
    f = compile(lambda x: x * a.v)
    out(f(rt.ones(1)))
    a.k = 3
    out(f(rt.ones(1)))
    del a.v
    out(f(rt.ones(1)))
    out(sorted(vars(a)))


@program
def lru(compile, out):
    n = [0]

    @functools.lru_cache
    def h(k):
        n[0] += 1
        return k * 2

    f = compile(lambda x, k: x * h(k))
    out(f(rt.ones(1), 2))
    out(f(rt.ones(1), 2))
    out(f(rt.ones(1), 3))
    out(n)


@program
def partial_mut(compile, out):
    p = functools.partial(lambda x, k=1: x * k, k=2)
    f = compile(lambda x: p(x))
    out(f(rt.ones(1)))
    p.keywords["k"] = 5
    out(f(rt.ones(1)))


@program
def item_assign_mask(compile, out):

    def f(x, m):
        x[m] = 0
        x[0, 1] = 5
        x[:, 0] += 1
        return x.clone()

    g = compile(f)
    out(g(rt.ones(2, 2), rt.tensor([[True, False], [False, True]])))
    out(g(rt.ones(2, 2), rt.tensor([[False, False], [False, True]])))


@program
def tensor_index_int(compile, out):
    f = compile(lambda x, i: x[i] * 2)
    out(f(rt.arange(4.0), 1))
    out(f(rt.arange(4.0), 2))
    out(f(rt.arange(4.0), 3))
    out(f(rt.arange(4.0), rt.tensor(2)))


@program
def grad_accum(compile, out):
    w = rt.ones(2, requires_grad=True)

    def f(x):
        if w.grad is not None:
            w.grad.zero_()
        return (x * w).sum()

    g = compile(f)
    for i in range(3):
        g(rt.ones(2) * i).backward()
        out(w.grad)


@program
def a_method_that_a_number_has_not(compile, out):
    f = compile(lambda x, items: items[-1].sum() * x)
    for items in ([rt.ones(2)], [rt.ones(2), 1], [2.5], [rt.ones(2)]):
        try:
            out(f(rt.ones(1), items))
        except AttributeError as error:
            out(str(error))


@program
def strides_of_one_element(compile, out):
    def f(x):
        x = x / x.shape[0]
        return x + 1 if x.stride(0) > 1 else x - 1

    compiled = compile(f)
    for x in (rt.rand(3, 3).t().unsqueeze(0), rt.rand(2, 3), rt.ones(1, 2).expand(4, 2), rt.rand(0, 2)):
        out(compiled(x))


@program
def imports_that_fail_later(compile, out):
    found = sys.modules["imported_by_a_program"] = types.ModuleType("imported_by_a_program")
    found.k = 1.0

    def f(x):
        from imported_by_a_program import k

        return x * k

    compiled = compile(f)
    out(compiled(rt.ones(2)))
    del found.k
    for _ in range(2):
        try:
            out(compiled(rt.ones(2)))
        except ImportError as error:
            out(type(error).__name__)
        sys.modules.pop("imported_by_a_program", None)


@program
def class_state_in_many_places(compile, out):
    class Base:
        count, name = 0, "base"

        @classmethod
        def grow(cls):
            cls.count += 1
            return cls.count

    class Child(Base):
        count = 10

    @compile
    def f(x, cls):
        made = cls()
        before = made.count
        grown = cls.grow() + Base.count
        cls.name = cls.name + "!"
        made.count = 3
        return x * grown + before, made.count, made.name, getattr(Child, "count"), super(Child, Child()).count

    for cls in (Base, Child, Child, Base):
        out(f(rt.arange(2.0) + 1, cls))
        out((Base.count, Child.count, Base.name))


@program
def attributes_through_super(compile, out):
    class Base:
        k = 2.0

        @property
        def p(self):
            return self.k + 1

        @classmethod
        def c(cls):
            return cls.k * 10

        @staticmethod
        def s(x):
            return x - 1

    class Child(Base):
        k = 5.0

        def f(self, x):
            return super().s(x) * super().k + super().p + super().c()

    child = Child()
    f = compile(lambda x: child.f(x))
    out(f(rt.arange(2.0) + 1))
    Base.k = 3.0
    out(f(rt.arange(2.0) + 1))
    Base.p = property(lambda self: 100.0)
    out(f(rt.arange(2.0) + 1))
    Base.c = classmethod(lambda cls: 1000.0)
    out(f(rt.arange(2.0) + 1))
    Base.s = staticmethod(lambda x: x * 0)
    out(f(rt.arange(2.0) + 1))
