"""Programs of the mutation table in which little things change: cells in loops, defaults in place, views and aliases, hooks, modes,
iteration orders, special methods, and what a program leaves behind when it fails.
"""

import collections
import contextlib
import copy
import enum
import functools
import itertools
import operator
import types

from tests.dynamo.programs import Box, program, values

LEVEL = 1.0
TABLE = {"rate": 0.5, "steps": [1, 2]}


# ----------------------------------------------------------------------------------------- functions, cells, arguments


@program
def cells_of_a_loop(lib, compile, out):
    late = [lambda x: x * i for i in (2, 3)]  # one cell for both
    early = [lambda x, i=i: x * i for i in (2, 3)]
    factories = [(lambda i: lambda x: x + i)(i) for i in (10, 20)]
    f = compile(lambda x, g: g(x))
    for g in (*late, *early, *factories, late[0]):
        out(f(values(lib, 3), g))


@program
def functions_with_cells_that_are_shared(lib, compile, out):
    def make():
        total = 0.0

        def add(x):
            nonlocal total
            total += 1.5
            return x + total

        def read(x):
            return x * total

        return add, read

    add, read = make()
    f = compile(lambda x: read(add(x)) + read(x))
    for _ in range(3):
        out(f(values(lib, 2)))
    add(values(lib, 2))
    out(f(values(lib, 2)))


@program
def default_written_in_place(lib, compile, out):
    def f(x, seen=[], *, table={"k": 1}):  # noqa: B006
        seen.append(x.shape[0])
        table["k"] += 1
        return x * len(seen) + table["k"]

    g = compile(f)
    for n in (2, 2, 3):
        out(g(values(lib, n)))
    f.__kwdefaults__["table"]["k"] = 100
    out(g(values(lib, 2)))
    out(f.__defaults__[0])


@program
def partial_over_changing_keywords(lib, compile, out):
    def scaled(x, *, by, shift=0.0):
        return x * by + shift

    keywords = {"by": 2.0}
    part = functools.partial(scaled, **keywords)
    f = compile(lambda x: part(x))
    out(f(values(lib, 3)))
    part.keywords["by"] = 5.0
    out(f(values(lib, 3)))
    part.keywords["shift"] = 1.0
    out(f(values(lib, 3)))
    out(f(values(lib, 3)))


@program
def star_arguments_of_many_kinds(lib, compile, out):
    def inner(a, /, b=2, *rest, c, **more):
        return a * b + sum(rest) - c + sum(more.values()) * len(more)

    @compile
    def f(x, args, kwargs):
        return inner(x, *args, **kwargs)

    for args, kwargs in (
        ((), {"c": 1}),
        ((3,), {"c": 1, "d": 2}),
        ((3, 4, 5), {"c": 1}),
        ((3, 4, 5), {"c": 2, "e": 1}),
    ):
        out(f(values(lib, 2), args, kwargs))
    try:
        f(values(lib, 2), (), {})
    except TypeError:
        out("missing")


@program
def global_dictionary_rebound(lib, compile, out):
    global TABLE, LEVEL
    before = TABLE, LEVEL
    f = compile(lambda x: x * TABLE["rate"] + sum(TABLE["steps"]) * LEVEL)
    out(f(values(lib, 2)))
    TABLE["steps"].append(3)
    out(f(values(lib, 2)))
    TABLE = {"rate": 2.0, "steps": (1,)}
    out(f(values(lib, 2)))
    LEVEL = values(lib, 2)
    out(f(values(lib, 2)))
    before[0]["steps"].pop()
    TABLE, LEVEL = before
    out(f(values(lib, 2)))


@program
def decorator_with_state(lib, compile, out):
    def counted(function):
        @functools.wraps(function)
        def wrapper(*args):
            wrapper.calls += 1
            return function(*args) + wrapper.calls

        wrapper.calls = 0
        return wrapper

    @counted
    def double(x):
        return x * 2

    f = compile(lambda x: double(x) + double(x))
    for _ in range(3):
        out(f(values(lib, 2)))
    double.calls = 50
    out(f(values(lib, 2)))


@program
def single_dispatch(lib, compile, out):
    @functools.singledispatch
    def weight(k):
        return 1.0

    @weight.register
    def _(k: int):
        return 2.0

    f = compile(lambda x, k: x * weight(k))
    for k in (1, "a", 1.5):
        out(f(values(lib, 2), k))
    weight.register(str)(lambda k: 9.0)
    out(f(values(lib, 2), "a"))


@program
def method_taken_from_a_class(lib, compile, out):
    class A:
        k = 2

        def f(self, x):
            return x * self.k

    class B(A):
        k = 3

        def f(self, x):
            return A.f(self, x) + super().f(x)

    @compile
    def g(x, o):
        return type(o).f(o, x) + o.f(x)

    for o in (A(), B(), A()):
        out(g(values(lib, 2), o))
    A.k = 10
    out(g(values(lib, 2), A()))
    out(g(values(lib, 2), B()))
    A.f = lambda self, x: x
    out(g(values(lib, 2), B()))


# ----------------------------------------------------------------------------------------------------------- containers


@program
def defaultdict_that_fills(lib, compile, out):
    seen = collections.defaultdict(list)

    @compile
    def f(x, key):
        seen[key].append(x.shape[0])
        return x * len(seen[key]) + len(seen)

    for key in ("a", "a", "b", "a"):
        out(f(values(lib, 2), key))
    out(dict(seen))


@program
def ordered_dict_moved(lib, compile, out):
    d = collections.OrderedDict(a=1.0, b=2.0, c=3.0)

    @compile
    def f(x):
        for i, value in enumerate(d.values()):
            x = x * value + i
        return x

    out(f(values(lib, 2)))
    d.move_to_end("a")
    out(f(values(lib, 2)))
    d.popitem(last=False)
    out(f(values(lib, 2)))


@program
def chain_of_maps(lib, compile, out):
    base, top = {"a": 1.0, "b": 2.0}, {}
    chain = collections.ChainMap(top, base)
    f = compile(lambda x: x * chain["a"] + chain["b"])
    out(f(values(lib, 2)))
    top["a"] = 7.0
    out(f(values(lib, 2)))
    base["b"] = 5.0
    out(f(values(lib, 2)))


@program
def deque_with_a_limit(lib, compile, out):
    last = collections.deque([1.0, 2.0], maxlen=3)

    @compile
    def f(x):
        last.append(float(len(last)))
        return x * sum(last) + last[0]

    for _ in range(4):
        out(f(values(lib, 2)))
    last.rotate(1)
    out(f(values(lib, 2)))
    out(list(last))


@program
def set_that_grows(lib, compile, out):
    seen, allowed = set(), frozenset({1, 2})

    @compile
    def f(x, k):
        if k in seen:
            return x - 1
        seen.add(k)
        return x * len(seen) if k in allowed else x * 0

    for k in (1, 1, 2, 3, 3):
        out(f(values(lib, 2), k))
    seen.discard(1)
    out(f(values(lib, 2), 1))
    out(sorted(seen))


@program
def list_that_holds_itself(lib, compile, out):
    nest = [1.0, 2.0]
    nest.append(nest)
    f = compile(lambda x: x * nest[2][2][1] + len(nest[2]))
    out(f(values(lib, 2)))
    nest[1] = 5.0
    out(f(values(lib, 2)))
    nest[2] = [0.0, 1.0, [4.0, 3.0]]
    out(f(values(lib, 2)))


@program
def slices_assigned_and_deleted(lib, compile, out):
    @compile
    def f(x, items):
        items[1:3] = [x.sum(), 5.0, 6.0]
        del items[0]
        items.insert(0, x * 2)
        items.reverse()
        return items[-1] + len(items)

    for n in (3, 4):
        items = [float(i) for i in range(n)]
        out(f(values(lib, 2), items))
        out(items)


@program
def deep_nest_edited(lib, compile, out):
    config = {"layers": [{"size": 2, "act": ("relu", {"slope": 0.1})}, {"size": 3, "act": ("tanh", {})}]}

    @compile
    def f(x):
        for layer in config["layers"]:
            name, options = layer["act"]
            x = getattr(lib, name)(x * layer["size"]) + options.get("slope", 0.0)
        return x

    out(f(values(lib, 3)))
    config["layers"][0]["act"][1]["slope"] = 0.7
    out(f(values(lib, 3)))
    config["layers"][1]["act"] = ("sin", {"slope": 1.0})
    out(f(values(lib, 3)))
    config["layers"].insert(0, config["layers"][-1])
    out(f(values(lib, 3)))


@program
def keys_that_are_equal(lib, compile, out):
    table = {1: 2.0}
    f = compile(lambda x, k: x * table[k])
    for k in (1, True, 1.0):
        out(f(values(lib, 2), k))
    table[True] = 3.0
    out(f(values(lib, 2), 1))


@program
def tuple_with_a_list_inside(lib, compile, out):
    pair = ([1.0], 2.0)
    f = compile(lambda x, p: x * p[0][-1] + p[1])
    out(f(values(lib, 2), pair))
    pair[0].append(4.0)
    out(f(values(lib, 2), pair))
    pair[0][-1] = values(lib, 2)
    out(f(values(lib, 2), pair))


# ----------------------------------------------------------------------------------------------------- classes, objects


@program
def class_attribute_shadowed(lib, compile, out):
    class Base:
        rate = 2.0

    class Child(Base):
        pass

    o = Child()
    f = compile(lambda x: x * o.rate)
    out(f(values(lib, 2)))
    Child.rate = 3.0
    out(f(values(lib, 2)))
    o.rate = 4.0
    out(f(values(lib, 2)))
    del o.rate
    out(f(values(lib, 2)))
    del Child.rate
    out(f(values(lib, 2)))
    Base.rate = 8.0
    out(f(values(lib, 2)))


@program
def slots_written(lib, compile, out):
    class P:
        __slots__ = ("a", "b")

    class Q(P):
        __slots__ = ("c",)

    @compile
    def f(x, q):
        q.c = getattr(q, "c", 0) + 1
        q.a = x * q.c
        return q.a + (q.b if hasattr(q, "b") else 100)

    q = Q()
    for step in range(4):
        if step == 2:
            q.b = 1.0
        if step == 3:
            del q.b
        out(f(values(lib, 2), q))
        out((q.c, q.a))


@program
def enum_members_with_methods(lib, compile, out):
    class Mode(enum.IntFlag):
        SIN, COS, BOTH = 1, 2, 3

        def of(self, x):
            y = x
            if self & Mode.SIN:
                y = y.sin()
            if Mode.COS in self:
                y = y.cos()
            return y * self.value

    f = compile(lambda x, mode: mode.of(x))
    for mode in (Mode.SIN, Mode.BOTH, Mode.COS, Mode.SIN | Mode.COS):
        out(f(values(lib, 3), mode))


@program
def string_enum_as_a_key(lib, compile, out):
    class Kind(str, enum.Enum):
        A, B = "a", "b"

    weights = {Kind.A: 2.0, "b": 3.0}
    f = compile(lambda x, kind: x * weights[kind] + len(kind.value) + (kind == "a"))
    out(f(values(lib, 2), Kind.A))
    out(f(values(lib, 2), Kind.B))
    weights["a"] = 10.0
    out(f(values(lib, 2), Kind.A))


@program
def cached_property_once(lib, compile, out):
    class Lazy:
        def __init__(self, k):
            self.k = k

        @functools.cached_property
        def scale(self):
            return self.k * 2

    f = compile(lambda x, o: x * o.scale)
    o = Lazy(2.0)
    out(f(values(lib, 2), o))
    o.k = 9.0
    out(f(values(lib, 2), o))
    del o.scale
    out(f(values(lib, 2), o))
    out(f(values(lib, 2), Lazy(1.0)))


@program
def equality_of_the_program(lib, compile, out):
    class Version:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == other.n

        def __lt__(self, other):
            return self.n < other.n

        def __hash__(self):
            return hash(self.n)

    table = {Version(1): 2.0, Version(2): 5.0}

    @compile
    def f(x, v, w):
        return x * (2 if v == w else 3) + (1 if v < w else 0)

    for a, b in ((1, 1), (1, 2), (2, 1), (2, 2)):
        out(f(values(lib, 2), Version(a), Version(b)))
    out(table[Version(2)])


@program
def objects_that_are_numbers(lib, compile, out):
    class Meters:
        def __init__(self, n):
            self.n = n

        def __add__(self, other):
            return Meters(self.n + getattr(other, "n", other))

        __radd__ = __add__

        def __mul__(self, x):
            return x * self.n

        def __bool__(self):
            return self.n > 2

        def __len__(self):
            return 7

    @compile
    def f(x, m):
        return (m + 1 + sum([m, m])) * x + (10 if m else 20) + len(m)

    for n in (1.0, 3.0, 1.0):
        out(f(values(lib, 2), Meters(n)))


@program
def callable_object_with_a_call_replaced(lib, compile, out):
    class Op:
        k = 1.0

        def __call__(self, x):
            return x * self.k

    op = Op()
    f = compile(lambda x: op(x))
    out(f(values(lib, 2)))
    op.__call__ = lambda x: x * 100  # Python asks the class alone
    out(f(values(lib, 2)))
    Op.__call__ = lambda self, x: x + 7
    out(f(values(lib, 2)))


@program
def class_of_an_object_changed(lib, compile, out):
    class Even:
        def f(self, x):
            return x * 2

    class Odd:
        def f(self, x):
            return x * 3

    o = Even()
    g = compile(lambda x: o.f(x))
    for cls in (Even, Odd, Even):
        o.__class__ = cls
        out(g(values(lib, 2)))


@program
def static_and_class_methods_replaced(lib, compile, out):
    class A:
        scale = 2.0

        @staticmethod
        def s(x):
            return x + 1

        @classmethod
        def c(cls, x):
            return x * cls.scale

    class B(A):
        scale = 5.0

    f = compile(lambda x, cls: cls.s(x) + cls.c(x) + cls().c(x))
    for cls in (A, B):
        out(f(values(lib, 2), cls))
    A.s = staticmethod(lambda x: x * 0)
    out(f(values(lib, 2), B))
    B.c = classmethod(lambda cls, x: x - cls.scale)
    out(f(values(lib, 2), B))


@program
def attributes_made_by_setattr(lib, compile, out):
    @compile
    def f(x, o, names):
        for i, name in enumerate(names):
            setattr(o, name, x * (i + 1))
        if hasattr(o, "gone"):
            delattr(o, "gone")
        return sum(getattr(o, name) for name in sorted(vars(o)))

    o = Box(gone=1.0)
    for names in (["a"], ["a", "b"], ["b"]):
        out(f(values(lib, 2), o, names))
        out(sorted(vars(o)))


@program
def order_of_names_after_a_deletion(lib, compile, out):
    class Both:
        __slots__ = ("slot", "__dict__")

    @compile
    def f(x, o):
        o.slot = 1
        del o.a
        before = list(vars(o))
        o.c = 5
        o.a = x * 2
        del o.c
        o.c = 6
        return o.a, before, list(vars(o)), len(vars(o))

    for _ in range(2):
        o = Both()
        o.a, o.b = 1, 2
        out(f(values(lib, 2), o))
        out(list(vars(o)))


@program
def simple_namespace(lib, compile, out):
    s = types.SimpleNamespace(a=1.0, inner=types.SimpleNamespace(b=[2.0]))
    f = compile(lambda x: x * s.a + s.inner.b[-1])
    out(f(values(lib, 2)))
    s.inner.b.append(3.0)
    out(f(values(lib, 2)))
    s.inner = types.SimpleNamespace(b=(9.0,))
    out(f(values(lib, 2)))
    s.a = 2
    out(f(values(lib, 2)))


# --------------------------------------------------------------------------------------------------- control flow, errors


@program
def finally_that_writes(lib, compile, out):
    log = []

    @compile
    def f(x, k):
        try:
            log.append("try")
            if k == 1:
                raise KeyError("one")
            if k == 2:
                return x * 2
            y = x + 1
        except KeyError as error:
            log.append(error.args[0])
            y = x - 1
        else:
            log.append("else")
            y = x * 3
        finally:
            log.append(k)
        return y

    for k in (0, 1, 2, 1):
        out(f(values(lib, 2), k))
    out(log)


@program
def suppressed_error_in_a_loop(lib, compile, out):
    @compile
    def f(x, table):
        for k in ("a", "b", "c"):
            with contextlib.suppress(KeyError):
                x = x * table[k]
        return x

    for table in ({"a": 2.0}, {"b": 3.0, "c": 4.0}, {}):
        out(f(values(lib, 2), table))


@program
def error_with_notes_and_groups(lib, compile, out):
    class Mine(ValueError):
        def __init__(self, k):
            super().__init__(f"k={k}")
            self.k = k

    def check(k):
        if k > 2:
            raise Mine(k)
        return k

    @compile
    def f(x, k):
        try:
            return x * check(k)
        except (TypeError, Mine) as error:
            return x + error.k

    for k in (1, 3, 2, 4):
        out(f(values(lib, 2), k))


@program
def generator_closed_early(lib, compile, out):
    closed = []

    def rows(x):
        try:
            for i in range(10):
                yield x * i
        finally:
            closed.append(True)

    @compile
    def f(x, n):
        total = x
        for i, row in enumerate(rows(x)):
            if i == n:
                break
            total = total + row
        return total

    for n in (2, 3, 2):
        out(f(values(lib, 2), n))
    out(len(closed))


@program
def walrus_over_a_queue(lib, compile, out):
    @compile
    def f(x, queue):
        while (k := queue.pop() if queue else None) is not None:
            x = x * k
        return x, [y := k, y] if queue else len(queue)

    for queue in ([2.0], [2.0, 3.0], []):
        out(f(values(lib, 2), queue)[0])
        out(queue)


@program
def matching_mappings_and_classes(lib, compile, out):
    class Point:
        __match_args__ = ("a", "b")

        def __init__(self, a, b):
            self.a, self.b = a, b

    @compile
    def f(x, thing):
        match thing:
            case {"scale": s, **rest}:
                return x * s + len(rest)
            case Point(0, b):
                return x + b
            case Point(a=a) if a > 5:
                return x - a
            case [first, *_, last]:
                return x * first + last
            case None | False:
                return x
            case _:
                return -x

    cases = [{"scale": 2.0}, {"scale": 2.0, "z": 1}, Point(0, 3.0), Point(6, 1), Point(1, 1), [1.0, 5, 2.0], None, (1,)]
    for thing in cases:
        out(f(values(lib, 2), thing))


@program
def formats_of_numbers(lib, compile, out):
    @compile
    def f(x, k, name):
        key = f"{name!r:>6}|{k:03d}|{x.dtype is lib.float32}|{len(x):+}"
        return x * len(key) + k, key

    for k, name in ((1, "a"), (12, "b"), (1234, "cde")):
        out(f(values(lib, 2), k, name))


@program
def nested_loops_with_flags(lib, compile, out):
    @compile
    def f(x, grid):
        found = None
        for i, row in enumerate(grid):
            for j, k in enumerate(row):
                if k < 0:
                    found = (i, j)
                    break
            else:
                x = x + sum(row)
                continue
            break
        return x, found

    for grid in ([[1, 2], [3, 4]], [[1, -1], [3, 4]], [[], [5]], [[-1]]):
        out(f(values(lib, 2), grid))


@program
def sorted_with_keys_and_reversal(lib, compile, out):
    order = {"a": 2, "b": 1, "c": 3}

    @compile
    def f(x, names):
        for name in sorted(names, key=order.get, reverse=len(names) > 2):
            x = x * 2 + order[name]
        return x + max(order.values()) - min(order, key=order.get).__len__()

    for names in (["a", "b"], ["a", "b", "c"]):
        out(f(values(lib, 2), names))
    order.update(a=0)
    out(f(values(lib, 2), ["a", "b"]))


@program
def itertools_of_many_kinds(lib, compile, out):
    @compile
    def f(x, n):
        for i, j in itertools.product(range(n), "ab"):
            x = x + i * (j == "b")
        for a, b in itertools.pairwise([1, 2, n]):
            x = x * (b - a + 2)
        return x + sum(itertools.accumulate([1, n, 2], operator.mul)) + len(list(itertools.combinations(range(n), 2)))

    for n in (2, 3, 2):
        out(f(values(lib, 2), n))


# ------------------------------------------------------------------------------------------------ views, aliases, in place


@program
def inputs_that_overlap_are_written(lib, compile, out):
    @compile
    def f(a, b):
        a.add_(1)
        b.mul_(2)
        return a + b

    base = values(lib, 6)
    out(f(base[:4], base[2:]))
    out(base)
    out(f(base[:3], base[3:]))
    out(base)
    out(f(base, base) if base.dim() else None)
    out(base)


@program
def view_made_before_a_write(lib, compile, out):
    @compile
    def f(x):
        y = x * 1
        row, column = y[0], y.t()[1]
        y[0, 1] = 50.0
        column.add_(1)
        return row, y, column.clone()

    for shape in ((2, 3), (3, 3)):
        out(f(values(lib, *shape)))


@program
def result_that_is_an_alias_kept(lib, compile, out):
    kept = []

    @compile
    def f(x):
        y = x.view(-1)
        kept.append(y)
        y[0] = len(kept)
        return y

    x = values(lib, 2, 2)
    for _ in range(3):
        out(f(x))
    x.zero_()
    out(kept)


@program
def transposed_and_strided_inputs(lib, compile, out):
    @compile
    def f(x):
        y = x.reshape(-1)
        return y * 2, x.is_contiguous(), x.stride(), y.data_ptr() == x.data_ptr()

    base = values(lib, 4, 4)
    for x in (base, base.t(), base[::2], base[:, ::2], base.expand(2, 4, 4)[0]):
        out(f(x))


@program
def expanded_result_read_back(lib, compile, out):
    @compile
    def f(x, n):
        y = x.expand(n, -1)
        z = y.clone()
        z[0] += 1
        return z.sum(0), y.stride()[0], (y + 0).stride()

    for n in (2, 3, 2):
        out(f(values(lib, 1, 3), n))


@program
def out_argument(lib, compile, out):
    @compile
    def f(x, y, into):
        result = lib.add(x, y, out=into)
        lib.mul(result, 2, out=result)
        return result.sum(), result is into

    a, b = values(lib, 4), values(lib, 4)[:2].repeat(2)
    for into in (lib.empty(4), lib.empty(4, dtype=lib.float64), a, lib.zeros(8)[::2]):
        out(f(a, b, into))
        out(into)


@program
def out_argument_that_is_resized(lib, compile, out):
    f = compile(lambda x, into: lib.exp(x, out=into) + into.shape[0])
    into = lib.empty(0)
    out(f(values(lib, 3), into))
    out(into)


@program
def swapped_in_place(lib, compile, out):
    @compile
    def f(a, b):
        a, b = b, a
        saved = a.clone()
        a.copy_(b)
        b.copy_(saved)
        return a - b

    x, y = values(lib, 3), values(lib, 3) * 5
    out(f(x, y))
    out((x, y))
    out(f(x, x))
    out(x)


@program
def data_swapped_between_calls(lib, compile, out):
    p = lib.nn.Parameter(values(lib, 3))
    f = compile(lambda x: (x * p).sum())
    for data in (values(lib, 3), values(lib, 3) + 1, values(lib, 1, 3)):
        p.data = data
        out(f(lib.ones(3)))
    p.data = p.data.double()
    out(f(lib.ones(3).double()))


# ------------------------------------------------------------------------------------------------------ modules, gradients


@program
def buffers_replaced_and_removed(lib, compile, out):
    class M(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", lib.ones(2))
            self.register_buffer("absent", None)

        def forward(self, x):
            y = x + self.shift
            return y if self.absent is None else y * self.absent

    m = M()
    f = compile(m)
    out(f(values(lib, 2)))
    m.shift = lib.ones(2) * 5
    out(f(values(lib, 2)))
    m.absent = lib.ones(2) * 3
    out(f(values(lib, 2)))
    m.shift = lib.ones(1, dtype=lib.float64)
    out(f(values(lib, 2)))
    m.absent = None
    m.shift.zero_()
    out(f(values(lib, 2)))


@program
def hooks_that_come_and_go(lib, compile, out):
    layer = lib.nn.Linear(2, 2)
    lib.nn.init.ones_(layer.weight), lib.nn.init.zeros_(layer.bias)
    f = compile(lambda x: layer(x) * 2)
    out(f(values(lib, 1, 2)))
    handles = [layer.register_forward_hook(lambda m, args, result, k=k: result + k) for k in (1, 10)]
    out(f(values(lib, 1, 2)))
    handles[0].remove()
    out(f(values(lib, 1, 2)))
    first = layer.register_forward_pre_hook(lambda m, args: (args[0] * 3,))
    out(f(values(lib, 1, 2)))
    handles[1].remove(), first.remove()
    out(f(values(lib, 1, 2)))


@program
def hooks_on_tensors_inside(lib, compile, out):
    seen = []
    w = values(lib, 3).requires_grad_()

    @compile
    def f(x, scale):
        y = w * x
        y.register_hook(lambda g: g * scale)
        return y.sum()

    for scale in (1.0, 2.0, 1.0):
        f(lib.ones(3), scale).backward()
        out(w.grad)
    handle = w.register_hook(lambda g: seen.append(g.sum().item()))
    f(lib.ones(3), 1.0).backward()
    handle.remove()
    out(seen)


@program
def requires_grad_flipped(lib, compile, out):
    layer = lib.nn.Linear(2, 1)
    lib.nn.init.ones_(layer.weight), lib.nn.init.zeros_(layer.bias)
    f = compile(lambda x: layer(x).sum())
    for flags in ((True, True), (False, True), (False, False), (True, False)):
        layer.weight.requires_grad_(flags[0]), layer.bias.requires_grad_(flags[1])
        result = f(values(lib, 3, 2))
        out(result)
        if result.requires_grad:
            result.backward()
        out([None if p.grad is None else p.grad.clone() for p in layer.parameters()])


@program
def training_flags_of_parts(lib, compile, out):
    model = lib.nn.Sequential(lib.nn.BatchNorm1d(2), lib.nn.Dropout(0.0), lib.nn.BatchNorm1d(2))
    f = compile(model)
    for part in (None, 0, 2, None):
        (model if part is None else model[part]).train(part is None)
        out(f(values(lib, 4, 2)))
        out([int(b) if not b.dim() else b for b in model.buffers()])


@program
def momentum_of_a_batchnorm_changed(lib, compile, out):
    norm = lib.nn.BatchNorm1d(2)
    f = compile(norm)
    for momentum in (0.1, 0.5, None, None):
        norm.momentum = momentum
        out(f(values(lib, 4, 2)))
        out(norm.running_mean)
    norm.eps = 1.0
    out(f(values(lib, 4, 2)))
    norm.track_running_stats = False
    out(f(values(lib, 4, 2)))


@program
def module_deep_copied(lib, compile, out):
    model = lib.nn.Linear(2, 2)
    lib.nn.init.ones_(model.weight), lib.nn.init.zeros_(model.bias)
    f = compile(lambda m, x: m(x))
    other = copy.deepcopy(model)
    with lib.no_grad():
        other.weight.mul_(3)
    for m in (model, other, copy.copy(other), model):
        out(f(m, values(lib, 1, 2)))
    other.load_state_dict(model.state_dict())
    out(f(other, values(lib, 1, 2)))


@program
def children_renamed(lib, compile, out):
    class M(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = lib.nn.ReLU(), lib.nn.Tanh()

        def forward(self, x):
            for name, child in self.named_children():
                x = child(x) + len(name)
            return x

    m = M()
    f = compile(m)
    out(f(values(lib, 2)))
    m.a, m.b = m.b, m.a
    out(f(values(lib, 2)))
    m.add_module("longer", lib.nn.Sigmoid())
    out(f(values(lib, 2)))
    del m.a
    out(f(values(lib, 2)))


@program
def gradients_accumulated_and_cleared(lib, compile, out):
    w = values(lib, 2).requires_grad_()

    @compile
    def f(x, clear):
        if w.grad is not None and clear:
            x = x + w.grad
        return (w * x).sum()

    for clear in (True, True, False, True):
        f(lib.ones(2), clear).backward()
        out(w.grad)
    w.grad = None
    out(f(lib.ones(2), True))


# ------------------------------------------------------------------------------------------------------ modes, state, chance


@program
def autocast_toggled_around(lib, compile, out):
    f = compile(lambda x: (x @ x).dtype is lib.bfloat16)
    x = values(lib, 2, 2)
    for enabled, kind in ((True, lib.bfloat16), (False, lib.bfloat16), (True, lib.float16), (True, lib.bfloat16)):
        with lib.autocast("cpu", dtype=kind, enabled=enabled):
            out(f(x))
    out(f(x))


@program
def default_dtype_within(lib, compile, out):
    @compile
    def f(x, n):
        return lib.ones(n) * 2, lib.tensor(1.5), x + 1, lib.arange(n) / 2, lib.full((n,), 3.0)

    for kind in (lib.float32, lib.float64, lib.float32):
        lib.set_default_dtype(kind)
        out(f(values(lib, 2), 3))


@program
def devices_as_text(lib, compile, out):
    @compile
    def f(x, where):
        y = x.to(where)
        return y.device.type == "meta", y.shape[0], str(lib.device(where)), lib.ones(2, device=where).is_meta

    for where in ("cpu", "meta", lib.device("cpu"), "cpu"):
        out(f(values(lib, 3), where))


@program
def grad_mode_left_inside(lib, compile, out):
    @compile
    def f(x, enabled):
        lib.set_grad_enabled(enabled)
        return x * 2

    x = values(lib, 2).requires_grad_()
    for enabled in (True, False, False, True):
        out(f(x, enabled))
        out(lib.is_grad_enabled())
        lib.set_grad_enabled(True)


@program
def nested_grad_modes(lib, compile, out):
    w = values(lib, 2).requires_grad_()

    @compile
    def f(x, deep):
        with lib.no_grad():
            a = w * x
            with lib.enable_grad():
                b = w * a
                with lib.set_grad_enabled(not deep):
                    c = b * w
        return a, b, c

    for deep in (True, False):
        out(f(lib.ones(2), deep))
        with lib.no_grad():
            out(f(lib.ones(2), deep))


@program
def chance_in_many_places(lib, compile, out):
    generator = lib.Generator().manual_seed(3)

    @compile
    def f(x, p):
        y = lib.nn.functional.dropout(x, p)
        return y + lib.rand(3), lib.randint(0, 10, (3,)), lib.randn_like(x), lib.bernoulli(lib.full((3,), p))

    for p in (0.5, 0.5, 0.25):
        out(f(lib.ones(3), p))
        out(lib.rand(1))
    out(lib.rand(2, generator=generator))
    state = lib.get_rng_state()
    first = f(lib.ones(3), 0.5)
    lib.set_rng_state(state)
    out([bool((a == b).all()) for a, b in zip(first, f(lib.ones(3), 0.5))])


@program
def generator_passed_along(lib, compile, out):
    f = compile(lambda x, g: x + lib.rand(2, generator=g))
    a, b = lib.Generator().manual_seed(1), lib.Generator().manual_seed(2)
    for g in (a, b, a, None):
        out(f(lib.zeros(2), g))


@program
def torch_function_of_an_object(lib, compile, out):
    class Wrapped:
        def __init__(self, t, k):
            self.t, self.k = t, k

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            (k,) = {a.k for a in args if isinstance(a, cls)}
            return func(*[a.t if isinstance(a, cls) else a for a in args], **(kwargs or {})) * k

    f = compile(lambda x, w: lib.add(x, w) + 1)
    for k in (1.0, 2.0, 2.0):
        out(f(values(lib, 2), Wrapped(values(lib, 2), k)))


@program
def subclass_of_tensor_with_an_attribute(lib, compile, out):
    class Named(lib.Tensor):
        pass

    def named(name):
        t = values(lib, 2).as_subclass(Named)
        t.tag = name
        return t

    f = compile(lambda t: (t * 2 + len(t.tag)).sum())
    for name in ("a", "bc", "a"):
        out(f(named(name)).item())


@program
def mode_of_functions_around(lib, compile, out):
    mode = lib.overrides.TorchFunctionMode

    class Doubling(mode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is lib.sin else result

    f = compile(lambda x: lib.sin(x) + 1)
    out(f(values(lib, 2)))
    with Doubling():
        out(f(values(lib, 2)))
    out(f(values(lib, 2)))


@program
def numbers_of_every_kind(lib, compile, out):
    f = compile(lambda x, k: (x * k).dtype is x.dtype)
    for k in (1, 1.0, True, 1j, 2**40, -0.0, float("inf")):
        out(f(values(lib, 2), k))
    g = compile(lambda x, k: x * k)
    for k in (0.0, -0.0, float("nan"), float("inf"), 3, True):
        out((1 / g(lib.ones(2), k)).tolist() if k == 0 else g(lib.ones(2), k).isnan().tolist())


@program
def numbers_decide_after_arithmetic(lib, compile, out):
    @compile
    def f(x, a, b):
        c = a * b - b % 3
        if c // 2 > a and (c & 1) == 0:
            return x * c
        return x - c if a <= b < 2 * a else x

    for a, b in ((1, 2), (2, 3), (3, 3), (2, 8), (5, 4), (0, 0), (-3, 7)):
        out(f(values(lib, 2), a, b))


@program
def sizes_in_arithmetic(lib, compile, out):
    @compile
    def f(x):
        n, d = x.shape
        half = n // 2
        a, b = x[:half], x[half : 2 * half]
        y = a - b if n % 2 == 0 else a + b
        return y.sum() / max(n, d), x.view(-1, 1).shape[0] == n * d, lib.zeros(n + 1, d).size()

    for n, d in ((4, 2), (5, 2), (6, 2), (2, 6), (7, 3), (3, 7)):
        out(f(values(lib, n, d)))


@program
def dtype_decides(lib, compile, out):
    @compile
    def f(x):
        if x.dtype in (lib.float32, lib.float64):
            y = x / 2
        elif x.is_floating_point():
            y = x.float() * 3
        else:
            y = x // 2
        return y, lib.finfo(y.dtype).eps if y.is_floating_point() else lib.iinfo(y.dtype).max

    for kind in (lib.float32, lib.int64, lib.float16, lib.uint8, lib.float64, lib.int64):
        out(f(lib.arange(3).to(kind)))


@program
def print_of_changing_things(lib, compile, out):
    @compile
    def f(x, k):
        y = x + k
        print("k is", k, "and", tuple(y.shape))
        z = y * 2
        print(z.tolist())
        return z

    for k in (1, 2, 2):
        out(f(values(lib, 2), k))


@program
def error_leaves_what_was_done(lib, compile, out):
    log, box = [], Box(n=0)

    @compile
    def f(x, k):
        box.n += 1
        log.append(k)
        x.add_(1)
        if k == 2:
            raise RuntimeError("two")
        return x * 2

    x = values(lib, 2)
    for k in (1, 2, 3, 2):
        try:
            out(f(x, k))
        except RuntimeError as error:
            out(str(error))
        out((box.n, list(log), x))


@program
def error_of_an_operator_after_writes(lib, compile, out):
    log = []

    @compile
    def f(x, y):
        log.append("before")
        x.mul_(2)
        z = x @ y
        log.append("after")
        return z

    x = values(lib, 2, 2)
    for columns in (2, 3, 2):
        try:
            out(f(x, lib.ones(columns, 2)))
        except RuntimeError:
            out("sizes")
        out((list(log), x))


@program
def identity_of_results(lib, compile, out):
    @compile
    def f(x, items):
        y = x * 2
        items.append(y)
        return y, items, x, [y, y]

    x, items = values(lib, 2), []
    y, same_items, same_x, pair = f(x, items)
    out((same_items is items, same_x is x, pair[0] is pair[1], pair[0] is y, items[0] is y))
    y.add_(1)
    out(items)
    out(f(x, items)[1])


@program
def aliases_decide(lib, compile, out):
    @compile
    def f(a, b, holder):
        if a is b:
            return a * 2
        return a - b if holder["t"] is a else a + b

    x, y = values(lib, 2), values(lib, 2) + 1
    for a, b, t in ((x, y, x), (x, x, y), (x, y, y), (y, x, y)):
        out(f(a, b, {"t": t}))


@program
def extremes_of_numbers(lib, compile, out):
    @compile
    def f(x, a, b):
        low, high = min(a, b), max(a, 3)
        return x * low * high, max(low, 2), min([a, b, 2])

    for a, b in ((1, 2), (2, 3), (4, 3), (5, 1), (3, 3)):
        out(f(values(lib, 4), a, b))
    g = compile(lambda x, a, b: x * min(a, b) - max(a, b))
    for a, b in ((1.0, 2.0), (2.5, 3.0), (3.5, -0.0), (0.0, -0.0), (2.0, float("inf"))):
        out(g(values(lib, 2), a, b))


@program
def torch_function_that_refuses(lib, compile, out):
    class Wrapped:
        def __init__(self, t, k):
            self.t, self.k = t, k

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in (lib.mul, lib.nn.functional.relu, lib.stack):
                return NotImplemented
            return func.__name__, len(types), len(args), sorted(kwargs or {})

    def answer(g, x, w):
        try:
            return g(x, w)
        except TypeError:
            return "no implementation"

    calls = [
        lambda x, w: (lib.mul(w, x), x + 1),
        lambda x, w: (lib.mul(x, other=w), x + 1),
        lambda x, w: (lib.nn.functional.relu(w), x + 1),
        lambda x, w: (lib.stack([x, w]), x + 1),
        lambda x, w: (lib.add(x, w), x + 1),
        lambda x, w: (x * w, x + 1),
    ]
    for call in calls:
        out(answer(compile(call), values(lib, 2), Wrapped(values(lib, 2), 1.0)))
