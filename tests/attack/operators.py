"""Attack on the operators: seeded calls with odd arguments, PyTorch's outcome beside ours.

    python -m tests.attack.operators --count 30000 --seed 1 --report tests/attack/results/operators.json

A call is an operator of both libraries, one usable set of arguments, and some of them made odd: huge, negative and nan numbers,
empty and 0-dimensional tensors, wrong dtypes and sizes, lying indices, the same tensor twice. It is made as `ops.aten.x.y`, as the
Python function or method, in place, or with out=. A call fails if the process dies or hangs where PyTorch's does not, if it takes
more than 1 GB, or writes or reads outside a tensor.
"""

import argparse
import collections
import functools
import json
import random
import sys

import torch

from readtorch.aten.dispatcher import registry
from readtorch.aten.native_function import packets
from tests.attack import calls, children, limits

SECONDS = 20  # of silence, then a call hangs

# Calls that look outside the arguments, wait for others, or change the library itself.
NOT_ATTACKED = {"aten::record_stream", "aten::_pin_memory", "aten::pin_memory", "aten::is_pinned"}

# What these answer is a matter of chance, of what memory held, or of a free choice.
NOT_COMPARED = (
    "rand",
    "normal",
    "empty",
    "bernoulli",
    "multinomial",
    "poisson",
    "dropout",
    "exponential",
    "geometric",
    "cauchy",
    "uniform",
    "random",
    "resize",
    "svd",
    "eig",
    "qr",
    "_new",
    "new_",
    "rrelu",
    "binomial",
    "dirichlet",
    "gamma",
    "set_",
)


@functools.cache
def operators():
    """The names of the operators that both have with the same arguments."""
    theirs = {
        s.name + (f".{s.overload_name}" if s.overload_name else ""): [a.name for a in s.arguments]
        for s in torch._C._jit_get_all_schemas()
    }
    return sorted(
        name
        for name, operator in registry.items()
        if name not in NOT_ATTACKED
        and [a.name.rstrip("_") for a in operator.schema.arguments] == [a.rstrip("_") for a in theirs.get(name, ["-"])]
    )


@functools.cache
def faces():
    """Operator name -> [(module, Python name, whether it is a method)]."""
    found = collections.defaultdict(list)
    for (module, name), packet in packets.items():
        for operator in packet.overloads:
            if packet.is_function and operator not in packet.hidden and hasattr(place_of(torch, module), name):
                found[operator.name].append((module, name, False))
            if packet.is_method and operator not in packet.hidden and hasattr(torch.Tensor, name):
                found[operator.name].append((module, name, True))
    return found


MODULES = {"torch": "", "nn": "_C._nn"}  # others are called as they are


def place_of(library, module):
    """Where a library has the Python functions of a module."""
    for part in filter(None, MODULES.get(module, module).split(".")):
        library = getattr(library, part)
    return library


class Call:
    """The call that belongs to a seed and a number."""

    def __init__(self, seed, number):
        chance = random.Random(f"{seed} {number}")
        self.name = chance.choice(operators())
        self.schema = registry[self.name].schema
        self.values = self.usable(chance)
        self.make_odd(chance)
        found = faces()[self.name]
        self.face = chance.choice(found) if found and chance.random() < 0.6 else None
        self.out = None
        packet = packets.get((self.face[0], self.face[1])) if self.face else None
        if packet and not self.face[2] and registry[self.name] in packet.out and chance.random() < 0.3:
            self.out = calls.odd_tensor(
                chance, {"t": "float32", "s": [2, 3], "v": [0.0], "how": chance.choice(("own", "own", "guarded"))}
            )

    def usable(self, chance):
        """Arguments by name, before they are made odd: those of calls.json, or by the schema's types."""
        arguments = self.schema.arguments
        known = calls.usable().get(self.name)
        if known is None:
            optional = chance.random() < 0.7
            return {a.name: calls.plain_value(chance, a.type) for a in arguments if not (optional and a.has_default)}
        return dict(known)

    def make_odd(self, chance):
        arguments = [a for a in self.schema.arguments if a.type.base not in ("Generator", "Device")]
        if not arguments:
            return
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            a = chance.choice(arguments)
            tensors = [v for v in self.values.values() if isinstance(v, dict) and "t" in v]
            self.values[a.name] = calls.odd_value(chance, a.type, self.values.get(a.name), tensors)

    def __str__(self):
        face = "ops" if self.face is None else f"{'Tensor' if self.face[2] else self.face[0]}.{self.face[1]}"
        out = "" if self.out is None else f", out={json.dumps(self.out)}"
        return f"{self.name} as {face}: {json.dumps(self.values)}{out}"

    def run(self, library, side):
        """Calls it with this library's arguments."""
        positional = []
        keywords = {}
        for a in self.schema.arguments:
            if a.name not in self.values:
                continue
            value = side.make(self.values[a.name])
            if a.keyword_only or len(positional) < self.schema.arguments.index(a):
                keywords[a.name] = value
            else:
                positional.append(value)
        if self.out is not None:
            keywords["out"] = side.make(self.out)
        return self.function(library, positional)(*positional, **keywords)

    def function(self, library, positional):
        if self.face is None:
            packet = getattr(library.ops.aten, self.schema.name)
            return getattr(packet, self.schema.overload or "default")
        module, name, is_method = self.face
        return getattr(library.Tensor if is_method else place_of(library, module), name)


def attack(seed, number, report):
    call = Call(seed, number)
    compared = not any(word in call.name for word in NOT_COMPARED)
    calls.judge(report, lambda side: call.run(side.library, side), str(call), compared)


def run(seed, numbers):
    """Yields (number, end) of every call."""
    yield from children.judged(
        "tests.attack.operators", ["--seed", str(seed)], numbers, SECONDS, lambda n: str(Call(seed, n))
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report")
    parser.add_argument("--log", help="where each call is written, a line of JSON each")
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    if given.child:
        torch.set_num_threads(1)
        limits.allow_more_memory(limits.GIGABYTE * 2)
        return children.serve(lambda number, report: attack(given.seed, number, report))
    numbers = range(given.first, given.first + given.count)
    ends = children.in_parallel(functools.partial(run, given.seed), numbers, given.jobs, given.log)
    reached = {end["call"].partition(" as ")[0] for end in ends}
    return children.report(ends, {"seed": given.seed, "operators": len(reached)}, given.report)


if __name__ == "__main__":
    sys.exit(main())
