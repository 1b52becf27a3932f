"""Backends: what makes something that runs of a captured graph.

A backend is a function of (graph, example inputs) that returns a function of the graph's inputs, which
returns the outputs.

In PyTorch: `torch/_dynamo/backends/registry.py`; there the graph is a `torch.fx.GraphModule`.
"""

from readtorch._dynamo.exc import InvalidBackend
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.tensorexpr_fuser import FuseTensorExprs, groups_of
from readtorch.csrc.jit.runtime.code_impl import Code
from readtorch.csrc.jit.runtime.graph_executor import DEFAULT_PASSES, GraphExecutor
from readtorch.csrc.jit.runtime.interpreter import run
from readtorch.csrc.jit.tensorexpr.kernel import kernel_of


def inductor(graph, example_inputs):
    """The passes of TorchScript, then the fuser. (PyTorch's Inductor also tiles, schedules and tunes.)"""
    for rewrite in DEFAULT_PASSES:
        rewrite(graph)
    FuseTensorExprs(graph)
    return graph_runner(graph)


def eager(graph, example_inputs):
    """The captured operators, one by one."""
    EliminateDeadCode(graph)
    return graph_runner(graph)


BACKENDS = {"inductor": inductor, "eager": eager, "aot_eager": eager}


def list_backends():
    """The names that `compile(backend=…)` knows."""
    return sorted(set(BACKENDS) - {"eager", "aot_eager"})


# What `compile(mode=…)` knows: how much PyTorch's Inductor tunes and keeps. Here there is one way.
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def check_mode(mode, backend):
    """Only Inductor has modes; the other backends take whatever is said."""
    if mode and backend == "inductor" and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")


def lookup_backend(backend):
    """A function (graph, example inputs) -> (the graph that runs, function of the list of inputs)."""
    if callable(backend):
        return lambda graph, inputs: (graph, _with_list(backend(graph, inputs)))
    if backend not in BACKENDS:
        raise InvalidBackend(backend)
    return BACKENDS[backend]


def _with_list(function):
    """A user's backend gets the inputs one by one; it may return one tensor."""

    def run_user(arguments):
        result = function(*arguments)
        return list(result) if isinstance(result, (tuple, list)) else [result]

    return run_user


def graph_runner(graph):
    """(graph, what runs it). Where the graph is one fused group, the function has `only_kernel`."""
    groups = groups_of(graph)
    for group in groups:
        kernel_of(group)  # the call that was captured has shown what goes through: compile at the next one
    code = Code(graph, "compiled", GraphExecutor)
    nodes = [n for n in graph.nodes() if n.kind() != "prim::Constant"]
    if len(nodes) == 1 and groups and groups[0].inputs() == graph.inputs() and graph.outputs() == groups[0].outputs():
        kernel, one = kernel_of(groups[0]), len(graph.outputs()) == 1

        def run_kernel(arguments):
            result = kernel(*arguments)
            return [result] if one else list(result)

        run_kernel.only_kernel = kernel
        return graph, run_kernel
    return graph, lambda arguments: run(code, arguments)
