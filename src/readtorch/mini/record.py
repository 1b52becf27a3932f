"""Written in the chapter "JIT: tracing": its cells are this file, put together by `tools/mini.py`."""

from .dispatcher import TRACER, Guard, below, fallbacks


class Trace:
    """Nodes (name, operator or a constant, names)."""

    def __init__(self, *args):
        self.nodes, self.held = [], [*args]
        self.names = {id(x): f"in{i}" for i, x in enumerate(args)}

    def define(self, t, what, *names):
        """From now on this name stands for the tensor."""
        self.held.append(t)  # or its id might come again
        self.names[id(t)] = name = f"v{len(self.nodes)}"
        self.nodes.append((name, what, names))

    def value(self, t):
        if id(t) not in self.names:  # not seen: a constant
            self.define(t, t)
        return self.names[id(t)]

    def __call__(self, *inputs):
        values = {f"in{i}": x for i, x in enumerate(inputs)}
        for name, what, names in self.nodes:
            args = [values[n] for n in names]
            values[name] = what(*args) if args else what
        return values[self.result]


traces = []  # under way, innermost last (PyTorch: at most one)


def record(op, keys, *args):
    """The kernel of every operator at the key."""
    names = [traces[-1].value(a) for a in args]
    with Guard(exclude=TRACER):
        result = op.redispatch(keys & below(TRACER), *args)
    traces[-1].define(result, op, *names)
    return result


fallbacks[TRACER] = record


def trace(function, *inputs):  # one may be given twice
    inputs = [x.as_strided(x.shape, x.strides) for x in inputs]
    traces.append(made := Trace(*inputs))
    try:
        with Guard(include=TRACER):
            made.result = made.value(function(*inputs))
    finally:
        traces.pop()
    return made
