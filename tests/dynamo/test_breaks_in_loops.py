"""A graph break in a loop: where PyTorch resumes from within, so does readtorch, with the same graphs."""

import contextlib
import io

import pytest
import torch

import readtorch as rt


def early_return(T):
    def f(x):
        x = T.relu(x)
        for i in range(2):
            x = x * 2
            print("step")
            if i > 5:
                return x
        return T.sin(x)

    return f


def with_the_index(T):
    def f(x):
        for i in range(1, 9, 2):
            x = x * i
            print(i)
            if i > 50:
                return x
            x = x + 1
        return T.sin(x)

    return f


def two_loops(T):
    def f(x):
        for i in range(2):
            for j in range(2):
                x = x + i * j
                print(i, j)
                if j > 5:
                    return x
        return x.cos()

    return f


def recognized(T):
    def f(x):
        for i in range(3):
            x = x * 2
            print(i)
        return x

    return f


def until_it_returns(T):
    def f(x):
        n = 0
        while True:
            x = x * 2
            print("s")
            n += 1
            if n == 2:
                return T.sin(x)

    return f


PROGRAMS = [early_return, with_the_index, two_loops, recognized, until_it_returns]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graphs(program):
    seen = []
    for T in (torch, rt):
        graphs, function = [], program(T)

        def backend(module, _):
            calls = [node for node in module.graph.nodes if node.op.startswith("call")]
            graphs.append([getattr(node.target, "__name__", node.target) for node in calls])
            return module.forward

        compiled, said = T.compile(function, backend=backend), io.StringIO()
        with contextlib.redirect_stdout(said):
            results = [compiled(T.arange(3.0)).tolist() for _ in range(2)]
            expected = function(T.arange(3.0)).tolist()
        assert results == [expected] * 2 or pytest.approx(results[0]) == expected
        seen.append((graphs, said.getvalue()))
    assert seen[0] == seen[1]


def test_an_iterator_that_others_see():
    """It stays as Python has it: what the function takes from it is gone for its caller."""

    def f(x, numbers):
        return x + next(numbers)

    numbers, compiled = iter(range(5)), rt.compile(f, backend="eager")
    assert [compiled(rt.zeros(()), numbers).item() for _ in range(3)] == [0, 1, 2] and next(numbers) == 3
