"""What the activation statistics draw: outputs of layers during trainings that really run."""

import json

import numpy as np
import pytest
import torch

import readtorch as rt
from readtorch import viz
from readtorch.viz.record_activations import BINS, edges_for, plain, record_activations, shares


def training(lib, outputs=None):
    """A network, and a step that trains it; `outputs` collects what the last layer gives."""
    net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.Tanh(), lib.nn.Linear(2, 1)))
    with lib.no_grad():
        for parameter in net.parameters():
            parameter.copy_(lib.linspace(-1, 1, parameter.numel()).reshape(parameter.shape))
    optimizer = lib.optim.SGD(net.parameters(), lr=0.5)
    x = lib.linspace(-2, 2, 20).reshape(10, 2)

    def train(step):
        y = net(x)
        if outputs is not None:
            outputs.append(y.detach().numpy())
        loss = (y - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return net, train


@pytest.mark.parametrize("lib", [rt, torch], ids=["readtorch", "torch"])
def test_numbers_are_those_of_the_outputs(lib):
    outputs = []
    recorded = record_activations({"a": training(lib, outputs)}, steps=5)
    (run,) = recorded["runs"]
    assert json.loads(json.dumps(recorded)) == recorded
    assert run["layers"] == ["0", "1.0", "1.1"] and recorded["steps"] == len(outputs) == 5
    assert [of[2] for of in run["means"]] == [plain(y.mean()) for y in outputs]
    np.testing.assert_allclose([of[2] for of in run["deviations"]], [y.std() for y in outputs], rtol=1e-3)
    assert len(recorded["edges"]) == BINS + 1
    assert all(len(one) == BINS and abs(sum(one) - 1000) <= BINS for of in run["histograms"] for one in of)
    assert run["losses"][-1] < run["losses"][0]


def test_one_scale_for_all_runs_and_only_the_layers_asked_for():
    recorded = record_activations([("a", training(rt)), ("b", training(rt))], steps=2, layers=(rt.nn.Tanh,))
    assert [run["layers"] for run in recorded["runs"]] == [["1.0"], ["1.0"]]
    assert -1 < recorded["edges"][0] < recorded["edges"][-1] < 1
    assert recorded["runs"][0]["histograms"] == recorded["runs"][1]["histograms"]


def test_no_hook_stays_behind_not_even_after_an_error():
    net, train = training(rt)
    record_activations({"a": (net, train)}, steps=1)

    def fails(step):
        train(step)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        record_activations({"a": (net, fails)}, steps=1)
    assert not any(module._forward_hooks for module in net.modules())


def test_numbers_that_are_not_finite():
    net = rt.nn.Identity()
    recorded = record_activations({"a": (net, lambda step: net(rt.tensor([1.0, float("inf")])).sum())}, steps=1)
    (run,) = recorded["runs"]
    assert run["means"] == [[None]] and run["losses"] == [None] and run["layers"] == ["net"]
    assert sum(run["histograms"][0][0]) == 1000


def test_histograms():
    edges = edges_for([np.arange(1001.0)])
    assert edges[0] == pytest.approx(2.0) and edges[-1] == pytest.approx(998.0)
    assert shares(np.array([-50.0, 2.0, 500.0, 5000.0]), edges)[0 :: BINS - 1] == [500, 250]
    assert list(edges_for([np.ones(3)])[[0, -1]]) == [0.5, 1.5] and list(edges_for([np.empty(0)])[[0, -1]]) == [-1, 1]
    assert shares(np.empty(0), edges) == [0] * BINS


def test_what_is_refused():
    net, train = training(rt)
    with pytest.raises(ValueError, match="5 runs"):
        record_activations({str(i): (net, train) for i in range(5)})
    with pytest.raises(ValueError, match="0 steps"):
        record_activations({"a": (net, train)}, steps=0)
    with pytest.raises(ValueError, match="0 layers in 'a'"):
        record_activations({"a": (net, train)}, layers=rt.nn.ReLU)
    with pytest.raises(ValueError, match="no layer of 'a' was called"):
        record_activations({"a": (net, lambda step: None)}, steps=1)


def test_the_figure_carries_the_runs():
    figure = viz.activation_statistics({"a": training(rt)}, steps=4, step=-1)
    assert figure.step == 3 and figure.quantity == "deviations" and len(figure.data["runs"][0]["means"]) == 4
    assert "1.1" in figure.static_html()
