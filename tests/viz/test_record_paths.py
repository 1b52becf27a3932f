"""What the loss-surface paths draw is where optimizers go: real steps of both libraries, and contours of the loss."""

import json

import pytest
import torch

import readtorch
from readtorch import viz
from readtorch.viz.record_paths import SHARES, record_paths

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])
BOX = ((-2, 2), (-2, 2))


def bowl(x, y):
    return x * x + 2 * y * y


@LIBRARIES
def test_plain_steps_down_a_bowl(T):
    recorded = record_paths(
        bowl,
        {"sgd": lambda params: T.optim.SGD(params, 0.25)},
        T.tensor([1.0, 1.0], dtype=T.float64),
        *BOX,
        steps=2,
        minimum=(0, 0),
    )
    assert json.loads(json.dumps(recorded)) == recorded and recorded["minimum"] == [0, 0]
    (path,) = recorded["paths"]
    assert (path["label"], path["optimizer"], path["evaluations"]) == ("sgd", "SGD", 2)
    assert path["points"] == [[1, 1], [0.5, 0], [0.25, 0]] and path["losses"] == [3, 0.25, 0.0625]


def test_both_libraries_go_the_same_way():
    ways = []
    for T in (torch, readtorch):
        O = T.optim
        recorded = record_paths(
            lambda x, y: (1 - x) ** 2 + 100 * (y - x * x) ** 2,
            [
                ("momentum", lambda params: O.SGD(params, 1e-3, 0.9)),
                ("adam", lambda params: O.Adam(params, 0.05)),
                ("lbfgs", lambda params: O.LBFGS(params, max_iter=1, max_eval=25, line_search_fn="strong_wolfe")),
            ],
            T.tensor([-1.5, 2.0], dtype=T.float64),
            *BOX,
            steps=20,
        )
        ways.append([(path["points"], path["evaluations"]) for path in recorded["paths"]])
    assert ways[0] == ways[1]
    assert ways[0][2][1] > 20, "a line search asks more often than it steps"


def test_contours_lie_where_the_loss_has_their_level():
    recorded = record_paths(bowl, {"o": lambda params: readtorch.optim.SGD(params)}, (1, 1), *BOX, steps=1)
    assert len(recorded["contours"]) == len(SHARES)
    for contour in recorded["contours"]:
        heights = [bowl(x, y) for line in contour["lines"] for x, y in line]
        assert heights and max(abs(height - contour["level"]) for height in heights) < 0.01


def test_what_leaves_the_numbers_is_left_out():
    (path,) = record_paths(bowl, {"o": lambda params: readtorch.optim.SGD(params, 1e200)}, (1, 1), *BOX, 3)["paths"]
    assert path["points"][0] == [1, 1] and path["points"][-1] is None and path["losses"][-1] is None


def test_each_optimizer_says_how_it_is_set_and_what_is_to_be_seen():
    O = readtorch.optim
    recorded = record_paths(
        bowl,
        {
            "plain": lambda params: O.SGD(params, 0.1),
            "momentum": lambda params: O.SGD(params, 0.1, momentum=0.9),
            "adam": lambda params: O.Adam(params),
        },
        (1, 1),
        *BOX,
        1,
        about={"momentum": "It rolls on."},
    )
    assert [path["settings"] for path in recorded["paths"]] == ["lr=0.1", "lr=0.1, momentum=0.9", "lr=0.001"]
    plain, momentum, adam = (path["about"] for path in recorded["paths"])
    assert plain.startswith("Stochastic gradient descent") and momentum == "It rolls on."
    assert "mean of the gradient" in adam, "what it does, not which flags it has"
    with pytest.raises(ValueError, match="no optimizer has the label 'SGD'"):
        record_paths(bowl, {"plain": lambda params: O.SGD(params, 0.1)}, (1, 1), *BOX, 1, about={"SGD": "?"})


def test_too_many_and_not_callable():
    sgd = lambda params: readtorch.optim.SGD(params)
    with pytest.raises(ValueError, match="at most 10"):
        record_paths(bowl, [(str(i), sgd) for i in range(11)], (1, 1), *BOX)
    for steps in (0, 501):
        with pytest.raises(ValueError, match="1 to 500"):
            record_paths(bowl, {"o": sgd}, (1, 1), *BOX, steps)
    for bad in ({}, {"o": 3}, [("a", "b", "c")]):
        with pytest.raises(TypeError, match="expected a dict"):
            record_paths(bowl, bad, (1, 1), *BOX)


def test_the_figure_carries_the_paths():
    figure = viz.loss_surface(bowl, {"o": lambda params: readtorch.optim.SGD(params, 0.25)}, (1, 1), *BOX, 3, step=3)
    assert (figure.step, figure.hidden, figure.data["steps"]) == (3, [], 3)
    assert figure.data["paths"][0]["points"][1] == [0.5, 0] and "0.0625" in figure.static_html()
