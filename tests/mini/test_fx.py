"""mini's FX where the milestone's program doesn't look, against torch.fx."""

from torch import fx as torch_fx

from readtorch.mini import fx
from readtorch.mini.module import Module


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
