"""The figure of a module's attributes: its model against PyTorch, and its questions against PyTorch's source."""

import ast
import inspect
import random
import re
import sys

import pytest
import torch
from torch import nn

from readtorch import viz
from readtorch.viz.figures import attributes
from readtorch.viz.inputs import Refusal


def kind(value, m):
    """What the figure writes for a value, without its number."""
    if value is m:
        return "m itself"
    if value is None or isinstance(value, int | float | str):
        return value
    words = type(value).__name__
    if type(value) is torch.Tensor:
        words = "tensor" if not hasattr(value, "persistent") else "Buffer" if value.persistent else "Buffer, not saved"
    grown = isinstance(value, torch.Tensor) and value.grad_fn is not None
    return f"{words} #, with a grad_fn" if grown else f"{words} #"


def saved(m):
    try:
        return list(m.state_dict())
    except RecursionError:
        return "RecursionError"


def state(m):
    """What the figure shows of a module."""
    own = vars(m)
    ordinary = {name: value for name, value in own.items() if not name.startswith("_")}
    there = "_parameters" in own
    return {
        "files": [
            None if entries is None else [[name, kind(value, m)] for name, value in entries.items()]
            for entries in (ordinary, *(own.get(file) for file in attributes.FILES[1:]))
        ],
        "unsaved": sorted(own.get("_non_persistent_buffers_set", ())),
        "parameters": [name for name, _ in m.named_parameters()] if there else None,
        "saved": saved(m) if there else None,
    }


def without_number(text):
    """The kind with # for its number; a number, text or None itself."""
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9, ]*?) \d+(, with a grad_fn)?", text)
    if found:
        return f"{found[1]} #{found[2] or ''}"
    return text if text == "m itself" else ast.literal_eval(text)


def without_numbers(step):
    files = [entries and [[name, without_number(text)] for name, text in entries] for entries in step["files"]]
    return {
        "files": files,
        "unsaved": sorted(step["unsaved"]),
        "parameters": step["parameters"],
        "saved": step["saved"],
    }


def check(program):
    """The states after each statement, and the errors, are PyTorch's."""
    try:
        result = attributes.FIGURE.result(program=program)
    except Refusal:
        return 0
    names = {"m": nn.Module(), "nn": nn, "torch": torch}
    assert without_numbers(result["steps"][0]) == state(names["m"])
    for statement, step in zip(result["statements"], result["steps"][1:], strict=True):
        error = ""
        try:
            exec(statement, names)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised.args[0]}"
        assert (program, statement, step["error"]) == (program, statement, error)
        assert (program, statement, without_numbers(step)) == (program, statement, state(names["m"]))
    return len(result["statements"])


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed):
    random_ = random.Random(seed)
    ran = sum(check(attributes.sample(random_)["program"]) for _ in range(150))
    assert ran > 250


def test_examples():
    for example in (attributes.FIRST, *attributes.FIGURE.inputs[0].examples):
        assert check(example)


def test_every_name_of_the_class_is_refused_or_tried():
    public = {name for name in dir(nn.Module) if not name.startswith("_")}
    assert public == {*attributes.TAKEN, *attributes.TRIED}


def test_questions_are_lines_of_the_source():
    """Each row that has a line number shows what stands there."""
    lines = inspect.getsource(inspect.getmodule(nn.Module)).split("\n")
    random_, seen = random.Random(3), set()
    for _ in range(400):
        try:
            result = attributes.FIGURE.result(**attributes.sample(random_))
        except Refusal:
            continue
        seen |= {(row["line"], row["code"]) for step in result["steps"] for row in step["rows"] if row["line"]}
    assert len(seen) > 60
    for line, code in seen:
        assert code.partition("…")[0] in lines[line - 1], (line, code, lines[line - 1])


def lines_run(statement, names):
    """The lines of module.py that a statement runs."""
    there, run = inspect.getfile(nn.Module), set()

    def trace(frame, event, _):
        if frame.f_code.co_filename != there:
            return None
        if event == "line":
            run.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(statement, names)
    except Exception:
        pass
    finally:
        sys.settrace(before)
    return run


def test_questions_are_asked():
    """The lines of every row run when PyTorch does the statement; also before `__init__`."""
    random_ = random.Random(5)
    programs = [attributes.sample(random_)["program"] for _ in range(60)]
    for program in [*programs, "m = nn.Module.__new__(nn.Module); m.x; m.__init__(); m.x; m.x = nn.ReLU(); m.x"]:
        try:
            result = attributes.FIGURE.result(program=program)
        except Refusal:
            continue
        names = {"m": nn.Module(), "nn": nn, "torch": torch}
        for statement, step in zip(result["statements"], result["steps"][1:], strict=True):
            shown = {row["line"] for row in step["rows"]} - {0}
            assert shown <= lines_run(statement, names), statement


def test_identity():
    steps = attributes.FIGURE.result(program="m.x = nn.Linear(2, 1); m.y = m.x; m.y = nn.Linear(2, 1)")["steps"]
    assert steps[2]["files"][3] == [["x", "Linear 1"], ["y", "Linear 1"]]
    assert steps[2]["parameters"] == ["x.weight", "x.bias"]
    assert steps[3]["parameters"] == ["x.weight", "x.bias", "y.weight", "y.bias"]


def test_refusals():
    for program in (
        "m.state_dict = 3",
        "m._modules = 3",
        "x = 3",
        "m.x = y",
        "m.x = 007",
        "m.class = 3",
        "m.x = importos",
        "m.x = nn.Linear(2)",
        "m.x = nn.Parameter(3)",
        "m.x = torch.ones(2) * torch.ones(3)",
        "m.x = " + "(" * 160,
        "m.x = m.train",
        "; ".join(["m.x = 3"] * 13),
    ):
        with pytest.raises(Refusal):
            attributes.FIGURE.result(program=program)


def test_what_was_typed_is_repeated():
    with pytest.raises(Refusal, match="“import os”"):
        attributes.FIGURE.result(program="import os")
    assert attributes.FIGURE.result(program="m.x  =  'a; b' ;; m.x=3 ")["statements"] == ["m.x  =  'a; b'", "m.x=3"]


def test_none_is_not_saved():
    for option, words in (("", "will be saved."), (", persistent=False", "will not be saved.")):
        result = attributes.FIGURE.result(program=f"m.register_buffer('x', None{option})")
        assert result["say"][1].endswith(f"x is in _buffers, as None; a tensor put there {words}")
        assert result["steps"][1]["saved"] == []


def test_values_by_their_kind():
    """What a reader tries next: none of it is refused."""
    for value in (
        "'hello'", "{}", "True", "m", "nn.Linear(3, 4)", "nn.Conv2d(1,1,1)", "nn.Parameter(torch.ones(3))", "[1, [2.5], ()]",
        "{'a': nn.ReLU(), 'b': 3}", "nn.Sequential(nn.Linear(3, 4), nn.ReLU())", "nn.Parameter(torch.tensor([1.0, 2.0]))",
        "nn.ModuleDict({'train': nn.ReLU()})", "nn.Parameter(torch.ones(2)) * 2", "-1e-3", "(3)", "nn.ModuleList([])",
    ):  # fmt: skip
        assert check(f"m.x = {value}; setattr(m, 'a.b', {value}); m.register_buffer('y', {value})") == 3
    assert check("m.x = nn.Linear(3, 4); m.y = m.x.weight; m.z = m.x; m.x = m; m.q = nn.ModuleList([m.z])[0]") == 5


def test_a_parameter_with_a_history():
    made = "nn.Parameter(torch.ones(2), requires_grad=False).mul_(torch.ones(2, requires_grad=True))"
    step = attributes.FIGURE.result(program=f"m.x = 3; m.x = {made}")["steps"][2]
    assert [(row["line"], row["answer"]) for row in step["rows"][-2:-1]] == [(628, "yes")]
    assert step["error"].startswith("ValueError: Cannot assign non-leaf") and step["files"][0] == [["training", "True"]]
    assert check(f"m.x = 3; m.x = {made}; m.register_parameter('y', {made})") == 3


def test_it_is_shown():
    figure = viz.figure("attributes", program="m.x = 3", step=1)
    assert figure.result["steps"][1]["files"][0] == [["training", "True"], ["x", "3"]]
