"""Backends that run the graph's operators one by one: each adds one part of what Inductor does, to find out which is wrong.

In PyTorch: `torch/_dynamo/backends/debugging.py`.
"""

from .common import aot_autograd


def eager(module, example_inputs):
    """The captured operators."""
    return module.forward


def aot_eager(module, example_inputs):
    """AOTAutograd and nothing behind it: forward and backward as graphs of operators, cut where least is saved."""
    from readtorch._functorch.compilers import nop

    return aot_autograd(module, nop)


def aot_eager_default_partitioner(module, example_inputs):
    """The same with a forward that saves what eager's would."""
    from readtorch._functorch.compilers import nop
    from readtorch._functorch.partitioners import default_partition

    return aot_autograd(module, nop, partition_fn=default_partition)


def aot_eager_decomp_partition(module, example_inputs):
    """The same with graphs of simple operators, which the partitioner knows better: what a compiler would get."""
    from readtorch._decomp import core_aten_decompositions
    from readtorch._functorch.compilers import nop

    return aot_autograd(module, nop, decompositions=core_aten_decompositions())
