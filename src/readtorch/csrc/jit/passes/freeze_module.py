"""Makes constants of a module's attributes, where nothing changes them.

    before                                                     after
    %fc : __torch__.Linear = prim::GetAttr[name="fc"](%self)   %w : Float(2, 3, …) =
    prim::Constant[value=<Tensor>]() %w : Tensor = prim::GetAttr[name="weight"](%fc)            %y : Tensor =
    aten::linear(%x, %w, %b) %b : Tensor = prim::GetAttr[name="bias"](%fc) %y : Tensor = aten::linear(%x, %w,
    %b)

In PyTorch: `torch/csrc/jit/passes/freeze_module.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.api.module import ScriptModule
from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.csrc.jit.ir.alias_analysis import AliasDb
from readtorch.csrc.jit.ir.type import ClassType

from .common_subexpression_elimination import EliminateCommonSubexpression
from .constant_pooling import ConstantPooling
from .constant_propagation import ConstantPropagation
from .dead_code_elimination import EliminateDeadCode
from .inliner import inlined
from .lower_tuples import LowerSimpleTuples
from .peephole import PeepholeOptimize
from .shape_analysis import EraseShapeInformation

_CLEANING = (
    LowerSimpleTuples,
    ConstantPropagation,
    PeepholeOptimize,
    EliminateCommonSubexpression,
    ConstantPooling,
    EliminateDeadCode,
)


def freeze_module(object, preserved=()):
    """A new object with the methods `forward` and `preserved`, whose graphs hold what they read of `object`.

    preserved: names of methods and attributes to keep. What a method writes to stays an attribute.
    Raises ValueError for a name that the object does not have.
    """
    type = object.type
    for name in preserved:
        if not type.hasAttribute(name) and type.findMethod(name) is None:
            raise ValueError(f"Unknown name: {name}")
    names = [n for n in ("forward", *preserved) if type.findMethod(n) is not None]
    graphs = {name: inlined(type.getMethod(name).graph) for name in dict.fromkeys(names)}
    for graph in graphs.values():
        EraseShapeInformation(graph)  # what a trace saw need not hold for what is frozen
    kept = _Kept(object, preserved)
    for graph in graphs.values():
        kept.find_written(graph)
    for graph in graphs.values():
        _fold_attributes(graph, object, kept)
        for rewrite in _CLEANING:
            rewrite(graph)
    return _smaller_object(object, graphs, preserved)


class _Kept:
    """Which attributes stay: those that were asked for, and those that a graph writes to."""

    def __init__(self, object, preserved):
        self.places = {(id(object), name) for name in preserved}
        self.object = object

    def find_written(self, graph):
        alias_db = AliasDb(graph)
        objects = {graph.inputs()[0]: self.object}
        for node in graph.all_nodes():
            if node.kind() in ("prim::GetAttr", "prim::SetAttr") and node.input(0) in objects:
                owner = objects[node.input(0)]
                if node.kind() == "prim::SetAttr":
                    self.places.add((id(owner), node.s("name")))
                    continue
                value = owner.getattr(node.s("name"))
                if isinstance(value, ScriptObject):
                    objects[node.output()] = value
                elif self.is_written(node.output(), alias_db):
                    self.places.add((id(owner), node.s("name")))

    def is_written(self, value, alias_db):
        """Whether an operator writes to the attribute itself, or to a view of it."""
        seen, pending = set(), [value]
        while pending:
            value = pending.pop()
            seen.add(value)
            for use in value.uses():
                if value in alias_db.writes.get(use.user, ()):
                    return True
                schema = use.user.maybeSchema()
                is_view = schema is not None and any(r.alias_info for r in schema.returns)
                pending += [o for o in use.user.outputs() if is_view and o not in seen]
        return False


def _fold_attributes(graph, object, kept):
    """A constant for every attribute that is read and not kept."""
    objects = {graph.inputs()[0]: object}
    for node in graph.all_nodes():
        if node.kind() != "prim::GetAttr" or node.input(0) not in objects:
            continue
        owner, name = objects[node.input(0)], node.s("name")
        value = owner.getattr(name)
        if isinstance(value, ScriptObject):
            objects[node.output()] = value
        elif (id(owner), name) not in kept.places:
            _replace_by_constant(graph, node, value)


def _replace_by_constant(graph, node, value):
    if isinstance(value, TensorImpl):
        value = value.detach()
    with graph.insert_point_guard(node):
        try:
            constant = graph.insertConstant(value, node.output().type() if not isinstance(value, TensorImpl) else None)
        except RuntimeError:  # no constant can hold it
            return
    if node.output().hasDebugName():
        constant.setDebugName(node.output().debugName())
    node.output().replaceAllUsesWith(constant)


def _smaller_object(object, graphs, preserved):
    """An object of a new class with these methods, and of the old attributes only those that are still
    read.
    """
    unit = object.type.compilation_unit
    type = ClassType(unit.free_name(object.type.qualified), unit, is_module=True)
    unit.register_type(type)
    read = {
        n.s("name")
        for graph in graphs.values()
        for n in graph.all_nodes()
        if n.kind() in ("prim::GetAttr", "prim::SetAttr") and n.input(0) is graph.inputs()[0]
    }
    slots = []
    for attribute, value in zip(object.type.attributes, object.slots):
        if attribute.name in read or attribute.name in preserved:
            type.addAttribute(attribute.name, attribute.type, attribute.kind == "parameter", attribute.kind == "buffer")
            slots.append(value)
    for name, graph in graphs.items():
        old = object.type.getMethod(name)
        graph.inputs()[0].setType(type)
        method = unit.create_function(f"{type.qualified}.{name}", graph, mangle=False, defaults=old.defaults)
        method.argument_names = [a.name for a in old.schema.arguments]
        type.addMethod(method)
    return ScriptModule(type, slots)
