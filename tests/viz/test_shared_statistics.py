"""The model of the figure "Who shares a mean?" against PyTorch: one number changes, and the outputs that change share with it."""

import random

import pytest
import torch

from readtorch.viz.figure_kit import find
from readtorch.viz.figures import shared_statistics
from readtorch.viz.figures.shared_statistics import CELLS, CHANNELS, LAYERS, SIZES

FIGURE = find("shared_statistics")


def layer_of(inputs):
    """The layer that the figure's list names."""
    named = LAYERS[inputs["layer"]].replace("groups", inputs["groups"])
    return eval(f"torch.nn.{named}", {"torch": torch}).double()


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("groups", ["1", "2", "4"])
def test_the_outputs_that_change_share_with_the_number(layer, groups):
    generator = random.Random(groups)
    x = torch.randn(SIZES, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    for cell in generator.sample(range(CELLS), 8):
        inputs = FIGURE.read({"layer": layer, "groups": groups, "cell": cell})
        norm, changed = layer_of(inputs), x.clone()
        changed.view(-1)[cell] += 1
        different = (norm(changed) != norm(x)).flatten().tolist()
        assert FIGURE.model(inputs)["shared"] == different


@pytest.mark.parametrize("layer", LAYERS)
def test_what_the_layer_keeps(layer):
    inputs = FIGURE.read({"layer": layer})
    norm = layer_of(inputs)
    (_, _), (_, weight), (_, buffers) = FIGURE.model(inputs)["facts"]
    sizes = {str(tuple(p.shape)).replace(",)", ")") for p in norm.parameters()} or {"none"}
    assert sizes == {weight}
    assert (buffers == "none") == (not list(norm.buffers()))
    assert ("alone" in FIGURE.model(inputs)["facts"][1][0]) == (len(list(norm.parameters())) == 1)


def test_statistics_are_numbered_without_gaps():
    for layer in LAYERS:
        for groups in (1, 2, CHANNELS):
            numbers = {shared_statistics.statistic(layer, groups, cell) for cell in range(CELLS)}
            assert numbers == set(range(len(numbers)))
