"""Programs that change what few programs change: classes and bases of objects, modules, views of dictionaries, dataclasses, enumerations,
descriptors, defaults, generators, threads. Their results are compared; how many graphs they have is not.
"""

import abc
import builtins
import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import sys
import threading
import types
import weakref

import numpy as np

from tests.dynamo.programs import Box, values

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def class_of_an_object_changed(lib, compile, out):
    class A:
        def scale(self):
            return 2.0

    class B:
        def scale(self):
            return 3.0

    a = A()
    f = compile(lambda x: x * a.scale())
    out(f(values(lib, 2)))
    a.__class__ = B
    out(f(values(lib, 2)))
    a.__class__ = A
    out(f(values(lib, 2)))


@program
def class_changed_within(lib, compile, out):
    class A:
        k = 2.0

    class B:
        k = 3.0

    a = A()

    def f(x):
        a.__class__ = B
        return x * a.k

    f = compile(f)
    out(f(values(lib, 2)))
    out(type(a).__name__)
    a.__class__ = A
    out(f(values(lib, 2)))
    out(type(a).__name__)


@program
def base_classes_changed(lib, compile, out):
    class P1:
        def k(self):
            return 2.0

    class P2:
        def k(self):
            return 5.0

    class C(P1):
        pass

    c = C()
    f = compile(lambda x: x * c.k())
    out(f(values(lib, 2)))
    C.__bases__ = (P2,)
    out(f(values(lib, 2)))


@program
def module_replaced_in_sys(lib, compile, out):
    m = types.ModuleType("zz_mod")
    m.k = 2.0
    sys.modules["zz_mod"] = m

    def f(x):
        import zz_mod

        return x * zz_mod.k

    f = compile(f)
    out(f(values(lib, 2)))
    m2 = types.ModuleType("zz_mod")
    m2.k = 7.0
    sys.modules["zz_mod"] = m2
    out(f(values(lib, 2)))
    del sys.modules["zz_mod"]
    try:
        out(f(values(lib, 2)))
    except ImportError as e:
        out(type(e).__name__)


@program
def dict_views_live(lib, compile, out):
    d = {"a": 1.0, "b": 2.0}
    ks, vs, its = d.keys(), d.values(), d.items()
    f = compile(lambda x: x * sum(vs) + len(ks) + sum(v for _, v in its))
    out(f(values(lib, 2)))
    d["c"] = 4.0
    out(f(values(lib, 2)))
    del d["a"]
    out(f(values(lib, 2)))
    d["b"] = 9.0
    out(f(values(lib, 2)))


@program
def dict_view_algebra(lib, compile, out):
    a = {"p": 1, "q": 2}
    b = {"q": 3, "r": 4}
    f = compile(lambda x: (x * len(a.keys() & b.keys()) + len(a.keys() | b.keys()), sorted(a.keys() - b.keys())))
    out(f(values(lib, 2)))
    b["p"] = 1
    out(f(values(lib, 2)))
    a.clear()
    out(f(values(lib, 2)))


@program
def mapping_proxy(lib, compile, out):
    d = {"k": 2.0}
    m = types.MappingProxyType(d)
    f = compile(lambda x: x * m["k"] + len(m))
    out(f(values(lib, 2)))
    d["k"] = 3.0
    out(f(values(lib, 2)))
    d["z"] = 1
    out(f(values(lib, 2)))


@program
def frozen_dataclass_replace(lib, compile, out):
    @dataclasses.dataclass(frozen=True)
    class C:
        k: float = 2.0
        n: int = 1

    c = C()
    f = compile(lambda x, c: (x * c.k + c.n, dataclasses.replace(c, k=c.k * 2)))
    for c in (C(), C(3.0), C(3.0, 5)):
        y, r = f(values(lib, 2), c)
        out(y)
        out((r.k, r.n, r == C(c.k * 2, c.n)))


@program
def dataclass_fields_astuple(lib, compile, out):
    @dataclasses.dataclass
    class C:
        a: float = 1.0
        b: float = 2.0

    c = C()
    f = compile(lambda x: x * sum(getattr(c, g.name) for g in dataclasses.fields(c)))
    out(f(values(lib, 2)))
    c.b = 5.0
    out(f(values(lib, 2)))
    g = compile(lambda x: (x * dataclasses.astuple(c)[0], dataclasses.asdict(c)))
    out(g(values(lib, 2)))
    c.a = 9.0
    out(g(values(lib, 2)))


@program
def dataclass_order_and_hash(lib, compile, out):
    @dataclasses.dataclass(order=True, unsafe_hash=True)
    class C:
        a: int = 1

    d = {C(1): 2.0, C(2): 3.0}
    box = Box(c=C(1))
    f = compile(lambda x: x * d[box.c] if box.c < C(2) else x - d[box.c])
    out(f(values(lib, 2)))
    box.c = C(2)
    out(f(values(lib, 2)))
    d[C(2)] = 8.0
    out(f(values(lib, 2)))


@program
def dataclass_post_init(lib, compile, out):
    @dataclasses.dataclass
    class C:
        a: float
        b: float = dataclasses.field(init=False)

        def __post_init__(self):
            self.b = self.a * 2

    f = compile(lambda x, k: x * C(k).b)
    for k in (1.0, 2.0, 1.0):
        out(f(values(lib, 2), k))


@program
def enum_with_methods_and_flags(lib, compile, out):
    class M(enum.Enum):
        A = 1
        B = 2

        def k(self):
            return self.value * 2.0

    class F(enum.Flag):
        X = 1
        Y = 2

    f = compile(lambda x, m, g: x * m.k() + (1 if F.X in g else 0))
    for m, g in ((M.A, F.X), (M.B, F.Y), (M.A, F.X | F.Y), (M(2), F(0))):
        out(f(values(lib, 2), m, g))
    M.k = lambda self: 100.0
    out(f(values(lib, 2), M.A, F.X))


@program
def int_enum_and_str_enum(lib, compile, out):
    class Level(enum.IntEnum):
        A = 1
        B = 3

    class S(str, enum.Enum):
        P = "p"
        Q = "q"

    t = {"p": 2.0, "q": 3.0}
    f = compile(lambda x, i, s: x * i + t[s])
    for i, s in ((Level.A, S.P), (Level.B, S.Q), (1, "p"), (3, S.P)):
        out(f(values(lib, 2), i, s))


@program
def property_with_setter(lib, compile, out):
    class A:
        def __init__(self):
            self._k = 1.0
            self.log = []

        @property
        def k(self):
            return self._k

        @k.setter
        def k(self, v):
            self.log.append(v)
            self._k = v * 2

    a = A()

    def f(x):
        a.k = a.k + 1.0
        return x * a.k

    f = compile(f)
    for _ in range(3):
        out(f(values(lib, 2)))
    out((a._k, a.log))
    A.k = A.k.setter(lambda self, v: setattr(self, "_k", v))
    out(f(values(lib, 2)))
    out((a._k, a.log))


@program
def descriptor_with_state(lib, compile, out):
    class D:
        def __init__(self):
            self.n = 0

        def __get__(self, o, c):
            self.n += 1
            return self.n * 1.0

        def __set__(self, o, v):
            self.n = v

    class A:
        d = D()

    a = A()
    f = compile(lambda x: x * a.d + a.d)
    out(f(values(lib, 2)))
    out(f(values(lib, 2)))
    a.d = 10
    out(f(values(lib, 2)))
    out(vars(A)["d"].n)


@program
def descriptor_replaced_by_value(lib, compile, out):
    class D:
        def __get__(self, o, c):
            return 2.0

    class A:
        d = D()

    a = A()
    f = compile(lambda x: x * a.d)
    out(f(values(lib, 2)))
    A.d = 5.0
    out(f(values(lib, 2)))
    a.d = 7.0
    out(f(values(lib, 2)))
    A.d = D()
    out(f(values(lib, 2)))


@program
def set_name_and_class_getitem(lib, compile, out):
    class D:
        def __set_name__(self, o, n):
            self.n = len(n)

        def __get__(self, o, c):
            return float(self.n)

    class A:
        abc = D()

        def __class_getitem__(cls, k):
            return k * 2

    f = compile(lambda x, k: x * A().abc + A[k])
    for k in (1, 2.5, 1):
        out(f(values(lib, 2), k))


@program
def defaults_tuple_replaced(lib, compile, out):
    def g(x, k=2.0, *, b=1.0):
        return x * k + b

    f = compile(lambda x: g(x))
    out(f(values(lib, 2)))
    g.__defaults__ = (3.0,)
    out(f(values(lib, 2)))
    g.__kwdefaults__ = {"b": 5.0}
    out(f(values(lib, 2)))
    g.__kwdefaults__["b"] = 6.0
    out(f(values(lib, 2)))
    g.__defaults__ = None
    try:
        out(f(values(lib, 2)))
    except TypeError:
        out("TypeError")


@program
def code_replaced(lib, compile, out):
    def g(x):
        return x * 2

    def h(x):
        return x - 5

    f = compile(lambda x: g(x))
    out(f(values(lib, 2)))
    g.__code__ = h.__code__
    out(f(values(lib, 2)))


@program
def generator_state_kept(lib, compile, out):
    def gen():
        k = 1.0
        while True:
            got = yield k
            k = got if got is not None else k * 2

    g = gen()
    f = compile(lambda x: x * next(g))
    for _ in range(3):
        out(f(values(lib, 2)))
    g.send(7.0)
    out(f(values(lib, 2)))


@program
def generator_throw_close(lib, compile, out):
    log = []

    def gen():
        try:
            yield 1.0
            yield 2.0
        except ValueError:
            yield 9.0
        finally:
            log.append("end")

    def f(x):
        g = gen()
        y = x * next(g)
        y = y + g.throw(ValueError)
        g.close()
        return y

    f = compile(f)
    out(f(values(lib, 2)))
    out(f(values(lib, 2)))
    out(log)


@program
def numpy_scalars(lib, compile, out):
    f = compile(lambda x, k: x * k)
    for k in (np.float32(2), np.float64(3), np.int64(2), np.bool_(True), 2):
        out(f(values(lib, 2), k))
    box = Box(k=np.float32(1.5))
    g = compile(lambda x: x * float(box.k))
    out(g(values(lib, 2)))
    box.k = np.float32(4)
    out(g(values(lib, 2)))


@program
def numpy_array_changed_in_place(lib, compile, out):
    a = np.array([1.0, 2.0], np.float32)
    f = compile(lambda x: x * float(a[0]) + a.shape[0])
    out(f(values(lib, 2)))
    a[0] = 5
    out(f(values(lib, 2)))


@program
def hooks_added_and_removed(lib, compile, out):
    lib.manual_seed(0)
    m = lib.nn.Linear(2, 2)
    f = compile(m)
    x = values(lib, 2)
    out(f(x))
    h = m.register_forward_hook(lambda m, i, o: o * 2)
    out(f(x))
    p = m.register_forward_pre_hook(lambda m, i: (i[0] + 1,))
    out(f(x))
    h.remove()
    out(f(x))
    p.remove()
    out(f(x))


@program
def hooks_of_a_child(lib, compile, out):
    lib.manual_seed(0)
    m = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.ReLU())
    f = compile(m)
    x = values(lib, 2)
    out(f(x))
    h = m[0].register_forward_hook(lambda m, i, o: -o)
    out(f(x))
    h.remove()
    out(f(x))
    m[0] = lib.nn.Identity()
    out(f(x))


@program
def parameter_replaced_and_frozen(lib, compile, out):
    lib.manual_seed(0)
    m = lib.nn.Linear(2, 2)
    f = compile(m)
    x = values(lib, 2)
    y = f(x)
    out(y.requires_grad)
    m.weight.requires_grad_(False)
    m.bias.requires_grad_(False)
    y = f(x)
    out(y.requires_grad)
    m.weight = lib.nn.Parameter(lib.ones(2, 2))
    y = f(x)
    out(y)
    out(y.requires_grad)
    m.bias = None
    out(f(x))


@program
def nested_compile(lib, compile, out):
    k = Box(k=2.0)
    g = compile(lambda x: x * k.k)
    f = compile(lambda x: g(x) + 1)
    out(f(values(lib, 2)))
    k.k = 3.0
    out(f(values(lib, 2)))
    out(g(values(lib, 2)))


@program
def compile_within_compiled(lib, compile, out):
    def f(x):
        g = compile(lambda y: y * 2)
        return g(x) + 1

    f = compile(f)
    out(f(values(lib, 2)))
    out(f(values(lib, 2)))


@program
def threads_with_own_state(lib, compile, out):
    local = threading.local()
    f = compile(lambda x: x * local.k)
    res = {}

    def work(k):
        local.k = k
        res[k] = [f(values(lib, 2)).tolist() for _ in range(3)]

    for k in (1.0, 2.0, 3.0):
        t = threading.Thread(target=work, args=(k,))
        t.start()
        t.join()
    out(sorted(res.items()))


@program
def threads_at_once(lib, compile, out):
    box = Box(k=2.0)
    f = compile(lambda x, i: x * box.k + i)
    res = [None] * 6

    def work(i):
        res[i] = [f(values(lib, 2), i).tolist() for _ in range(5)]

    ts = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    out(res)


@program
def context_variables(lib, compile, out):
    v = contextvars.ContextVar("v", default=1.0)
    f = compile(lambda x: x * v.get())
    out(f(values(lib, 2)))
    t = v.set(4.0)
    out(f(values(lib, 2)))
    v.reset(t)
    out(f(values(lib, 2)))


@program
def abstract_registered(lib, compile, out):
    class A(abc.ABC):
        pass

    class B:
        pass

    b = B()
    f = compile(lambda x: x * 2 if isinstance(b, A) else x)
    out(f(values(lib, 2)))
    A.register(B)
    out(f(values(lib, 2)))


@program
def instancecheck_hook(lib, compile, out):
    flag = Box(on=False)

    class M(type):
        def __instancecheck__(cls, o):
            return flag.on

    class A(metaclass=M):
        pass

    f = compile(lambda x: x * 2 if isinstance(x, A) else x - 1)
    out(f(values(lib, 2)))
    flag.on = True
    out(f(values(lib, 2)))


@program
def getattr_added_later(lib, compile, out):
    class A:
        pass

    a = A()
    f = compile(lambda x: x * getattr(a, "k", 1.0))
    out(f(values(lib, 2)))
    A.__getattr__ = lambda self, n: 6.0
    out(f(values(lib, 2)))
    del A.__getattr__
    out(f(values(lib, 2)))


@program
def getattribute_added_later(lib, compile, out):
    class A:
        k = 2.0

    a = A()
    f = compile(lambda x: x * a.k)
    out(f(values(lib, 2)))
    A.__getattribute__ = lambda self, n: 8.0
    out(f(values(lib, 2)))


@program
def setattr_added_later(lib, compile, out):
    class A:
        pass

    a = A()
    log = []

    def f(x):
        a.k = 3.0
        return x * 2

    f = compile(f)
    out(f(values(lib, 2)))
    A.__setattr__ = lambda self, n, v: log.append((n, v))
    del a.k
    out(f(values(lib, 2)))
    out((log, "k" in a.__dict__))


@program
def slots_and_deletion(lib, compile, out):
    class A:
        __slots__ = ("k",)

    a = A()
    f = compile(lambda x: x * a.k if hasattr(a, "k") else x)
    out(f(values(lib, 2)))
    a.k = 3.0
    out(f(values(lib, 2)))
    del a.k
    out(f(values(lib, 2)))


@program
def deque_and_counter(lib, compile, out):
    d = collections.deque([1.0, 2.0], maxlen=2)

    def f(x):
        d.append(x.shape[0] * 1.0)
        return x * d[0] + len(d)

    f = compile(f)
    out(f(values(lib, 2)))
    out(list(d))
    out(f(values(lib, 3)))
    d.rotate(1)
    out(f(values(lib, 2)))
    out(list(d))


@program
def default_dict_factory(lib, compile, out):
    d = collections.defaultdict(lambda: 2.0)

    def f(x, k):
        d[k] += 1
        return x * d[k]

    f = compile(f)
    out(f(values(lib, 2), "a"))
    out(f(values(lib, 2), "b"))
    out(f(values(lib, 2), "a"))
    d.default_factory = lambda: 10.0
    out(f(values(lib, 2), "z"))
    out(sorted(d.items()))


@program
def ordered_dict_moved(lib, compile, out):
    d = collections.OrderedDict(a=1.0, b=2.0)
    f = compile(lambda x: x * next(iter(d.values())))
    out(f(values(lib, 2)))
    d.move_to_end("a")
    out(f(values(lib, 2)))
    d.popitem(last=False)
    out(f(values(lib, 2)))


@program
def chain_map_layers(lib, compile, out):
    a, b = {"k": 1.0}, {"k": 2.0, "j": 5.0}
    c = collections.ChainMap(a, b)
    f = compile(lambda x: x * c["k"] + c["j"])
    out(f(values(lib, 2)))
    del a["k"]
    out(f(values(lib, 2)))
    a["j"] = 9.0
    out(f(values(lib, 2)))


@program
def weak_references(lib, compile, out):
    class A:
        k = 2.0

    a = A()
    r = weakref.ref(a)
    f = compile(lambda x: x * r().k if r() is not None else x)
    out(f(values(lib, 2)))
    del a
    out(f(values(lib, 2)))


@program
def partial_keywords_changed(lib, compile, out):
    p = functools.partial(lambda x, k, b=0.0: x * k + b, k=2.0)
    f = compile(lambda x: p(x))
    out(f(values(lib, 2)))
    p.keywords["k"] = 5.0
    out(f(values(lib, 2)))
    p.keywords["b"] = 1.0
    out(f(values(lib, 2)))


@program
def cell_emptied_and_filled(lib, compile, out):
    def make():
        k = 2.0

        def g(x):
            return x * k

        def drop():
            nonlocal k
            del k

        def fill(v):
            nonlocal k
            k = v

        return g, drop, fill

    g, drop, fill = make()
    f = compile(g)
    out(f(values(lib, 2)))
    drop()
    try:
        out(f(values(lib, 2)))
    except NameError:
        out("NameError")
    fill(6.0)
    out(f(values(lib, 2)))


@program
def builtin_shadowed(lib, compile, out):
    f = compile(lambda x: x * len([1, 2]))
    out(f(values(lib, 2)))
    old = builtins.len
    try:
        builtins.len = lambda o: 50
        y = f(values(lib, 2))
    finally:
        builtins.len = old
    out(y)
    out(f(values(lib, 2)))


@program
def try_with_effects_step(lib, compile, out):
    log = []
    box = Box(k=1.0)

    def f(x):
        x = x * 2
        x = x + box.k
        log.append("a")
        try:
            log.append(float(x.sum()))
            box.k += 1.0
            if box.k > 3:
                raise ValueError("big")
        except ValueError as e:
            log.append(str(e))
            x = x - 100
        finally:
            log.append("f")
        return x

    f = compile(f)
    for _ in range(4):
        out(f(values(lib, 2)))
    out(log)
    out(box.k)


@program
def suppress_and_exit_stack(lib, compile, out):
    def f(x, d):
        x = x * 2
        x = x + 1
        with contextlib.suppress(KeyError):
            x = x * d["k"]
        with contextlib.ExitStack() as s:
            s.callback(lambda: d.update(seen=1))
            x = x + len(d)
        return x

    f = compile(f)
    out(f(values(lib, 2), {}))
    d = {"k": 3.0}
    out(f(values(lib, 2), d))
    out(sorted(d))
    out(f(values(lib, 2), d))


@program
def string_keys_and_format(lib, compile, out):
    box = Box(name="w", w=2.0, v=3.0)
    f = compile(lambda x: x * getattr(box, f"{box.name}") + len(f"{box.w:.2f}"))
    out(f(values(lib, 2)))
    box.name = "v"
    out(f(values(lib, 2)))
    box.w = 22.0
    out(f(values(lib, 2)))


@program
def type_with_metaclass_attribute(lib, compile, out):
    class M(type):
        k = 2.0

        @property
        def p(cls):
            return cls.k * 2

    class A(metaclass=M):
        pass

    f = compile(lambda x: x * A.k + A.p)
    out(f(values(lib, 2)))
    M.k = 3.0
    out(f(values(lib, 2)))
    A.k = 7.0
    out(f(values(lib, 2)))


@program
def list_subclass(lib, compile, out):
    class L(list):
        def total(self):
            return sum(self)

    l = L([1.0, 2.0])
    f = compile(lambda x: x * l.total() + len(l))
    out(f(values(lib, 2)))
    l.append(4.0)
    out(f(values(lib, 2)))
    l[0] = 9.0
    out(f(values(lib, 2)))


@program
def named_tuple_subclass(lib, compile, out):
    class T(collections.namedtuple("T", "a b")):
        def s(self):
            return self.a + self.b

    f = compile(lambda x, t: (x * t.s(), t._replace(a=5.0)))
    for t in (T(1.0, 2.0), T(3.0, 2.0)):
        y, r = f(values(lib, 2), t)
        out(y)
        out((tuple(r), type(r).__name__))


@program
def round_divmod_numbers(lib, compile, out):
    box = Box(n=7, d=2)
    f = compile(lambda x: x * round(box.n / box.d, 1) + divmod(box.n, box.d)[1] + (-box.n) // box.d)
    for n, d in ((7, 2), (8, 3), (-7, 2), (9, -4)):
        box.n, box.d = n, d
        out(f(values(lib, 2)))
