"""Which numbers and sizes become symbols, and which entry is asked first: graphs after each call, here and in PyTorch."""

import functools
import logging
import math
import random
import types

import pytest
import torch

import readtorch

LIBRARIES = torch, readtorch
TEXT = """
holder, table, items = Holder(), {}, [0]

def of_argument(x, n): return x * n
def of_attribute(x, o): return x * o.n
def of_element(x, l): return x * l[0]
def of_key(x, d): return x * d["n"]
def of_global(x): return x * N
def of_global_object(x): return x * holder.n
def of_global_key(x): return x * table["n"]
def of_global_element(x): return x * items[0]
def helper(x, n=2): return x * n
def of_default(x): return helper(x)
def of_keyword(x): return named(x)
def named(x, *, n=2): return x * n

def closure(n):
    def put(value):
        nonlocal n
        n = value
    return (lambda x: x * n), put
"""
PLACES = "argument attribute element key global global_object global_key global_element default keyword closure module".split()
NUMBERS = [
    (2, 3, 4, 5), (2.0, 3.0, 4.0, 5.0), (3, 2.0, 5.0), (3, 3.0, 4.0), (5, 1.0, 7.5), (2.0, 3, 4.0, 5), (0, 1, 2, 3), (1, 0, 7),
    (0.0, 1.0, 0.5), (math.inf, 2.0, 3.0), (2.0, 3.0, math.nan, 4.0, math.inf, 5.0),
]  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, logger="readtorch._dynamo")
    torch._dynamo.reset()


class Graphs:
    """A backend that counts graphs, and notes which of them runs."""

    def __init__(self, lib, dynamic=None):
        self.made, self.runs = 0, []
        self.compile = functools.partial(lib.compile, backend=self.keep, dynamic=dynamic)

    def keep(self, module, inputs):
        number = self.made
        self.made += 1

        def run(*inputs):
            self.runs.append(number)
            return module.forward(*inputs)

        return run


class Holder:
    pass


def scaler_of(lib):
    class Scaler(lib.nn.Module):
        def forward(self, x):
            return x * self.n

    return Scaler()


def world_of(lib, place, compile):
    """(the compiled call, what puts a number into its place)"""
    names = {"Holder": Holder}
    exec(TEXT, names)
    if place == "closure":
        function, put = names["closure"](2)
        return compile(function), put
    if place == "module":
        module = scaler_of(lib)
        return compile(module), lambda n: setattr(module, "n", n)
    thing, compiled = types.SimpleNamespace(list=[0], dict={}, object=Holder()), compile(names[f"of_{place}"])
    puts = {
        "argument": lambda n: setattr(thing, "n", n),
        "attribute": lambda n: setattr(thing.object, "n", n),
        "element": lambda n: thing.list.__setitem__(0, n),
        "key": lambda n: thing.dict.__setitem__("n", n),
        "global": lambda n: names.__setitem__("N", n),
        "global_object": lambda n: setattr(names["holder"], "n", n),
        "global_key": lambda n: names["table"].__setitem__("n", n),
        "global_element": lambda n: names["items"].__setitem__(0, n),
        "default": lambda n: setattr(names["helper"], "__defaults__", (n,)),
        "keyword": lambda n: setattr(names["named"], "__kwdefaults__", {"n": n}),
    }
    of_arguments = {"argument": "n", "attribute": "object", "element": "list", "key": "dict"}
    more = of_arguments.get(place)
    return (lambda x: compiled(x, getattr(thing, more)) if more else compiled(x)), puts[place]


def counts(lib, place, numbers, dynamic):
    """The graphs after each call."""
    graphs, found = Graphs(lib, dynamic), []
    call, put = world_of(lib, place, graphs.compile)
    for number in numbers:
        put(number)
        assert repr(call(lib.ones(1)).tolist()) == repr((lib.ones(1) * number).tolist())
        found.append(graphs.made)
    return found


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_number_that_changes(place, dynamic):
    for numbers in NUMBERS:
        torch._dynamo.reset()
        assert counts(readtorch, place, numbers, dynamic) == counts(torch, place, numbers, dynamic), numbers


@pytest.mark.parametrize("seed", range(8))
def test_random_numbers(seed):
    choices = random.Random(seed)
    place = choices.choice(PLACES)
    numbers = choices.choices([2, 3, 4, 0, 1, 2.0, 3.0, 1.5, -1.0], k=8)
    assert counts(readtorch, place, numbers, None) == counts(torch, place, numbers, None)


def sums(a, b):
    return a.sum() + b.sum()


def rows_of(a, b):
    return a * b.shape[0]


SIZES = [
    ((3, 3), (4, 4), (5, 6), (6, 6), (2, 9)),
    ((3, 4), (4, 4), (1, 4), (6, 6)),
    (((3, 3), 3), ((4, 4), 4), ((5, 6), 5), ((7, 7), 8)),
    ((3, 3), ((3, 2), 3), ((4, 5), 3), ((4, 4), 4)),
]


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("function", [sums, rows_of])
def test_sizes_that_are_equal(function, dynamic):
    """With dynamic=True they are one symbol as long as they are equal."""
    for shapes in SIZES:
        found = []
        for lib in LIBRARIES:
            torch._dynamo.reset()
            graphs = Graphs(lib, dynamic)
            compiled = graphs.compile(function)
            found.append([(compiled(*map(lib.ones, pair)).numel(), graphs.made) for pair in shapes])
        assert found[0] == found[1], shapes


def test_a_tensor_where_a_number_was():
    found = []
    for lib in LIBRARIES:
        graphs = Graphs(lib)
        compiled = graphs.compile(lambda x, n: x * n)
        found.append([])
        for other in (2, lib.ones(3), lib.ones(4), lib.ones(5), 2.0, 3.0):
            compiled(lib.ones(other.shape if hasattr(other, "shape") else 1), other)
            found[-1].append(graphs.made)
    assert found[0] == found[1]


def test_the_entry_that_was_used_last_is_asked_first():
    found = []
    for lib in LIBRARIES:
        graphs = Graphs(lib)
        compiled = graphs.compile(lambda x, n: x * n)
        for n in (2.0, 3.0, 2.0, 4.0, 2, 2.0, 2, 5.0, True, 2):
            compiled(lib.ones(3), n)
        found.append(graphs.runs)
    assert found[0] == found[1]
    assert found[1][:3] == [0, 1, 1]


def test_a_symbol_that_does_not_divide_is_guarded():
    def divided(x, a, b):
        try:
            return x * (a // b)
        except ZeroDivisionError:
            return x - 1

    compiled = readtorch.compile(divided, backend="eager")
    for a, b in ((6, 2), (7, 3), (8, 0), (9, 2), (9, 0), (8.0, 0.0), (8.0, 2.0)):
        assert compiled(readtorch.ones(1), a, b).tolist() == divided(readtorch.ones(1), a, b).tolist()


def on_two_sides(x, k):
    if x.sum() > 0:
        return x * k
    return x - k


def test_both_sides_of_a_branch_share_what_was_seen():
    found = []
    for lib in LIBRARIES:
        graphs = Graphs(lib)
        compiled = graphs.compile(on_two_sides)
        found.append([])
        for rows, sign, k in ((3, -1, 2.0), (4, 1, 2.0), (3, 1, 3.0), (3, -1, 4.0), (5, -1, 5.0), (5, 1, 6.0)):
            compiled(lib.full((rows,), float(sign)), k)
            found[-1].append(graphs.made)
    assert found[0] == found[1]


# ------------------------------------------------------------------------------------------ functions of numbers alone

OF_NUMBERS = {
    "a decision by a size": lambda x, n: 1 if x.shape[0] > 3 else 2,
    "a decision by a number": lambda x, n: x if n > 3 else 2,
    "a decision by a number itself": lambda x, n: 1 if n else 3,
    "a sum": lambda x, n: n + 1,
    "a quotient": lambda x, n: (n // 2, x.shape[0] / 2),
    "a negative": lambda x, n: -n,
    "the greater": lambda x, n: max(n, 3),
    "what is not used": lambda x, n: (n * 2, x)[1],
    "a comparison": lambda x, n: n > 3,
    "an equality": lambda x, n: n == 7,
    "an equality in a list": lambda x, n: [n, n == 4],
    "a size beside a number": lambda x, n: n < x.shape[0],
    "two sizes": lambda x, n: 1 if x.shape[0] == x.shape[1] else 2,
    "a size": lambda x, n: x.shape[0],
    "all sizes": lambda x, n: [x.shape, n],
    "the number": lambda x, n: (x, n),
    "a comparison with None": lambda x, n: n is None,
    "an operator for some": lambda x, n: x + 1 if n != 7 else x,
    "a comparison times a tensor": lambda x, n: x * (n == 7),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_arithmetic_of_numbers_is_an_operator(name):
    """So a function without any other is compiled, and with a comparison as its result once."""
    seen = []
    for lib in LIBRARIES:
        graphs = Graphs(lib, dynamic=True)
        compiled = graphs.compile(OF_NUMBERS[name])
        results = [compiled(lib.ones(*size), n) for size, n in (((5, 6), 7), ((7, 6), 9), ((8, 8), 11), ((5, 6), 7))]
        seen.append((graphs.made, [str(result) for result in results]))
    assert seen[0] == seen[1]
