"""Backends: what makes something that runs of a captured graph.

A backend is a function of (GraphModule, example inputs) that returns a function of the graph's inputs, which returns a tuple or
list. In PyTorch: `torch/_dynamo/backends/registry.py`.
"""

from readtorch._dynamo.exc import InvalidBackend
from readtorch._inductor.compile_fx import compile_fx, has_open_sizes, shapes_of, why_not


def eager(module, example_inputs):
    """The captured operators, one by one."""
    return module.forward


def aot_eager(module, example_inputs, decompositions=None, compiler=None):
    """AOTAutograd and nothing behind it: forward and backward as graphs of operators, which run one by one.

    A graph whose inputs may come with other sizes is traced for each. One that takes a number out of a tensor, or is given numbers that
    may change, which a trace would keep as they were, runs as it is. compiler: what makes something that runs of the graphs, for other
    backends.
    """
    # imported here: the other backends have no use for it
    from readtorch._functorch.aot_autograd import aot_module_simplified
    from readtorch._functorch.compilers import nop
    from readtorch._functorch.partitioners import min_cut_rematerialization_partition

    if why_not(module) is not None or takes_numbers(module):
        return module.forward
    compiled, any_size = {}, has_open_sizes(module)

    def run(*inputs):
        key = shapes_of(inputs) if any_size else None
        if key not in compiled:
            compiled[key] = aot_module_simplified(
                module,
                inputs,
                compiler or nop,
                partition_fn=min_cut_rematerialization_partition,
                decompositions=decompositions,
                keep_inference_input_mutations=True,
            )
        return compiled[key](*inputs)

    return run


def takes_numbers(module):
    """Whether inputs of a captured graph are numbers: those that Dynamo has seen change."""
    return any(
        isinstance(node.meta["example_value"], int | float) for node in module.graph.find_nodes(op="placeholder")
    )


def aot_eager_decomp_partition(module, example_inputs):
    """The same with graphs of simple operators, which the partitioner knows better: what a compiler would get."""
    from readtorch._decomp import core_aten_decompositions

    return aot_eager(module, example_inputs, core_aten_decompositions())


def inductor_numba(module, example_inputs):
    """AOTAutograd, then loops in numba: what is to become "inductor" when it is quicker everywhere."""
    from readtorch._inductor.compile_fx_inner import compile_fx_inner
    from readtorch._inductor.decomposition import select_decomp_table

    return aot_eager(module, example_inputs, select_decomp_table(), compile_fx_inner)


BACKENDS = {
    "inductor": compile_fx,
    "eager": eager,
    "aot_eager": aot_eager,
    "aot_eager_decomp_partition": aot_eager_decomp_partition,
    "inductor_numba": inductor_numba,
}
DEBUG = {"eager", "aot_eager", "aot_eager_decomp_partition", "inductor_numba"}  # which `list_backends` leaves out


def list_backends():
    """The names that `compile(backend=…)` knows."""
    return sorted(set(BACKENDS) - DEBUG)


# What `compile(mode=…)` knows: how much PyTorch's Inductor tunes and keeps. Here there is one way.
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def check_mode(mode, backend):
    """Only Inductor has modes; the other backends take whatever is said."""
    if mode and backend == "inductor" and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")


def lookup_backend(backend):
    """The function for a name; a function of the user's may return one tensor. Raises InvalidBackend."""
    if callable(backend):
        return lambda module, inputs: _as_sequence(backend(module, inputs))
    if backend not in BACKENDS:
        raise InvalidBackend(backend)
    return BACKENDS[backend]


def _as_sequence(function):
    def run_user(*arguments):
        result = function(*arguments)
        return result if isinstance(result, (tuple, list)) else (result,)

    return run_user
