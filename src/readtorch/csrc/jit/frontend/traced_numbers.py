"""Sizes and numbers during a trace.

`x.shape[0]` is then a tensor, so that what is computed from it is written down. Where an operator wants a
number, the tensor becomes one that remembers which Value it is.

In PyTorch: `getSizeOf` and `ArgumentStash` in `torch/csrc/jit/frontend/tracer.cpp`. Explained in the chapter
"JIT: tracing".
"""
import numpy as np

from ....c10.dispatch_key import tls
from ....c10.size import Size
from ....c10.tensor_impl import wrap
from ..ir.type import FloatType, IntType, NumberType


class TracedInt(int):
    """An int that stands for `value` in the trace `state`."""

    def __new__(cls, number, value, state):
        self = super().__new__(cls, number)
        self.value, self.state = value, state
        return self


class TracedFloat(float):
    """A float that stands for `value` in the trace `state`."""

    def __new__(cls, number, value, state):
        self = super().__new__(cls, number)
        self.value, self.state = value, state
        return self


def traced_value(number):
    """The Value that a number stands for in the trace that is under way, or None."""
    return (
        number.value if isinstance(number, (TracedInt, TracedFloat)) and number.state is tls.tracer else None
    )


class TracedSizes:
    """The part of a TracingState that answers for sizes and numbers."""

    def size(self, tensor, dim):
        """`tensor.size(dim)` as a tensor: aten::size, and prim::NumToTensor of it."""
        value = self.get_value(tensor)
        return self._number("aten::size", [value, self.constant(dim)], tensor._array.shape[dim])

    def shape(self, tensor):
        return Size([self.size(tensor, dim) for dim in range(tensor._array.ndim)])

    def numel(self, tensor):
        return self._number("aten::numel", [self.get_value(tensor)], tensor._array.size)

    def _number(self, kind, inputs, number):
        from ..python.python_tracer import source_range
        node = self.graph.insertNode(self.graph.create(kind, inputs)).setSourceRange(source_range())
        node.output().setType(IntType.get())
        as_tensor = self.graph.insertNode(self.graph.createNumToTensor(node.output()))
        result = wrap(np.array(number))
        self.values[id(result)] = (result, as_tensor.output())
        return result

    def as_int(self, tensor):
        """The int in a tensor, where an operator wants one."""
        return TracedInt(tensor._array.item(), self._convert("aten::Int", tensor, IntType.get()), self)

    def as_float(self, tensor):
        return TracedFloat(tensor._array.item(), self._convert("aten::Float", tensor, FloatType.get()), self)

    def as_scalar(self, tensor):
        """The number in a tensor, where an operator takes any."""
        number = tensor._array.item()
        if isinstance(number, (bool, complex)):
            return number
        value = self._convert("aten::ScalarImplicit", tensor, NumberType.get())
        return (TracedFloat if isinstance(number, float) else TracedInt)(number, value, self)

    def _convert(self, kind, tensor, type):
        """A conversion right behind what makes the tensor."""
        value = self.get_value(tensor)
        with self.graph.insert_point_guard(value.node().next()):
            return self.graph.insertNode(self.graph.create(kind, [value])).output().setType(type)
