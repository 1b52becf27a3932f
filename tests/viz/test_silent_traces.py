"""The figure of silent traces: its programs, run with PyTorch, give the graphs, values, gradients and errors that it shows, and no warning."""

import re
import sys
import warnings

import pytest
import torch

from readtorch.viz.figures import silent_traces

EXAMPLES = [[1, 1], [-2, 0], [0], [3, -1, 12], [5, 0, 99], [-99, 4, -7]]
CALLS = [[-1, -2], [3, 3], [0], [4, -9, 1], [7], [2, 1, 0, 5]]
PROGRAMS = pytest.mark.parametrize("program", silent_traces.PROGRAMS)
OTHERS = [
    {"scale": [2, 100], "modes": "train-eval", "change": "new"},
    {"scale": [-7, 0], "modes": "eval-train", "change": "write"},
    {"scale": [4, 4], "modes": "train-train", "change": "number"},
    {"scale": [0, 1], "modes": "eval-eval", "change": "write"},
]


def ran(source, example):
    """The program's names after it ran, with the warnings on the way."""
    names = {"torch": torch, "__name__": __name__, "example": torch.tensor(example, dtype=torch.float32)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec("\n".join(line for line, _ in source), names)
    return names, [w for w in caught if issubclass(w.category, torch.jit.TracerWarning)]


def plain(graph):
    """The lines below the graph's inputs, without places, strides and devices."""
    text = re.sub(r" # \S+:\d+:\d+|, strides=\[1\]|(, )?requires_grad=0|(, )?device=cpu", "", str(graph))
    return [line.strip() for line in text.partition("):\n")[2].splitlines() if line.strip()]


def answer(call, y):
    """As the figure prints it."""
    x = torch.tensor(y, dtype=torch.float32, requires_grad=True)
    try:
        result = call(x)
    except RuntimeError as error:
        return [f"RuntimeError: {str(error).strip().rpartition('RuntimeError: ')[2]}"]
    if result.requires_grad:
        result.sum().backward()
    gradient = "no gradient" if x.grad is None else f"gradient {x.grad.tolist()}"
    return [f"returns {result.tolist()}", gradient]


@PROGRAMS
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_what_is_shown_is_what_pytorch_does(program, number):
    example, others = EXAMPLES[number], OTHERS[number % 4]
    for y in (CALLS[number], CALLS[(number + 1) % len(CALLS)], example):
        found = silent_traces.FIGURE.result(program=program, example=example, call=y, **others)
        names, warned = ran(found["source"], example)
        assert warned == []
        assert [line for line, _ in found["lines"]] == plain(names["traced"].graph)
        assert found["function"] == answer(names["f"], y)
        assert found["trace"] == answer(names["traced"], y)
        assert (found["verdict"] == "right") == (found["function"] == found["trace"])


@PROGRAMS
def test_each_program_is_wrong_as_it_stands_at_first(program):
    """So that a reader who only chooses a program sees something."""
    assert silent_traces.FIGURE.result(program=program)["verdict"] in ("wrong", "gradient")


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
@pytest.mark.parametrize("program", ["rows", "equal", "flag", "hook"])
def test_the_lines_that_ran(program, example):
    source = silent_traces.FIGURE.result(program=program, example=example, modes="eval-train")["source"]
    names, _ = ran(source, example)
    function = names["f"].forward if program == "flag" else names["f"]
    seen = set()

    def watch(frame, event, _):
        if frame.f_code is function.__code__ and event == "line":
            seen.add(frame.f_lineno - 1)
        return watch

    before = sys.gettrace()
    if program == "flag":
        names["f"].eval()
    sys.settrace(watch)
    try:
        function(torch.tensor(example, dtype=torch.float32))
    finally:
        sys.settrace(before)
    assert seen == {i for i, (_, mark) in enumerate(source) if mark == "ran"}
