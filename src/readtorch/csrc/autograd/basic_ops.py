"""Nodes that Python may put behind a tensor to see what becomes of a gradient: `torch._C._functions`.

In PyTorch: `torch/csrc/autograd/functions/basic_ops.cpp`; what Python sees: `torch/csrc/autograd/functions/init.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled

from .accumulate_grad import AccumulateGrad
from .node import Error, Node
from .variable import CopySlices, gradient_edge, requires_grad, set_history


class DelayedError(Node):
    """`DelayedError(message, count)(*tensors)`: the tensors, behind a node that raises `message` in backward."""

    __slots__ = ("message",)

    def __init__(self, message, num_inputs):
        super().__init__((), [()] * num_inputs)
        self.message = message

    def apply(self, *inputs):
        return behind(Error, inputs, message=self.message)


class UndefinedGrad(Node):
    """`UndefinedGrad()(t)`: `t`, behind a node that keeps its gradient back."""

    __slots__ = ()

    def apply(self, *inputs):
        return behind(UndefinedGradBackward, inputs)


class UndefinedGradBackward(Node):
    """Gives an undefined gradient whatever arrives."""

    __slots__ = ()

    namespace = "torch::autograd::"

    def apply(self, *grads):
        return (None,) * len(grads)


def behind(node_class, inputs, **attributes):
    """The inputs as outputs of a new node, if one of them requires grad."""
    outputs = [at.detach(t) for t in inputs]
    if not grad_mode_enabled() or not any(map(requires_grad, inputs)):
        return outputs
    shapes, dtypes = [t._array.shape for t in inputs], [t._array.dtype for t in inputs]
    alone = len(inputs) == 1
    edges = tuple(map(gradient_edge, inputs))
    node = node_class(edges, shapes[0] if alone else shapes, dtypes[0] if alone else dtypes)
    for name, value in attributes.items():
        setattr(node, name, value)
    for number, output in enumerate(outputs):
        set_history(output, (node, number))
    return outputs


functions = {"AccumulateGrad": AccumulateGrad, "Error": Error, "DelayedError": DelayedError, "CopySlices": CopySlices}
functions |= {"UndefinedGrad": UndefinedGrad, "UndefinedGradBackward": UndefinedGradBackward}
