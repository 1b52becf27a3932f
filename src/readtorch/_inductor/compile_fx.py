"""From a captured graph to something that runs: graphs of forward and backward, lowered to loops, fused, written as numba code.

In PyTorch: `torch/_inductor/compile_fx.py`.
"""

import readtorch as rt
from readtorch._dynamo.backends.common import aot_autograd
from readtorch._functorch._aot_autograd.utils import make_boxed_func
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SymBool, SymInt
from readtorch.fx.experimental.symbolic_shapes import free_symbols

from .decomposition import select_decomp_table
from .output_code import CompiledFxGraph

generated = []  # a CompiledFxGraph for each graph that was compiled while a test or a reader looked on, see `recording`


class recording:
    """`with recording() as graphs:` each graph that is compiled inside is in the list."""

    def __enter__(self):
        generated.append([])
        return generated[-1]

    def __exit__(self, *_):
        generated.pop()


def compile_fx(module, example_inputs):
    """A function of the inputs of a graph that Dynamo has captured: AOTAutograd traces it, and `compile_fx_inner` compiles the traces.

    Sizes that Dynamo has left open are open in the code, too.
    """
    return aot_autograd(module, compile_fx_inner, select_decomp_table())


def compile_fx_inner(module, example_inputs):
    """A boxed function of the graph's inputs. It is the graph as it is where nothing can be made of its tensors."""
    values = [node.meta.get("val") for node in module.graph.nodes]
    if not all(map(serves, values)) or not binds_its_sizes(module.graph):
        return make_boxed_func(module.forward)
    compiled = CompiledFxGraph(module, example_inputs)
    for graphs in generated:
        graphs.append(compiled)
    return compiled


def binds_its_sizes(graph):
    """Whether each symbol is an input, or the size of one: code could not read it else."""
    inputs = [node.meta.get("val") for node in graph.find_nodes(op="placeholder")]
    plain = [n for value in inputs for n in (value.shape if isinstance(value, Tensor) else [value])]
    read = {n.node.expr.symbol for n in plain if isinstance(n, SymInt)}
    return all(free_symbols(value) <= read for value in inputs)


def serves(value):
    """Whether a node's value is a plain tensor of the CPU, a number, or none."""
    if isinstance(value, list | tuple):
        return all(map(serves, value))
    if isinstance(value, SymBool):
        return False
    return not isinstance(value, Tensor) or (value.device.type == "cpu" and value.layout is rt.strided)
