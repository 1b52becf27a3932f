"""The figure of `load_state_dict` against PyTorch's: what is raised or returned, word for word, and what has been copied."""

import random

import pytest
import torch

from readtorch import viz
from readtorch.viz.figure_kit import find
from readtorch.viz.figures.load_state_dict import CHECKPOINTS, NAMES, OWN, read_checkpoint
from readtorch.viz.inputs import Refusal

FIGURE = find("load_state_dict")
MARK = 5.0


def net():
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))


def in_pytorch(saved, strict):
    """What is said, whether it is an error, and the names of the tensors that are loaded."""
    model = net()
    state = {name: torch.tensor(MARK).expand(shape) for name, shape in saved.items()}
    try:
        lines, raised = [repr(model.load_state_dict(state, strict=strict))], False
    except RuntimeError as error:
        lines, raised = [line.strip() for line in f"RuntimeError: {error}".splitlines()], True
    return lines, raised, [name for name, own in model.state_dict().items() if (own == MARK).all()]


def assert_as_pytorch(inputs):
    result = FIGURE.result(**inputs)
    lines, raised, loaded = in_pytorch(read_checkpoint(result["written"]), inputs.get("strict", True))
    assert (result["lines"], result["raised"]) == (lines, raised), inputs
    assert [row["name"] for row in result["rows"] if row["verdict"] == "copied"] == loaded, inputs


def test_the_model_is_the_figures():
    assert {name: list(value.shape) for name, value in net().state_dict().items()} == OWN
    assert NAMES.keys() - CHECKPOINTS.keys() == {"own"}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_ready_checkpoints(checkpoint, strict):
    assert_as_pytorch({"checkpoint": checkpoint, "strict": strict})


def test_random_checkpoints():
    generator, raised, returned = random.Random(0), 0, 0
    for _ in range(1500):
        inputs = FIGURE.random_inputs(generator)
        try:
            result = FIGURE.result(**inputs)
        except Refusal:
            continue
        assert_as_pytorch(inputs)
        raised, returned = raised + result["raised"], returned + (not result["raised"])
    assert raised > 300 and returned > 100


@pytest.mark.parametrize(
    "line",
    [
        "0.weight 3 4",
        "0.weight: 3, 4",
        "0.weight (3, 4)",
        '"0.weight": [3, 4],',
        "0.weight torch.Size([3, 4])",
        " 0.weight:[3,4] ",
    ],
)
def test_shapes_as_people_write_them(line):
    assert read_checkpoint(line) == {"0.weight": [3, 4]}
    assert read_checkpoint(f"x\n\n{line};y 0") == {"x": [], "0.weight": [3, 4], "y": [0]}


@pytest.mark.parametrize("line", ["0.weight = 3", "größe 3", "a b", "x 12345", "x 1 2 3 4 5 6", "x -1"])
def test_other_lines_are_refused(line):
    with pytest.raises(Refusal, match="A line is a name"):
        read_checkpoint(line)


@pytest.mark.browser
@pytest.mark.slow
def test_typing_a_checkpoint(visit, page_with):
    with visit(page_with(viz.figure("load_state_dict"))) as seen:
        page, figure = seen.page, seen.page.locator(".rt-fig")
        said, area = figure.locator(".rt-ld-said"), figure.locator("textarea")
        assert "size mismatch for 2.weight" in said.inner_text()
        area.fill("0.weight 3 4")
        area.press("End")
        page.keyboard.type("\n0.bia")
        assert '"0.bia"' in said.inner_text() and figure.locator("select").input_value() == "own"
        page.keyboard.type("s 3\n2.weight 2 3\n2.bias 2")
        assert said.inner_text() == "<All keys matched successfully>"
        assert area.input_value().splitlines()[1:] == ["0.bias 3", "2.weight 2 3", "2.bias 2"]
        for key in ["ArrowUp"] * 3 + ["Home"] + ["Delete"] * 2 + ["a", "b", ".", "p", ","]:  # in the middle, too
            page.keyboard.press(key)
        assert "Not understood: ab.p,weight 3 4" in figure.locator(".rt-refusal").inner_text()
        page.keyboard.press("Backspace")
        assert '"ab.pweight"' in said.inner_text()
        page.keyboard.press("Control+z")
        assert '"ab.weight"' in said.inner_text()
        area.fill("2.bias 2")
        page.keyboard.press("End")
        page.keyboard.type(" ?")
        assert "Not understood: 2.bias 2 ?" in figure.locator(".rt-refusal").inner_text()
        page.keyboard.press("Backspace")
        figure.get_by_label("strict").uncheck()
        area.fill("2.bias 2")
        assert said.inner_text().startswith("_IncompatibleKeys(missing_keys=['0.weight', ")
