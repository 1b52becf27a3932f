"""A graph with its module's attributes as inputs: what a scripted or traced module is before an export.

    graph(%self, %x):                                    graph(%x, %fc.weight):
      %fc = prim::GetAttr[name="fc"](%self)                %y = aten::matmul(%x, %fc.weight)
      %w = prim::GetAttr[name="weight"](%fc)               return (%y)
      %y = aten::matmul(%x, %w)
      return (%y)

In PyTorch: `torch/csrc/jit/passes/lower_graph.cpp`. Explained in the chapter "Multiprocessing and
TensorBoard".
"""

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.csrc.jit.ir.type import TensorType
from readtorch.csrc.jit.passes.constant_propagation import ConstantPropagation, evaluate
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.inliner import inlined
from readtorch.csrc.jit.passes.loop_unrolling import UnrollConstantLoops
from readtorch.csrc.jit.passes.peephole import PeepholeOptimize


def lower_graph(script):
    """(graph, state) of a ScriptModule or ScriptFunction: state is name -> tensor, the inputs at the graph's
    end.
    """
    graph = inlined(script.graph)
    state = {}
    if hasattr(script, "_c"):
        _lower_attributes(graph, script._c, state)
    ConstantPropagation(graph)
    UnrollConstantLoops(graph)
    return graph, state


def _lower_attributes(graph, module, state):
    own = graph.inputs()[0]
    objects, inputs = {own: (module, "")}, {}
    for node in graph.all_nodes():
        if node.kind() != "prim::GetAttr" or node.input() not in objects:
            continue
        owner, prefix = objects[node.input()]
        name = prefix + node.s("name")
        value = owner.getattr(node.s("name"))
        if isinstance(value, ScriptObject):
            objects[node.output()] = (value, f"{name}.")
        elif node.output().type().isSubtypeOf(TensorType.get()):
            if name not in inputs:
                inputs[name], state[name] = graph.addInput(), value
            node.output().replaceAllUsesWith(inputs[name])
        else:
            with graph.insert_point_guard(node):
                node.output().replaceAllUsesWith(graph.insertConstant(value, node.output().type()))
    EliminateDeadCode(graph)
    if not own.hasUses():
        graph.eraseInput(0)


def specialize(graph, arguments):
    """Note types, and decide the branches that types decide (`if x.dim() != 4:`), until nothing changes any
    more.
    """
    branches = None
    while branches != (branches := len(graph.findAllNodes("prim::If"))):
        assign_types(graph, arguments)
        PeepholeOptimize(graph)
        ConstantPropagation(graph)


def assign_types(graph, arguments):
    """Run the nodes one by one and note the types of what they make; control flow and what follows it stay
    untyped.

    In PyTorch: `PropagateInputShapes` in `torch/csrc/jit/passes/shape_analysis.cpp`, which runs nodes, too.
    """
    known = dict(zip(graph.inputs(), [a.detach().clone() for a in arguments]))
    for node in [graph.param_node(), *graph.nodes()]:
        if node.kind() == "prim::Constant":
            known[node.output()] = node.constant_value()
        elif not node.blocks() and all(v in known for v in node.inputs()) and node.inputs():
            known.update(zip(node.outputs(), evaluate(node, [known[v] for v in node.inputs()]) or ()))
        for value in node.outputs():
            if isinstance(known.get(value), TensorImpl):
                value.inferTypeFrom(known[value])
