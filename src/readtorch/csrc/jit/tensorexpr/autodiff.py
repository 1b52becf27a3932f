"""The gradient of a fused group, as another graph, which is fused as well.

Note [ A gradient by tracing ] No formula is written here. The group's operators are run once with autograd
on, then backward, and the tracer records both: the operators of the forward pass and those that the
formulas call. In that graph the gradients depend on nothing but the group's inputs and the incoming
gradients. So nothing else need be saved: the kernel of the backward pass computes the forward values again,
which costs less than reading them from memory.

In PyTorch: TorchScript has a table of symbolic formulas (`torch/csrc/jit/runtime/autodiff.cpp`,
`symbolic_script.cpp`); torch.compile traces forward and backward as here
(`torch/_functorch/aot_autograd.py`) and decides what to save by a minimum cut
(`torch/_functorch/partitioners.py`).
"""

from readtorch.aten.functions import at
from readtorch.c10.dispatch_key import HISTORY
from readtorch.c10.local_dispatch_key_set import AutoGradMode, grad_mode_enabled
from readtorch.c10.tensor_impl import NO_EDGE, TensorImpl, detached, wrap
from readtorch.csrc.autograd import engine
from readtorch.csrc.autograd.node import Node, next_sequence_nr, notify_watchers, watchers
from readtorch.csrc.autograd.saved_variable import SavedVariable
from readtorch.csrc.autograd.variable import gradient_edge
from readtorch.csrc.jit.frontend import trace_type, tracer  # noqa: F401  the first makes the kernels
from readtorch.csrc.jit.ir.constants import type_of_value
from readtorch.csrc.jit.passes.common_subexpression_elimination import EliminateCommonSubexpression
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.peephole import PeepholeOptimize


class DifferentiableGraphBackward(Node):
    """The one node that a fused group leaves in the autograd graph."""

    __slots__ = ("group", "saved_inputs", "numbers", "needs")

    namespace = "torch::jit::(anonymous namespace)::"
    saved_names = ("saved_inputs",)

    def apply(self, *grads):
        if all(g is None for g in grads):
            return (None,) * len(self._next_edges)
        values = [n if s is None else s.unpack(self) for s, n in zip(self.saved_inputs, self.numbers)]
        if grad_mode_enabled():
            return again_differentiable(self.group, values, self.needs, grads)
        grads = [zeros_for(self, k) if g is None else g for k, g in enumerate(grads)]
        return gradients(self.group, values, self.needs, grads)

    def release_variables(self):
        for saved in self.saved_inputs:
            if saved is not None:
                saved.release()


def zeros_for(node, k):
    """The gradient of an output that backward did not reach."""
    from readtorch.c10 import scalar_type

    return at.zeros(node._shape[k], dtype=scalar_type.by_numpy[node._dtype[k]])


def differentiable(group, values, edges):
    """Run the group and record one node for it."""
    results = group.compute(values)
    if results is None:
        return group.unfused(values)
    outputs = [wrap(r) for r in results]
    node = DifferentiableGraphBackward.__new__(DifferentiableGraphBackward)
    node._seq_nr, node._hooks, node._next_edges = next_sequence_nr(), None, tuple(edges)
    node.group = group
    node.saved_inputs = [SavedVariable(v) if isinstance(v, TensorImpl) else None for v in values]
    node.numbers = [None if isinstance(v, TensorImpl) else v for v in values]
    node.needs = tuple([edge is not NO_EDGE for edge in edges])
    node._shape, node._dtype = [r.shape for r in results], [r.dtype for r in results]
    for k, (output, depends) in enumerate(zip(outputs, outputs_with_gradient(group, node.needs))):
        if depends and output._array.dtype.kind == "f":
            output._edge = (node, k)
            output._keys |= HISTORY
    if watchers:
        notify_watchers(node)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def outputs_with_gradient(group, needs):
    """Which outputs are computed from inputs that need a gradient, by way of floating-point numbers."""
    if needs not in group.depends:
        reached = {value for value, need in zip(group.graph.inputs(), needs) if need}
        for node in group.graph.nodes():
            if node.kind() != "aten::detach" and not reached.isdisjoint(node.inputs()):
                reached.update(value for value in node.outputs() if _scalar_type(value) not in WHOLE)
        group.depends[needs] = [value in reached for value in group.graph.outputs()]
    return group.depends[needs]


WHOLE = ("Byte", "Char", "Short", "Int", "Long", "Bool")


def _scalar_type(value):
    return value.type().scalarType() if hasattr(value.type(), "scalarType") else None


def again_differentiable(group, values, needs, grads):
    """The gradients as a graph of their own (create_graph): the unfused operators, walked by the engine."""
    group.note("a gradient that is to be differentiated again: its operators ran one by one")
    # One input may have been made from another: the walk must end at the first, where the outer one goes on.
    values = [v.view_as(v) if need else v for v, need in zip(values, needs)]
    outputs = group.unfused(values)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    roots = [(gradient_edge(o), g) for o, g in zip(outputs, grads) if g is not None]
    wanted = [gradient_edge(v) for v, need in zip(values, needs) if need]
    found = iter(engine.execute([r[0] for r in roots], [r[1] for r in roots], True, True, wanted))
    return tuple([next(found) if need else None for need in needs])


# ------------------------------------------------------------------------------------------- first derivative


def gradients(group, values, needs, grads):
    """A gradient for each input that needs one, from a graph that the first call makes."""
    shapes = tuple([(v._array.dtype, v._array.shape) if isinstance(v, TensorImpl) else type(v) for v in values])
    ranks = tuple([(v._array.dtype, v._array.ndim) if isinstance(v, TensorImpl) else type(v) for v in values])
    same = len({v._array.shape for v in values if isinstance(v, TensorImpl) and v._array.ndim}) == 1
    compute = group.gradients.get((needs, ranks)) if same else None
    compute = compute or group.gradients.get((needs, shapes))
    if compute is None:
        compute = GradientGraph(*trace_gradients(group.graph, values, needs, grads))
        group.gradients[needs, ranks if same and not compute.has_sizes else shapes] = compute
    return compute(values, grads)


class GradientGraph:
    """What computes the gradients. graph: the optimised graph. found: whether each input has one."""

    def __init__(self, graph, found):
        from readtorch.csrc.jit.passes.tensorexpr_fuser import (  # they fuse what is run by this module
            FuseTensorExprs,
            groups_of,
        )
        from readtorch.csrc.jit.runtime.code_impl import Code

        from .kernel import kernel_of

        for rewrite in (EliminateDeadCode, PeepholeOptimize, EliminateCommonSubexpression, EliminateDeadCode):
            rewrite(graph)
        self.traced = graph.copy()
        self.has_sizes = any(n.kind() == "prim::ListConstruct" for n in graph.all_nodes())
        FuseTensorExprs(graph, min_group_size=1)
        EliminateDeadCode(graph)
        self.graph, self.found = graph, found
        for group in groups_of(graph):
            kernel_of(group)  # nothing is to be watched: compiled at the first call
        self.code = Code(graph, "backward")
        self.kernel = self.only_kernel()

    def only_kernel(self):
        """(kernel, numbers of its inputs) if the graph is one group and nothing else, else None."""
        nodes = [n for n in self.graph.nodes() if n.kind() != "prim::Constant"]
        if len(nodes) != 1 or nodes[0].kind() != "prim::TensorExprGroup" or self.graph.outputs() != nodes[0].outputs():
            return None
        inputs = self.graph.inputs()
        return nodes[0].getOperator().operation(nodes[0]), [inputs.index(v) for v in nodes[0].inputs()]

    def __call__(self, values, grads):
        from readtorch.csrc.jit.runtime.interpreter import run

        arguments = [*values, *grads]
        if self.kernel is not None:
            results = self.kernel[0](*[arguments[i] for i in self.kernel[1]])
            results = results if isinstance(results, tuple) else (results,)
        else:
            results = run(self.code, arguments)
        results = iter(results)
        return tuple([next(results) if found else None for found in self.found])


class JointTrace(tracer.TracingState):
    """A trace that also follows what autograd has saved: unpacked outputs are new tensors over old arrays."""

    def __init__(self):
        super().__init__()
        self.arrays = {}  # id of an array -> (the array, Value)

    def remember(self, thing):
        if isinstance(thing, TensorImpl) and id(thing) in self.values:
            self.arrays.setdefault(id(thing._array), (thing._array, self.values[id(thing)][1]))

    def set_value(self, thing, value):
        super().set_value(thing, value)
        self.remember(thing)

    def _output(self, value, tensor):
        super()._output(value, tensor)
        self.remember(tensor)

    def get_value(self, thing):
        if isinstance(thing, TensorImpl) and id(thing) not in self.values and id(thing._array) in self.arrays:
            return self.arrays[id(thing._array)][1]
        return super().get_value(thing)


def trace_gradients(graph, values, needs, grads):
    """(graph from inputs and incoming gradients to gradients, whether each input has one)"""
    state = JointTrace()
    with tracer._Tracing(state), AutoGradMode(True):
        env, leaves = {}, []
        for value, worth, need in zip(graph.inputs(), values, needs):
            env[value] = follow(state, worth, need)
            leaves.append(env[value])
        given = [follow(state, g, False) for g in grads]
        for node in graph.nodes():
            env[node.output()] = evaluate(node, env)
        roots = [(gradient_edge(env[v]), g) for v, g in zip(graph.outputs(), given) if env[v]._edge is not NO_EDGE]
        wanted = [gradient_edge(leaf) for leaf, need in zip(leaves, needs) if need]
        found = iter(engine.execute([e for e, _ in roots], [g for _, g in roots], True, True, wanted))
        results = [next(found) if need else None for need in needs]
        for result in results:
            if result is not None:
                state.graph.registerOutput(state.get_value(result))
    return state.graph, [r is not None for r in results]


def follow(state, worth, needs_grad):
    """A stand-in for an input, which the trace knows. A number becomes one that remembers its Value."""
    value = state.graph.addInput()
    if not isinstance(worth, TensorImpl):
        value.setType(type_of_value(worth))
        numbers = {float: tracer.TracedFloat, int: tracer.TracedInt}
        return numbers[type(worth)](worth, value, state) if type(worth) in numbers else worth
    leaf = detached(worth)
    if needs_grad:
        leaf._edge = None
        leaf._keys |= HISTORY
    state.set_value(leaf, state.paused(lambda: value.inferTypeFrom(leaf)))
    return leaf


def evaluate(node, env):
    if node.kind() == "prim::Constant":
        return node.constant_value()
    if node.kind() == "prim::ListConstruct":
        return [env[v] for v in node.inputs()]
    return node.getOperator().operation(node)(*[env[v] for v in node.inputs()])
