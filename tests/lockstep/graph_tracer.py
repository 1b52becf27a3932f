"""A mode that builds a graph while the program runs, prints it, drops what is not needed, and runs it again on other numbers."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map


class Name(str):
    """Stands in a recorded call where a tensor was."""


class Tracer(TorchDispatchMode):
    def __init__(self, *inputs):
        super().__init__()
        self.names, self.lines, self.constants, self.count = {}, [], {}, 0
        self.inputs = [self.name(t, f"in{i}") for i, t in enumerate(inputs)]

    def name(self, t, text):
        # An id is a name while its tensor lives. What has the same id later is some call's result, and named again.
        self.count += 1
        self.names[id(t)] = Name(text)
        return self.names[id(t)]

    def reference(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.names:
            self.constants[self.name(value, f"const{len(self.constants)}")] = value
        return self.names[id(value)]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        args_, kwargs_ = tree_map(self.reference, (args, kwargs or {}))
        result = func(*args, **(kwargs or {}))
        leaves, spec = tree_flatten(result)
        outputs = [self.name(t, f"v{self.count}") if isinstance(t, torch.Tensor) else t for t in leaves]
        self.lines.append((outputs, spec, func, args_, kwargs_))
        return result

    def needed_for(self, *results):
        """The lines without which the results could not be computed."""
        wanted, lines = {self.names[id(t)] for t in results}, []
        for line in reversed(self.lines):
            if wanted & set(line[0]) or line[2]._schema.is_mutable:
                wanted |= {n for n in tree_flatten(line[3:])[0] if isinstance(n, Name)}
                lines.insert(0, line)
        return lines


def show(lines):
    for outputs, _, func, args, kwargs in lines:
        given = [str(a) for a in args] + [f"{k}={v}" for k, v in kwargs.items()]
        print(f"    {', '.join(map(str, outputs))} = {func}({', '.join(given)})")


def replay(tracer, lines, inputs, *results):
    values = {**tracer.constants, **dict(zip(tracer.inputs, inputs))}
    for outputs, spec, func, args, kwargs in lines:
        args, kwargs = tree_map(lambda a: values[a] if isinstance(a, Name) else a, (args, kwargs))
        leaves = tree_flatten(func(*args, **kwargs))[0]
        values.update((n, v) for n, v in zip(outputs, leaves) if isinstance(n, Name))
    return [values[tracer.names[id(t)]] for t in results]


scale = torch.tensor([1.0, 10.0])


def program(x, y):
    unused = (x + y).cos()
    h = torch.tanh(x @ y.t()) * scale
    values, _ = torch.sort(h, dim=0, descending=True)
    h = torch.cat([values, torch.ones(1, 2)]).clamp(min=0.5)
    return h.softmax(1), h.std(0, correction=1), unused.shape


torch.manual_seed(0)
x, y = torch.randn(2, 3), torch.randn(2, 3)
with Tracer(x, y) as tracer:
    probabilities, deviation, _ = program(x, y)
print(len(tracer.lines), "calls")
lines = tracer.needed_for(probabilities, deviation)
print(len(lines), "needed for both results")
show(lines)
print("needed for the first", len(tracer.needed_for(probabilities)))
again = replay(tracer, lines, (x, y), probabilities, deviation)
print("same numbers again:", torch.equal(again[0], probabilities), torch.equal(again[1], deviation))
other = torch.randn(2, 3), torch.randn(2, 3)
for ours, theirs in zip(replay(tracer, lines, other, probabilities, deviation), program(*other)):
    print("other numbers:", torch.equal(ours, theirs), ours.flatten().tolist())

w = torch.randn(3, requires_grad=True)
with Tracer(x) as tracer:
    (gradient,) = torch.autograd.grad((x * w).exp().sum(), w)
print("a backward pass is a graph, too:")
show(tracer.needed_for(gradient))
