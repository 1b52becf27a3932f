"""Programs of the mutation table that look for what a guard may forget: metaclasses, descriptors, weak references, modules of Python,
names of functions, and the states of the library beside them.
"""

import abc
import contextlib
import dataclasses
import enum
import random
import sys
import types
import typing
import weakref

from tests.dynamo.programs import Box, program, values


@program
def meta_instancecheck(lib, compile, out):
    class Meta(type):
        ok = True

        def __instancecheck__(cls, o):
            return Meta.ok

        def __bool__(cls):
            return Meta.ok

        def __len__(cls):
            return 3

    class C(metaclass=Meta):
        pass

    f = compile(lambda x, o: x + 1 if isinstance(o, C) else x - 1)
    g = compile(lambda x: x + 1 if C else x - 1)
    out(f(values(lib, 3), 3))
    out(g(values(lib, 3)))
    Meta.ok = False
    out(f(values(lib, 3), 3))
    out(g(values(lib, 3)))


@program
def weakref_dies(lib, compile, out):
    class C:
        def __init__(s, k):
            s.k = k

    c = C(2.0)
    r = weakref.ref(c)

    def g(x):
        o = r()
        return x * (o.k if o is not None else -1.0)

    f = compile(g)
    out(f(values(lib, 3)))
    del c
    out(f(values(lib, 3)))


@program
def descriptor_state(lib, compile, out):
    class Desc:
        def __init__(s, k):
            s.k = k

        def __set_name__(s, o, n):
            s.n = n

        def __get__(s, o, t=None):
            return s.k if o is None else o.__dict__.get("_" + s.n, s.k)

        def __set__(s, o, v):
            o.__dict__["_" + s.n] = v

    class C:
        a = Desc(1.0)

    c = C()

    def g(x):
        c.a = c.a + 1.0
        return x * c.a + C.a

    f = compile(g)
    for _ in range(3):
        out(f(values(lib, 3)))
    C.__dict__["a"].k = 10.0
    out(f(values(lib, 3)))
    c.a = 0.0
    out(f(values(lib, 3)))


@program
def import_module_global(lib, compile, out):
    m = types.ModuleType("mymod_x")
    m.k = 2.0
    m.fn = lambda x: x + 1
    sys.modules["mymod_x"] = m

    def g(x):
        import mymod_x
        from mymod_x import k

        return mymod_x.fn(x) * k

    f = compile(g)
    out(f(values(lib, 3)))
    m.k = 3.0
    out(f(values(lib, 3)))
    m.fn = lambda x: x * 100
    out(f(values(lib, 3)))
    n = types.ModuleType("mymod_x")
    n.k = 1.0
    n.fn = lambda x: x * 0
    sys.modules["mymod_x"] = n
    out(f(values(lib, 3)))
    del sys.modules["mymod_x"]


@program
def module_getattr_hook(lib, compile, out):
    m = types.ModuleType("mm")
    m.c = 2.0
    m.__getattr__ = lambda n: m.c
    f = compile(lambda x: x * m.zzz)
    out(f(values(lib, 3)))
    m.c = 3.0
    out(f(values(lib, 3)))
    m.zzz = 9.0
    out(f(values(lib, 3)))


@program
def names_changed(lib, compile, out):
    class C:
        "doc"

    def h(x):
        "d"
        return x

    f = compile(
        lambda x: x + len(C.__name__) + len(C.__doc__) + len(C.__qualname__) * 0 + len(h.__name__) + len(h.__doc__)
    )
    out(f(values(lib, 3)))
    C.__name__ = "LONG"
    out(f(values(lib, 3)))
    C.__doc__ = ""
    out(f(values(lib, 3)))
    h.__name__ = "qqqqq"
    out(f(values(lib, 3)))
    h.__doc__ = "zzzzzz"
    out(f(values(lib, 3)))


@program
def abc_registered(lib, compile, out):
    class A(abc.ABC):
        pass

    class C:
        pass

    c = C()
    f = compile(lambda x: x + 1 if isinstance(c, A) else x - 1)
    out(f(values(lib, 3)))
    A.register(C)
    out(f(values(lib, 3)))


@program
def subclass_asked(lib, compile, out):
    class Meta(type):
        yes = True

        def __subclasscheck__(cls, o):
            return Meta.yes

    class A(metaclass=Meta):
        pass

    f = compile(lambda x: x + 1 if issubclass(int, A) else x - 1)
    out(f(values(lib, 3)))
    Meta.yes = False
    out(f(values(lib, 3)))


@program
def module_attr_probed(lib, compile, out):
    m = types.ModuleType("mmm")
    f = compile(lambda x: x + getattr(m, "k", 1.0) + hasattr(m, "z"))
    out(f(values(lib, 3)))
    m.k = 4.0
    out(f(values(lib, 3)))
    m.z = 1
    out(f(values(lib, 3)))
    del m.k
    out(f(values(lib, 3)))
    m.__getattr__ = lambda n: 9.0
    out(f(values(lib, 3)))


@program
def dict_dunder(lib, compile, out):
    class C:
        pass

    c = C()
    c.k = 1.0

    def g(x):
        c.__dict__["k"] = c.k + 1
        c.__dict__.update(j=c.k * 2)
        d = vars(c)
        return x * c.__dict__["k"] + len(d)

    f = compile(g)
    for _ in range(3):
        out(f(values(lib, 3)))
        out(sorted(c.__dict__.items()))


@program
def weak_in_list(lib, compile, out):
    class C:
        def __init__(s, k):
            s.k = k

    cs = [C(1.0), C(2.0)]
    ws = [weakref.ref(c) for c in cs]

    def g(x):
        for w in ws:
            c = w()
            if c is not None:
                x = x * 2 + c.k
        return x

    f = compile(g)
    out(f(values(lib, 3)))
    del cs[0]
    out(f(values(lib, 3)))
    cs.clear()
    out(f(values(lib, 3)))


@program
def enum_class_attrs(lib, compile, out):
    class E(enum.Enum):
        A = 1
        B = 2

        def m(s):
            return s.value

        @classmethod
        def c(cls):
            return 3.0

        @staticmethod
        def s():
            return 4.0

    E.k = 5.0
    f = compile(lambda x: x * E.k + E.A.m() + E.c() + E.s() + len(E) + E.A.value + (E.B.name == "B"))
    out(f(values(lib, 3)))
    E.k = 9.0
    out(f(values(lib, 3)))
    E.m = lambda s: 50.0
    out(f(values(lib, 3)))
    E.c = classmethod(lambda cls: -9.0)
    out(f(values(lib, 3)))


@program
def kwdefaults_mutated(lib, compile, out):
    def h(x, *, k=2.0, j=1.0):
        return x * k + j

    def g(x):
        return h(x)

    f = compile(g)
    out(f(values(lib, 3)))
    h.__kwdefaults__["k"] = 5.0
    out(f(values(lib, 3)))
    h.__kwdefaults__ = {"k": 1.0, "j": 9.0}
    out(f(values(lib, 3)))
    h.__kwdefaults__ = {"k": 1.0}
    try:
        out(f(values(lib, 3)))
    except TypeError:
        out("TE")


@program
def closure_of_closure(lib, compile, out):
    def outer():
        k = 1.0

        def mid():
            nonlocal k
            j = 2.0

            def inner(x):
                nonlocal k, j
                k += 1.0
                j *= 2
                return x * k + j

            def get():
                return k, j

            return inner, get

        def setk(v):
            nonlocal k
            k = v

        return mid(), setk

    (inner, get), setk = outer()
    f = compile(inner)
    for i in range(3):
        out(f(values(lib, 3)))
        out(get())
    setk(10.0)
    out(f(values(lib, 3)))
    out(get())


@program
def bound_method_in_attr(lib, compile, out):
    class C:
        def __init__(s, k):
            s.k = k

        def m(s, x):
            return x * s.k

    c, d = C(2.0), C(3.0)
    b = Box(m=c.m)
    f = compile(lambda x: b.m(x))
    out(f(values(lib, 3)))
    b.m = d.m
    out(f(values(lib, 3)))
    d.k = 9.0
    out(f(values(lib, 3)))
    b.m = d.m.__func__.__get__(c)
    out(f(values(lib, 3)))


@program
def dataclass_mut(lib, compile, out):
    @dataclasses.dataclass
    class D:
        a: float = 1.0
        b: list = dataclasses.field(default_factory=list)

    d = D()

    def g(x):
        e = D(a=d.a * 2, b=[1.0])
        e2 = dataclasses.replace(d, a=4.0)
        return x * e.a + sum(d.b) + e2.a + (1 if d == D() else 0)

    f = compile(g)
    out(f(values(lib, 3)))
    d.b.append(3.0)
    out(f(values(lib, 3)))
    d.a = 5.0
    out(f(values(lib, 3)))
    D.__eq__ = lambda a, b: True
    out(f(values(lib, 3)))


@program
def namedtuple_ops(lib, compile, out):
    class N(typing.NamedTuple):
        a: float
        b: float = 2.0

        def s(self):
            return self.a + self.b

    b = Box(n=N(1.0))

    def g(x):
        m = b.n._replace(a=5.0)
        return N(x * b.n.s(), m.a), x + m.s() + len(b.n._fields)

    f = compile(g)
    r = f(values(lib, 3))
    out(type(r[0]).__name__)
    out(r[0].a)
    out(r[1])
    b.n = N(3.0, 4.0)
    r = f(values(lib, 3))
    out(r[0].a)
    out(r[1])
    N.s = lambda self: 100.0
    out(f(values(lib, 3))[1])


@program
def data_descriptor_added(lib, compile, out):
    class Desc:
        def __get__(s, o, t):
            return 40.0

        def __set__(s, o, v):
            pass

    class C:
        pass

    c = C()
    c.k = 2.0
    f = compile(lambda x: x * c.k)
    out(f(values(lib, 3)))
    C.k = Desc()
    out(f(values(lib, 3)))
    del C.k
    out(f(values(lib, 3)))


@program
def param_replaced_by_tensor(lib, compile, out):
    m = lib.nn.Linear(3, 3)
    with lib.no_grad():
        m.weight.copy_(values(lib, 3, 3))
        m.bias.zero_()
    f = compile(m)
    out(f(values(lib, 2, 3)))
    m.weight = lib.nn.Parameter(values(lib, 3, 3) * 2)
    out(f(values(lib, 2, 3)))
    m.bias = None
    out(f(values(lib, 2, 3)))
    m.register_parameter("bias", lib.nn.Parameter(lib.ones(3)))
    out(f(values(lib, 2, 3)))
    m.weight.data = values(lib, 3, 3) * 5
    out(f(values(lib, 2, 3)))
    m.weight.requires_grad_(False)
    out(f(values(lib, 2, 3)))
    m.bias.requires_grad_(False)
    out(f(values(lib, 2, 3)))
    m.double()
    out(f(values(lib, 2, 3).double()))


@program
def aliasing_inputs(lib, compile, out):
    def g(a, b):
        a.add_(1)
        return a + b

    f = compile(g)
    x, y = values(lib, 3), values(lib, 3)
    out(f(x, y))
    out(f(x, x))
    out(x)
    z = values(lib, 6)
    out(f(z[:3], z[1:4]))
    out(z)
    out(f(z[:3], z[:3]))
    out(z)
    out(f(z[:3], z[3:]))
    out(z)


@program
def rng_state(lib, compile, out):
    f = compile(lambda x: x + lib.rand(3) + lib.randn(3) * 0.1 + random.random())
    lib.manual_seed(3)
    random.seed(3)
    out(f(values(lib, 3)))
    out(f(values(lib, 3)))
    s = lib.get_rng_state()
    out(f(values(lib, 3)))
    lib.set_rng_state(s)
    random.seed(3)
    out(f(values(lib, 3)))


@program
def inference_tensors(lib, compile, out):
    with lib.inference_mode():
        t = values(lib, 3) * 1
    f = compile(lambda x: x * 2)
    out(f(values(lib, 3)).is_inference())
    out(f(t).is_inference())
    p = values(lib, 3).requires_grad_()
    g = compile(lambda x: x * p)
    g(values(lib, 3))
    try:
        out(g(t).requires_grad)
    except RuntimeError:
        out("RE")


@program
def class_replaced_global(lib, compile, out):
    ns = {"Box": Box}
    exec("def g(x):\n c = C(2.0)\n return x * c.v()\nclass C:\n def __init__(s,k): s.k=k\n def v(s): return s.k", ns)
    f = compile(ns["g"])
    out(f(values(lib, 3)))
    exec("class C:\n def __init__(s,k): s.k=k\n def v(s): return s.k*50", ns)
    out(f(values(lib, 3)))
    ns["C"].__init__ = lambda s, k: setattr(s, "k", 1.0)
    out(f(values(lib, 3)))
    ns["C"].__new__ = lambda cls, k: Box(v=lambda: 7.0)
    out(f(values(lib, 3)))


@program
def super_chain_swapped(lib, compile, out):
    class A:
        def m(s, x):
            return x + 1

    class B:
        def m(s, x):
            return x * 10

    class C(A):
        def m(s, x):
            return super().m(x) * 2

    c = C()
    f = compile(lambda x: c.m(x))
    out(f(values(lib, 3)))
    C.__bases__ = (B,)
    out(f(values(lib, 3)))
    B.m = lambda s, x: x
    out(f(values(lib, 3)))


@program
def exit_stack_like(lib, compile, out):
    log = []

    @contextlib.contextmanager
    def c(n):
        log.append(n)
        try:
            yield n
        except KeyError:
            log.append("K")
        finally:
            log.append(-n)

    def g(x, e):
        with c(1) as a, c(2) as b:
            x = x + a + b
            if e:
                raise KeyError("z")
        return x

    f = compile(g)
    out(f(values(lib, 3), False))
    out(f(values(lib, 3), True))
    out(log)
    with contextlib.suppress(ValueError):
        out(compile(lambda x: x + 1)(values(lib, 3)))


@program
def yield_from_and_return(lib, compile, out):
    def a(k):
        yield k
        return k * 2

    def b(k):
        r = yield from a(k)
        yield r + 1

    f = compile(lambda x, k: x + sum(b(k)))
    out(f(values(lib, 3), 2))
    out(f(values(lib, 3), 5))


@program
def float_specials(lib, compile, out):
    b = Box(v=0.0)
    f = compile(lambda x: x + (1 if b.v == 0 else 2) + str(b.v).count("-"))
    out(f(values(lib, 3)))
    b.v = -0.0
    out(f(values(lib, 3)))
    b.v = float("nan")
    out(f(values(lib, 3)))
    b.v = float("inf")
    out(f(values(lib, 3)))
    b.v = 0
    out(f(values(lib, 3)))
    b.v = False
    out(f(values(lib, 3)))
    b.v = complex(0)
    out(f(values(lib, 3)))


@program
def cells_shared_written(lib, compile, out):
    def mk():
        n = 0

        def inc():
            nonlocal n
            n += 1
            return n

        def get():
            return n

        return inc, get

    inc, get = mk()
    inc2, get2 = mk()

    def g(x):
        a = inc()
        inc2()
        inc2()
        return x + a + get() * 10 + get2() * 100

    f = compile(g)
    for _ in range(3):
        out(f(values(lib, 3)))
        out(get())
        out(get2())


@program
def function_made_and_kept(lib, compile, out):
    kept = []

    def g(x, k):
        def h(y):
            return y * k + base[0]

        kept.append(h)
        return h(x)

    base = [1.0]
    f = compile(g)
    out(f(values(lib, 3), 2.0))
    base[0] = 5.0
    out(kept[0](values(lib, 3)))
    out(f(values(lib, 3), 3.0))
    out(kept[1](values(lib, 3)))
    out(kept[0](values(lib, 3)))


@program
def global_del_shadow_builtin(lib, compile, out):
    def g(x):
        return x + len([1, 2]) + abs(-3)

    ns = {}
    exec("def g(x): return x + len([1, 2]) + abs(-3)", ns)
    f = compile(ns["g"])
    out(f(values(lib, 3)))
    ns["len"] = lambda l: 50
    out(f(values(lib, 3)))
    del ns["len"]
    out(f(values(lib, 3)))
    ns["__builtins__"] = dict(ns["__builtins__"]) if isinstance(ns["__builtins__"], dict) else ns["__builtins__"]
    out(f(values(lib, 3)))


@program
def hook_added_later_kinds(lib, compile, out):
    m = lib.nn.Linear(3, 3)
    with lib.no_grad():
        m.weight.copy_(values(lib, 3, 3))
        m.bias.zero_()
    log = []
    f = compile(m)
    out(f(values(lib, 2, 3)))
    h = m.register_forward_pre_hook(lambda mod, a: (a[0] * 2,))
    out(f(values(lib, 2, 3)))
    h2 = m.register_forward_hook(lambda mod, a, k, o: o + 1, with_kwargs=True)
    out(f(values(lib, 2, 3)))
    h.remove()
    out(f(values(lib, 2, 3)))
    h2.remove()
    out(f(values(lib, 2, 3)))
    h3 = m.register_full_backward_hook(lambda mod, gi, go: log.append("bw"))
    x = values(lib, 2, 3).requires_grad_()
    f(x).sum().backward()
    out(x.grad)
    out(log)
    h3.remove()
    m.register_forward_hook(lambda mod, a, o: o * 10, always_call=True)
    out(f(values(lib, 2, 3)))


@program
def channels_last(lib, compile, out):
    m = lib.nn.Conv2d(2, 3, 3)
    with lib.no_grad():
        m.weight.copy_(values(lib, 3, 2, 3, 3))
        m.bias.zero_()
    f = compile(lambda x: m(x).relu())
    x = values(lib, 2, 2, 5, 5)
    r = f(x)
    out(r)
    r2 = f(x.to(memory_format=lib.channels_last))
    out(list(r2.stride()))
    out(r2)
    m.to(memory_format=lib.channels_last)
    out(list(f(x).stride()))


@program
def steps_of_other_optimizers(lib, compile, out):
    for make in (lib.optim.RMSprop, lib.optim.Adadelta):
        parameter = lib.nn.Parameter(values(lib, 3))
        optimizer = make([parameter], lr=0.1)
        step = compile(lambda optimizer=optimizer: optimizer.step())
        for i in range(3):
            parameter.grad = values(lib, 3) * (i + 1)
            step()
            out(parameter)
        optimizer.state.clear()
        step()
        out(parameter)
