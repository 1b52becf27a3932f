"""Programs of the mutation table with `cond` and `while_loop`: what their functions read may change between two calls."""

from tests.dynamo.programs import Box, program, values


@program
def cond_reads_what_changes(lib, compile, out):
    box, scale = Box(), [2]
    box.shift = 1

    @compile
    def f(x, y):
        z = x + 1

        def true_fn(a):
            return a.sin() * scale[0] + z

        def false_fn(a):
            return a.cos() * y + box.shift

        return lib.cond(x.sum() > 0, true_fn, false_fn, (x,))

    x, y = values(lib, 3), values(lib, 3) * 2
    for sign in (1, -1, 1):
        out(f(x * sign, y))
    scale[0], box.shift = 3, 5
    for sign in (1, -1):
        out(f(x * sign, y))


@program
def cond_with_gradients(lib, compile, out):
    weight = lib.tensor([0.5, 2.0, -1.0], requires_grad=True)
    unused = lib.tensor(1.0, requires_grad=True)

    @compile
    def f(x):
        return lib.cond(x.sum() > 0, lambda a: (a * weight).exp(), lambda a: a * unused, (x,))

    for sign in (1, -1, 1):
        x = (lib.arange(3.0) * sign).requires_grad_()
        f(x).sum().backward()
        out(x.grad), out(weight.grad), out(unused.grad)


@program
def cond_within_cond(lib, compile, out):
    @compile
    def f(x, limit):
        def inner(a):
            return lib.cond(a.max() > limit, lambda b: b * 2 + limit, lambda b: b - limit, (a,))

        return lib.cond(x.sum() > 0, inner, lambda a: a.abs(), (x,)).sum()

    for sign in (1, -1):
        for limit in (0.5, 1.5, 2.5):
            out(f(values(lib, 3) * sign, lib.tensor(limit)))


@program
def cond_of_a_module(lib, compile, out):
    class Gate(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = lib.nn.Linear(3, 3), lib.nn.Linear(3, 3)
            self.factor = 2

        def forward(self, x):
            return lib.cond(x.mean() > 0, lambda x: self.a(x) * self.factor, lambda x: self.b(x).relu() + 1, (x,))

    gate = Gate()
    for parameter in gate.parameters():
        lib.nn.init.constant_(parameter, 0.25)
    f = compile(lambda x: gate(x))
    out(f(values(lib, 3))), out(f(-values(lib, 3)))
    gate.factor = 3
    with lib.no_grad():
        gate.b.weight.mul_(2)
    out(f(values(lib, 3))), out(f(-values(lib, 3)))


@program
def cond_returns_a_nest(lib, compile, out):
    @compile
    def f(x):
        found = lib.cond(x.sum() > 0, lambda a: {"k": a + 1, "l": [a * 2]}, lambda a: {"k": a - 1, "l": [a * 3]}, [x])
        return found["k"] + found["l"][0]

    out(f(values(lib, 3))), out(f(-values(lib, 3)))


@program
def cond_that_is_decided(lib, compile, out):
    @compile
    def f(x, flag):
        return lib.cond(flag, lambda a: a + 1, lambda a: a - 1, (x,))

    out(f(values(lib, 3), True)), out(f(values(lib, 3), False)), out(f(values(lib, 3), True))


@program
def while_loop_reads_what_changes(lib, compile, out):
    box = Box()
    box.limit = 4

    @compile
    def f(x, step):
        return lib.while_loop(lambda i, x: i < box.limit, lambda i, x: (i + 1, x * 2 + step), (lib.tensor(0), x))

    out(f(values(lib, 3), lib.ones(3))), out(f(values(lib, 3), lib.zeros(3)))
    box.limit = 2
    out(f(values(lib, 3), lib.ones(3)))


@program
def while_loop_with_a_number(lib, compile, out):
    @compile
    def f(x, limit):
        n, y = lib.while_loop(lambda n, y: y.sum() < limit, lambda n, y: (n + 1, y * 2), (0, x))
        return n, y + n

    for limit in (3.0, 30.0, 300.0):
        out(f(values(lib, 3).abs() + 1, lib.tensor(limit)))


@program
def while_loop_over_a_dictionary(lib, compile, out):
    @compile
    def f(x):
        def body(state):
            return ({"left": state["left"] - 1, "x": state["x"] / 2 + 1},)

        return lib.while_loop(lambda state: state["left"] > 0, body, ({"left": x.abs().sum().int(), "x": x},))[0]["x"]

    for scale in (0.1, 1.0, 4.0):
        out(f(values(lib, 3) * scale))


@program
def side_effect_in_a_branch(lib, compile, out):
    seen = []

    def note(a):
        seen.append(1)
        return a + 1

    f = compile(lambda x: lib.cond(x.sum() > 0, note, lambda a: a - 1, (x,)))
    try:
        f(values(lib, 3))
    except RuntimeError as error:
        out(type(error).__name__)
    out(seen)
