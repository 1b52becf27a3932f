"""The figure "A signal through a deep network" draws PyTorch's weights and computes what PyTorch computes."""

import math
import random

import pytest
import torch

from readtorch import viz
from readtorch.viz.figures import signal_through_depth as figure

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "none": lambda z: z}
NOISE = 1e-5  # of the scale: below it a difference is made by rounding, which depends on the order of sums


def network(inputs):
    """The figure's program, as one would write it."""
    torch.manual_seed(inputs["seed"])
    x = torch.randn(figure.SAMPLES, inputs["width"])
    make = lambda: torch.nn.Linear(inputs["width"], inputs["width"], bias=inputs["bias"] != "none")  # noqa: E731
    layers = [make() for _ in range(inputs["depth"])]
    gain = figure.exact_gain(inputs["gain"])
    with torch.no_grad():
        for layer in layers:
            if not math.isclose(gain * math.sqrt(3), 1):
                layer.weight *= gain * math.sqrt(3)
            if inputs["bias"] == "zero":
                layer.bias.zero_()
    return x, layers


def curves(inputs):
    x, layers = network(inputs)
    scale, difference = [], []
    for layer in layers:
        z = layer(x)
        scale.append(z.square().mean().sqrt().item())
        difference.append(z.std(0).mean().item())
        x = ACTIVATIONS[inputs["act"]](z)
    z.sum(1).mean().backward()
    return scale, difference, [layer.weight.grad.square().mean().sqrt().item() for layer in layers]


@pytest.mark.parametrize("seed", range(12))
def test_the_curves_are_pytorchs(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed)) | {"depth": random.Random(seed).randint(1, 12)}
    mine, theirs = figure.model(inputs), curves(inputs)
    assert mine["scale"] == pytest.approx(theirs[0], rel=1e-4)
    for apart, expected, scale in zip(mine["difference"], theirs[1], theirs[0], strict=True):
        assert apart == pytest.approx(expected, rel=1e-2 if expected > NOISE * scale else 10, abs=1e-7 * scale)
    assert mine["gradient"] == pytest.approx(theirs[2], rel=1e-3)


@pytest.mark.parametrize("bias", ["drawn", "none"])
def test_the_weights_of_a_linear_layer_have_pytorchs_bits(bias):
    inputs = figure.FIGURE.read({"bias": bias, "width": 24, "depth": 5, "seed": 3})
    x, layers = network(inputs)
    mine, weights = figure.network(inputs, figure.exact_gain(inputs["gain"]))
    assert torch.allclose(torch.tensor(mine), x, atol=1e-6)
    for (weight, its_bias), layer in zip(weights, layers, strict=True):
        assert weight.tobytes() == layer.weight.detach().numpy().tobytes()
        if bias == "drawn":
            assert its_bias.tobytes() == layer.bias.detach().numpy().tobytes()


def test_what_the_chapter_says_of_the_default():
    """The scale stays, the differences end in rounding, the first gradient is lost."""
    result = figure.FIGURE.result()
    assert result["scale"][-1] == pytest.approx(math.sqrt(0.4 / 64), rel=0.1)
    assert result["difference"][-1] < 1e-7 * result["scale"][-1]
    assert result["gradient"][0] < 1e-10 * result["gradient"][-1]
    kept = figure.FIGURE.result(gain=1.414, bias="zero")
    assert 0.3 < kept["scale"][-1] / kept["scale"][0] < 3 and 0.1 < kept["gradient"][0] / kept["gradient"][-1] < 10


def test_what_cannot_be_drawn_is_said():
    one = figure.FIGURE.result(depth=1)
    assert one["say"].startswith("1 layer of 64") and "Exactly 0" not in one["say"]
    lost = figure.FIGURE.result(gain=0.2, act="sigmoid", depth=50)
    first = lost["difference"].index(0) + 1
    assert f"Exactly 0, and therefore not drawn: the difference of layers {first} to 50" in lost["say"]


def test_a_gain_may_be_called_by_its_name():
    gains = [figure.FIGURE.read({"gain": name})["gain"] for name in ("1/√3", "√2", "5/3", "1.414")]
    assert gains == [0.577, 1.414, 1.667, 1.414]
    with pytest.raises(ValueError, match="from 0.2 to 3, or 1/√3, √2, 5/3."):
        figure.FIGURE.read({"gain": "√5"})


@pytest.mark.parametrize(
    "x, words", [(0.0834, "0.083"), (1.649, "1.6"), (120, "120"), (3.14e-12, "3.1e-12"), (0, "0.0")]
)
def test_short_numbers(x, words):
    assert figure.short(x) == words


@pytest.mark.browser
@pytest.mark.slow
def test_undo_goes_back_over_layers_before_it_goes_back_over_inputs(visit, page_with):
    with visit(page_with(viz.figure("signal_through_depth"))) as seen:
        gain, chart = seen.page.get_by_label("gain", exact=True).first, seen.page.locator(".rt-chart")
        gain.fill("sqrt(2)")
        gain.press("Enter")
        chart.focus()
        seen.page.keyboard.press("Home")
        seen.page.keyboard.press("Control+z")
        assert (gain.input_value(), chart.get_attribute("aria-valuenow")) == ("1.414", "30")
        seen.page.keyboard.press("Control+z")
        assert gain.input_value() == "0.577"
        assert seen.problems == []
