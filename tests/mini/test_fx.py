"""mini's FX where the milestone's program doesn't look, against torch.fx."""

import math

import pytest
from torch import fx as torch_fx
from torch import nn

from readtorch.mini import fx
from readtorch.mini.autograd import Tensor
from readtorch.mini.module import Linear, Module, Sequential


def two_attributes(x):
    s = x.shape
    return s * s + s + x.shape


class Uses(Module):
    def forward(self, x):
        return two_attributes(x)


def test_an_attribute_that_is_kept_is_one_node():
    ours = fx.symbolic_trace(Uses()).graph.nodes
    theirs = torch_fx.symbolic_trace(two_attributes).graph.nodes
    assert [n.op for n in ours] == [n.op for n in theirs]
    assert [n.target for n in ours] == [n.target for n in theirs]


def test_an_attribute_that_is_called_leaves_no_getattr():
    class Calls(Module):
        def forward(self, x):
            method = x.relu
            return method() + method()

    assert [n.target for n in fx.symbolic_trace(Calls()).graph.nodes][1:3] == ["relu", "relu"]


def compares(x, n):
    return x if n == 2 else x * n


def differs(x, n):
    return x if n != 2 else x * n


def searches(x, n):
    return x * n if n in (1, 2) else x


@pytest.mark.parametrize("function", [compares, differs, searches])
def test_a_comparison_is_no_silent_false(function):
    class Calls(Module):
        def forward(self, x, n):
            return function(x, n)

    with pytest.raises(TypeError, match="nobody knows"):
        fx.symbolic_trace(Calls())
    with pytest.raises(torch_fx.proxy.TraceError):
        torch_fx.symbolic_trace(function)


def far(inf):
    return inf * math.inf + inf * -math.inf


def test_numbers_without_a_literal_are_names_in_the_code():
    class Calls(Module):
        def forward(self, inf):
            return far(inf)

    ours, theirs = fx.symbolic_trace(Calls()), torch_fx.symbolic_trace(far)
    assert [n.op for n in ours.graph.nodes] == [n.op for n in theirs.graph.nodes]
    assert ours.code.endswith("mul_1 = inf_1 * -inf\n    add = mul + mul_1\n    return add")
    assert math.isnan(far(2.0)) and math.isnan(ours(2.0))  # torch.fx lets the input take the name inf, and finds 0


def test_nan_reaches_the_code():
    class Calls(Module):
        def forward(self, x):
            return x + math.nan

    assert math.isnan(fx.symbolic_trace(Calls())(2.0))


def test_a_path_with_a_number_in_it_is_asked_for_by_getattr():
    ours = Sequential(Linear(2, 2), Sequential(Linear(2, 2)))
    theirs = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    lines = torch_fx.symbolic_trace(theirs).code.strip().replace("input_1", "x").splitlines()
    traced, x = fx.symbolic_trace(ours), Tensor.of([[1.0, 2.0]])
    assert traced.code.splitlines()[1:] == [line.split(";")[0] for line in lines[2:]]
    assert traced(x).tolist() == ours(x).tolist()
