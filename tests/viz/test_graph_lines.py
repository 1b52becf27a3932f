"""The IR viewer's model: lines of a graph, who makes and who uses what, and what passes change."""

import pytest
import torch

import readtorch
from readtorch.csrc.jit.ir import parse_ir
from readtorch.csrc.jit.passes.canonicalize import CanonicalizeOutputs
from readtorch.csrc.jit.passes.constant_propagation import ConstantPropagation
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.inliner import Inline
from readtorch.csrc.jit.passes.loop_unrolling import UnrollLoops
from readtorch.viz.graph_lines import graph_lines, graph_stages, key_of, program_of, shortened

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])
INLINE = {torch: torch._C._jit_pass_inline, readtorch: Inline}
DCE = {torch: torch._C._jit_pass_dce, readtorch: EliminateDeadCode}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def net_of(T):
    return T.jit.trace(T.nn.Sequential(T.nn.Linear(3, 2), T.nn.ReLU()), T.ones(4, 3))


@LIBRARIES
def test_lines_of_a_function(T):
    def affine(x):
        return x * 2 + 1

    lines = graph_lines(T.jit.trace(affine, T.ones(3)).graph)
    assert lines[0].text == "graph(%x : Float(3)):"
    assert lines[0].defines == [["x", "Float(3, strides=[1], requires_grad=0, device=cpu)"]]
    assert [line.text.partition(" = ")[2].partition("(")[0] for line in lines[1:-1]] == [
        "prim::Constant[value={2}]",
        "aten::mul",
        "prim::Constant[value={1}]",
        "prim::Constant[value=1]",
        "aten::add",
    ]
    product = next(line for line in lines if "aten::mul" in line.text)
    assert product.uses[0] == "x" and [name for name, _ in product.defines] == [lines[-2].uses[0]]
    assert product.place.endswith("in affine") and product.source == "return x * 2 + 1"
    assert "#" not in product.text and lines[-1].uses == [lines[-2].defines[0][0]]


@LIBRARIES
def test_both_libraries_stages_are_the_same(T):
    stages = graph_stages(net_of(T), [("inline", INLINE[T]), ("dead code", DCE[T])])["stages"]
    assert [stage["counts"] for stage in stages] == [
        {"+": 0, "-": 0, "~": 0},
        {"+": 4, "-": 2, "~": 1},
        {"+": 0, "-": 1, "~": 0},
    ]
    assert [line["scope"] for line in stages[1]["lines"] if "aten::" in line["text"]] == ["__module.0", "__module.1"]
    assert [line["text"] for line in stages[2]["lines"] if line["mark"] == "-"] == [
        '%_1 : ReLU = prim::GetAttr[name="1"](%self.1)'
    ]


def test_a_line_that_stays_keeps_its_key():
    stages = graph_stages(net_of(readtorch), [Inline, EliminateDeadCode])["stages"]
    for before, after in zip(stages, stages[1:]):
        old = {line["key"]: line["text"] for line in before["lines"] if line["mark"] != "-"}
        for line in after["lines"]:
            assert (line["key"] in old) == (line["mark"] != "+")
            if line["mark"] in ("", "-"):
                assert old[line["key"]] == line["text"]
            elif line["mark"] == "~":
                assert old[line["key"]] == line["was"] != line["text"]
        assert set(old) <= {line["key"] for line in after["lines"]}
        counts = after["counts"]
        assert after["left"] == before["left"] + counts["+"] - counts["-"]


LOOP = """graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %six : int = aten::mul(%two, %two)
  %a : int = aten::add(%six, %one)
  %y : Tensor = aten::mul(%x, %a)
  %z : Tensor = aten::mul(%x, %six)
  %s : Tensor = aten::add(%y, %z, %one)
  return (%s)"""
FOLD = {torch: torch._C._jit_pass_constant_propagation, readtorch: ConstantPropagation}
UNROLL = {torch: torch._C._jit_pass_loop_unrolling, readtorch: UnrollLoops}


@LIBRARIES
def test_a_name_that_stays_is_not_marked_as_gone(T):
    graph = (torch._C.parse_ir if T is torch else parse_ir)(LOOP)
    rows = graph_stages(graph, [FOLD[T]])["stages"][1]["lines"]
    marks = [(row["mark"], row["text"].partition(" = ")[2].partition("(")[0]) for row in rows if row["node"]]
    assert marks == [
        ("", "prim::Constant[value=1]"),
        ("-", "prim::Constant[value=2]"),
        ("-", "aten::mul"),
        ("-", "aten::add"),
        ("+", "prim::Constant[value=4]"),
        ("+", "prim::Constant[value=5]"),
        ("~", "aten::mul"),
        ("~", "aten::mul"),
        ("", "aten::add"),
    ]


@LIBRARIES
def test_no_name_is_gone_and_there_in_one_stage(T):
    """Loops, branches, early exits: what a pass moves or gives other inputs is one line."""

    def early(x, n: int):
        for i in range(3):
            x = x * (i * 2 + 1) + x.exp()
            if i > n:
                return x
        return x.t().t()

    graph = T.jit.script(early).graph
    for stage in graph_stages(graph, [UNROLL[T], FOLD[T], DCE[T], UNROLL[T]])["stages"]:
        gone, there = (
            {name for row in stage["lines"] if (row["mark"] == "-") == is_gone for name, _ in row["defines"]}
            for is_gone in (True, False)
        )
        assert not gone & there, stage["name"]
        assert sorted({row["key"] for row in stage["lines"]}) == sorted(row["key"] for row in stage["lines"])


def test_an_if_with_outputs_in_another_order_is_still_the_same():
    graph = parse_ir("""graph(%x : Tensor, %go : bool):
  %a : Tensor, %b : Tensor = prim::If(%go)
    block0():
      -> (%x, %x)
    block1():
      %c : Tensor = aten::neg(%x)
      -> (%c, %x)
  return (%b, %a)""")
    rows = graph_stages(graph, [CanonicalizeOutputs])["stages"][1]["lines"]
    assert {row["mark"] for row in rows} == {"", "~"}
    assert [row["was"].partition("= ")[2] for row in rows if row["node"] and row["mark"]] == ["prim::If(%go)"]


def test_what_gets_outputs_or_loses_its_name_is_still_the_same():
    """`%b` is the first If's at first, and the Load's behind it is %b.2 then: neither is marked as gone."""
    graph = parse_ir("""graph(%x : Tensor, %go : bool):
  = prim::Store[name="y"](%x)
  = prim::If(%go)
    block0():
      %a : Tensor = aten::neg(%x)
      = prim::Store[name="y"](%a)
      -> ()
    block1():
      -> ()
  %b : Tensor = prim::Load[name="y"]()
  return (%b)""")

    def give_outputs(graph):
        branch, (load,) = graph.findAllNodes("prim::If")[0], graph.findAllNodes("prim::Load")
        for block, value in zip(branch.blocks(), (branch.blocks()[0].nodes()[0].output(), graph.inputs()[0])):
            block.registerOutput(value)
        load.output().setDebugName("b.2")
        branch.addOutput().setDebugName("b")

    rows = graph_stages(graph, [give_outputs])["stages"][1]["lines"]
    changed = {row["text"].partition("= ")[2] for row in rows if row["mark"] == "~"}
    assert {row["mark"] for row in rows} == {"", "~"} and {"prim::If(%go)", 'prim::Load[name="y"]()'} <= changed


def test_the_graph_itself_is_left_alone():
    traced = net_of(readtorch)
    before = str(traced.graph)
    graph_stages(traced.graph, [Inline, EliminateDeadCode])
    assert str(traced.graph) == before


BRANCHES = """graph(%x : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %go : bool = aten::gt(%n, %zero)
  %y : Tensor = prim::If(%go)
    block0():
      %a : Tensor = aten::add(%x, %x, %one)
      -> (%a)
    block1():
      -> (%x)
  return (%y)"""


def test_blocks_are_lines_of_their_own():
    lines = graph_lines(parse_ir(BRANCHES))
    assert ["  " * line.depth + line.text for line in lines] == BRANCHES.split("\n")
    assert [line.text for line in lines if not line.node] == [
        "graph(%x : Tensor, %n : int):",
        "block0():",
        "-> (%a)",
        "block1():",
        "-> (%x)",
        "return (%y)",
    ]


def test_graphs_of_a_list_are_compared_without_numbers():
    first = parse_ir("graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x)\n  return (%1)")
    second = parse_ir("graph(%x : Tensor):\n  %7 : Tensor = aten::relu(%x)\n  return (%7)")
    third = parse_ir("graph(%x : Tensor):\n  %7 : Tensor = aten::neg(%x)\n  return (%7)")
    counts = [stage["counts"] for stage in graph_stages({"a": first, "b": second, "c": third})["stages"]]
    assert counts[1] == {"+": 0, "-": 0, "~": 0} and counts[2] == {"+": 1, "-": 1, "~": 0}


def test_a_graph_inside_a_node_has_names_of_its_own():
    inner = parse_ir("graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x)\n  return (%1)")
    outer = parse_ir("graph(%x : Tensor):\n  return (%x)")
    node = outer.insertNode(outer.create("prim::fork", outer.inputs()).g_("Subgraph", inner))
    lines = graph_lines(outer)
    relu = next(line for line in lines if "relu" in line.text)
    assert relu.space and relu.depth == 3 and not lines[1].space
    assert node.kind() in lines[1].text


@pytest.mark.parametrize(
    "text, short",
    [
        (
            "%1 : Float(4, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::relu(%x)",
            "%1 : Float(4, 2) = aten::relu(%x)",
        ),
        ("%1 : Long(device=cpu) = prim::NumToTensor(%2)", "%1 : Long() = prim::NumToTensor(%2)"),
        (
            "%2 : Long(requires_grad=0, device=cuda:0) = prim::Constant[value={2}]()",
            "%2 : Long() = prim::Constant[value={2}]()",
        ),
        ("graph(%s : __torch__.a.___torch_mangle_1.Net, %x : Tensor):", "graph(%s : Net, %x : Tensor):"),
        ('%f : __torch__.Net = prim::GetAttr[name="f"](%s)', '%f : Net = prim::GetAttr[name="f"](%s)'),
        ("%y : Tensor = aten::add(%x, %x, %1)", "%y : Tensor = aten::add(%x, %x, %1)"),
    ],
)
def test_types_are_shortened(text, short):
    assert shortened(text) == short


def test_a_line_is_found_by_its_words():
    stage = graph_stages(net_of(readtorch), [Inline])["stages"][1]
    assert next(line for line in stage["lines"] if line["key"] == key_of(stage, "aten::relu"))["node"]
    with pytest.raises(ValueError, match="no line of the graph contains 'aten::neg'"):
        key_of(stage, "aten::neg")


def test_the_program_and_the_lines_that_nodes_come_from():
    """The number of a node's place is that of its line in the file, from which the text's first line counts."""

    def early(x, n: int):
        if n > 1:
            return x
        return x * 2

    program = program_of(early)
    assert program["lines"][0] == "def early(x, n: int):"
    (product,) = [line for line in graph_lines(readtorch.jit.script(early).graph) if "aten::mul" in line.text]
    number = int(product.place.split(":")[1].split(",")[0])
    assert program["lines"][number - program["first"]].strip() == product.source == "return x * 2"
