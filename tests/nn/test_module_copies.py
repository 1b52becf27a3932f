"""Modules that are pickled and copied: what they share, what hooks become of, pickles of older versions."""
import pickle
from collections import OrderedDict

import readtorch


class Named(readtorch.nn.Module):
    """At the top of the file, so that pickle finds it."""

    def __init__(self):
        super().__init__()
        self.linear = readtorch.nn.Linear(2, 2)
        self.again = self.linear
        self.register_buffer("b", readtorch.ones(1), persistent=False)

    def forward(self, x):
        return self.linear(x)


def test_pickle_keeps_sharing_and_hooks():
    net = Named()
    net.register_forward_hook(print)
    loaded = pickle.loads(pickle.dumps(net))
    assert loaded.again is loaded.linear and loaded.linear.weight is loaded.again.weight
    assert type(loaded.linear.weight) is readtorch.nn.Parameter and loaded.linear.weight.requires_grad
    assert loaded._non_persistent_buffers_set == {"b"} and list(loaded._forward_hooks.values()) == [print]
    assert loaded.linear.weight.tolist() == net.linear.weight.tolist()


def test_setstate_fills_in_what_old_pickles_lack():
    net = Named()
    state = {k: v for k, v in net.__dict__.items() if not k.endswith("_hooks") and not k.startswith("_is_full")}
    state["_forward_hooks"] = state["_backward_hooks"] = OrderedDict()
    old = Named.__new__(Named)
    old.__setstate__(state)
    assert set(old.__dict__) == set(net.__dict__)
    assert old(readtorch.ones(1, 2)).shape == (1, 2)
