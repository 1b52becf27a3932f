"""The figure of fused loops: its kernels beside those of PyTorch's scheduler and readtorch's, and what it says of bytes and time."""

import random
import re
from unittest import mock

import pytest
import torch
from torch._inductor import config
from torch._inductor.graph import GraphLowering

import readtorch as rt
from readtorch import viz
from readtorch._inductor.compile_fx import recording
from readtorch.viz.figures import fused_loops
from readtorch.viz.figures.fused_loops import EXAMPLES, FIGURE, FIRST, INPUTS
from readtorch.viz.inputs import Refusal
from readtorch.viz.line_programs import names_in

SIZES = {"rows": 96, "columns": 64}


def words(lib):
    names = ("exp", "tanh", "sin", "sqrt", "relu", "t")
    return {name: getattr(lib, name) for name in names} | {
        "sum": lambda h: h.sum(-1, True),
        "amax": lambda h: h.amax(-1, True),
        "flip": lambda h: h.flip(0),
    }


def program_of(lib, source, rows, columns):
    """(the program as a function, its arguments)"""
    shapes = {"x": (rows, columns), "z": (rows, columns), "w": (columns, columns), "b": (columns,)}
    used = set().union(*[names_in(tree) for _, tree in fused_loops.LANGUAGE.read(source)])
    names = [name for name in INPUTS if name in used]
    lines = [line.strip() for line in source.split(";")]
    known = words(lib)
    text = [f"def program({', '.join(names)}):", *lines, f"return {lines[-1].split(' =')[0]}"]
    exec("\n    ".join(text), known)
    return known["program"], [lib.rand(shapes[name]) for name in names]


class Enough(Exception):
    """The text is there."""


def inductors(source, rows, columns):
    """(how many values each of PyTorch's kernels computes, the text of its module)"""
    program, args = program_of(torch, source, rows, columns)
    found, texts = [], []

    def look(nodes):
        found.extend(0 if node.is_extern() else len(node.get_nodes()) for node in nodes)
        return nodes

    def stop(text):
        texts.append(text)
        raise Enough

    torch.compiler.reset()
    with (
        mock.patch.object(GraphLowering, "save_output_code", stop),
        config.patch(_post_fusion_custom_pass=look, fx_graph_cache=False),
        pytest.raises(torch._inductor.exc.InductorError, match="Enough"),
    ):
        torch.compile(program)(*args)
    return found, texts[0]


def theirs(source, rows, columns):
    return inductors(source, rows, columns)[0]


def ours(source, rows, columns):
    """How many values each of the figure's kernels computes."""
    kernels = FIGURE.result(program=source, rows=rows, columns=columns)["kernels"]
    return [0 if kernel["call"] else len(kernel["values"]) for kernel in kernels]


@pytest.mark.parametrize("source", [FIRST, *EXAMPLES])
def test_the_kernels_of_the_examples_are_pytorchs(source):
    assert ours(source, **SIZES) == theirs(source, **SIZES)


@pytest.mark.parametrize("source", [FIRST, *EXAMPLES])
def test_readtorch_makes_as_many(source):
    """But where it holds another function worth a place in memory."""
    program, args = program_of(rt, source, **SIZES)
    with recording() as graphs:
        rt.compile(program, dynamic=False)(*args)
    made = [len(kernel.domain.nodes) for kernel in graphs[0].kernels.values()]
    assert made == [n for n in ours(source, **SIZES) if n]


@pytest.mark.slow
def test_the_kernels_of_most_random_programs_are_pytorchs():
    """PyTorch has more rules; they change few programs of this size."""
    source, same, count = random.Random(3), 0, 0
    while count < 20:
        program = FIGURE.random_inputs(source)["program"]
        try:
            mine = ours(program, **SIZES)
        except Refusal:
            continue
        count += 1
        same += sorted(mine) == sorted(theirs(program, **SIZES))
    assert same >= 17


def test_bytes_of_a_sum_and_of_its_kernel():
    """Eagerly x * 2 + z reads x, writes, reads that and z, writes; as one loop it reads x and z and writes once."""
    eager, fused = FIGURE.result(program="y = x * 2 + z", rows=100, columns=10, launch=3, bandwidth=1, peak=1)["rows"]
    assert (eager["bytes"], fused["bytes"]) == (5 * 4000, 3 * 4000)
    assert eager["operations"] == fused["operations"] == 2000
    assert fused["time"] == 3 + 12 and eager["time"] == 2 * 3 + 8 + 12  # µs: a thousand bytes each


def test_a_product_takes_as_long_as_its_operations():
    (eager, fused) = FIGURE.result(program="y = x @ w", rows=64, columns=32, launch=0, bandwidth=10000, peak=1)["rows"]
    assert eager == fused | {"title": "one by one"} and fused["operations"] == 2 * 64 * 32 * 32 == fused["time"] * 1000


def test_what_the_chapter_says():
    root, power = (FIGURE.result(program=program) for program in EXAMPLES[:2])
    assert len(root["kernels"]) == 1 and "Computed more than once for an element: sqrt." in root["say"]
    assert power["rows"][1]["bytes"] - root["rows"][1]["bytes"] == 2 * 2 * 2**20
    assert power["kernels"][1]["apart"] == [[1, "it reads buf0 at another index than the one just written"]]
    softmax = FIGURE.result()["kernels"][1]
    assert [value["pass"] for value in softmax["values"]] == [1, 2, 2, 3] and softmax["values"][1]["where"] == "row"
    seven = FIGURE.result(program=EXAMPLES[2])["kernels"][0]
    assert seven["operations"] == 45 * 2048 * 256 and seven["bytes"] == 12 * 2048 * 256
    between = FIGURE.result(program=EXAMPLES[4])["kernels"][2]["apart"]
    assert between == [[1, "another kernel has to run between them"], [2, "a product is a call, not a loop"]]


@pytest.mark.parametrize(
    "source, again",
    [
        ("s = sqrt(x); y = s * flip(s)", "sqrt"),  # at two places
        ("s = sin(x); m = sum(s); y = s / m", "sin"),  # in two passes
        ("s = sin(x); y = s * (s @ w)", ""),  # it lies in memory
        ("s = sin(x); a = sum(s); c = amax(s); y = x + a * c", ""),  # two totals of one pass
        ("f = flip(x); y = f + flip(f * 2)", ""),  # a view computes nothing
    ],
)
def test_what_is_computed_more_than_once(source, again):
    said = FIGURE.result(program=source, **SIZES)["say"]
    assert said.partition("Computed more than once for an element: ")[2] == (again and again + ".")
    text = inductors(source, **SIZES)[1]
    calls = sum(len(re.findall(rf"std::{name}\(|\.{name}\(\)", text)) for name in ("sqrt", "sin"))
    assert calls == (0 if "flip(f" in source else 2 if again else 1), text


def test_a_product_reads_a_transposed_input_as_it_is():
    assert ours("y = t(x) @ x", 8, 8) == [0] and ours("y = t(x * 2) @ x", 8, 8) == [1, 0]


@pytest.mark.parametrize(
    "program, said",
    [
        ("y = x", "The last line computes nothing"),
        ("a = 2; y = x * a", "a is a number: write it where it is used."),
        ("y = 2 * 3 + x", "Python computes numbers among themselves"),
        ("y = exp(2) * x", "exp of a number"),
        ("y = x + w", "96 × 64 and 64 × 64: these sizes do not broadcast."),
        ("y = sum(sum(x))", "A row of one element is its own sum"),
        ("y = x @ x", "96 × 64 @ 96 × 64: the columns of the one are not the rows of the other."),
        ("y = log(x)", "Not known here: log. Allowed: name = …, with x and z of R rows"),
        ("R = x * 2", "R is no name for a result here."),
    ],
)
def test_a_refusal_says_why(program, said):
    with pytest.raises(Refusal) as refused:
        FIGURE.result(program=program, **SIZES)
    assert str(refused.value).startswith(said)


@pytest.mark.browser
@pytest.mark.slow
def test_typing_a_program_draws_its_kernels(visit, page_with):
    with visit(page_with(viz.figure("fused_loops")), width=390) as seen:
        figure = seen.page.locator(".rt-fig")
        assert figure.locator(".rt-fl-kernel").count() == 2
        program = figure.get_by_label("program", exact=True)
        program.fill("e = exp(x); y = e * flip(e)")
        program.press("Enter")
        assert "not with kernel 1: it reads buf0 at another index" in figure.locator(".rt-fl-why").inner_text()
        figure.get_by_label("fuse loops").focus()
        seen.page.keyboard.press("Space")
        program.fill("y = amax(x) * sum(x)")
        program.press("Enter")
        assert figure.locator(".rt-fl-kernel").count() == 3
        assert "could be one with kernel 1" in figure.locator(".rt-fl-kernel").nth(2).inner_text()
        assert seen.problems == []
