"""Graphs built by hand: names, uses, insertion, order, lint, types and their text."""

import pytest
import torch

import readtorch as rt
from readtorch.csrc.jit.frontend.function_schema_parser import parse_schema
from readtorch.csrc.jit.frontend.schema_type_parser import parse_type
from readtorch.csrc.jit.ir import Graph, parse_ir
from readtorch.csrc.jit.ir.type import (
    FloatType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    unifyTypes,
    union_of,
)
from readtorch.csrc.jit.runtime.operator import all_names, getAllOperatorsFor
from tests.reference import to_readtorch

CONSTANTS = [
    1,
    -3,
    1.0,
    1e-5,
    0.1,
    1 / 3,
    1e20,
    1e16,
    123456789.0,
    -0.0,
    float("inf"),
    float("nan"),
    True,
    "a\n\"'b\t\\",
    None,
    [1, 2],
    [1.0, 2.5],
    [True, False],
    ["a", "b"],
    (1, 2.0),
    ("a", None),
    2 + 3j,
    {"a": 1},
    [[1], [2]],
    torch.device("cuda:1"),
    torch.float32,
    torch.bfloat16,
    torch.strided,
    torch.tensor(1),
    torch.tensor(1.5),
    torch.tensor([True]),
    torch.tensor([1, 2]),
    torch.tensor([[1.0, 2], [3, 4]]),
    torch.tensor([1.5, 1e-9, float("inf")]),
    torch.arange(150).reshape(3, 50) / 150,
    torch.tensor([]),
    torch.arange(10.0).reshape(1, 10) * 1.5,
    torch.tensor([[0.01, 0.02], [0.03, 0.01]]),
    torch.tensor([-1.5, 2.0]),
    torch.tensor([1.0, float("nan")]),
    torch.arange(8).reshape(2, 2, 2) / 8,
    torch.tensor([1 + 2j]),
    torch.tensor(1e-8),
    torch.tensor(1e6),
]


@pytest.mark.parametrize("value", CONSTANTS, ids=lambda v: repr(v).replace("\n", " ")[:40])
def test_constants_print_as_in_the_reference(value):
    theirs, ours = torch._C.Graph(), Graph()
    theirs.registerOutput(theirs.insertConstant(value))
    ours.registerOutput(ours.insertConstant(to_readtorch(value)))
    assert str(ours) == str(theirs)
    assert str(parse_ir(str(ours))) == str(ours)


TYPES = [
    "Tensor",
    "Float(2, *)",
    "Float(*, *, requires_grad=1)",
    "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)",
    "Float()",
    "Long(device=cpu)",
    "Scalar",
    "Device",
    "Generator",
    "NoneType",
    "Any",
    "int?",
    "int[]?[]",
    "Dict(str, Tensor[])",
    "(int, float)",
    "()",
    "Union(int, str)",
    "complex",
    "Half(2)",
    "BFloat16(2)",
    "Bool(2)",
    "Tensor?",
    "int[][]",
    "((int, str), Tensor?)[]",
    "Dict(int, Dict(str, float))",
]


@pytest.mark.parametrize("text", TYPES)
def test_types_print_as_in_the_reference(text):
    graph = torch._C.parse_ir(f"graph(%x : {text}):\n  return (%x)\n")
    type = next(graph.inputs()).type()
    assert parse_type(text).str() == str(graph).split("graph(%x : ")[1].split("):\n")[0]
    assert parse_type(text).annotation_str == type.annotation_str
    assert parse_type(text).kind() == type.kind()


def pairs_of_types():
    simple = [
        "Tensor",
        "int",
        "float",
        "Scalar",
        "str",
        "NoneType",
        "int?",
        "Tensor?",
        "int[]",
        "float[]",
        "Tensor[]",
        "(int, float)",
        "(int, int)",
        "Any",
        "bool",
        "Union(int, str)",
        "Dict(str, int)",
        "Float(2, *)",
        "Float(2, 3)",
        "Double(2, 3)",
        "int?[]",
    ]
    return [(a, b) for a in simple for b in simple]


def test_subtypes_are_the_references():
    types = {
        text: next(torch._C.parse_ir(f"graph(%x : {text}):\n  return (%x)\n").inputs()).type()
        for text, _ in pairs_of_types()
    }
    wrong = [
        (a, b)
        for a, b in pairs_of_types()
        if parse_type(a).isSubtypeOf(parse_type(b)) != types[a].isSubtypeOf(types[b])
    ]
    assert wrong == []


def test_unification():
    assert unifyTypes(IntType.get(), NoneType.get()) == OptionalType(IntType.get())
    assert unifyTypes(IntType.get(), StringType.get()) is None
    assert unifyTypes(IntType.get(), StringType.get(), True) == union_of([StringType.get(), IntType.get()])
    assert unifyTypes(
        TupleType([IntType.get(), NoneType.get()]), TupleType([IntType.get(), FloatType.get()])
    ) == TupleType([IntType.get(), OptionalType(FloatType.get())])
    assert unifyTypes(IntType.get(), NumberType.get()) == NumberType.get()
    assert unifyTypes(parse_type("Float(2, 3)"), parse_type("Float(2, 4)")).str() == "Float(2, *)"


def test_schemas_are_the_references():
    """Every schema that both sides have prints the same."""
    theirs = {}
    for schema in torch._C._jit_get_all_schemas():
        theirs[schema.name, schema.overload_name] = str(schema)
    compared, differing = 0, []
    for name in all_names():
        for operator in getAllOperatorsFor(name):
            key = operator.schema.name, operator.schema.overload_name
            if key in theirs and "out" not in key[1]:
                compared += 1
                if str(operator.schema) != theirs[key]:
                    differing.append(str(operator.schema))
    assert compared > 1500
    # padding=0 there, padding=[0, 0] here; names of outputs, defaults of operators that only others call
    assert [
        d
        for d in differing
        if not d.startswith(
            (
                "aten::avg_pool",
                "aten::max_pool",
                "aten::_histogramdd",
                "aten::slice_back",
                "aten::_sparse_coo",
                "aten::linalg_eigh.",
                "aten::max.dim_max",
                "aten::min.dim_min",
            )
        )
    ] == []


def test_a_schema_reads_back():
    for text in (
        "aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)",
        "aten::format(str self, ...) -> str",
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1) -> Tensor",
        "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "aten::update.str(Dict(str, t)(a!) self, Dict(str, t)(a!) to_add) -> ()",
    ):
        assert str(parse_schema(text)) == text


# ---------------------------------------------------------------------------------------------------------------- graphs


def test_names_are_unique_and_the_latest_has_no_suffix():
    theirs, ours = torch._C.Graph(), Graph()
    names = []
    for graph in (theirs, ours):
        values = [graph.addInput(name) for name in ("x", "x", "x.5", "x", "y")]
        values[3].setDebugName("y.1")
        values[1].setDebugName("y.1")
        names.append([v.debugName() for v in graph.inputs()])
    assert names[0] == names[1]
    with pytest.raises(RuntimeError, match="Invalid name: '3'"):
        ours.addInput("3")


def chain():
    graph = Graph()
    x = graph.addInput("x")
    a = graph.insert("aten::relu", [x])
    b = graph.insert("aten::add", [a, x], {"alpha": 1})
    graph.registerOutput(b)
    return graph, x, a, b


def test_uses_follow_every_change():
    graph, x, a, b = chain()
    assert [(u.user.kind(), u.offset) for u in x.uses()] == [("aten::relu", 0), ("aten::add", 1)]
    a.replaceAllUsesWith(x)
    graph.lint()
    assert not a.uses() and len(x.uses()) == 3
    a.node().destroy()
    graph.lint()
    assert [n.kind() for n in graph.nodes()] == ["prim::Constant", "aten::add"]
    b.node().removeInput(0)
    graph.lint()
    assert b.node().inputs()[0] is x and x.uses()[0].offset == 0


def test_a_used_value_cannot_be_destroyed():
    graph, x, a, b = chain()
    with pytest.raises(RuntimeError, match="it is used"):
        a.node().destroy()


def test_order_and_moves():
    graph, x, a, b = chain()
    relu, add = a.node(), b.node()
    assert relu.isBefore(add) and add.isAfter(relu) and not relu.isBefore(relu)
    other = graph.create("aten::neg", [x]).insertBefore(relu)
    assert other.isBefore(relu)
    other.moveAfter(add)
    assert other.isAfter(add)
    graph.lint()
    relu.moveAfter(add)
    with pytest.raises(RuntimeError, match="not in scope"):
        graph.lint()


def test_dominance():
    graph = parse_ir("""graph(%c : bool, %x : Tensor):
  %a : Tensor = aten::relu(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %b : Tensor = aten::neg(%a)
      -> (%b)
    block1():
      %d : Tensor = aten::exp(%a)
      -> (%d)
  return (%r)
""")
    a, b, d, r = (graph.findNode(f"{k}") for k in ("aten::relu", "aten::neg", "aten::exp", "prim::If"))
    assert b.isDominatedBy(a) and r.isDominatedBy(a) and not d.isDominatedBy(b) and not a.isDominatedBy(b)
    assert b.isBefore(d) and a.isBefore(d) and not d.isAfter(r.owningBlock().returnNode())
    graph.lint()
    copy = graph.copy()
    copy.lint()
    assert str(copy) == str(graph)


def test_insert_picks_the_overload_and_converts():
    graph = Graph()
    x, n = graph.addInput("x"), graph.addInput("n").setType(IntType.get())
    assert graph.insert("aten::add", [n, 1]).type() == IntType.get()
    assert graph.insert("aten::add", [n, 1.5]).type() == FloatType.get()
    assert graph.insert("aten::add", [x, n]).node().getSchema().overload_name == "Scalar"
    assert graph.insert("aten::view", [x, n, 3]).node().input(1).node().kind() == "prim::ListConstruct"
    assert graph.insert("aten::max", [x, 1]).type().fields == ("values", "indices")
    assert graph.insert("aten::zeros", [[2, 3]], {"dtype": rt.float64}).node().kind() == "aten::zeros"
    assert graph.insert("aten::conv2d", [x, x], {"stride": 2}).node().namedInput("stride").type() == ListType.ofInts()
    with pytest.raises(RuntimeError, match="Arguments for call are not valid"):
        graph.insert("aten::add", ["a", x])
    with pytest.raises(RuntimeError, match="Unknown builtin op: aten::no_such_thing"):
        graph.insert("aten::no_such_thing", [x])
    graph.lint()


def test_a_scope_and_a_line_are_printed():
    text = "graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x), scope: __module.a/__module.a.b # /some where/f.py:3:7\n  return (%1)\n"
    graph = parse_ir(text)
    assert str(graph) == text
    assert next(iter(graph.nodes())).scopeName() == "__module.a/__module.a.b"
    assert graph.str(False) == text.replace(" # /some where/f.py:3:7", "")


def test_tensor_type_of_a_tensor():
    t = rt.ones(2, 3).t()
    assert TensorType.create_from_tensor(t).str() == "Float(3, 2, strides=[1, 3], requires_grad=0, device=cpu)"


@pytest.mark.parametrize(
    "text, message",
    [
        ("graph(%x : Tensor):\n  return (%y)\n", "Cannot find a variable with name 'y'"),
        ("graph(%x : Tensr):\n  return (%x)\n", "unknown type specifier"),
        ("nothing", "expected a graph"),
        ("graph(%x : Tensor):\n  %1 : Tensor = relu(%x)\n  return (%1)\n", "expected an operator"),
    ],
)
def test_what_is_no_graph(text, message):
    with pytest.raises(RuntimeError, match=message):
        parse_ir(text)
