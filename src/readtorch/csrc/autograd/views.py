"""In-place writes to views: the two nodes that keep a base's history right.

In PyTorch: `torch/csrc/autograd/functions/tensor.cpp` (CopySlices) and `torch/csrc/autograd/variable.cpp`.
Explained in the chapter "Autograd".
"""
from ...aten.dispatcher import registry
from ...aten.functions import at
from ...c10.geometry import TensorGeometry
from .node import Node
from .saved_variable import RELEASED
from .variable import gradient_edge
from .formulas import node_class


def as_strided_node(v):
    """A node that hands the gradient of the view `v` to its base, wherever `v`'s elements lie in it."""
    base, view = v._base, TensorGeometry(v)
    node = node_class(registry["aten::as_strided"])((gradient_edge(base),), view.sizes, view.dtype)
    node.saved_self_geometry = TensorGeometry(base)
    node.saved_size, node.saved_stride, node.saved_storage_offset = view.sizes, view.strides, view.offset
    return node


class CopySlices(Node):
    """Note [ In-place on views ]

    After `v = x[0]; v.mul_(w)` the gradient of x is: outside v, what came in; inside v, what mul's own node makes of it.
    CopySlices does that. It stands in x's history where mul's node would stand in v's, holds mul's node as `fn`, copies
    the incoming gradient, runs `fn` on the part that v looks at and writes the result back there.
    Its edges: first to x's old history, then those of `fn` for its other inputs.
    """

    __slots__ = ("base", "view", "fn")

    namespace = "torch::autograd::"

    def apply(self, grad):
        if grad is None:
            return (None,) * len(self._next_edges)
        if self.fn is None:
            raise RuntimeError(RELEASED)
        result = at.new_empty_strided(grad, self.base.sizes, self.base.strides)
        result.copy_(grad)
        grad_slice = result.as_strided(self.view.sizes, self.view.strides, self.view.offset - self.base.offset)
        with_clone = grad_slice.clone()
        own, *others = self.fn.apply(with_clone)
        if own is not None:
            grad_slice.copy_(own)
        else:
            grad_slice.zero_()
        return (result, *others)

    def release_variables(self):
        if self.fn is not None:
            self.fn.release_variables()
            self.fn = None


def copy_slices(v, fn):
    """The CopySlices node for the write `fn` to the view `v`."""
    base = v._base
    node = CopySlices((gradient_edge(base),) + fn._next_edges[1:], base._array.shape, base._array.dtype)
    node.base, node.view, node.fn = TensorGeometry(base), TensorGeometry(v), fn
    return node
