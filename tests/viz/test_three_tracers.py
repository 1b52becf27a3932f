"""The figure of three tracers: its lines, warnings, errors and results against PyTorch's, for each function and several examples."""

import re
import sys
import warnings

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from readtorch.viz.figures import three_tracers

EXAMPLES = [[1, 1], [-2, 0], [3, -1, -1], [5], [-4], [1, 2, 3, 4], [-7, 1, 0, 2]]
CALLS = [[-1, -1], [3], [4, -9, 1], [0, 0], [2, 1, 0, 5]]
names = {"torch": torch, "__name__": __name__}
PROGRAMS = pytest.mark.parametrize("program", three_tracers.PROGRAMS)


def function_of(program, names):
    """The figure's source, as a function that reads the global `scale`."""
    exec("\n".join(three_tracers.PROGRAMS[program].source), names)
    return names["f"]


def exported(f, x, dynamic):
    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    shapes = ({0: torch.export.Dim("rows")},) if dynamic else None
    return torch.export.export(Module(), (x,), dynamic_shapes=shapes)


def plain_trace(graph):
    """A trace's lines, without places, strides and devices."""
    text = re.sub(r" # \S+:\d+:\d+|, strides=\[1\]|(, )?requires_grad=0|(, )?device=cpu", "", str(graph))
    return [line.strip() for line in text.splitlines()[1:] if line.strip()]


def plain_code(code):
    """Generated code without what frees values."""
    lines = [re.sub(r";  .*| *$", "", line).strip().replace("torch.ops.", "") for line in code.splitlines()]
    return [line for line in lines if line and not line.startswith("def ")]


def sentence(error):
    return " ".join(f"{type(error).__name__}: {error}".split())


def said_by(error, shown):
    """Whether the error says what is shown: its class, and the sentence anywhere in it."""
    kind, _, words = shown.partition(": ")
    name, _, found = sentence(error).partition(": ")
    return kind == name and words in found


def assert_answer(one, run, y, wanted):
    """What is said of a call is what PyTorch gives."""
    try:
        found = run(torch.tensor(y, dtype=torch.float32))
    except Exception as error:
        assert one["verdict"] == "fails" and said_by(error, one["result"]), (one, sentence(error))
        return
    assert one["result"] == str(found.tolist())
    assert one["verdict"] == ("right" if torch.equal(found, wanted) else "wrong")


def assert_recording(one, record, lines_of, run_of, y, wanted):
    """lines_of, run_of: from what was recorded to its lines, and to what can be called."""
    try:
        recorded = record()
    except Exception as error:
        assert one["verdict"] == "none" and said_by(error, one["error"]), (one, sentence(error))
        return
    assert [line for line, _ in one["lines"]] == lines_of(recorded)
    names["scale"] = 5
    assert_answer(one, run_of(recorded), y, wanted)


def export_lines(program):
    """What it has noted about the rows, and the code. What is checked at a call shows with a row too many."""
    (x,) = program.example_inputs[0]
    try:
        program.module()(torch.ones(len(x) + 1))
        noted = f"range: {program.range_constraints}"
    except AssertionError as error:
        noted = str(error).splitlines()[0].replace("Guard failed", "guard")
    return [noted, *plain_code(program.graph_module.code)]


@PROGRAMS
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_recordings_and_answers_are_pytorchs(program, number):
    example = EXAMPLES[number]
    f, x = function_of(program, names), torch.tensor(example, dtype=torch.float32)
    for y, dynamic in ((CALLS[number % 5], True), (CALLS[(number + 1) % 5], False), (example, False)):
        inputs = {"example": example, "call": y, "scale": [3, 5], "dynamic": dynamic, "program": program}
        result = three_tracers.model(three_tracers.FIGURE.read(inputs))
        names["scale"] = 5
        wanted = f(torch.tensor(y, dtype=torch.float32))
        assert result["wanted"] == str(wanted.tolist())
        captures = [
            (lambda: torch.jit.trace(f, x), lambda t: plain_trace(t.graph), lambda t: t),
            (lambda: make_fx(f)(x), lambda g: plain_code(g.code), lambda g: g),
            (lambda: exported(f, x, dynamic), export_lines, lambda p: p.module()),
        ]
        for one, (record, lines_of, run_of) in zip(result["made"], captures, strict=True):
            names["scale"] = 3
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert_recording(one, record, lines_of, run_of, y, wanted)


@PROGRAMS
def test_the_tracers_warning_and_the_lines_that_ran(program):
    f = function_of(program, names | {"scale": 3})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.jit.trace(f, torch.ones(3))
    found = {
        f"TracerWarning: {str(w.message).split('. ')[0]}." for w in caught if w.category is torch.jit.TracerWarning
    }
    shown = three_tracers.FIGURE.result(program=program, example="1, 1, 1")["made"][0]["warning"]
    assert found == ({shown} if shown else set())


@PROGRAMS
@pytest.mark.parametrize("example", EXAMPLES[:4], ids=str)
def test_the_lines_that_ran(program, example):
    f, seen = function_of(program, names | {"scale": 3}), set()

    def tracer(frame, event, _):
        if frame.f_code is f.__code__ and event == "line":
            seen.add(frame.f_lineno - 1)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        f(torch.tensor(example, dtype=torch.float32))
    finally:
        sys.settrace(before)
    assert three_tracers.FIGURE.result(program=program, example=example)["ran"] == sorted(seen)


def test_what_is_marked_changes_with_the_example():
    """A line without a mark is the same for another example, but for types, names and what is chosen by a branch."""
    for program in ("size", "length", "number"):
        one, other = (three_tracers.FIGURE.result(program=program, example=e) for e in ([1, 1, 1], [2, 2, 2, 2]))
        for mine, yours in zip(one["made"], other["made"]):
            strip = lambda line: re.sub(r"Float\(\d\)", "Float", line)
            for (a, note), (b, _) in zip(mine["lines"], yours["lines"]):
                assert (strip(a) != strip(b)) == bool(note), (program, a, b)


def test_one_row_is_a_constant_for_export_whatever_the_program_does():
    """Functions that keep any other number of rows as a symbol do not keep one."""
    for program in ("where", "size", "setting"):
        names["scale"] = 3
        with pytest.raises(torch._dynamo.exc.UserError, match=r"specialized it to be a constant \(1\)"):
            exported(function_of(program, names), torch.ones(1), True)
        one, other = (three_tracers.FIGURE.result(program=program, example=e)["made"][2] for e in ([5], [5, 5]))
        assert one["hint"] == three_tracers.ONE_ROW and not other["hint"] and not other["error"]
    assert not three_tracers.FIGURE.result(program="branch", example=[5])["made"][2]["hint"]
