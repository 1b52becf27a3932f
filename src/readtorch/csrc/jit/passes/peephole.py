"""Small rewritings, each of which looks at one node and those that make its inputs.

    before                                       after
    %2 : Tensor = aten::t(%x)                    (users of %3 use %x)
    %3 : Tensor = aten::t(%2)

In PyTorch: `torch/csrc/jit/passes/peephole.cpp`, `peephole_list_idioms.cpp`, `peephole_non_tensor.cpp`.
Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.alias_analysis import AliasDb
from readtorch.csrc.jit.ir.enums import number_of_dtype
from readtorch.csrc.jit.ir.type import IntType, NoneType, OptionalType, TensorType

from .dead_code_elimination import EliminateDeadCode


def PeepholeOptimize(graph, disable_shape_peepholes=False):
    """Applies the rules below until none fits. Returns whether one did.

    disable_shape_peepholes: a graph that is inlined into others must not rely on what one trace has seen.
    """
    rules = {**RULES, **({} if disable_shape_peepholes else SHAPE_RULES)}
    changed = False
    while _once(graph, rules):
        changed = True
    if changed:
        EliminateDeadCode(graph)
    return changed


def _once(graph, rules):
    nodes, changed = [n for n in graph.all_nodes() if n.kind() in rules], False
    alias_db = AliasDb(graph) if nodes else None
    for node in nodes:
        for rule in rules[node.kind()] if node.owningBlock() is not None else ():
            value = rule(node, graph, alias_db)
            if value is not None and value is not node.output():
                node.output().replaceAllUsesWith(value)
                changed = changed or bool(value.uses())
                node.destroy()
                break
    return changed


RULES, SHAPE_RULES = {}, {}


def rule(*kinds, table=RULES):
    """Decorator: `function(node, graph, alias_db)` gives a Value that can stand for the node's output, or
    None.
    """

    def declare(function):
        for kind in kinds:
            table.setdefault(kind, []).append(function)
        return function

    return declare


def _made_by(value, kind):
    return value.node() if value.node().kind() == kind else None


def _constant(graph, node, value, type=None):
    with graph.insert_point_guard(node):
        return graph.insertConstant(value, type, node.sourceRange())


# ---------------------------------------------------------------------------------------------------- numbers


@rule("aten::Int", "aten::Float", "aten::IntImplicit", "aten::FloatImplicit", "aten::ScalarImplicit")
def number_to_tensor_and_back(node, graph, alias_db):
    """Int(NumToTensor(n)) is n"""
    made = _made_by(node.input(0), "prim::NumToTensor")
    if made is not None and made.input(0).type() == node.output().type():
        return made.input(0)
    return None


@rule("aten::Int", "aten::Float", "aten::Bool")
def conversion_to_the_same(node, graph, alias_db):
    """Int(n) is n for an int n"""
    return node.input(0) if node.input(0).type() == node.output().type() else None


@rule("aten::mul", "aten::div", "aten::add", "aten::sub")
def neutral_element(node, graph, alias_db):
    """x * 1, x / 1, x + 0, x - 0 is x, for ints, and for tensors whose dtype does not change"""
    value, other = node.input(0), node.input(1)
    neutral = 1 if node.kind() in ("aten::mul", "aten::div") else 0
    if not other.isConstant() or type(other.toIValue()) is not int or other.toIValue() != neutral:
        return None
    if isinstance(value.type(), IntType):
        return value if node.kind() != "aten::div" else None
    same = (
        isinstance(value.type(), TensorType)
        and value.type().dtype() is not None
        and value.type().dtype().is_floating_point
    )
    return value if same and not alias_db.hasWriters(node) and not alias_db.escapes(node.output()) else None


@rule("aten::__not__")
def negated_comparison(node, graph, alias_db):
    """not (a < b) is a >= b, for ints (with floats there is NaN)"""
    inverse = {
        "aten::eq": "aten::ne",
        "aten::ne": "aten::eq",
        "aten::lt": "aten::ge",
        "aten::le": "aten::gt",
        "aten::gt": "aten::le",
        "aten::ge": "aten::lt",
    }
    made = node.input(0).node()
    if made.kind() not in inverse or not all(isinstance(v.type(), IntType) for v in made.inputs()):
        return None
    with graph.insert_point_guard(node):
        return graph.insert(inverse[made.kind()], made.inputs())


# ------------------------------------------------------------------------------------------------------- None


@rule("aten::__is__", "aten::__isnot__")
def compared_with_none(node, graph, alias_db):
    """x is None, where the type decides it"""
    none, other = node.inputs() if node.input(0).mustBeNone() else node.inputs()[::-1]
    if not none.mustBeNone() or not (other.mustBeNone() or other.mustNotBeNone()):
        return None
    return _constant(graph, node, other.mustBeNone() == (node.kind() == "aten::__is__"))


@rule("prim::unchecked_unwrap_optional", "aten::_unwrap_optional")
def unwrapped_anyway(node, graph, alias_db):
    """Taking None out of a type that has none"""
    value = node.input(0)
    return value if not isinstance(value.type(), (OptionalType, NoneType)) else None


# ------------------------------------------------------------------------------------------ what follows from a type


def _fact(kind, read):
    def from_type(node, graph, alias_db):
        type = node.input(0).type()
        value = read(type) if isinstance(type, TensorType) else None
        return None if value is None else _constant(graph, node, value)

    rule(kind, table=SHAPE_RULES)(from_type)


_fact("prim::dtype", lambda t: None if t.dtype() is None else number_of_dtype[t.dtype()])
_fact("prim::device", lambda t: t.device())
_fact("prim::is_cuda", lambda t: None if t.device() is None else t.device().type == "cuda")
_fact("aten::dim", lambda t: t.dim())
_fact("aten::is_floating_point", lambda t: None if t.dtype() is None else t.dtype().is_floating_point)
_fact("aten::is_complex", lambda t: None if t.dtype() is None else t.dtype().is_complex)


# ---------------------------------------------------------------------------------------------------- tensors


@rule("aten::t")
def transposed_twice(node, graph, alias_db):
    """x.t().t() is x"""
    made = _made_by(node.input(0), "aten::t")
    return None if made is None else made.input(0)


@rule("aten::type_as")
def type_it_has(node, graph, alias_db):
    """x.type_as(y) is x if both have the same dtype and device"""
    mine, other = (v.type() for v in node.inputs())
    known = isinstance(mine, TensorType) and mine.dtype() is not None and mine.device() is not None
    return node.input(0) if known and (mine.dtype(), mine.device()) == (other.dtype(), other.device()) else None


# ------------------------------------------------------------------------------------------------------ lists


def _fresh_list(value, alias_db):
    """The node that makes a list which is never written to, or None."""
    made = _made_by(value, "prim::ListConstruct")
    return made if made is not None and not alias_db.hasWriters(value) else None


@rule("aten::len")
def length_of_new_list(node, graph, alias_db):
    made = _fresh_list(node.input(0), alias_db)
    return None if made is None else _constant(graph, node, made.inputsSize())


@rule("aten::__getitem__")
def element_of_new_list(node, graph, alias_db):
    """[a, b][1] is b"""
    made, index = _fresh_list(node.input(0), alias_db), node.input(1).toIValue()
    if made is None or not isinstance(index, int) or not -made.inputsSize() <= index < made.inputsSize():
        return None
    return made.input(index)
