"""mini's tracer records what PyTorch's does, and its programs compute the same."""

import random

import pytest
import torch

from readtorch.mini.dispatcher import TRACER, Tensor, thread
from readtorch.mini.record import trace, traces


def straight(x):
    return x * x + x * 2


def in_place(x):
    y = x * 3
    y += x
    y *= y
    return y + 1


def frozen(x):
    return x * 2 if x.shape[0] > 2 else x * x + x


def unused(x):
    x + x
    return x * x


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("function", [straight, in_place, frozen], ids=lambda f: f.__name__)
def test_the_same_operators_and_results_as_pytorchs(function):
    choose = random.Random(0)
    for example in ([1.0, 2.0], [-1.0, 0.5, 2.0]):
        mine, theirs = trace(function, Tensor.of(example)), torch.jit.trace(function, torch.tensor(example))
        kinds = [
            node.kind().removeprefix("aten::") for node in theirs.graph.nodes() if node.kind().startswith("aten::")
        ]
        assert [what.name for _, what, names in mine.nodes if names] == kinds
        for size in (1, 4):
            values = [float(choose.randint(-5, 5)) for _ in range(size)]
            assert mine(Tensor.of(values)).tolist() == theirs(torch.tensor(values)).tolist()


def test_what_is_not_used_is_recorded_all_the_same():
    assert [what.name for _, what, names in trace(unused, Tensor.of([1.0])).nodes] == ["add", "mul"]


def test_a_tensor_from_outside_is_a_constant_that_is_shared():
    total = Tensor.of([1.0, 1.0])
    mine = trace(lambda x: x + total, Tensor.of([1.0, 2.0]))
    total.write([11.0, 11.0])  # whichever of mini's classes it is: later ones have a += of their own
    assert mine(Tensor.of([0.0, 0.0])).tolist() == [11.0, 11.0]


def test_an_error_ends_the_trace():
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: 1 / 0, Tensor.of([1.0]))
    assert traces == [] and not thread.included & TRACER


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_tensor_given_twice_is_two_inputs():
    def product(x, y):
        return x * y

    one = Tensor.of([1.0])
    mine = trace(product, one, one)
    theirs = torch.jit.trace(product, (same := torch.ones(1), same))
    found = mine(Tensor.of([2.0]), Tensor.of([3.0])).tolist()
    assert found == theirs(torch.tensor([2.0]), torch.tensor([3.0])).tolist() == [6.0]
