"""From a GraphModule to something that runs: the passes of TorchScript, then the fuser.

In PyTorch: `torch/_inductor/compile_fx.py`; `torch/_functorch/aot_autograd.py` has traced the backward by then. Here each fused
group finds its own gradient, see `csrc/jit/tensorexpr/autodiff.py`.
"""

import operator

from readtorch._inductor.graph import GraphLowering
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.passes.tensorexpr_fuser import FuseTensorExprs, groups_of
from readtorch.csrc.jit.runtime.code_impl import Code
from readtorch.csrc.jit.runtime.graph_executor import DEFAULT_PASSES, GraphExecutor
from readtorch.csrc.jit.runtime.interpreter import run
from readtorch.csrc.jit.tensorexpr.kernel import kernel_of
from readtorch.csrc.jit.tensorexpr.lowerings import lowering_of
from readtorch.fx import Node

ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.truediv}
MOST_SHAPES = 16  # for which a graph whose sizes may change is lowered anew
# Operators whose call does not depend on the sizes that the lowering saw: their graphs serve other shapes.
ANY_SIZE = {
    f"aten::{name}"
    for name in (
        "linear addmm mm matmul bmm t transpose softmax log_softmax layer_norm dropout embedding sum mean amax relu gelu clone "
        "detach contiguous view reshape expand"
    ).split()
} | {"prim::Constant", "prim::TensorExprGroup", "prim::ListConstruct"}


def compile_fx(module, example_inputs):
    """A function of the graph's inputs, which returns a sequence. The first call runs the operators as they are."""
    return CompiledFxGraph(module)


class CompiledFxGraph:
    """What runs instead of a GraphModule.

    run(inputs): None before the first call, and where each shape has a function of its own (`by_shapes`). graph: what runs, once it
    is known. reason: why it is the module as it is, if it is so.
    """

    def __init__(self, module):
        self.module, self.by_shapes = module, {}
        self.run = self.graph = self.only_kernel = None
        self.reason = why_not(module)
        if self.reason is not None:
            self.run = self.as_it_is

    def __call__(self, *inputs):
        run = self.run or self.by_shapes.get(shapes_of(inputs))
        return self.lower(inputs) if run is None else run(inputs)

    def as_it_is(self, inputs):
        return self.module.forward(*inputs)

    def lower(self, inputs):
        """Run the operators, and keep what will run in their place."""
        lowering = GraphLowering(self.module)
        results = lowering.run(*inputs)
        self.reason = lowering.reason or _without_schema(lowering.graph)
        if self.reason is not None:
            self.run = self.as_it_is
            return results
        graph = self.graph = lowering.graph
        for rewrite in DEFAULT_PASSES:
            rewrite(graph)
        FuseTensorExprs(graph)
        made, self.only_kernel = runner_of(graph)
        if lowering.sizes_read or not serves_any_size(graph):
            self.keep_for_shapes(inputs, made)
        else:
            self.run = made
        return results

    def keep_for_shapes(self, inputs, made):
        if not has_open_sizes(self.module):  # a guard has seen to it that they are always the same
            self.run = made
        elif len(self.by_shapes) < MOST_SHAPES:
            self.by_shapes[shapes_of(inputs)] = made
        else:
            self.run = self.as_it_is


def shapes_of(inputs):
    return tuple([each._array.shape if hasattr(each, "_array") else None for each in inputs])


def why_not(module):
    """Why a module cannot be lowered: a node that computes no tensor, such as a switch of the grad mode or `item()`; a number that
    may change where it is no operand beside a tensor.
    """
    for node in module.graph.nodes:
        if node.op == "get_attr":
            return f"{node.name} is a graph that an operator takes"
        if node.op.startswith("call_") and "example_value" not in node.meta:
            return f"{node.target} computes no tensor"
        if node.op == "placeholder" and isinstance(node.meta["example_value"], (int, float)):
            if not all(map(_has_tensor_on_the_left, node.users)):
                return f"{node.name} is no operand beside a tensor"
    return None


def _has_tensor_on_the_left(node):
    left = node.args[0] if node.target in ARITHMETIC else None
    return isinstance(left, Node) and isinstance(left.meta.get("example_value"), TensorImpl)


def _without_schema(graph):
    """Why a graph cannot run: an operator with arguments that only the eager one takes, such as x ** True."""
    for node in graph.all_nodes():
        if node.kind().startswith("aten::") and node.maybeSchema() is None:
            return f"graphs have no {node.kind()}({', '.join(str(v.type()) for v in node.inputs())})"
    return None


def has_open_sizes(module):
    """Whether inputs of a captured graph may come with other sizes: Dynamo notes which."""
    return any(node.meta.get("dynamic_dims") for node in module.graph.nodes if node.op == "placeholder")


def serves_any_size(graph):
    return all(node.kind() in ANY_SIZE or lowering_of(node) is not None for node in graph.all_nodes())


def runner_of(graph):
    """(function of the list of inputs, the kernel of the graph's only node if it is one fused group)"""
    groups = groups_of(graph)
    for group in groups:
        kernel_of(group)  # the call that was captured has shown what goes through: compile at the next one
    nodes = [n for n in graph.nodes() if n.kind() != "prim::Constant"]
    if len(nodes) == 1 and groups and groups[0].inputs() == graph.inputs() and graph.outputs() == groups[0].outputs():
        kernel = kernel_of(groups[0])
        if len(graph.outputs()) == 1:
            return (lambda inputs: (kernel(*inputs),)), kernel
        return (lambda inputs: kernel(*inputs)), kernel
    code = Code(graph, "compiled", GraphExecutor)
    return (lambda inputs: run(code, inputs)), None
