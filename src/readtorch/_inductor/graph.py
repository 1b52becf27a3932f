"""A GraphModule's operators as a graph of TorchScript, whose passes and fuser then serve.

The module runs once, as usual, and the tracer of the chapter "JIT: tracing" records it. Nothing can be missed: Dynamo has left
no Python in the module but calls of operators, and whatever else decided about them has a guard.

In PyTorch: `torch/_inductor/graph.py` (`GraphLowering` runs an fx graph, too, and what its operators return are nodes of
Inductor's own graph).
"""

import numpy as np

from readtorch.aten.python_arg_parser import number_as_tensor
from readtorch.c10.dispatch_key import WRAPPED_NUMBER
from readtorch.c10.size import Size
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.frontend import trace_type, tracer  # noqa: F401  the first makes the kernels
from readtorch.csrc.jit.ir.type import FloatType, IntType
from readtorch.fx.node import map_arg

NUMBER_TYPES = {int: IntType, float: FloatType}


class GraphLowering(tracer.TracingState):
    """A trace of `module`. reason: why the graph cannot stand for it; None if it can. sizes_read: whether sizes of tensors are
    among the graph's constants.
    """

    def __init__(self, module):
        super().__init__(strict=False)
        self.module, self.reason, self.sizes_read = module, None, False
        self.made = []  # (tensor made from Python's values, its version then)
        self.constants = set()  # ids of tensors that are made from Python's values
        self.numbers = []  # the Values of inputs that are numbers; None for tensors

    def run(self, *args):
        """What the module returns for `args`; each becomes an input of the graph."""
        inputs = [self.new_input(arg) for arg in args]
        with tracer._Tracing(self):
            results = self.module.forward(*inputs)
            for each in results:
                self.graph.registerOutput(self.get_value(each))
        self.check_numbers()
        self.check_constants(results)
        return results

    def new_input(self, arg):
        value = self.graph.addInput()
        if isinstance(arg, TensorImpl):
            self.set_value(arg, value.inferTypeFrom(arg))
            self.numbers.append(None)
            return arg
        self.numbers.append(value.setType(NUMBER_TYPES[type(arg)].get()))
        number = number_as_tensor(arg)  # what an operator makes of a number beside a tensor
        self.set_value(number, value)
        return number

    def check_numbers(self):
        """Each use of a number by a node of the module must be one in the graph: else it became a constant on the way."""
        placeholders = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        for node, value in zip(placeholders, self.numbers):
            if value is not None and len(value.uses()) != _count_uses(node):
                self.give_up("a number that may change became a constant of the graph")

    def check_constants(self, results):
        """A constant is the same tensor in each run of the graph: nobody may write to it, or get hold of it."""
        for tensor, version in self.made:
            if tensor._counter[0] != version:
                self.give_up("it writes to a tensor that it made from Python's values")
            if any(np.may_share_memory(tensor._array, each._array) for each in results):
                self.give_up("it returns a tensor that it made from Python's values")

    def give_up(self, reason):
        self.reason = self.reason or reason

    # --------------------------------------------------------------------------------------------- what leaks

    def warn(self, message):
        if "to get tensor shape" in message or message.startswith("Iterating"):
            self.sizes_read = True
        else:
            self.give_up(message)

    def warn_of_conversion(self, kind):
        self.give_up(f"data-dependent: a tensor became a Python {kind}")

    def warn_of_constructor(self, name):
        """Made from Python's values, which have guards."""

    def not_recorded(self, name):
        if name == "_fused_sdp_choice":  # decided by shapes
            self.sizes_read = True
        else:
            self.give_up(f"it calls {name}, of which a graph keeps nothing")

    def size(self, tensor, dim):
        self.sizes_read = True
        return tensor._array.shape[dim]

    def shape(self, tensor):
        self.sizes_read = True
        return Size(tensor._array.shape)

    def numel(self, tensor):
        self.sizes_read = True
        return tensor._array.size

    def constructed(self, tensor, detach=True):
        self.constants.add(id(tensor))
        return super().constructed(tensor, detach)

    def _tensor_constant(self, tensor):
        """A tensor that no operator has made: a number beside a tensor, or a constant such as `tensor([3., 4.])`."""
        if id(tensor) not in self.constants and not tensor._keys & WRAPPED_NUMBER:
            self.give_up("a tensor that no operator of the graph has made")
        if self.paused(lambda: tensor.requires_grad):
            self.give_up("a tensor that requires grad and is no input")
            tensor = self.paused(tensor.detach)
        if not tensor._keys & WRAPPED_NUMBER:
            self.made.append((tensor, tensor._counter[0]))
        return super()._tensor_constant(tensor)


def _count_uses(node):
    found = []
    for user in node.users:
        map_arg((user.args, user.kwargs), found.append)
    return sum(each is node for each in found)
