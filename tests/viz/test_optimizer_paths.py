"""The figure "Five ways down" goes where PyTorch's optimizers go."""

import random

import pytest
import torch

from readtorch import viz
from readtorch.viz.figures import optimizer_paths as figure

MAKE = {
    "SGD": lambda p, lr, beta: torch.optim.SGD(p, lr=lr),
    "momentum": lambda p, lr, beta: torch.optim.SGD(p, lr=lr, momentum=beta),
    "Adagrad": lambda p, lr, beta: torch.optim.Adagrad(p, lr=lr),
    "RMSprop": lambda p, lr, beta: torch.optim.RMSprop(p, lr=lr),
    "Adam": lambda p, lr, beta: torch.optim.Adam(p, lr=lr, betas=(beta, 0.999)),
}
KINDS = pytest.mark.parametrize("kind", figure.OPTIMIZERS, ids=lambda kind: kind.name)
SURFACES = pytest.mark.parametrize("surface", figure.SURFACES)


def theirs(kind, inputs):
    p = torch.tensor([inputs["x"], inputs["y"]], dtype=torch.float64, requires_grad=True)
    optimizer = MAKE[kind.name]([p], kind.rate * inputs["rate"], inputs["momentum"])
    points = [p.tolist()]
    for _ in range(inputs["steps"]):
        optimizer.zero_grad()
        figure.SURFACES[inputs["surface"]][1](*p).backward()
        optimizer.step()
        points.append(p.tolist())
    return points


@KINDS
@SURFACES
@pytest.mark.parametrize("changed", [{}, {"rate": 0.3, "momentum": 0.5, "x": 1.2, "y": -0.7}])
def test_paths_are_pytorchs(kind, surface, changed):
    inputs = figure.FIGURE.read({"surface": surface, "steps": 60} | changed)
    mine, real = figure.path(kind, inputs)["points"], theirs(kind, inputs)
    assert mine == [pytest.approx(point, rel=1e-6, abs=1e-9) for point in real[: len(mine)]]
    assert len(mine) == 61 or max(map(abs, real[len(mine)])) > figure.FAR


@SURFACES
def test_the_gradients_are_those_of_the_losses(surface):
    gradient, loss, minima, _ = figure.SURFACES[surface]
    draw = random.Random(0)
    for _ in range(20):
        point = torch.tensor([draw.uniform(-2, 2), draw.uniform(-1, 3)], dtype=torch.float64, requires_grad=True)
        loss(*point).backward()
        assert gradient(*point.tolist()) == pytest.approx(point.grad.tolist())
    for minimum in minima:
        assert gradient(*minimum) == (0, 0) and loss(*minimum) == 0


def test_at_first_every_optimizer_arrives():
    paths = figure.FIGURE.result()["paths"]
    assert [one["name"] for one in paths] == list(MAKE)
    assert all(one["arrived"] for one in paths)


def test_what_the_sentence_says():
    assert "SGD has diverged at step" in figure.FIGURE.result(rate=10)["say"]
    assert figure.FIGURE.result(show="Adam", steps=1)["say"] == "After 1 step from (-1.5, 2): Adam has not arrived."
    assert figure.FIGURE.result(surface="wells", x=0, show="SGD")["paths"][0]["arrived"] is None


@pytest.mark.browser
@pytest.mark.slow
def test_the_start_can_be_dragged(visit, page_with):
    with visit(page_with(viz.figure("optimizer_paths"))) as seen:
        chart, x = seen.page.locator(".rt-chart"), seen.page.get_by_label("start x")
        box = chart.bounding_box()
        seen.page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.4 * box["height"])
        seen.page.mouse.down()
        first = float(x.input_value())
        seen.page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.4 * box["height"])
        seen.page.mouse.up()
        assert -1.5 < first < 0 < 0.8 < float(x.input_value())
        assert seen.problems == []
