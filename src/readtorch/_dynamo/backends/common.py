"""AOTAutograd for backends: a captured graph is traced, with open sizes where Dynamo has left them open.

Note [ One graph, several traces ]
What Dynamo leaves open, sizes and whole numbers, is a symbol in the trace (`symbolic_inputs.py`). The trace may ask more than Dynamo did, as
whether two sizes are equal: these are its guards, and inputs that they refuse get a trace of their own. So do other floats, which
are constants of a trace. Sixteen traces are the limit; further inputs run as the graph was captured. A number that is only ever an operand
beside a tensor has no guard: it enters as a tensor without dimensions.

A write to an input may show in another one that shares its memory, which a graph without writes cannot say: then the captured one runs.

In PyTorch: `torch/_dynamo/backends/common.py`; guards of the trace are Dynamo's there, and what they refuse is captured once more.
"""

import operator

import numpy as np

import readtorch
from readtorch.aten.python_arg_parser import number_as_tensor
from readtorch.c10.dispatch_key import TANGENT
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls
from readtorch.c10.storage_impl import owner_of
from readtorch.c10.tensor_impl import TensorImpl, wrap
from readtorch.fx import Node

from .symbolic_inputs import SymbolicInputs

MOST_TRACES = 16
FLOATS = {readtorch.float32, readtorch.float64}
BESIDE_A_TENSOR = {operator.add, operator.sub, operator.mul, operator.truediv}  # tensor + number


def aot_autograd(module, compiler, decompositions=None, partition_fn=None):
    """A function of the graph's inputs: forward and backward as `compiler` makes them. It runs without a trace what has none.

    compiler: (GraphModule, fake tensors) -> a function of tensors. decompositions: operator -> what is traced in its place. partition_fn:
    what cuts the joint graph, the minimum cut if None.
    """
    # imported here: the other backends have no use for it
    from readtorch._functorch.aot_autograd import aot_module_simplified
    from readtorch._functorch.partitioners import min_cut_rematerialization_partition

    if why_not(module) is not None:
        return module.forward

    def trace(traced, inputs):
        return aot_module_simplified(
            traced,
            inputs,
            compiler,
            partition_fn=partition_fn or min_cut_rematerialization_partition,
            decompositions=decompositions,
            keep_inference_input_mutations=True,
        )

    return (TracedForEach if has_several_kinds(module) else traced_once)(module, trace)


def traced_once(module, trace):
    """A function that is traced at its first call."""
    compiled = None

    def run(*inputs):
        nonlocal compiled
        if compiled is None:
            compiled = trace(module, inputs)
        return compiled(*inputs)

    return run


class TracedForEach:
    """See Note [ One graph, several traces ]. compiled: [(function that takes inputs to those of a trace, or to None, the trace)]."""

    def __init__(self, module, trace):
        self.module, self.trace, self.compiled = module, trace, []
        self.placeholders = module.graph.find_nodes(op="placeholder")
        dtypes = map(dtype_beside, self.placeholders)
        self.operands = {k: dtype for k, dtype in enumerate(dtypes) if dtype is not None}
        self.written = [k for k, node in enumerate(self.placeholders) if node.meta.get("is_written")]

    def __call__(self, *inputs):
        if self.written and shares_memory(inputs, self.written):
            return self.module.forward(*inputs)
        if self.operands:
            inputs = [as_operand(x, self.operands[k]) if k in self.operands else x for k, x in enumerate(inputs)]
        for bind, compiled in self.compiled:
            bound = bind(*inputs)
            if bound is not None:
                return compiled(*bound)
        return self.first_call(inputs)

    def first_call(self, inputs):
        if len(self.compiled) == MOST_TRACES:
            return self.module.forward(*inputs)
        symbolic = SymbolicInputs(self.placeholders, inputs)
        compiled = self.trace(symbolic.taken_by(self.module), symbolic.fakes)
        bind = symbolic.binding()
        self.compiled.append((bind, compiled))
        return compiled(*bind(*inputs))


def shares_memory(inputs, written):
    """Whether another input lies in the memory of one that the graph writes to."""
    owners = [owner_of(x._array) if hasattr(x, "_array") else None for x in inputs]
    return any(owners[k] is other for k in written for i, other in enumerate(owners) if i != k)


def as_operand(number, dtype):
    """A number as the tensor that an operator would make of it."""
    with np.errstate(over="ignore"):  # a number that is none in float32 is infinite there
        return wrap(np.asarray(number_as_tensor(number)._array, dtype.numpy))


def numbers_of(placeholders):
    """Which inputs are numbers."""
    return [k for k, node in enumerate(placeholders) if isinstance(node.meta["example_value"], int | float)]


def dtype_beside(node):
    """The dtype of the tensors beside which a number stands; None if there are several, or it has other uses."""
    if not isinstance(node.meta["example_value"], int | float):
        return None
    found = {dtype_on_the_left(user, node) for user in node.users}
    (dtype,) = found if len(found) == 1 else (None,)
    return dtype if dtype in FLOATS else None


def dtype_on_the_left(user, number):
    left = user.args[0] if user.target in BESIDE_A_TENSOR else None
    example = left.meta.get("example_value") if isinstance(left, Node) else None
    return example.dtype if isinstance(example, TensorImpl) and left is not number else None


def has_several_kinds(module):
    placeholders = module.graph.find_nodes(op="placeholder")
    has_writes = len(placeholders) > 1 and any(node.meta.get("is_written") for node in placeholders)
    return has_writes or has_open_sizes(placeholders) or bool(numbers_of(placeholders))


def has_open_sizes(placeholders):
    """Whether inputs of a captured graph may come with other sizes: Dynamo notes which."""
    return any(node.meta.get("dynamic_dims") for node in placeholders)


def why_not(module):
    """Why a graph is not traced: a node that computes no tensor, such as a switch of the grad mode or `item()`; tangents. (That there is a
    level of forward mode is guarded by Dynamo.)
    """
    if (tls.mask if threads_with_modes else DEFAULT_MASK) & TANGENT:
        return "inputs may have tangents, which operators compute"
    for node in module.graph.nodes:
        if node.op == "get_attr":
            return f"{node.name} is a graph that an operator takes"
        if node.op.startswith("call_") and "example_value" not in node.meta:
            return f"{node.target} computes no tensor"
    return None
