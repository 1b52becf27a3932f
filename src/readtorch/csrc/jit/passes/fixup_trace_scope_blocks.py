"""Turns what the tracer noted about module calls into methods.

The tracer writes one flat graph. Where a submodule is called it opens a block, and each parameter and
submodule has a prim::TracedAttr that gives its path:

    graph(%self, %x):                                       graph(%self, %x):
      %1 = prim::TracedAttr[scope="__module.fc"]()            %fc = prim::GetAttr[name="fc"](%self)
      %2 = prim::TracedAttr[scope="__module.fc.weight"]()     %y = prim::CallMethod[name="forward"](%fc, %x)
       = prim::TracedModuleForward[scope="__module.fc"]()     %z = aten::tanh(%y)
        block0():                                             return (%z)
          %3 = aten::linear(%x, %2)
          -> ()                                             and in the class of fc:
      %z = aten::tanh(%3)                                   graph(%self, %x):
      return (%z)                                             %weight = prim::GetAttr[name="weight"](%self)
                                                              %3 = aten::linear(%x, %weight)
                                                              return (%3)

In PyTorch: `torch/csrc/jit/passes/fixup_trace_scope_blocks.cpp`. Explained in the chapter "JIT: tracing".
"""

from readtorch.csrc.jit.frontend.schema_matching import match_schema
from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.ir.type import NoneType, TupleType

from .dead_code_elimination import EliminateDeadCode
from .lower_tuples import LowerSimpleTuples

_SCOPED = ("prim::TracedModuleForward", "prim::TracedFork")


def FixupTraceScopeBlocks(graph, self_type=None):
    """Rewrites a traced graph. self_type: the class of the module that was traced, which gets the methods of
    its submodules; without one every block is dissolved.
    """
    if self_type is not None:
        _AttributeReferences(graph).run()
    _LiftDefinitions().run(graph.block())
    _returns_to_tuples(graph.block())
    if self_type is None:
        _inline_scope_blocks(graph.block())
        _lift_and_convert(graph.block())
    else:
        _lift_and_convert(graph.block())
        _create_method_calls(graph)
        _clean_up_class(self_type)
    _clean_up(graph)


# ---------------------------------------------------------------------------- 1: attributes are asked of self


class _AttributeReferences:
    """A use of prim::TracedAttr becomes prim::GetAttr, from the `self` of the block that it is in."""

    def __init__(self, graph):
        self.graph = graph
        self.attributes = {n.s("scope"): n.output() for n in graph.nodes() if n.kind() == "prim::TracedAttr"}

    def run(self):
        self.add_self(self.graph.block())
        self.convert(self.graph.block(), "__module", self.graph.inputs()[0])
        for value in self.attributes.values():
            value.node().destroy()

    def add_self(self, block):
        """Each block of a module's call takes that module as its input."""
        for node in block.nodes():
            if node.kind() == "prim::TracedModuleForward":
                module = self.attributes[node.s("scope")]
                node.addInput(module)
                node.blocks()[0].addInput("self").setType(module.type())
            if node.kind() in _SCOPED:
                self.add_self(node.blocks()[0])

    def convert(self, block, prefix, own):
        """Rewrite the uses in a block whose module has the path `prefix` and is the value `own`.

        Returns the attributes of other modules that are used: they must be handed in.
        """
        unresolved, seen = [], {}
        for node in block.nodes():
            for inner in node.blocks():
                is_call = node.kind() == "prim::TracedModuleForward"
                scope = (node.s("scope"), inner.inputs()[0]) if is_call else (prefix, own)
                for value in self.convert(inner, *scope):
                    node.addInput(value)
            for i, value in enumerate(node.inputs()):
                if value in seen:
                    node.replaceInput(i, seen[value])
                elif value.node().kind() == "prim::TracedAttr":
                    node.replaceInput(i, self.resolve(block, value, prefix, own, unresolved))
                    seen[value] = node.input(i)
        return unresolved

    def resolve(self, block, value, prefix, own, unresolved):
        path = value.node().s("scope")
        if path != prefix and not path.startswith(prefix + "."):
            unresolved.append(value)
            return block.addInput().copyMetadata(value)
        with self.graph.insert_point_guard(block.paramNode().next()):
            for name in path[len(prefix) + 1 :].split(".") if path != prefix else ():
                own = self.graph.insertNode(self.graph.createGetAttr(own, name)).output()
        return own


# ------------------------------------------------------------------------------- 2: values leave their blocks


class _LiftDefinitions:
    """A value that is used outside of its block becomes an output of the block and of the node around it."""

    def __init__(self):
        self.lifted = {}

    def run(self, block):
        for node in [*block.nodes(), block.returnNode()]:
            for i, value in enumerate(node.inputs()):
                value = self.lifted.get(value, value)
                node.replaceInput(i, value)
                if value.node().owningBlock() is not block:
                    self.lifted[value] = _lift(value, _ancestors(block))
                    node.replaceInput(i, self.lifted[value])
            if node.kind() in _SCOPED:
                self.run(node.blocks()[0])


def _ancestors(block):
    found = {block}
    while block.owningNode() is not None:
        block = block.owningNode().owningBlock()
        found.add(block)
    return found


def _lift(value, blocks):
    """Make `value` an output of the blocks around it until one of `blocks` is reached."""
    home = value.node().owningBlock()
    while home not in blocks:
        home.registerOutput(value)
        owner = home.owningNode()
        value = owner.addOutput().setType(value.type())
        home = owner.owningBlock()
    return value


# ------------------------------------------------------------------------------------- 3: one result per call


def _returns_to_tuples(block):
    for node in block.nodes():
        if node.kind() not in _SCOPED:
            continue
        inner = node.blocks()[0]
        _returns_to_tuples(inner)
        if node.kind() == "prim::TracedModuleForward":
            _return_one(node, inner)


def _return_one(node, block):
    """Several results become a tuple, no result becomes None."""
    graph = node.owningGraph()
    if len(block.outputs()) == 1:
        return
    if not block.outputs():
        block.registerOutput(block.appendNode(graph.createNone()).output())
        node.addOutput().setType(NoneType.get())
        return
    values, outputs = block.outputs(), node.outputs()
    whole = block.appendNode(graph.createTuple(values)).output()
    for _ in values:
        block.eraseOutput(0)
    block.registerOutput(whole)
    result = node.addOutput().setType(TupleType([o.type() for o in outputs]))
    unpack = graph.createTupleUnpack(result).insertAfter(node)
    for old, new in zip(outputs, unpack.outputs()):
        old.replaceAllUsesWith(new)
    for _ in outputs:
        node.eraseOutput(0)


# ----------------------------------------------------------------------------------- 4: blocks become methods


def _graph_of_block(node):
    """The node's block as a graph: values from outside become inputs, of the graph and of the node."""
    graph = Graph()
    handed_in = {}

    def from_outside(value):
        if value not in handed_in:
            handed_in[value] = graph.addInput().copyMetadata(value)
            node.addInput(value)
        return handed_in[value]

    graph.block().cloneFrom(node.blocks()[0], from_outside)
    return graph


def _lift_and_convert(block):
    for node in block.nodes():
        if node.kind() in _SCOPED:
            _lift_and_convert(node.blocks()[0])
            node.g_("Subgraph", _graph_of_block(node))
            node.eraseBlock(0)


def _inline_scope_blocks(block):
    for node in block.nodes():
        for inner in node.blocks():
            _inline_scope_blocks(inner)
        if node.kind() == "prim::TracedModuleForward":
            body, graph = _graph_of_block(node), node.owningGraph()
            with graph.insert_point_guard(node):
                results = graph.insertGraph(body, node.inputs())
            for old, new in zip(node.outputs(), results):
                old.replaceAllUsesWith(new)
            node.destroy()


def _create_method_calls(graph):
    for node in graph.nodes():
        if node.kind() == "prim::TracedFork":
            _create_method_calls(node.g("Subgraph"))
        elif node.kind() == "prim::TracedModuleForward":
            _create_method_calls(node.g("Subgraph"))
            method = add_method(node.input(0).type(), "forward", node.g("Subgraph"))
            with graph.insert_point_guard(node):
                matched = match_schema(method.schema, node.sourceRange(), graph, node.inputs())
                result = graph.insertMethodCall(method.name, method.schema, matched.inputs)
            result.node().setSourceRange(node.sourceRange())
            node.output().replaceAllUsesWith(result)
            node.destroy()


def add_method(type, name, graph):
    """A new method of a class; if the name is taken: name1, name2 …"""
    free, number = name, 0
    while type.findMethod(free) is not None:
        number += 1
        free = f"{name}{number}"
    method = type.compilation_unit.create_function(f"{type.qualified}.{free}", graph, mangle=False)
    type.addMethod(method)
    return method


# ------------------------------------------------------------------------------------------------ 5: cleaning


def _clean_up(graph):
    for node in graph.nodes():
        if node.kind() == "prim::TracedFork":
            _clean_up(node.g("Subgraph"))
            _real_fork(node)
    LowerSimpleTuples(graph)
    EliminateDeadCode(graph)


def _real_fork(node):
    fork = node.owningGraph().create("prim::fork", node.inputs(), node.outputsSize()).insertBefore(node)
    fork.copyAttributes(node).copyMetadata(node)
    for old, new in zip(node.outputs(), fork.outputs()):
        new.setType(old.type())
        old.replaceAllUsesWith(new)
    node.destroy()


def _clean_up_class(type):
    for method in type.methods.values():
        _clean_up(method.graph)
    for attribute in type.attributes:
        if attribute.type.is_module():
            _clean_up_class(attribute.type)
