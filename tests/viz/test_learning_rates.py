"""The figure "The rate that each step uses" gives PyTorch's rates, also after a break, and PyTorch's refusals."""

import random
import warnings

import pytest
import torch

from readtorch import viz
from readtorch.viz.figures import learning_rates as figure
from readtorch.viz.inputs import Refusal

NAMES = pytest.mark.parametrize("name", list(figure.SCHEDULERS))


def theirs(inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return figure.computed(inputs, torch)


@pytest.mark.parametrize("seed", range(60))
def test_the_rates_are_pytorchs(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed))
    try:
        mine = figure.model(inputs)
    except Refusal as refusal:
        with pytest.raises((ValueError, ZeroDivisionError)) as error:
            theirs(inputs)
        assert str(refusal) == f"PyTorch raises {error.type.__name__}: {error.value}"
        return
    rates, broken, again, made = theirs(inputs)
    assert mine["rates"] == pytest.approx(rates, rel=1e-12, abs=1e-15)
    assert mine["broken"] == (broken and pytest.approx(broken, rel=1e-12, abs=1e-15))
    for trail, expected in (("made", made), ("again", again)):
        assert mine[trail] == [[name, pytest.approx(rate, rel=1e-12, abs=1e-15)] for name, rate in expected]


@pytest.mark.parametrize("way", figure.WAYS)
def test_only_one_way_to_resume_is_right_for_all(way):
    wrong = [
        bool(figure.FIGURE.result(program=one, how="chained", stop=6, way=way)["wrong"]) for one in figure.PROGRAMS[:6]
    ]
    assert any(wrong) == (way != "both")


@NAMES
def test_every_scheduler_takes_what_pytorchs_takes(name):
    """The arguments, their order and their defaults."""
    import inspect

    theirs = list(inspect.signature(getattr(torch.optim.lr_scheduler, name)).parameters.values())[1:-1]
    for mine, one in zip(figure.SCHEDULERS[name], theirs, strict=True):
        assert mine.name == one.name
        assert mine.default == (figure.REQUIRED if one.default is one.empty else one.default)


@pytest.mark.parametrize(
    "program, words",
    [
        ("", "one to 3 schedulers"),
        ("StepLR(1); StepLR(1); StepLR(1); StepLR(1)", "one to 3 schedulers"),
        ("StepLR 5", "is no call such as"),
        ("Step(5)", "There is no Step here"),
        ("StepLR()", "StepLR needs step_size."),
        ("StepLR(5, size=3)", "StepLR has no argument size here."),
        ("StepLR(5, step_size=3)", "StepLR got step_size twice."),
        ("StepLR(1, 2, 3)", "at most 2 arguments"),
        ("StepLR(0)", "step_size of StepLR takes a whole number from 1 to 1,000 here."),
        ("StepLR(2.0)", "a whole number"),
        ("MultiStepLR(3)", "a list of whole numbers"),
        ("MultiStepLR([])", "are numbers, or a list of numbers"),
        ("StepLR(True)", "are numbers, or a list of numbers"),
        ("StepLR(open('x'))", "are numbers, or a list of numbers"),
        ("LinearLR(0)", "PyTorch raises ValueError: Starting multiplicative factor"),
        ("ConstantLR(0, 3)", "PyTorch raises ZeroDivisionError: float division by zero"),
    ],
)
def test_what_is_no_program_is_refused(program, words):
    with pytest.raises(Refusal) as refusal:
        figure.FIGURE.result(program=program, how="chained")
    assert words in str(refusal.value)


def test_a_rate_below_zero_is_said():
    result = figure.FIGURE.result(program=figure.PROGRAMS[-1], how="chained", epochs=12)
    assert (
        min(result["rates"]) < 0
        and "It is negative for the first time in epoch 8: such a step climbs." in result["say"]
    )


def test_one_scheduler_needs_no_milestones():
    assert figure.FIGURE.result(program="StepLR(3)")["made"] == [["StepLR", 0.8]]
    with pytest.raises(Refusal, match="Sequential Schedulers expects"):
        figure.FIGURE.result(milestones=[2, 4])
    with pytest.raises(Refusal, match="Milestones go up"):
        figure.FIGURE.result(program=figure.PROGRAMS[2], milestones=[4, 2])


@pytest.mark.browser
@pytest.mark.slow
def test_a_break_is_shown(visit, page_with):
    with visit(page_with(viz.figure("learning_rates"))) as seen:
        stop, chart = seen.page.get_by_label("break after"), seen.page.locator(".rt-chart")
        seen.page.get_by_label("resumed by").select_option("before")
        stop.fill("6")
        stop.press("Enter")
        chart.focus()
        seen.page.keyboard.press("End")
        assert "after the break" in chart.get_attribute("aria-valuetext")
        assert "10 of 10 rates are wrong" in seen.page.locator(".rt-w").inner_text()
        assert seen.problems == []
