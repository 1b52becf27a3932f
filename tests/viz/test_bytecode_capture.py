"""The figure of Dynamo's interpreter: its instructions are CPython's, its graphs and recompilations those of PyTorch."""

import dis
import math
import random
import sys

import pytest
import torch

from readtorch import viz
from readtorch.viz.figures import bytecode_capture
from readtorch.viz.figures.bytecode_capture import PROGRAMS
from readtorch.viz.inputs import Refusal


class Settings:
    pass


def function(program):
    """The program, and the dictionary of its globals."""
    names = {"torch": torch, "cfg": Settings(), "OFFSET": 1}
    exec("\n".join(PROGRAMS[program][0]), names)
    return names["f"], names


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the figure shows the bytecode of Python 3.11")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_instructions_are_those_of_cpython(program):
    def argument(one):
        if "JUMP" in one.opname or one.opname in ("LOAD_GLOBAL", "FOR_ITER"):
            return one.argval
        return one.arg if one.opname == "CALL" else one.argrepr

    # the jump back to a loop's head belongs to no line
    real = [
        (one.offset, (one.positions.lineno or 2) - 1, one.opname, argument(one))
        for one in dis.get_instructions(function(program)[0])
        if one.opname not in ("RESUME", "PRECALL")
    ]
    assert real == PROGRAMS[program][1]


def in_pytorch(program, calls):
    """For each call how many graphs are made; and the operators of all graphs."""
    torch._dynamo.reset()
    f, names = function(program)
    graphs, counts = [], []

    def keep(graph_module, inputs):
        nodes = [n for n in graph_module.graph.nodes if n.op.startswith("call_") and n.target != "item"]
        graphs.append([n.target if isinstance(n.target, str) else n.target.__name__ for n in nodes])
        return graph_module.forward

    compiled = torch.compile(f, backend=keep)
    for rows, fill, scale, offset in calls:
        before = len(graphs)
        names["cfg"].scale, names["OFFSET"] = eval(scale, {"inf": math.inf, "nan": math.nan}), offset
        compiled(torch.full((rows, 2), float(fill)))
        counts.append(len(graphs) - before)
    return counts, graphs


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs_are_made_where_pytorch_makes_them(program, capfd):
    source = random.Random(3)
    for _ in range(12):
        inputs = {"program": program} | bytecode_capture.sample(source)
        result = bytecode_capture.model(inputs)
        counts, graphs = in_pytorch(program, [call["values"] for call in result["calls"]])
        assert [call["made"] for call in result["calls"]] == counts, inputs
        last = {}  # (call, frame, entry) -> the graph at the end of its capture
        for one, say in zip(result["steps"], result["say"]):
            if one["at"] >= 0:
                last[one["call"], one["frame"], one["entry"]] = one["graph"]
            if "the whole frame is given up" in say:
                del last[one["call"], one["frame"], one["entry"]]
        ours = [[line.split(" = ")[0].removesuffix("_1") for line in graph] for graph in last.values()]
        assert ours == graphs, inputs
        left = [[line.split(" = ")[0].removesuffix("_1") for line in one["graph"]] for one in result["left"]]
        assert sorted(left) == sorted(graphs), inputs


def failing(result, call):
    return [
        g["words"] for one in result["steps"] if one["call"] == call for g in one["guards"] if g["state"] == "fails"
    ]


@pytest.mark.parametrize(
    "changed, guards",
    [
        ({"scale": "2.0, 3.0"}, ["cfg.scale is the float 2.0"]),
        ({"scale": "2.0, 3.0, 4.0"}, []),
        ({"scale": "3, 2.0, 5.0"}, []),  # an int is a value that was seen
        ({"scale": "2.0, 3.0, 2"}, ["cfg.scale is a float", "cfg.scale is the float 2.0"]),
        ({"rows": "3, 4"}, ["x: a float32 tensor of [3, 2]"]),
        ({"rows": "3, 4, 1"}, ["x: a float32 tensor of [s0, 2], s0 ≥ 2", "x: a float32 tensor of [3, 2]"]),
        ({"scale": "0.0, -0.0"}, []),
        ({"scale": "0.0, 1.5, 0"}, ["cfg.scale is a float", "cfg.scale is the float 0.0"]),
        ({"scale": "1.0, True"}, ["cfg.scale is the float 1.0"]),
        ({"scale": "True, 1.0"}, ["cfg.scale is True"]),
        ({"scale": "2.0, 3.0, True"}, ["cfg.scale is a float", "cfg.scale is the float 2.0"]),
        ({"scale": "True, 1.0, 3.0, 4.0"}, []),
        ({"program": "branch", "scale": "2.0, 3.0, True"}, ["cfg.scale is a float", "cfg.scale is the float 2.0"]),
        ({"scale": "nan, nan, 2.0"}, ["cfg.scale is nan"]),
        ({"scale": "inf, 3.0, -inf"}, []),  # a symbol that is there takes every float
        ({"program": "branch", "scale": "2.0, 1.5, nan"}, ["cfg.scale is not nan", "cfg.scale is the float 2.0"]),
        ({"program": "print", "offset": "1, 2"}, ["OFFSET is the int 1"]),
        ({"program": "branch", "scale": "3.0, 4.0, 1.0"}, ["cfg.scale > 2", "cfg.scale is the float 3.0"]),
    ],
)
def test_the_guard_that_fails(changed, guards):
    inputs = {"program": "scale", "scale": "2.0", "rows": "3", "fill": "1", "offset": "1"} | changed
    result = bytecode_capture.model(inputs)
    assert failing(result, len(result["calls"]) - 1) == guards


@pytest.mark.parametrize(
    "name, words",
    [("rows", "3, 10"), ("scale", "2.0, x"), ("scale", "1.2345"), ("scale", "none"), ("offset", "100"), ("fill", "")],
)
def test_a_bad_list_is_refused(name, words):
    inputs = {"program": "tensor", "scale": "2.0", "rows": "3", "fill": "1", "offset": "1"} | {name: words}
    with pytest.raises(Refusal, match="one for each call"):
        bytecode_capture.model(inputs)
    with pytest.raises(Refusal, match="At most 10 calls"):
        bytecode_capture.model(inputs | {name: ", ".join("1" * 11)})


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_field_that_the_function_does_not_read_changes_nothing(program):
    inputs = {"program": program, "scale": "2.0", "rows": "3", "fill": "1", "offset": "1"}
    for name, other in {"scale": "2.0, 3.0", "fill": "1, -1", "offset": "1, 2"}.items():
        is_same = bytecode_capture.model(inputs | {name: other}) == bytecode_capture.model(inputs)
        assert is_same is (name not in bytecode_capture.READS[program]), name


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_function_reads_stands_in_it(program):
    source = "\n".join(PROGRAMS[program][0])
    words = {"scale": "cfg.scale", "fill": "x.sum()", "offset": "OFFSET"}
    assert [name for name in words if words[name] in source] == list(bytecode_capture.READS[program])


def test_both_zeros_are_shown_and_told_apart():
    inputs = {"program": "scale", "scale": "0.0, -0.0", "rows": "3", "fill": "1", "offset": "1"}
    result = bytecode_capture.model(inputs)
    assert [call["values"][2] for call in result["calls"]] == ["0.0", "-0.0"]
    assert sum("-0.0 == 0.0, so PyTorch's guard takes both" in say for say in result["say"]) == 1


@pytest.mark.browser
@pytest.mark.slow
def test_a_call_says_what_it_did_when_it_has_done_it(visit, page_with):
    """The chapter asks the reader to predict it."""
    with visit(page_with(viz.figure("bytecode_capture", scale="2.0, 3.0, 4.0, 2"))) as seen:
        outcomes = seen.page.locator(".rt-bc-made")
        slider = seen.page.locator(".rt-fig input[type=range]")
        assert outcomes.all_inner_texts() == ["?"] * 4
        first, third = ["1 new graph"], ["1 new graph", "1 new graph", "1 reused"]
        for step, shown in ((8, []), (9, first), (10, first), (21, third), (24, third)):
            slider.fill(str(step))
            assert outcomes.all_inner_texts() == shown + ["?"] * (4 - len(shown)), step
        slider.press("End")
        assert outcomes.all_inner_texts() == [*third, "1 new graph"]
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_a_refused_list_goes_with_its_field(visit, page_with):
    """Else every function that reads it would be refused, without a field in which to mend it."""
    with visit(page_with(viz.figure("bytecode_capture"))) as seen:
        function, refusal = seen.page.locator(".rt-fig select"), seen.page.locator(".rt-refusal")
        scale = seen.page.locator(".rt-fig input[type=text]").first
        scale.fill(", ".join("1" * 13))
        scale.press("Enter")
        assert refusal.inner_text() == "At most 10 calls, please."
        for program in ("shape", "branch", "scale"):
            function.select_option(program)
            assert refusal.inner_text() == "", program
        assert scale.input_value() == "2.0, 3.0, 4.0, 2"
        assert seen.problems == []
