"""Small programs in which something changes between two calls of a compiled function.

A program is `f(lib, compile)`: it compiles a function with `compile`, calls it several times, changes something in
between, and returns what came out. Whoever compiles may assume nothing that a call can find changed.
"""

import random
import time
import types
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from functools import partial

import numpy as np

PROGRAMS = {}
SCALE, TABLE, NAMES = 2.0, {"s": 2.0, "in": {"n": 3}}, [1.0, 2.0]
Point = namedtuple("Point", "x y")


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def calls(f, x, *changes):
    """What f(x) gives, at first twice, then behind each of the changes, twice again."""
    found = [f(x), f(x)]
    for change in changes:
        change()
        found += [f(x), f(x)]
    return found


def set_global(name, value):
    return lambda: globals().update({name: value})


class Config:
    scale = 2.0

    def __init__(self, s=2.0):
        self.s = s

    @property
    def twice(self):
        return 2 * self.s

    def times(self, x):
        return x * self.s

    __call__ = times


# ------------------------------------------------------------------------------------------------------ globals


def of_global(lib, compile, value, *later, name="SCALE"):
    before = globals()[name]
    try:
        set_global(name, value)()
        return calls(compile(lambda x: x * SCALE), lib.ones(2), *[set_global(name, v) for v in later])
    finally:
        set_global(name, before)()


@program
def a_global_number(lib, compile):
    return of_global(lib, compile, 2.0, 5.0, 2.0)


@program
def a_global_changes_its_type(lib, compile):
    before = SCALE
    try:
        set_global("SCALE", 1)()
        return calls(
            compile(lambda x: x * SCALE), lib.ones(2, dtype=lib.int64), *[set_global("SCALE", v) for v in (1.0, True)]
        )
    finally:
        set_global("SCALE", before)()


@program
def a_global_zero_changes_its_sign(lib, compile):
    return [1 / y for y in of_global(lib, compile, 0.0, 0.5, 0.0)]


@program
def a_global_becomes_a_tensor(lib, compile):
    return of_global(lib, compile, 2.0, lib.tensor([3.0, 4.0]), lib.tensor([5.0, 6.0]), 3)


@program
def a_global_dictionary(lib, compile):
    f = compile(lambda x: x * TABLE["s"])
    try:
        return calls(f, lib.ones(2), lambda: TABLE.update(s=5.0), lambda: TABLE.update(s=7))
    finally:
        TABLE.update(s=2.0)


@program
def a_dictionary_in_a_dictionary(lib, compile):
    f = compile(lambda x: x * TABLE["in"]["n"])
    try:
        return calls(f, lib.ones(2), lambda: TABLE["in"].update(n=5))
    finally:
        TABLE["in"].update(n=3)


@program
def an_element_of_a_global_list(lib, compile):
    f = compile(lambda x: x * NAMES[0])
    try:
        return calls(f, lib.ones(2), lambda: NAMES.__setitem__(0, 4.0))
    finally:
        NAMES[0] = 1.0


@program
def the_length_of_a_global_list(lib, compile):
    def f(x):
        for each in NAMES:
            x = x * each
        return x

    try:
        return calls(compile(f), lib.ones(2), lambda: NAMES.append(3.0))
    finally:
        NAMES.pop()


@program
def a_global_hides_a_builtin(lib, compile):
    f = compile(lambda x: x * abs(-2))
    try:
        return calls(f, lib.ones(2), set_global("abs", lambda n: 7))
    finally:
        del globals()["abs"]


def doubled(x):
    return x * 2


@program
def a_global_function_is_another(lib, compile):
    before = doubled
    f = compile(lambda x: doubled(x) + 1)
    try:
        return calls(f, lib.ones(2), set_global("doubled", lambda x: x * 3))
    finally:
        set_global("doubled", before)()


@program
def a_helper_reads_a_global(lib, compile):
    def helper(x):
        return x * SCALE

    before = SCALE
    try:
        return calls(compile(lambda x: helper(x) + 1), lib.ones(2), set_global("SCALE", 9.0))
    finally:
        set_global("SCALE", before)()


# ----------------------------------------------------------------------------------------------------- closures


@program
def a_closed_over_number(lib, compile):
    s = 2.0

    def change():
        nonlocal s
        s = 5.0

    return calls(compile(lambda x: x * s), lib.ones(2), change)


@program
def a_closed_over_object(lib, compile):
    c = Config()
    return calls(compile(lambda x: x * c.s), lib.ones(2), lambda: setattr(c, "s", 5.0))


@program
def a_field_of_a_class(lib, compile):
    c = Config()
    try:
        changes = [lambda: setattr(Config, "scale", 5.0), lambda: setattr(c, "scale", 6.0)]
        return calls(compile(lambda x: x * c.scale), lib.ones(2), *changes)
    finally:
        Config.scale = 2.0


@program
def a_property_of_an_object(lib, compile):
    c = Config()
    return calls(compile(lambda x: x * c.twice), lib.ones(2), lambda: setattr(c, "s", 5.0))


@program
def a_method_of_an_object(lib, compile):
    c = Config()
    return calls(compile(lambda x: c.times(x)), lib.ones(2), lambda: setattr(c, "s", 5.0))


@program
def an_object_that_is_called(lib, compile):
    c = Config()
    return calls(compile(lambda x: c(x)), lib.ones(2), lambda: setattr(c, "s", 5.0))


@program
def a_closed_over_dictionary(lib, compile):
    d = {"s": 2.0}
    return calls(compile(lambda x: x * d["s"]), lib.ones(2), lambda: d.update(s=5.0), lambda: d.update(t=1.0))


@program
def a_dictionary_asked_with_get(lib, compile):
    d = {"s": 2.0}
    return calls(compile(lambda x: x * d.get("t", 3.0)), lib.ones(2), lambda: d.update(t=5.0))


@program
def the_order_of_a_dictionary(lib, compile):
    d = {"a": 2.0, "b": 3.0}

    def f(x):
        for value in d.values():
            x = x * value + 1
        return x

    return calls(compile(f), lib.ones(2), lambda: d.update(a=d.pop("a")))


@program
def a_closed_over_namespace(lib, compile):
    n = types.SimpleNamespace(s=2.0)
    return calls(compile(lambda x: x * n.s), lib.ones(2), lambda: setattr(n, "s", 5.0))


@program
def a_closed_over_set(lib, compile):
    names = {"twice"}
    return calls(compile(lambda x: x * 2 if "twice" in names else x), lib.ones(2), names.clear)


@program
def a_closed_over_tensor_is_replaced(lib, compile):
    w = lib.tensor([2.0, 3.0])

    def change():
        nonlocal w
        w = lib.tensor([5.0, 7.0])

    return calls(compile(lambda x: x * w), lib.ones(2), change)


@program
def a_closed_over_tensor_is_written_to(lib, compile):
    w = lib.tensor([2.0, 3.0])
    return calls(compile(lambda x: x * w), lib.ones(2), lambda: w.fill_(4.0))


@program
def a_closed_over_tensor_is_the_argument(lib, compile):
    w = lib.tensor([2.0, 3.0])
    f = compile(lambda x: x * w + 1)
    return [f(w), f(w), f(lib.ones(2)), f(lib.tensor([7.0, 8.0])), f(w)]


@program
def a_list_of_closed_over_tensors(lib, compile):
    ws = [lib.tensor([2.0]), lib.tensor([3.0])]
    return calls(
        compile(lambda x: x * ws[0] + ws[1]), lib.ones(2), ws.reverse, lambda: ws.__setitem__(0, lib.tensor([9.0]))
    )


@program
def default_arguments(lib, compile):
    def g(x, s=2.0):
        return x * s

    return calls(compile(lambda x: g(x)), lib.ones(2), lambda: setattr(g, "__defaults__", (5.0,)))


@program
def a_default_list(lib, compile):
    given = [2.0]

    def g(x, s=given):
        return x * s[0]

    return calls(compile(g), lib.ones(2), lambda: given.__setitem__(0, 5.0))


@program
def keyword_defaults(lib, compile):
    def g(x, *, s=2.0):
        return x * s

    return calls(compile(lambda x: g(x)), lib.ones(2), lambda: g.__kwdefaults__.update(s=5.0))


@program
def the_code_of_a_helper(lib, compile):
    def g(x):
        return x * 2

    def other(x):
        return x * 5

    return calls(compile(lambda x: g(x)), lib.ones(2), lambda: setattr(g, "__code__", other.__code__))


@program
def an_attribute_of_a_function(lib, compile):
    def g(x):
        return x * g.s

    g.s = 2.0
    return calls(compile(g), lib.ones(2), lambda: setattr(g, "s", 5.0))


@program
def a_partial(lib, compile):
    g = partial(lambda x, s: x * s, s=2.0)
    return calls(compile(lambda x: g(x)), lib.ones(2), lambda: g.keywords.update(s=5.0))


@program
def a_value_by_getattr(lib, compile):
    c = Config()
    return calls(compile(lambda x: x * getattr(c, "s")), lib.ones(2), lambda: setattr(c, "s", 5.0))


# ---------------------------------------------------------------------------------------------------- arguments


@program
def a_field_of_an_argument(lib, compile):
    c, f, x = Config(), compile(lambda x, c: x * c.s), lib.ones(2)
    return calls(lambda x: f(x, c), x, lambda: setattr(c, "s", 5.0))


@dataclass
class Settings:
    s: float = 2.0


@program
def a_dataclass_as_argument(lib, compile):
    c, f, x = Settings(), compile(lambda x, c: x * c.s), lib.ones(2)
    return calls(lambda x: f(x, c), x, lambda: setattr(c, "s", 5.0))


@program
def a_dictionary_as_argument(lib, compile):
    d, f, x = {"s": 2.0}, compile(lambda x, d: x * d["s"]), lib.ones(2)
    return calls(lambda x: f(x, d), x, lambda: d.update(s=5.0))


@program
def a_list_as_argument(lib, compile):
    d, f, x = [2.0], compile(lambda x, d: x * d[0] * len(d)), lib.ones(2)
    return calls(lambda x: f(x, d), x, lambda: d.append(5.0), lambda: d.__setitem__(0, 3))


@program
def a_named_tuple_as_argument(lib, compile):
    f = compile(lambda p: p.x * p.y)
    return [f(Point(lib.ones(2), n)) for n in (2.0, 2.0, 5.0, 3)]


@program
def a_list_argument_that_grows(lib, compile):
    seen = []

    def f(x, seen):
        seen.append(x)
        return x * len(seen)

    f = compile(f)
    return [f(lib.ones(2), seen) for _ in range(3)] + [len(seen)]


@program
def an_iterator_as_argument(lib, compile):
    f, numbers = compile(lambda x, it: x * next(it)), iter([2.0, 3.0, 5.0, 7.0])
    return [f(lib.ones(2), numbers) for _ in range(4)]


@program
def numbers_of_other_types(lib, compile):
    f = compile(lambda x, n: x * n)
    return [f(lib.ones(2, dtype=lib.int64), n) for n in (1, 1, True, 1.0, 2, 0.0, -0.0)]


@program
def dtypes_and_devices(lib, compile):
    f = compile(lambda x, d: x.to(d) + 1)
    return [f(lib.ones(2), d) for d in (lib.float64, lib.float64, lib.int32, lib.device("cpu"), lib.device("cpu"))]


@program
def one_tensor_twice(lib, compile):
    f, a, b = compile(lambda x, y: x * 2 if x is y else x + y), lib.ones(2), lib.ones(2) * 5
    return [f(a, b), f(a, b), f(a, a), f(b, b), f(a, b)]


@program
def the_shape(lib, compile):
    f = compile(lambda x: x.sum() * x.shape[0] + len(x))
    return [f(lib.ones(n)) for n in (2, 2, 3, 4, 2)]


@program
def the_dtype_of_an_argument(lib, compile):
    f = compile(lambda x: x * 2 if x.dtype == lib.float32 else x * 3)
    return [f(lib.ones(2, dtype=d)) for d in (lib.float32, lib.float64, lib.int64, lib.float32)]


@program
def whether_an_argument_requires_grad(lib, compile):
    f = compile(lambda x: x * 2 if x.requires_grad else x * 3)
    return [f(lib.ones(2, requires_grad=r)).detach() for r in (False, True, False, True)]


@program
def strides(lib, compile):
    f = compile(lambda x: x * 2 if x.is_contiguous() else x * 3)
    return [f(x) for x in (lib.ones(2, 3), lib.ones(2, 3).t(), lib.ones(3, 2).t(), lib.ones(2, 3))]


@program
def the_gradient_of_an_argument(lib, compile):
    x = lib.ones(2, requires_grad=True)
    f = compile(lambda x: x.detach() * (2 if x.grad is None else x.grad))
    return calls(f, x, lambda: (x * 3).sum().backward(), lambda: x.grad.fill_(7.0))


@program
def an_attribute_of_a_tensor(lib, compile):
    x = lib.ones(2)
    x.scale_of_mine = 2.0
    return calls(compile(lambda x: x * x.scale_of_mine), x, lambda: setattr(x, "scale_of_mine", 5.0))


@program
def numbers_in_a_tensor(lib, compile):
    f = compile(lambda x: x * 2 if x.sum() > 0 else x * 3)
    return [f(x) for x in (lib.ones(2), -lib.ones(2), lib.ones(2))]


@program
def numbers_compared_as_a_whole(lib, compile):
    f, y = compile(lambda x: x * 2 if lib.equal(x, y) else x * 3), lib.ones(2)
    return [f(x) for x in (lib.ones(2), -lib.ones(2), lib.ones(2))]


@program
def how_many_are_positive(lib, compile):
    f = compile(lambda x: x.sum() * x[x > 0].shape[0])
    return [f(lib.tensor(v)) for v in ([1.0, 2.0], [1.0, -2.0], [3.0, 4.0])]


@program
def an_element_as_text(lib, compile):
    f = compile(lambda x: (x * 2, f"{x[0]}"))
    return [f(lib.tensor([v])) for v in (1.0, 1.0, 3.0)]


# ------------------------------------------------------------------------------------- randomness, time, effects


@program
def random_numbers_of_python(lib, compile):
    random.seed(3)
    return calls(compile(lambda x: x * random.random()), lib.ones(2))


@program
def random_numbers_of_numpy(lib, compile):
    np.random.seed(3)
    return calls(compile(lambda x: x * float(np.random.rand())), lib.ones(2))


@program
def random_numbers_of_the_library(lib, compile):
    lib.manual_seed(3)
    return calls(compile(lambda x: x * lib.rand(2) + lib.randn(2)), lib.ones(2))


@program
def the_time(lib, compile):
    f = compile(lambda x: (x * 2, time.perf_counter_ns()))
    moments = [f(lib.ones(2))[1] for _ in range(4)]
    return [len(set(moments))]


@program
def a_list_of_calls(lib, compile):
    seen = []

    def f(x):
        seen.append(1)
        return x * 2

    return [*calls(compile(f), lib.ones(2)), len(seen)]


@program
def a_counter_in_a_closure(lib, compile):
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return calls(compile(f), lib.ones(2))


@program
def a_counter_in_a_dictionary(lib, compile):
    d = {"n": 0}

    def f(x):
        d["n"] += 1
        return x * d["n"]

    return calls(compile(f), lib.ones(2))


@program
def a_field_that_is_assigned(lib, compile):
    c = Config()

    def f(x):
        c.s = c.s + 1
        return x * c.s

    return [*calls(compile(f), lib.ones(2)), c.s]


@program
def a_constant_that_is_written_to(lib, compile):
    def f(x):
        total = lib.tensor([1.0, 2.0])
        total.add_(x)
        return total * 2

    return calls(compile(f), lib.ones(2))


@program
def a_constant_that_is_returned(lib, compile):
    def f(x):
        return lib.tensor([1.0, 2.0]), x * 2

    f = compile(f)
    found = []
    for _ in range(3):
        total, y = f(lib.ones(2))
        found += [total.clone(), y]
        total.fill_(9.0)
    return found


@program
def an_argument_that_is_written_to(lib, compile):
    def f(x):
        x.add_(1)
        return x * 2

    return [y.clone() for y in calls(compile(f), lib.ones(2))]


@program
def two_arguments_of_one_memory(lib, compile):
    def f(x, y):
        x.mul_(2)
        return (y * 3 + 1) * y

    f, a = compile(f), lib.ones(2)
    return [f(lib.ones(2), lib.ones(2)), f(lib.ones(2), lib.ones(2)), f(a, a), f(a, a[:2]), f(a[:2], a)]


@program
def nothing_is_returned(lib, compile):
    def step(p, g):
        p.add_(g, alpha=-0.1)

    step, p = compile(step), lib.ones(2)
    results = [step(p, lib.ones(2)) for _ in range(3)]
    return [*results, p]


@program
def exceptions(lib, compile):
    def f(x):
        try:
            return x.view(2, 2) * 2
        except RuntimeError:
            return x * 3

    f = compile(f)
    return [f(lib.ones(n)) for n in (3, 3, 4, 3)]


# ------------------------------------------------------------------------------------- modes of the library


@program
def grad_mode(lib, compile):
    x = lib.ones(2, requires_grad=True)
    f = compile(lambda x: x * 2)
    found = [f(x).requires_grad, f(x).requires_grad]
    with lib.no_grad():
        found += [f(x).requires_grad, f(x).requires_grad]
    return [*found, f(x).requires_grad]


@program
def grad_mode_inside(lib, compile):
    def f(x):
        with lib.no_grad():
            y = x * 2
        return y + 1

    f, x = compile(f), lib.ones(2, requires_grad=True)
    return [f(x).requires_grad for _ in range(3)]


@program
def grad_mode_that_is_asked_for(lib, compile):
    x, f = lib.ones(2), compile(lambda x: x * 2 if lib.is_grad_enabled() else x * 3)
    found = [f(x), f(x)]
    with lib.no_grad():
        found += [f(x), f(x)]
    return found


@program
def the_default_dtype(lib, compile):
    f, x = compile(lambda x: x * 0.5 + lib.ones(2)), lib.ones(2, dtype=lib.int64)
    found = [f(x), f(x)]
    try:
        lib.set_default_dtype(lib.float64)
        return [*found, f(x), f(x)]
    finally:
        lib.set_default_dtype(lib.float32)


# ----------------------------------------------------------------------------------------------------- modules


def net_of(lib, forward, **fields):
    """A module with these fields."""

    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in fields.items():
                setattr(self, name, value)

    Net.forward = forward
    return Net()


def of_module(lib, compile, net, *changes, x=None):
    f = compile(net)
    return [y.detach() for y in calls(f, lib.ones(2) if x is None else x, *changes)]


@program
def a_dictionary_of_a_module(lib, compile):
    net = net_of(lib, lambda self, x: x * self.cfg["k"], cfg={"k": 1.0})
    return of_module(lib, compile, net, lambda: net.cfg.update(k=3.0))


@program
def a_number_of_a_module(lib, compile):
    net = net_of(lib, lambda self, x: x * self.k, k=1.0)
    return of_module(lib, compile, net, lambda: setattr(net, "k", 3.0))


@program
def a_field_of_a_modules_class(lib, compile):
    net = net_of(lib, lambda self, x: x * self.k)
    type(net).k = 2.0
    return of_module(lib, compile, net, lambda: setattr(type(net), "k", 3.0), lambda: setattr(net, "k", 4.0))


@program
def an_object_of_a_module(lib, compile):
    net = net_of(lib, lambda self, x: x * self.c.s, c=Config())
    return of_module(lib, compile, net, lambda: setattr(net.c, "s", 3.0))


@program
def a_counter_of_a_module(lib, compile):
    def forward(self, x):
        self.n += 1
        return x * self.n

    return of_module(lib, compile, net_of(lib, forward, n=0))


@program
def a_tensor_that_a_module_keeps(lib, compile):
    def forward(self, x):
        self.last = x * 2 if self.last is None else self.last + x
        return self.last

    return of_module(lib, compile, net_of(lib, forward, last=None))


@program
def a_method_of_a_module(lib, compile):
    net = net_of(lib, lambda self, x: self.helper(x), k=2.0)
    type(net).helper = lambda self, x: x * self.k
    return of_module(
        lib,
        compile,
        net,
        lambda: setattr(net, "k", 3.0),
        lambda: setattr(type(net), "helper", lambda self, x: x - self.k),
    )


@program
def training_and_evaluation(lib, compile):
    net = net_of(lib, lambda self, x: x * 2 if self.training else x * 3)
    return of_module(lib, compile, net, net.eval, net.train)


@program
def a_recurrent_layer(lib, compile):
    net = lib.nn.LSTM(2, 1)
    for p in net.parameters():
        lib.nn.init.ones_(p)
    f, x = compile(lambda x: net(x)[0]), lib.ones(3, 2)

    def replace():
        net.weight_hh_l0 = lib.nn.Parameter(lib.zeros(4, 1))

    return [y.detach() for y in calls(f, x, replace)]


@program
def the_rate_of_a_dropout(lib, compile):
    net = lib.nn.Sequential(lib.nn.Dropout(0.0))
    return of_module(lib, compile, net, lambda: setattr(net[0], "p", 1.0))


@program
def the_eps_of_a_norm(lib, compile):
    net = lib.nn.LayerNorm(2)
    return of_module(lib, compile, net, lambda: setattr(net, "eps", 1.0), x=lib.tensor([1.0, 2.0]))


@program
def a_part_that_is_replaced(lib, compile):
    net = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.ReLU())
    return of_module(lib, compile, net, lambda: net.__setitem__(1, lib.nn.Tanh()), lambda: net.append(lib.nn.Sigmoid()))


@program
def a_parameter_that_is_replaced(lib, compile):
    net = lib.nn.Linear(2, 2, bias=False)
    lib.nn.init.ones_(net.weight)
    return of_module(lib, compile, net, lambda: setattr(net, "weight", lib.nn.Parameter(lib.eye(2) * 3)))


@program
def a_bias_that_was_not_there(lib, compile):
    net = lib.nn.Linear(2, 2, bias=False)
    lib.nn.init.ones_(net.weight)
    return of_module(lib, compile, net, lambda: setattr(net, "bias", lib.nn.Parameter(lib.ones(2))))


@program
def a_hook_that_comes_later(lib, compile):
    net = lib.nn.Sequential(lib.nn.ReLU())
    return of_module(lib, compile, net, lambda: net[0].register_forward_hook(lambda m, args, out: out * 7))


@program
def a_list_of_modules(lib, compile):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    net = net_of(lib, forward, layers=lib.nn.ModuleList([lib.nn.ReLU()]))
    return of_module(lib, compile, net, lambda: net.layers.append(lib.nn.Tanh()))


@program
def the_learning_rate(lib, compile):
    p = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([p], lr=0.5)

    def f(x):
        return x * optimizer.param_groups[0]["lr"]

    return calls(compile(f), lib.ones(2), lambda: optimizer.param_groups[0].update(lr=0.75))


@program
def a_step_of_an_optimizer(lib, compile):
    p = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([p], lr=0.5)
    scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    def f(x):
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p.detach().clone()

    return calls(compile(f), lib.ones(2), scheduler.step)


@program
def an_ordered_dictionary(lib, compile):
    d = OrderedDict(a=2.0)
    return calls(compile(lambda x: x * d["a"]), lib.ones(2), lambda: d.update(a=5.0))


@program
def a_list_of_functions(lib, compile):
    table = [lib.tanh, lambda x: x * 2]

    def f(x):
        for each in table:
            x = each(x)
        return x

    return calls(
        compile(f), lib.ones(2), table.reverse, lambda: table.append(lib.exp), lambda: table.__setitem__(0, lib.sin)
    )


@program
def a_function_by_its_name(lib, compile):
    table, name = {"a": lib.tanh, "b": lambda x: x * 2}, ["a"]
    f = compile(lambda x: table[name[0]](x))
    return calls(f, lib.ones(2), lambda: name.__setitem__(0, "b"), lambda: table.update(b=lib.exp))


@program
def a_numpy_array(lib, compile):
    a = np.ones(2, dtype=np.float32)
    return calls(compile(lambda x: x * float(a[0])), lib.ones(2), lambda: a.fill(5.0))


@program
def an_iterator_in_a_closure(lib, compile):
    numbers = iter([2.0, 3.0, 5.0, 7.0])
    f = compile(lambda x: x * next(numbers))
    return [f(lib.ones(2)) for _ in range(4)]


@program
def the_dictionary_of_globals(lib, compile):
    before = SCALE
    try:
        return calls(compile(lambda x: x * globals()["SCALE"]), lib.ones(2), set_global("SCALE", 9.0))
    finally:
        set_global("SCALE", before)()


@program
def a_global_tensor_that_is_written_to_inside(lib, compile):
    total = lib.zeros(2)

    def f(x):
        total.add_(x)
        return total * 2

    return calls(compile(f), lib.ones(2))


@program
def the_shape_of_a_closed_over_tensor(lib, compile):
    w = lib.ones(2, 3)

    def change():
        w.data = lib.ones(5, 3)

    return calls(compile(lambda x: x * w.shape[0]), lib.ones(2), change)


@program
def whether_a_closed_over_tensor_requires_grad(lib, compile):
    w = lib.ones(2)
    return calls(compile(lambda x: x * 2 if w.requires_grad else x * 3), lib.ones(2), lambda: w.requires_grad_(True))


@program
def a_parameter_is_frozen(lib, compile):
    net = lib.nn.Linear(2, 1)
    lib.nn.init.ones_(net.weight), lib.nn.init.ones_(net.bias)
    f, found = compile(net), []
    for requires_grad in (True, True, False, False, True):
        net.requires_grad_(requires_grad)
        found.append(f(lib.ones(2)).requires_grad)
    return found


@program
def the_result_is_the_argument(lib, compile):
    f, x = compile(lambda x: x), lib.ones(2)
    return [f(x) is x, f(x) is x]


@program
def the_result_is_a_view(lib, compile):
    f, x = compile(lambda x: x[:1]), lib.ones(2)
    for _ in range(3):
        f(x).add_(1)
    return [x]


@program
def many_arguments(lib, compile):
    def f(*args, scale=1.0, **kwargs):
        return sum(args) * scale + sum(kwargs.values())

    f, x = compile(f), lib.ones(2)
    return [f(x, 2.0), f(x, 2.0), f(x, x, scale=3.0), f(x, a=x), f(x, b=x, scale=2.0), f(x, a=x, b=2 * x)]


@program
def a_function_made_inside(lib, compile):
    n = [3.0]

    def f(x):
        s = n[0]

        def inner(y):
            nonlocal s
            s += 1
            return y * s

        return inner(x) + inner(x)

    return calls(compile(f), lib.ones(2), lambda: n.__setitem__(0, 5.0))


@program
def a_class_of_the_user(lib, compile):
    class Pair:
        scale = 2.0

        def __init__(self, x):
            self.x = x * self.scale

    return calls(compile(lambda x: Pair(x).x), lib.ones(2), lambda: setattr(Pair, "scale", 5.0))


@program
def compiled_inside_compiled(lib, compile):
    s = [2.0]
    inner = lib.compile(lambda x: x * s[0], **({"backend": "eager"} if lib.__name__ == "torch" else {}))
    return calls(compile(lambda x: inner(x) + 1), lib.ones(2), lambda: s.__setitem__(0, 5.0))


@program
def a_seed_inside(lib, compile):
    def f(x):
        lib.manual_seed(int(SCALE))
        return x * lib.rand(2)

    return calls(compile(f), lib.ones(2))


@program
def a_generator_of_random_numbers(lib, compile):
    g = lib.Generator()
    g.manual_seed(3)
    lib.manual_seed(9)
    return calls(compile(lambda x: x * lib.rand(2, generator=g)), lib.ones(2))


@program
def random_numbers_in_place(lib, compile):
    lib.manual_seed(3)
    return [y.clone() for y in calls(compile(lambda x: x.clone().uniform_() + x), lib.ones(2))]


@program
def a_forward_of_one_object(lib, compile):
    net = lib.nn.Sequential(lib.nn.ReLU())
    return calls(compile(lambda x: net(x)), lib.ones(2), lambda: setattr(net[0], "forward", lambda x: x * 7))


@program
def a_subclass_of_a_layer(lib, compile):
    class Scaled(lib.nn.Linear):
        def forward(self, x):
            return super().forward(x) * self.scale

    net = Scaled(2, 2)
    lib.nn.init.ones_(net.weight), lib.nn.init.ones_(net.bias)
    net.scale = 2.0
    return of_module(lib, compile, net, lambda: setattr(net, "scale", 3.0), lambda: setattr(net, "bias", None))


@program
def a_property_of_a_module(lib, compile):
    net = net_of(lib, lambda self, x: x * self.twice, k=1.0)
    type(net).twice = property(lambda self: 2 * self.k)
    return of_module(lib, compile, net, lambda: setattr(net, "k", 3.0))


@program
def a_module_with_getattr(lib, compile):
    net = net_of(lib, lambda self, x: x * self.unknown)
    values = [2.0]
    type(net).__getattr__ = lambda self, name: (
        values[0] if name == "unknown" else super(type(self), self).__getattr__(name)
    )
    return of_module(lib, compile, net, lambda: values.__setitem__(0, 3.0))


@program
def a_loop_over_parameters(lib, compile):
    net = net_of(lib, lambda self, x: x + sum(p.sum() for p in self.parameters()))
    net.a = lib.nn.Parameter(lib.ones(2))
    return of_module(lib, compile, net, lambda: setattr(net, "b", lib.nn.Parameter(lib.ones(3))))


@program
def a_buffer_that_counts(lib, compile):
    def forward(self, x):
        self.seen.add_(1)
        return x * self.seen

    net = net_of(lib, forward)
    net.register_buffer("seen", lib.zeros(1))
    return of_module(lib, compile, net, lambda: setattr(net, "seen", lib.full((1,), 40.0)))


@program
def a_dictionary_of_modules(lib, compile):
    net = net_of(lib, lambda self, x: self.parts[self.which](x), which="a")
    net.parts = lib.nn.ModuleDict({"a": lib.nn.ReLU(), "b": lib.nn.Tanh()})
    return of_module(
        lib, compile, net, lambda: setattr(net, "which", "b"), lambda: net.parts.update({"b": lib.nn.Sigmoid()})
    )


@program
def a_batch_norm_in_training(lib, compile):
    net = lib.nn.BatchNorm1d(1)
    found = of_module(lib, compile, net, net.eval, net.train, x=lib.tensor([[1.0], [2.0], [4.0]]))
    return [*found, net.running_mean, net.num_batches_tracked]


@program
def numbers_that_are_read_by_a_library_function(lib, compile):
    def f(x):
        return lib.nn.functional.dropout(x, 0.0 if lib.allclose(x, lib.ones(2)) else 1.0)

    f = compile(f)
    return [f(x) for x in (lib.ones(2), lib.ones(2) * 2, lib.ones(2))]


@program
def the_gradient_is_that_of_the_function(lib, compile):
    s, f_of = [2.0], []

    def gradient(x):
        x = x.clone().requires_grad_()
        return lib.autograd.grad((f_of[0](x) ** 2).sum(), x)[0]

    f_of.append(compile(lambda x: lib.exp(x * s[0]) * x))
    return calls(gradient, lib.ones(2), lambda: s.__setitem__(0, 0.5))


@program
def a_list_with_attributes(lib, compile):
    class Scaled(list):
        scale = 2.0

    f, given = compile(lambda x, given: x * given.scale * given[0]), Scaled([2.0])
    return calls(lambda x: f(x, given), lib.ones(2), lambda: setattr(given, "scale", 5.0))


@program
def a_property_of_a_named_tuple(lib, compile):
    class Scaled(Point):
        @property
        def scaled(self):
            return self.x * SCALE

    f, before = compile(lambda p: p.scaled), SCALE
    try:
        return calls(f, Scaled(lib.ones(2), 1), set_global("SCALE", 9.0))
    finally:
        set_global("SCALE", before)()


@program
def a_list_that_is_returned_as_it_is(lib, compile):
    f, given = compile(lambda given: given), [lib.ones(2)]
    return [f(given) is given for _ in range(3)]


@program
def one_list_returned_twice(lib, compile):
    def f(x):
        parts = [x * 2]
        return parts, parts

    f = compile(f)
    return [a is b for a, b in [f(lib.ones(2)) for _ in range(3)]]


@program
def a_closed_over_list_that_is_returned(lib, compile):
    names = ["a"]

    def f(x):
        return x * 2, names

    f, found = compile(f), []
    for _ in range(3):
        f(lib.ones(2))[1].append("b")
        found.append(len(names))
    return found


@program
def results_written_into_arguments(lib, compile):
    def f(x, out):
        lib.add(x, x, out=out)
        y = x.clone()
        y[0] = 3
        y[1:] += x[:-1]
        return y + out

    f, out = compile(f), lib.zeros(3)
    return [f(lib.ones(3) * n, out).clone() for n in (1, 1, 2)] + [out]


@program
def a_list_of_tensors_that_is_written_to(lib, compile):
    ps = [lib.ones(2), lib.ones(3)]

    def f(x):
        lib._foreach_add_(ps, 2.0)
        return x * 2

    return [*calls(compile(f), lib.ones(2)), *ps]


@program
def an_aliased_argument_in_views(lib, compile):
    def f(x, y):
        x.add_(1)
        return (y * 2 + 1) * y, x.sum()

    f, a, found = compile(f), lib.ones(4), []
    for x, y in ((lib.ones(2), lib.ones(2)), (a[:2], a[2:]), (a[:2], a[1:3]), (a[1:3], a[:2])):
        found += [*f(x, y), a.clone()]
    return found


# ------------------------------------------------------------------------------- equal, and yet not the same; keys


def product_with_keys(lib, compile, given, *changes):
    def f(x):
        for key in given:
            x = x * 2 + key
        return x

    return calls(compile(f), lib.tensor([1, 2]), *changes)


def replaced_by(container, *values):
    """Empties it, then puts `values` in, one by one."""

    def change():
        container.clear()
        for value in values:
            container.update({value: 0} if isinstance(container, dict) else {value})

    return change


@program
def a_key_changes_its_type(lib, compile):
    given = {1: 0}
    return product_with_keys(lib, compile, given, replaced_by(given, 1.0))


@program
def an_element_of_a_set_changes_its_type(lib, compile):
    given = {1}
    return product_with_keys(lib, compile, given, replaced_by(given, 1.0))


@program
def equal_sets_in_another_order(lib, compile):
    given = {8, 0}
    return product_with_keys(lib, compile, given, replaced_by(given, 0, 8), replaced_by(given, 8, 0))


@program
def a_field_of_a_key(lib, compile):
    key = Config()
    given = {key: 0}

    def f(x):
        for each in given:
            x = x * each.s
        return x

    return calls(compile(f), lib.ones(2), lambda: setattr(key, "s", 3.0))


@program
def keys_of_an_argument(lib, compile):
    def f(x, given):
        for key in given:
            x = x * key
        return x

    f = compile(f)
    return [f(lib.tensor([1, 2]), {key: 0}) for key in (1, 1, 1.0)]


@program
def equal_ranges_and_slices(lib, compile):
    f, x = compile(lambda x, r: x * r.stop), lib.tensor([1, 2])
    return [f(x, r) for r in (range(0, 3, 2), range(0, 4, 2), slice(0, 1), slice(0, 1.0))]


@program
def a_set_as_argument_that_grows(lib, compile):
    def f(x, seen):
        seen.add(len(seen))
        return x * len(seen)

    f, seen = compile(f), set()
    return [f(lib.ones(2), seen) for _ in range(4)]


@program
def keyword_defaults_are_others(lib, compile):
    def g(x, *, s=2.0):
        return x * s

    return calls(compile(lambda x: g(x)), lib.ones(2), lambda: setattr(g, "__kwdefaults__", {"s": 3.0}))


@program
def fields_of_a_named_tuple_change_places(lib, compile):
    Pair = namedtuple("Pair", "a b")

    def change():
        Pair.a, Pair.b = Pair.b, Pair.a

    f = compile(lambda x, pair: x * pair.a + pair.b)
    return calls(lambda x: f(x, Pair(1.0, 2.0)), lib.ones(2), change)


# ------------------------------------------------------------------------------------- which tensor, and its facts


@program
def tensors_as_keys(lib, compile):
    def f(x, y):
        return y * {x: 1.0}.get(y, 2.0) + len({x, y})

    f, a = compile(f), lib.ones(2)
    return [f(a, lib.ones(2)), f(a, a), f(lib.ones(2), a)]


@program
def whether_an_argument_is_a_closed_over_tensor(lib, compile):
    known = [lib.ones(2)]
    f = compile(lambda x: x * 2 if x is known[0] else x * 3)
    return [f(lib.ones(2)), f(known[0]), f(lib.ones(2))]


@program
def the_shape_of_a_tensor_in_a_list(lib, compile):
    given = [lib.ones(3)]
    return calls(compile(lambda x: x * given[0].shape[0]), lib.ones(2), lambda: setattr(given[0], "data", lib.ones(5)))


@program
def whether_a_tensor_in_a_list_requires_grad(lib, compile):
    given = [lib.ones(3)]
    return calls(compile(lambda x: x * 2 if given[0].requires_grad else x * 3), lib.ones(2), given[0].requires_grad_)


@program
def the_sizes_of_parameters(lib, compile):
    def forward(self, x):
        for p in self.parameters():
            x = x * p.numel()
        return x

    net = net_of(lib, forward, w=lib.nn.Parameter(lib.ones(3)))
    return of_module(lib, compile, net, lambda: setattr(net.w, "data", lib.ones(5)))


@program
def an_argument_is_transposed_in_place(lib, compile):
    def f(x):
        rows = x.shape[0]
        x.t_()
        return x * rows

    f, x = compile(f), lib.ones(2, 3)
    return [f(x) for _ in range(4)]


@program
def an_argument_that_comes_to_require_grad(lib, compile):
    w = lib.ones(2).requires_grad_()

    def f(x):
        factor = 2.0 if x.requires_grad else 3.0
        x.mul_(w)
        return x * factor

    f, x = compile(f), lib.ones(2)
    return [f(x) for _ in range(3)]


@program
def tensors_as_text(lib, compile):
    f = compile(lambda x: (x * 2, f"{x}", "%s" % x))
    return [f(lib.ones(2) * n) for n in (1, 1, 2)]


@program
def where_a_condition_holds(lib, compile):
    f = compile(lambda x: lib.where(x > 1)[0] * 2)
    return [f(lib.tensor(values)) for values in ([1.0, 2.0], [1.0, 2.0], [3.0, 2.0])]


@program
def a_tensor_of_inference_mode(lib, compile):
    f = compile(lambda x: x * 2 if lib.is_inference(x) else x * 3)
    with lib.inference_mode():
        x = lib.ones(2)
    return [f(lib.ones(2)), f(lib.ones(2)), f(x)]


@program
def a_tuple_of_one_tensor(lib, compile):
    f = compile(lambda x: (x * 2 + 1,))
    return [f(lib.ones(2)) for _ in range(3)]


# ------------------------------------------------------------------------------------ modules, classes, the library


def changed_class(lib, compile, change):
    """A module and the one in it, whose class inherits twice. change(outer, inner, the class between, the class of all)."""

    class Base(lib.nn.Module):
        def scale(self):
            return 2.0

    class Between(Base):
        pass

    class Inner(Between):
        def __init__(self):
            super().__init__()
            self.a, self.unused = 1.0, 1.0
            self.w = lib.nn.Parameter(lib.ones(2))

        def scale(self):
            return super().scale() + 1

        def forward(self, x):
            return x * self.scale() * self.a + self.w

    net = net_of(lib, lambda self, x: self.inner(x) if self.inner else x, inner=Inner())
    return of_module(lib, compile, net, lambda: change(net.inner, Inner, Between, Base))


def ten_times(self, x):
    return x * 10


CLASS_CHANGES = {
    "a_method_of_a_class_between": lambda inner, Inner, Between, Base: setattr(Between, "scale", lambda self: 7.0),
    "a_class_gets_another_base": lambda inner, Inner, Between, Base: setattr(
        Inner, "__bases__", (type("Other", (Base,), {"scale": lambda self: 7.0}),)
    ),
    "a_class_hides_a_parameter": lambda inner, Inner, Between, Base: setattr(Inner, "w", 3.0),
    "a_property_hides_a_field": lambda inner, Inner, Between, Base: setattr(Inner, "a", property(lambda self: 5.0)),
    "a_class_gets_a_call": lambda inner, Inner, Between, Base: setattr(Inner, "__call__", ten_times),
    "a_class_gets_a_length": lambda inner, Inner, Between, Base: setattr(Inner, "__len__", lambda self: 0),
    "a_class_gets_getattribute": lambda inner, Inner, Between, Base: setattr(
        Inner, "__getattribute__", lambda self, name: 9.0 if name == "a" else object.__getattribute__(self, name)
    ),
    "a_forward_in_the_place_of_a_field": lambda inner, Inner, Between, Base: (
        delattr(inner, "unused"),
        setattr(inner, "forward", lambda x: x * 10),
    ),
}
for name, change in CLASS_CHANGES.items():
    PROGRAMS[name] = lambda lib, compile, change=change: changed_class(lib, compile, change)


def sum_of_parameters(self, x):
    for p in self.parameters():
        x = x * 2 + p
    return x


@program
def parameters_in_another_order(lib, compile):
    net = net_of(lib, sum_of_parameters, p=lib.nn.Parameter(lib.ones(2)), q=lib.nn.Parameter(lib.ones(2) * 5))
    return of_module(lib, compile, net, lambda: net._parameters.update(p=net._parameters.pop("p")))


@program
def a_layer_gets_a_parameter(lib, compile):
    net = net_of(lib, sum_of_parameters, part=lib.nn.ReLU())
    return of_module(lib, compile, net, lambda: net.part.register_parameter("w", lib.nn.Parameter(lib.ones(2))))


@program
def a_function_of_the_library_is_another(lib, compile):
    functional, before = lib.nn.functional, lib.nn.functional.relu
    try:
        f = compile(lambda x: functional.relu(x) * 2)
        return calls(f, lib.ones(2), lambda: setattr(functional, "relu", lambda x: x * 10))
    finally:
        functional.relu = before


# The functions that have nothing but what guards cover: these must run as graphs, not as they are written.


@program
def plain_arithmetic(lib, compile):
    f = compile(lambda x: lib.tanh(x * 2 + 1) * lib.sigmoid(x))
    return [f(lib.ones(n)) for n in (2, 3, 2)]


@program
def the_library_as_an_argument_of_a_helper(lib, compile):
    def chain(api, x):
        return api.exp(api.sin(x)) * x

    return calls(compile(lambda x: chain(lib, x)), lib.ones(2))


@program
def a_network(lib, compile):
    lib.manual_seed(1)
    net = lib.nn.Sequential(lib.nn.Linear(2, 4), lib.nn.GELU(), lib.nn.LayerNorm(4), lib.nn.Linear(4, 1)).eval()
    return of_module(lib, compile, net)


@program
def a_generator_inside(lib, compile):
    return calls(compile(lambda x: sum(x * n for n in range(4)) + max([x.shape[0], 1])), lib.ones(2))


@program
def a_list_inside(lib, compile):
    def f(x):
        parts = []
        for i in range(3):
            parts.append(x * i)
        return lib.cat(parts)

    return calls(compile(f), lib.ones(2))
