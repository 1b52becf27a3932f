"""Forty more programs in which something changes between two calls: descriptors, `__dict__`, defaults, hooks, generators,
exceptions, `match`, star arguments, views. See `programs.py` for what a program is.
"""

import collections
import dataclasses
import functools
import types

from tests.dynamo.programs import Box, program, values


@program
def closure_swapped_by_a_setter(lib, compile, out):
    scale = 2.0

    def set_scale(value):
        nonlocal scale
        scale = value

    compiled = compile(lambda x: x * scale)
    for value in (None, 3.0, 3, "no", 2.0):
        if value is not None:
            set_scale(value)
        try:
            out(compiled(values(lib, 2)))
        except TypeError:
            out("type")


@program
def dataclass_with_defaults_and_post_init(lib, compile, out):
    @dataclasses.dataclass
    class Config:
        size: int = 3
        scale: float = 0.5
        names: list = dataclasses.field(default_factory=list)

        def __post_init__(self):
            self.total = self.size * self.scale

    def f(x, config):
        made = Config(size=config.size + 1, names=[*config.names, "new"])
        config.names.append("seen")
        return x * made.total + len(made.names), made.names

    compiled, config = compile(f), Config()
    for size in (3, 3, 4):
        config.size = size
        out(compiled(values(lib, 2), config))
        out(config.names)


@program
def dataclass_replaced(lib, compile, out):
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: float
        y: float

    def f(t, p):
        moved = dataclasses.replace(p, x=p.x + 1)
        return t * moved.x + moved.y, p == moved, moved

    compiled = compile(f)
    for p in (Point(1.0, 2.0), Point(1.0, 2.0), Point(2.0, 2.0)):
        result, same, moved = compiled(values(lib, 2), p)
        out(result), out(same), out((moved.x, moved.y))


@program
def dict_of_an_instance_edited(lib, compile, out):
    box = Box(a=1.0, b=2.0)

    def f(x):
        return x * sum(box.__dict__.values()) + len(vars(box))

    compiled = compile(f)
    out(compiled(values(lib, 2)))
    box.__dict__["c"] = 4.0
    out(compiled(values(lib, 2)))
    del box.__dict__["a"]
    out(compiled(values(lib, 2)))
    box.__dict__.update(b=7.0)
    out(compiled(values(lib, 2)))
    box.__dict__ = {"z": 1.0}
    out(compiled(values(lib, 2)))


@program
def dict_of_an_instance_written(lib, compile, out):
    def f(x, box):
        box.__dict__["last"] = x + 1
        vars(box)["count"] = vars(box).get("count", 0) + 1
        return box.last * 2

    compiled, box = compile(f), Box()
    for _ in range(3):
        out(compiled(values(lib, 2), box))
        out(box.count), out(box.last)


@program
def property_with_a_setter(lib, compile, out):
    class Gauge:
        def __init__(self):
            self._level = 1.0

        @property
        def level(self):
            return self._level

        @level.setter
        def level(self, value):
            self._level = min(value, 3.0)

    def f(x, gauge):
        gauge.level = gauge.level + 1.0
        return x * gauge.level

    compiled, gauge = compile(f), Gauge()
    for _ in range(4):
        out(compiled(values(lib, 2), gauge))
        out(gauge.level)
    Gauge.level = property(lambda self: 10.0)
    try:
        out(compiled(values(lib, 2), gauge))
    except AttributeError:
        out("no setter")


@program
def descriptor_of_the_program(lib, compile, out):
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, owner, cls=None):
            return self if owner is None else getattr(owner, self.name) * self.factor

        def __set__(self, owner, value):
            setattr(owner, self.name, value)

    class Thing:
        size = Scaled(2.0)

    thing = Thing()
    thing.size = 1.5
    compiled = compile(lambda x: x * thing.size)
    out(compiled(values(lib, 2)))
    thing.size = 2.5
    out(compiled(values(lib, 2)))
    Thing.__dict__["size"].factor = 3.0
    out(compiled(values(lib, 2)))


@program
def descriptor_without_set(lib, compile, out):
    class Doubled:
        def __get__(self, owner, cls=None):
            return owner.base * 2

    class Thing:
        twice = Doubled()

    thing = Thing()
    thing.base = 2.0
    compiled = compile(lambda x: x + thing.twice)
    out(compiled(values(lib, 2)))
    thing.base = 4.0
    out(compiled(values(lib, 2)))
    thing.__dict__["twice"] = 100.0
    out(compiled(values(lib, 2)))


@program
def defaults_replaced(lib, compile, out):
    def helper(x, k=2.0, *, bias=1.0):
        return x * k + bias

    compiled = compile(lambda x: helper(x))
    out(compiled(values(lib, 2)))
    helper.__defaults__ = (5.0,)
    out(compiled(values(lib, 2)))
    helper.__kwdefaults__ = {"bias": -1.0}
    out(compiled(values(lib, 2)))
    helper.__kwdefaults__["bias"] = 7.0
    out(compiled(values(lib, 2)))


@program
def defaults_of_the_compiled_replaced(lib, compile, out):
    def f(x, k=2.0, table={"a": 1.0}):
        return x * k + table["a"]

    compiled = compile(f)
    out(compiled(values(lib, 2)))
    f.__defaults__[1]["a"] = 3.0
    out(compiled(values(lib, 2)))
    out(compiled(values(lib, 2), 4.0))


SETTINGS = {"mode": "relu", "levels": [1.0, 2.0]}


@program
def global_dict_entries(lib, compile, out):
    def f(x):
        x = x.relu() if SETTINGS["mode"] == "relu" else x.abs()
        return x * SETTINGS["levels"][-1] + SETTINGS.get("extra", 0.0)

    compiled = compile(f)
    try:
        out(compiled(values(lib, 3)))
        SETTINGS["mode"] = "abs"
        out(compiled(values(lib, 3)))
        SETTINGS["levels"].append(5.0)
        out(compiled(values(lib, 3)))
        SETTINGS["extra"] = 1.0
        out(compiled(values(lib, 3)))
    finally:
        SETTINGS.clear()
        SETTINGS.update(mode="relu", levels=[1.0, 2.0])


@program
def module_of_python_swapped(lib, compile, out):
    first, second = types.ModuleType("first"), types.ModuleType("second")
    first.gain, second.gain = 2.0, 5.0
    first.apply = lambda x: x * first.gain
    second.apply = lambda x: x - second.gain
    holder = Box(module=first)
    compiled = compile(lambda x: holder.module.apply(x) + holder.module.gain)
    out(compiled(values(lib, 2)))
    holder.module = second
    out(compiled(values(lib, 2)))
    second.gain = 1.0
    out(compiled(values(lib, 2)))


@program
def layer_swapped_in_a_sequential(lib, compile, out):
    lib.manual_seed(0)
    net = lib.nn.Sequential(lib.nn.Identity(), lib.nn.ReLU())
    compiled = compile(net)
    out(compiled(values(lib, 4)))
    net[1] = lib.nn.Sigmoid()
    out(compiled(values(lib, 4)))
    net.append(lib.nn.Tanh())
    out(compiled(values(lib, 4)))
    del net[0]
    out(compiled(values(lib, 4)))


@program
def hook_that_changes_the_output(lib, compile, out):
    net = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Tanh())
    handle = net[0].register_forward_hook(lambda module, args, output: output + 1)
    compiled = compile(lambda x: net(x))
    out(compiled(values(lib, 3)))
    second = net[0].register_forward_hook(lambda module, args, output: output * 2)
    out(compiled(values(lib, 3)))
    handle.remove()
    out(compiled(values(lib, 3)))
    second.remove()
    out(compiled(values(lib, 3)))


@program
def default_dtype_in_a_constructor(lib, compile, out):
    def f(x):
        return x + lib.full((2,), 0.5).sum() + lib.zeros(2), lib.tensor([1.0]).dtype == x.dtype

    compiled = compile(f)
    for dtype in (lib.float32, lib.float64, lib.float32):
        lib.set_default_dtype(dtype)
        out(compiled(lib.ones(2, dtype=lib.float32)))


@program
def random_state_is_advanced_as_often(lib, compile, out):
    def f(x):
        return x + lib.rand(2) * lib.randn(2)

    compiled = compile(f)
    for seed in (1, 1, 2):
        lib.manual_seed(seed)
        out(compiled(lib.ones(2)).shape[0])
        out(compiled(lib.ones(2)).shape[0])
        state = lib.get_rng_state()
        lib.manual_seed(seed)
        f(lib.ones(2)), f(lib.ones(2))
        out(bool((lib.get_rng_state() == state).all()))


@program
def generator_object_as_an_argument(lib, compile, out):
    generator = lib.Generator()
    compiled = compile(lambda x: x + lib.rand(2, generator=generator))
    generator.manual_seed(1)
    first = compiled(lib.ones(2))
    second = compiled(lib.ones(2))
    generator.manual_seed(1)
    out(bool((compiled(lib.ones(2)) == first).all()))
    out(bool((compiled(lib.ones(2)) == second).all()))


@program
def exception_of_a_class_that_changes(lib, compile, out):
    class Low(Exception):
        pass

    class High(Exception):
        pass

    def check(k):
        if k < 0:
            raise Low(k)
        if k > 3:
            raise High("too high")
        return k

    def f(x, k):
        try:
            return x * check(k)
        except Low as error:
            return x - error.args[0]
        except (High, KeyError) as error:
            return x + len(str(error))
        finally:
            x.add_(1)

    compiled = compile(f)
    for k in (1, -2, 5, 2, -2):
        x = lib.ones(2)
        out(compiled(x, k)), out(x)


@program
def exception_escapes_after_a_write(lib, compile, out):
    def f(x, log, k):
        log.append(k)
        x.mul_(2)
        if k > 1:
            raise ValueError(f"{k} of {len(log)}")
        return x + 1

    compiled, log, x = compile(f), [], lib.ones(2)
    for k in (0, 2, 1, 3):
        try:
            out(compiled(x, log, k))
        except ValueError as error:
            out(str(error))
        out(log), out(x)


@program
def walrus_in_conditions(lib, compile, out):
    def f(x, items):
        while items and (last := items.pop()) > 1:
            x = x * last
        kept = [half for k in items if (half := k / 2) > 0.5]
        return x + sum(kept), items, half if items else None

    compiled = compile(f)
    for items in ([4, 3, 1, 5], [1], [], [6, 2, 1, 2]):
        out(compiled(values(lib, 2), items))


@program
def match_statements(lib, compile, out):
    @dataclasses.dataclass
    class Scale:
        by: float

    def f(x, command):
        match command:
            case {"op": "add", "value": value}:
                return x + value
            case ["mul", *factors] if factors:
                for factor in factors:
                    x = x * factor
                return x
            case Scale(by=by) if by > 1:
                return x * by
            case Scale(0.0) | None:
                return x * 0
            case int(k) | float(k):
                return x - k
            case str():
                return x.relu()
            case _:
                return -x

    compiled = compile(f)
    commands = [
        {"op": "add", "value": 2.0},
        ["mul", 2, 3],
        Scale(2.0),
        Scale(0.0),
        None,
        3,
        1.5,
        "relu",
        ("mul",),
        ["mul"],
        {},
    ]
    for command in commands * 2:
        out(compiled(values(lib, 3), command))


@program
def nested_functions_with_nonlocal(lib, compile, out):
    def make():
        total, calls = 0.0, []

        def add(x, k):
            nonlocal total
            total += k

            def note():
                nonlocal calls
                calls = [*calls, total]
                return len(calls)

            return x + total * note()

        return add, lambda: (total, calls)

    add, state = make()
    compiled = compile(add)
    for k in (1.0, 2.0, 2.0):
        out(compiled(values(lib, 2), k))
        out(state())


@program
def star_arguments(lib, compile, out):
    def inner(x, *rest, scale=1.0, **more):
        return x * scale + len(rest) + sum(rest) + sum(more.values()) - len(more)

    def f(*args, **kwargs):
        first, *others = args
        return inner(first, *others, **kwargs)

    compiled, x = compile(f), values(lib, 2)
    out(compiled(x))
    out(compiled(x, 1, 2))
    out(compiled(x, 1, scale=3.0))
    out(compiled(x, 1, scale=3.0, bias=2.0))
    out(compiled(x, 1, scale=3.0, shift=2.0))
    out(compiled(x))


@program
def iterators_of_the_program(lib, compile, out):
    class Countdown:
        def __init__(self, start):
            self.now = start

        def __iter__(self):
            return self

        def __next__(self):
            if self.now == 0:
                raise StopIteration
            self.now -= 1
            return self.now

    def f(x, counter):
        for k in counter:
            x = x + k
        return x, next(counter, "end"), counter.now

    compiled = compile(f)
    for start in (3, 2, 0):
        out(compiled(values(lib, 2), Countdown(start)))


@program
def zipped_and_enumerated(lib, compile, out):
    def f(xs, weights):
        total = 0
        for i, (x, w) in enumerate(zip(xs, weights), start=1):
            total = total + x * w / i
        return total, dict(zip("ab", weights)), list(reversed(weights)), max(weights, default=0)

    compiled = compile(f)
    for count in (2, 3, 2, 0):
        out(compiled([values(lib, 2) + i for i in range(count)], [float(i) for i in range(count)]))


@program
def shapes_in_strings(lib, compile, out):
    def f(x, log):
        log.append(f"{tuple(x.shape)} {x.dtype} {x.dim()=}")
        name = f"{x.shape[0]:03d}x{x.shape[-1]}"
        return x * len(name), name

    compiled, log = compile(f), []
    for shape in ((2,), (2, 3), (4,), (2,)):
        result, name = compiled(lib.ones(shape), log)
        out(result), out(name)
    out([text.replace("torch.", "").replace("readtorch.", "") for text in log])


@program
def class_method_and_class_state(lib, compile, out):
    class Registry:
        count = 0
        scale = 2.0

        @classmethod
        def made(cls):
            cls.count += 1
            return cls.scale * cls.count

        @staticmethod
        def shift():
            return Registry.count

    def f(x):
        return x * Registry.scale + Registry.shift()

    compiled = compile(f)
    out(compiled(values(lib, 2)))
    Registry.made()
    out(compiled(values(lib, 2)))
    Registry.scale = 3.0
    out(compiled(values(lib, 2)))
    Registry.shift = staticmethod(lambda: 10)
    out(compiled(values(lib, 2)))


@program
def class_state_written_inside(lib, compile, out):
    class Registry:
        count = 0

    def f(x):
        Registry.count += 1
        return x * Registry.count

    compiled = compile(f)
    for _ in range(3):
        out(compiled(values(lib, 2)))
        out(Registry.count)


@program
def getattr_falls_back(lib, compile, out):
    class Options:
        def __init__(self, **given):
            self.given = given

        def __getattr__(self, name):
            if name.startswith("__") or name not in self.given:
                raise AttributeError(name)
            return self.given[name]

    options = Options(scale=2.0)
    compiled = compile(lambda x: x * options.scale + getattr(options, "shift", 0.5))
    out(compiled(values(lib, 2)))
    options.given["scale"] = 4.0
    out(compiled(values(lib, 2)))
    options.given["shift"] = 1.0
    out(compiled(values(lib, 2)))
    options.scale = 9.0
    out(compiled(values(lib, 2)))


@program
def container_of_the_program(lib, compile, out):
    class Bag:
        def __init__(self, *items):
            self.items = list(items)

        def __len__(self):
            return len(self.items)

        def __getitem__(self, key):
            return self.items[key]

        def __setitem__(self, key, value):
            self.items[key] = value

        def __contains__(self, item):
            return item in self.items

    def f(x, bag):
        if not bag:
            return x
        bag[0] = bag[0] + 1
        return x * bag[-1] + len(bag) + (3 in bag)

    compiled = compile(f)
    for bag in (Bag(1, 2), Bag(), Bag(2, 5), Bag(2)):
        out(compiled(values(lib, 2), bag)), out(bag.items)


@program
def a_subclass_of_dict(lib, compile, out):
    class Config(dict):
        def __getattr__(self, name):
            return self[name]

    config = Config(scale=2.0)
    compiled = compile(lambda x: x * config.scale + len(config))
    out(compiled(values(lib, 2)))
    config["scale"] = 3.0
    out(compiled(values(lib, 2)))
    config["other"] = 1
    out(compiled(values(lib, 2)))


@program
def counters_and_chains(lib, compile, out):
    def f(x, words):
        counted = collections.Counter(words)
        merged = {**counted, "total": sum(counted.values())}
        return x * merged["total"] + counted["a"], sorted(merged)

    compiled = compile(f)
    for words in (["a", "b", "a"], ["b"], ["a"]):
        out(compiled(values(lib, 2), words))


@program
def cached_function(lib, compile, out):
    calls = []

    @functools.lru_cache
    def factor(k):
        calls.append(k)
        return k * 2.0

    compiled = compile(lambda x, k: x * factor(k))
    for k in (1, 2, 1):
        out(compiled(values(lib, 2), k))
    out(sorted(set(calls)))


@program
def partial_that_is_replaced(lib, compile, out):
    holder = Box(call=functools.partial(lambda x, k, b=0.0: x * k + b, k=2.0))
    compiled = compile(lambda x: holder.call(x))
    out(compiled(values(lib, 2)))
    holder.call = functools.partial(holder.call, b=1.0)
    out(compiled(values(lib, 2)))
    holder.call = functools.partial(holder.call.func, k=3.0)
    out(compiled(values(lib, 2)))


@program
def views_of_an_input_are_written(lib, compile, out):
    def f(x):
        first, rest = x[0], x[1:]
        first += 1
        rest.mul_(2)
        x.view(-1)[-1] = 9.0
        return x.sum() + first.sum()

    compiled = compile(f)
    for shape in ((2, 2), (2, 2), (3, 2)):
        x = lib.ones(shape)
        out(compiled(x)), out(x)


@program
def output_is_a_view_of_an_input(lib, compile, out):
    compiled = compile(lambda x: (x.t(), x[0], x.reshape(-1)))
    for _ in range(2):
        x = values(lib, 2, 3)
        a, b, c = compiled(x)
        x.add_(1)
        out(a), out(b), out(c)
        a.zero_()
        out(x)


@program
def gradients_flow_through_captured_tensors(lib, compile, out):
    weight = lib.ones(2, requires_grad=True)
    compiled = compile(lambda x: (x * weight).relu().sum())
    for scale in (1.0, 2.0, -1.0):
        compiled(values(lib, 2) * scale).backward()
        out(weight.grad)
    weight = lib.full((2,), 3.0, requires_grad=True)
    compiled(values(lib, 2)).backward()
    out(weight.grad)


@program
def requires_grad_set_inside(lib, compile, out):
    def f(x):
        y = (x * 2).detach()
        y.requires_grad_()
        return (y * y).sum(), y

    compiled = compile(f)
    for _ in range(2):
        loss, y = compiled(lib.ones(2))
        loss.backward()
        out(y.grad)


@program
def list_sorted_by_a_key_that_changes(lib, compile, out):
    order = {"a": 1, "b": 2, "c": 3}

    def f(x, names):
        names.sort(key=lambda name: order[name])
        for name in names:
            x = x * 2 + order[name]
        return x, names

    compiled = compile(f)
    out(compiled(values(lib, 2), ["c", "a", "b"]))
    order["a"] = 9
    out(compiled(values(lib, 2), ["c", "a", "b"]))


@program
def loop_with_else_and_continue(lib, compile, out):
    def f(x, items):
        for k in items:
            if k % 2:
                continue
            if k > 6:
                x = x - k
                break
            x = x + k
        else:
            x = x * 2
        return x

    compiled = compile(f)
    for items in ([1, 2, 4], [2, 8, 3], [], [1, 2, 4]):
        out(compiled(values(lib, 2), items))


@program
def tensors_in_a_dictionary_are_replaced(lib, compile, out):
    state = {"h": lib.zeros(2)}

    def f(x):
        state["h"] = state["h"] * 0.5 + x
        state.setdefault("first", x)
        return state["h"].sum() + len(state)

    compiled = compile(f)
    for k in (1.0, 2.0, 3.0):
        out(compiled(lib.ones(2) * k))
        out(state["h"])
    out(state["first"])


@program
def in_place_numbers_of_an_object(lib, compile, out):
    class Schedule:
        def __init__(self):
            self.step, self.rate = 0, 1.0

        def __call__(self):
            self.step += 1
            if self.step % 2 == 0:
                self.rate *= 0.5
            return self.rate

    schedule = Schedule()
    compiled = compile(lambda x: x * schedule())
    for _ in range(6):
        out(compiled(lib.ones(2)))
    out((schedule.step, schedule.rate))


@program
def autocast_inside(lib, compile, out):
    layer = lib.nn.Linear(3, 3)

    @lib.autocast("cpu", dtype=lib.bfloat16)
    def decorated(x):
        return x @ x.t()

    def f(x, enabled):
        with lib.autocast("cpu", dtype=lib.bfloat16, enabled=enabled):
            y = layer(x)
        return y.dtype is lib.bfloat16, decorated(x).dtype is lib.bfloat16, (y.float().sum() > 0).dtype is lib.bool

    compiled = compile(f)
    for enabled in (True, False, True):
        out(compiled(lib.ones(2, 3), enabled))
        with lib.autocast("cpu", dtype=lib.bfloat16):
            out(compiled(lib.ones(2, 3), enabled))


@program
def error_within_autocast(lib, compile, out):
    def f(x):
        with lib.autocast("cpu", dtype=lib.bfloat16):
            y = x @ x.t()
            if x.shape[0] == 3:
                raise ValueError("three")
            return x @ y

    compiled = compile(f)
    for rows, columns in ((2, 2), (3, 3), (4, 5), (2, 2)):
        try:
            out(compiled(lib.ones(rows, columns)).dtype is lib.bfloat16)
        except (ValueError, RuntimeError) as error:
            out(type(error).__name__)
        out(lib.is_autocast_enabled("cpu"))
