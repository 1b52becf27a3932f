"""The module tree's model: the right dict for everything, sharing, and what is not registered."""

import pytest
import torch

import readtorch
from readtorch.viz.module_walk import walk_module

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])


def make(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = T.nn.Linear(3, 3)
            self.body = T.nn.Sequential(T.nn.Linear(3, 3, bias=False), T.nn.ReLU())
            self.body[0].weight = self.first.weight
            self.register_buffer("mean", T.zeros(3))
            self.register_buffer("cache", T.ones(2), persistent=False)
            self.register_parameter("gain", None)
            self.scale = T.ones(1)
            self.extra = [T.nn.Linear(1, 1)]
            self.depth = 2

    return Net()


def entries(root):
    yield root
    for child in root["children"]:
        yield from entries(child)


def by_path(record):
    return {entry["path"]: entry for entry in entries(record["root"])}


@LIBRARIES
def test_everything_is_in_the_dict_that_holds_it(T):
    net = make(T)
    for path, entry in by_path(walk_module(net)).items():
        owner_path, _, name = path.rpartition(".")
        if path:
            owner = net.get_submodule(owner_path)
            holder = vars(owner) if entry["lives_in"] == "__dict__" else vars(owner)[entry["lives_in"]]
            assert name in holder


@LIBRARIES
def test_the_tree_has_what_the_module_says_it_has(T):
    net = make(T)
    found = by_path(walk_module(net))
    kinds = lambda kind: {path for path, entry in found.items() if entry["kind"] == kind}
    parameters = {name for name, _ in net.named_parameters(remove_duplicate=False)}
    assert kinds("parameter") == parameters | {"gain", "body.0.bias"}  # and the two that are None
    assert kinds("buffer") == {name for name, _ in net.named_buffers()}
    assert kinds("module") == {name for name, _ in net.named_modules()}
    in_state = {
        path
        for path, entry in found.items()
        for name, value in entry["facts"]
        if name == "in state_dict()" and value.startswith("yes")
    }
    assert in_state == set(net.state_dict())


@LIBRARIES
def test_shared_parameters_name_each_other(T):
    found = by_path(walk_module(make(T)))
    assert found["first.weight"]["shared_with"] == ["body.0.weight"]
    assert found["body.0.weight"]["shared_with"] == ["first.weight"]
    assert found["first.bias"]["shared_with"] == []


@LIBRARIES
def test_warnings(T):
    net = make(T)
    net.first.bias.requires_grad_(False)
    found = by_path(walk_module(net))
    warned = {path for path, entry in found.items() if entry["warning"]}
    assert warned == {"scale", "extra", "first.bias"}


@LIBRARIES
def test_training_flag_and_a_module_used_twice(T):
    relu = T.nn.ReLU()
    net = T.nn.Sequential(relu, relu).eval()
    found = by_path(walk_module(net))
    assert ["training", "False"] in [list(fact) for fact in found["0"]["facts"]]
    assert found["0"]["shared_with"] == ["1"]


@LIBRARIES
def test_a_module_that_holds_itself_ends(T):
    net = T.nn.Sequential()
    vars(net)["_modules"]["me"] = net
    assert by_path(walk_module(net))["me"]["warning"]


def test_not_a_module():
    with pytest.raises(TypeError):
        walk_module(torch.ones(1))
    with pytest.raises(TypeError):
        walk_module(object())
