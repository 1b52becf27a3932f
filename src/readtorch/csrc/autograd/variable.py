"""What autograd knows about one tensor: its edge into the graph, its gradient, its hooks, its base if it is a view.

In PyTorch: `torch/csrc/autograd/variable.cpp`, and CopySlices of `torch/csrc/autograd/functions/tensor.cpp`. Explained in
the chapter "Autograd".
"""

from weakref import ref

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.c10.dispatch_key import CONJUGATE, HISTORY, INFERENCE_TENSOR, MATH_BITS, NEGATIVE, STALE
from readtorch.c10.local_dispatch_key_set import AutoGradMode, grad_mode_enabled, tls
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.tensor_geometry import TensorGeometry
from readtorch.c10.tensor_impl import NO_EDGE, Creation

from .accumulate_grad import AccumulateGrad
from .gen_autograd_functions import node_class
from .node import RELEASED, Node, operation_name


class AutogradMeta:
    """The parts of a tensor's autograd state that most tensors never need."""

    __slots__ = ("grad", "accumulator", "hooks", "post_accumulate_hooks", "retains_grad", "name")

    def __init__(self):
        self.grad = None
        self.accumulator = _no_node  # weak reference to the leaf's AccumulateGrad node
        self.hooks = None  # of a leaf that has no node yet
        self.post_accumulate_hooks = None
        self.retains_grad = False
        self.name = None


def autograd_meta(t):
    """The tensor's AutogradMeta, made when first asked for."""
    if t._meta is None:
        t._meta = AutogradMeta()
    return t._meta


# ------------------------------------------------------------------------------------------------------ edges


def gradient_edge(t):
    """Where a gradient of `t` goes: (node, input number), or NO_EDGE. Brings a stale view up to date first."""
    if t._base is not None:
        refresh_view(t)
    return t._edge or leaf_edge(t)


def leaf_edge(leaf):
    """The edge to a leaf's AccumulateGrad: `gradient_edge` of a tensor that is known to be no view and to have no `_edge`.

    The leaf refers to the node weakly and the node to the leaf strongly, so that a graph keeps its leaves alive but a leaf
    does not keep a dead graph's node.
    """
    meta = leaf._meta or autograd_meta(leaf)
    node = meta.accumulator()
    if node is None:
        node = AccumulateGrad()
        node.variable = leaf
        node._hooks = (
            meta.hooks
        )  # in PyTorch: the leaf keeps only hooks of its own, those of the node die with the node
        meta.accumulator = ref(node)
    return (node, 0)


def grad_accumulator(leaf):
    """The node that adds to `leaf.grad`."""
    return leaf_edge(leaf)[0]


def _no_node():
    return None


def requires_grad(t):
    """Whether a gradient of `t` would go anywhere; of a view also whether its base requires grad, which it may do since later."""
    return t._edge is not NO_EDGE or t._base is not None and requires_grad(t._base)


def set_requires_grad(t, flag):
    """Make the leaf `t` require grad, or stop it."""
    if flag:
        t._edge = None
        t._keys |= HISTORY
    else:
        t._edge = NO_EDGE
        t._keys &= ~HISTORY


def set_history(t, edge):
    t._edge = edge
    t._keys |= HISTORY


# -------------------------------------------------------------------------------------- views and in-place writes


def refresh_view(t):
    """Note [ Stale views ]

    `v = x[0]; x.mul_(w)` changes what v's gradient is, though nobody touched v. A view therefore remembers the shared
    version at which its edge was right. When the counter has moved on and the base has a graph, the view's node is made
    anew: an AsStridedBackward0 on the base's newest node, which cuts the view's elements out of the base's gradient.
    Raises RuntimeError for a view that may not be written to in place itself.
    """
    if t._view_version == t._counter[0]:
        return
    base = t._base
    if requires_grad(base):
        if t._creation != Creation.DEFAULT:
            raise RuntimeError(_view_message(t, t._creation, "its base or another view of its base has been"))
        is_cut = base._array.dtype is t._array.dtype and not (base._keys ^ t._keys) & MATH_BITS
        set_history(t, (as_strided_node(t), 0) if is_cut else replayed_edge(t))
    t._view_version = t._counter[0]


def check_inplace(t, needs_graph):
    """Raises RuntimeError when `t` may not be written to in place now."""
    if not (needs_graph or requires_grad(t)) or not grad_mode_enabled():
        return
    if t._base is not None:
        _check_view_inplace(t)
    if t._edge is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def _check_view_inplace(t):
    if t._creation != Creation.DEFAULT:
        raise RuntimeError(_view_message(t, t._creation))
    if t._base._edge is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


_VIEW_REASONS = {
    Creation.MULTI_OUTPUT_NODE: "This view is the output of a function that returns multiple views. Such functions do not allow the "
    "output views to be modified inplace. You should replace the inplace operation by an out-of-place "
    "one.",
    Creation.NO_GRAD_MODE: "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
    "by moving both the view and the inplace either both inside the no_grad block (if you don't want "
    "the inplace to be tracked) or both outside (if you want the inplace to be tracked).",
    Creation.INFERENCE_MODE: "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
    "by moving both the view and the inplace either both inside the inference_mode block (if you don't "
    "want the inplace to be tracked) or both outside (if you want the inplace to be tracked).",
    Creation.IN_CUSTOM_FUNCTION: "This view was created inside a custom Function (or because an input was returned as-is) and the "
    "autograd logic to handle view+inplace would override the custom backward associated with the "
    "custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by "
    "cloning the output of the custom Function.",
}
_VIEW_SUBJECTS = {
    Creation.NO_GRAD_MODE: "A view was created in no_grad mode and {} modified inplace with grad mode enabled. ",
    Creation.INFERENCE_MODE: "A view was created in inference mode and {} modified inplace in normal mode. ",
}


def _view_message(t, creation, modified="is being"):
    edge = t._edge
    if creation == Creation.MULTI_OUTPUT_NODE and not (edge and edge[0]):
        return _VIEW_SUBJECTS[Creation.NO_GRAD_MODE].format(modified) + _VIEW_REASONS[creation]
    made_by = (
        f"Output {edge[1]} of {operation_name(edge[0])} is a view and {modified} modified inplace. "
        if edge and edge[0]
        else ("A view was created in custom Function and is being modified inplace. ")
    )
    return _VIEW_SUBJECTS.get(creation, made_by).format(modified) + _VIEW_REASONS[creation]


def rebase_history(t, node):
    """An in-place operation wrote `t`: its gradient now flows through `node`, and so does that of `t`'s base."""
    if t._base is None:
        set_history(t, (node, 0))
        return
    set_history(t._base, (copy_slices(t, node), 0))
    t._view_version = -1  # the view's own node is made again when it is next asked for
    refresh_view(t)


def mark_view(t, base, creation=Creation.DEFAULT):
    """Make `t` a view of `base` in autograd's eyes (a custom Function returned one)."""
    t._base = base if base._base is None else base._base
    t._creation = creation
    t._view_version = t._counter[0]
    t._keys |= STALE


def as_view(base, t, creation):
    """Mark `t`, which an operator returned, as a view of `base`: it shares its version counter from now on.

    In PyTorch: `as_view` in `torch/csrc/autograd/VariableTypeUtils.h`.
    """
    if t is base or base._keys & INFERENCE_TENSOR:
        return
    t._counter = base._counter
    mark_view(t, base, base._creation if base._base is not None and base._creation != Creation.DEFAULT else creation)
    if not grad_mode_enabled():
        view_without_grad(base, t)


def view_without_grad(base, t):
    """Mark a view that was made while nothing is recorded. It requires grad if its base does, as a leaf of its own."""
    t._creation = Creation.INFERENCE_MODE if tls.inference_mode else Creation.NO_GRAD_MODE
    if base._edge is not NO_EDGE:
        t._edge = None
        t._keys |= HISTORY


def as_strided_node(v):
    """A node that hands the gradient of the view `v` to its base, wherever `v`'s elements lie in it."""
    base, view = v._base, TensorGeometry(v)
    node = node_class(registry["aten::as_strided"])()
    Node.__init__(node, (gradient_edge(base),), view.sizes, view.dtype)
    node.saved_self_geometry = TensorGeometry(base)
    node.saved_size, node.saved_stride, node.saved_storage_offset = view.sizes, view.strides, view.offset
    return node


# Note [ Views of other numbers ]
# `as_strided` cuts a view out of its base, but a view may also take the base's numbers for others: `conj()`, `_neg_view()`,
# `view_as_real`, `view_as_complex`. Base and view tell by their dtypes and math bits which of these lie between them, so these
# are called again. In PyTorch: such a view keeps the function that made it (`ViewFunc`), and views of it keep its chain.

_MADE_LAST = ("ConjBackward0", "NegViewBackward0", "ViewAsRealBackward0", "ViewAsComplexBackward0")


def replayed_edge(v):
    """The edge of a view of other numbers into its base's newest graph."""
    bits_last = v._edge[0] is not None and v._edge[0].name() in _MADE_LAST if v._edge else False
    with AutoGradMode(True):
        return replayed(v._base, TensorGeometry(v._base), TensorGeometry(v), bits_last)._edge


def replayed(t, base, view, bits_last=False):
    """What `view` is of `base`, of a tensor `t` that is laid out as `base`. bits_last: it was cut out before it was conjugated."""
    if base.dtype is view.dtype:
        if bits_last:
            return flipped_view(cut(t, base, view), base.bits ^ view.bits)
        return cut(flipped_view(t, base.bits ^ view.bits), base, view)
    t = flipped_view(t, base.bits)
    if base.dtype.kind == "c":
        if bits_last and view.sizes[-1:] == (2,) and view.strides[-1] == 1:
            whole = [s // 2 for s in view.strides[:-1]]
            t = at.as_strided(t, view.sizes[:-1], whole, t.storage_offset() + view.offset // 2 - base.offset)
            return flipped_view(at.view_as_real(t), view.bits)
        pairs = flipped_view(at.view_as_real(t), view.bits)
        return strided(pairs, view, view.offset - 2 * base.offset)
    if base.sizes == (*view.sizes, 2) and base.strides == (*[2 * s for s in view.strides], 1):
        return flipped_view(at.view_as_complex(t), view.bits)
    count = 1 + sum([(n - 1) * s for n, s in zip(view.sizes, view.strides)])
    pairs = at.as_strided(t, (count, 2), (2, 1), t.storage_offset() + 2 * view.offset - base.offset)
    return strided(flipped_view(at.view_as_complex(pairs), view.bits), view, 0)


def cut(t, base, view):
    """`t` itself if the view is as large as its base, else what it sees of it."""
    return strided(t, view, view.offset - base.offset)


def strided(t, view, begin):
    """`t` with the sizes and strides of a view that begins `begin` elements behind it."""
    if not begin and tuple(t.shape) == view.sizes and t.stride() == view.strides:
        return t
    return at.as_strided(t, view.sizes, view.strides, t.storage_offset() + begin)


def flipped_view(t, bits):
    """A view of `t` through these math bits."""
    t = at._conj(t) if bits & CONJUGATE else t
    return at._neg_view(t) if bits & NEGATIVE else t


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
        grad_slice = replayed(result, self.base, self.view)
        with_clone = grad_slice.clone(memory_format=contiguous_format)
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
