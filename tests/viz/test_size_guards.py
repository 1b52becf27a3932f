"""The figure of sizes and guards: its programs, exported with PyTorch, give the ranges, guards, errors and results that it shows."""

import logging
import random
import re
import warnings

import pytest
import torch

from readtorch.viz.figures import size_guards

FIGURE = size_guards.FIGURE


@pytest.fixture(autouse=True)
def quiet():
    """PyTorch logs the graph of a failed export, and what it specializes."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(before)


def error_lines(error):
    """An error of the export as the figure has it: what was violated, and what is suggested."""
    words = str(error)
    first = re.search(r"^ *- (.*)", words, re.MULTILINE) or re.match(r"(.*)", words)
    fixes = re.findall(r"^  (\w+ = .*)", words, re.MULTILINE)
    return [f"{type(error).__name__}: {first[1].partition(' If you')[0]}", *[f"Suggested fix: {f}" for f in fixes]]


def guards_of(module, example):
    """What the guards of a program ask, in order."""
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "_assert", lambda holds, message: asked.append(message.removeprefix("Guard failed: ")))
        module._guards_fn(example)
    return list(dict.fromkeys(asked))


def answer(call):
    try:
        result = call()
    except (AssertionError, IndexError) as error:
        return f"{type(error).__name__}: {error}"
    except RuntimeError:
        return "RuntimeError"
    if not result.numel():
        return f"shape {tuple(result.shape)}, no elements"
    (value,) = result.unique().tolist()
    return f"shape {tuple(result.shape)}, each element {value:g}"


def ran(found):
    """What PyTorch does with the lines of the figure: (export's lines, guards, model, program)."""
    names = {"torch": torch, "nn": torch.nn, "export": torch.export.export, "Dim": torch.export.Dim}
    *made, exported, called = found["source"]
    exec("\n".join(made), names)
    model = answer(lambda: eval(called.replace("ep.module()", "Model()"), names))
    try:
        exec(exported, names)
    except Exception as error:
        return error_lines(error), [], model, ""
    ep = names["ep"]
    program = ep.module()
    run = answer(lambda: eval(called.replace("ep.module()", "program"), names | {"program": program}))
    return [f"range_constraints: {ep.range_constraints}"], guards_of(program, ep.example_inputs[0][0]), model, run


def check(**inputs):
    found = FIGURE.result(**inputs)
    lines, guards, model, program = ran(found)
    assert (found["outcome"], [text for text, _ in found["guards"]]) == (lines, guards), inputs
    assert (found["model"], found["program"]) == (model, program), inputs
    return found["verdict"]


@pytest.mark.parametrize("seed", range(7))
def test_what_is_shown_is_what_pytorch_does(seed):
    """Eight random settings of each program."""
    generator, program = random.Random(seed), list(size_guards.BODIES)[seed]
    verdicts = {check(**FIGURE.random_inputs(generator) | {"program": program}) for _ in range(8)}
    assert len(verdicts) >= 2


@pytest.mark.parametrize(
    "inputs, verdict",
    [
        ({}, "wrong"),
        ({"program": "one", "declared": "range", "bounds": [1, 9]}, "wrong"),
        ({"program": "one", "declared": "range", "bounds": [3, 9]}, "refused"),
        ({"program": "dims", "call": [4, 3, 2]}, "wrong"),
        ({"program": "dtype", "call": [4, 3], "dtype": "float64"}, "wrong"),
        ({"program": "more", "call": [4, 3]}, "none"),
        ({"program": "more", "declared": "AUTO", "rows": 6, "call": [4, 3]}, "refused"),
        ({"program": "double", "declared": "range", "bounds": [0, 2], "rows": 2}, "same"),
        ({"program": "double", "declared": "static", "call": [4]}, "refused"),
        ({"program": "length", "declared": "range", "bounds": [0, 2], "rows": 2}, "wrong"),
        ({"program": "more", "declared": "range", "bounds": [4, 6], "rows": 4}, "none"),
        ({"program": "double", "declared": "range", "bounds": [0, 1]}, "none"),
        ({"program": "double", "declared": "DYNAMIC", "rows": 1}, "none"),
        ({"program": "matrix", "call": [4, 4]}, "both"),
        ({"program": "length", "declared": "AUTO", "call": [4, 3]}, "same"),
    ],
    ids=str,
)
def test_what_the_chapter_says_of_it(inputs, verdict):
    assert check(**inputs) == verdict
