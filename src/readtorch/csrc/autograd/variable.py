"""What autograd knows about one tensor: its edge into the graph, its gradient, its hooks, its base if it is a view.

In PyTorch: `torch/csrc/autograd/variable.cpp`, and CopySlices of `torch/csrc/autograd/functions/tensor.cpp`. Explained in
the chapter "Autograd".
"""

from weakref import ref

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.c10.dispatch_key import CONJUGATE, HISTORY, INFERENCE_TENSOR, MATH_BITS, NEGATIVE, NOT_CPU, OF_VIEWS
from readtorch.c10.local_dispatch_key_set import AutoGradMode, grad_mode_enabled, tls
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.tensor_geometry import TensorGeometry
from readtorch.c10.tensor_impl import NO_EDGE, Creation, dtype_of

from .accumulate_grad import AccumulateGrad, Expected
from .gen_autograd_functions import node_class
from .node import FIRST, RELEASED, Node, NodeHooks, note_stream, operation_name, partial_tasks, wanted_edges


class AutogradMeta:
    """The parts of a tensor's autograd state that most tensors never need."""

    __slots__ = (
        "grad",
        "grad_accumulator",
        "backward_hooks",
        "post_accumulate_grad_hooks",
        "retains_grad",
        "name",
        "forward_grad",
        "grad_dtype",
        "detached_at",
        "is_plain",
    )

    def __init__(self):
        self.grad = None
        self.grad_accumulator = no_node  # weak reference to the leaf's AccumulateGrad node
        self.backward_hooks = None  # OrderedDict: handle id -> hook of `register_hook`
        self.post_accumulate_grad_hooks = None  # the same, of `register_post_accumulate_grad_hook`
        self.retains_grad = False
        self.name = None
        self.forward_grad = None  # its tangents: see forward_grad.py
        self.grad_dtype = OWN_DTYPE  # that its gradients are to have; None for any
        self.detached_at = 0  # how many nodes there were when `detach_` cut it off: they saved it with its edge
        self.is_plain = True  # whether its AccumulateGrad needs to know the leaf alone: see `leaf_edge`


OWN_DTYPE = object()  # the tensor's own one, which may change


def autograd_meta(t):
    """The tensor's AutogradMeta, made when first asked for."""
    if t._autograd_meta is None:
        t._autograd_meta = AutogradMeta()
        t._autograd_meta.is_plain = not t._keys & NOT_CPU
    return t._autograd_meta


# ------------------------------------------------------------------------------------------------------ edges

# Of a view that was made without a graph, of a base that requires grad: so does the view, but a gradient of it goes nowhere.
# What is computed from it has nodes, therefore. As NO_EDGE, but another tuple.
NULL_EDGE = tuple([None, 0])


def gradient_edge(t):
    """Where a gradient of `t` goes: (node, input number), or NO_EDGE. Brings a stale view up to date first."""
    if t._base is not None:
        refresh_view(t)
        if t._edge and t._edge[0] is None:
            return null_edge(t)
    return t._edge or leaf_edge(t)


def null_edge(view):
    """The edge of a view that was made without a graph: whether it requires grad is for its base to say."""
    return NULL_EDGE if requires_grad(view._base) else NO_EDGE


def leaf_edge(leaf):
    """The edge to a leaf's AccumulateGrad: `gradient_edge` of a tensor that is known to be no view and to have no `_edge`.

    The leaf refers to the node weakly and the node to the leaf strongly, so that a graph keeps its leaves alive but a leaf
    does not keep a dead graph's node. Hooks of the leaf are its own, therefore, and each node finds them there; hooks of
    the node die with it.
    """
    meta = leaf._autograd_meta or autograd_meta(leaf)
    node = meta.grad_accumulator()
    if node is None:
        node = AccumulateGrad()
        node.variable = node.like = leaf
        node._seq_nr = FIRST  # a gradient that is complete is delivered before anything else runs
        node._hooks = None
        if not meta.is_plain:
            fill_accumulator(node, leaf, meta)
        meta.grad_accumulator = ref(node)
    return (node, 0)


def fill_accumulator(node, leaf, meta):
    """For a leaf that has hooks or a `grad_dtype`, or lies on no CPU."""
    note_stream(node, leaf)
    if meta.backward_hooks is not None:
        node._hooks = leaf_hooks(meta)
    if meta.grad_dtype is not OWN_DTYPE:
        node.like = Expected(leaf._array.shape, meta.grad_dtype and meta.grad_dtype.numpy, leaf._array.dtype)


def leaf_hooks(meta, hooks=None):
    """What runs around an AccumulateGrad: the hooks of its leaf before the node's own."""
    hooks = hooks or NodeHooks()
    hooks.tensor_pre = [(meta.backward_hooks, 0)]
    return hooks


def grad_accumulator(leaf):
    """The node that adds to `leaf.grad`."""
    return leaf_edge(leaf)[0]


def keep_input_metadata(leaf):
    """`leaf` is about to have another shape or dtype: in graphs that are there a gradient goes on to be like it is now."""
    node = None if leaf._autograd_meta is None else leaf._autograd_meta.grad_accumulator()
    if node is not None and node.like is leaf:
        node.like = Expected(leaf._array.shape, leaf._array.dtype, leaf._array.dtype)


def grad_dtype(leaf):
    """The dtype to which gradients of `leaf` are brought; None if they stay what they are."""
    meta = leaf._autograd_meta
    return dtype_of(leaf) if meta is None or meta.grad_dtype is OWN_DTYPE else meta.grad_dtype


def set_grad_dtype(leaf, dtype):
    """Let gradients of `leaf` have this dtype (None: any) from now on, also in graphs that are there."""
    meta = autograd_meta(leaf)
    meta.grad_dtype, meta.is_plain = dtype, False
    node = meta.grad_accumulator()
    if node is not None:
        node.like = Expected(node._shape, dtype and dtype.numpy, leaf._array.dtype)


def set_backward_hooks(t, hooks):
    """Make `hooks` (an OrderedDict, or None) what `t._backward_hooks` is; an AccumulateGrad that is there runs them, too."""
    meta = autograd_meta(t)
    meta.backward_hooks, meta.is_plain = hooks, False
    node = meta.grad_accumulator()
    if node is not None:
        leaf_hooks(meta, node._own_hooks())
        if hooks is None:
            node._hooks.tensor_pre = []


def update_tensor_hooks_on_new_gradfn(t, old_edge, new_edge):
    """`t` was written to: its hooks stay with the node that made what was there before, but `retain_grad` goes on to the new.

    Hooks that are registered from now on are those of the new node.
    """
    meta = t._autograd_meta
    meta.backward_hooks = None
    if meta.retains_grad:
        (old_fn, old_nr), (new_fn, new_nr) = old_edge, new_edge
        new_fn._own_hooks().retains_grad[new_nr] = old_fn._hooks.retains_grad.pop(old_nr)


def no_node():
    return None


def requires_grad(t):
    """Whether a gradient of `t` would go anywhere; of a view also whether its base requires grad, which it may do since later."""
    if t._base is not None and t._edge and t._edge[0] is None:
        return requires_grad(t._base)
    return t._edge is not NO_EDGE


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
    if not requires_grad(base) and not (t._edge and t._edge[0] is not None):
        return  # and it is asked again when the base may require grad
    if t._creation != Creation.DEFAULT:
        raise RuntimeError(_view_message(t, t._creation, "its base or another view of its base has been"))
    is_cut = base._array.dtype is t._array.dtype and not (base._keys ^ t._keys) & MATH_BITS
    old_edge = t._edge
    set_history(t, (as_strided_node(t), 0) if is_cut else replayed_edge(t))
    if t._autograd_meta is not None:
        update_tensor_hooks_on_new_gradfn(t, old_edge, t._edge)
    t._view_version = t._counter[0]


def refresh_to_write(t):
    """`refresh_view` for a view that is about to be written to. Until somebody asks for its node it has none, though its base has one:
    so it counts as a leaf, which may not be written to.
    """
    if grad_mode_enabled() and requires_grad(t):
        _check_view_inplace(t)
        if t._edge is None or t._edge[0] is None:
            raise RuntimeError(LEAF_WRITTEN)
    refresh_view(t)


LEAF_WRITTEN = "a leaf Variable that requires grad is being used in an in-place operation."


def check_inplace(t, needs_graph):
    """Raises RuntimeError when `t` may not be written to in place now."""
    if not (needs_graph or requires_grad(t)) or not grad_mode_enabled():
        return
    if t._base is not None:
        _check_view_inplace(t)
    if t._edge is None:
        raise RuntimeError(LEAF_WRITTEN)


def _check_view_inplace(t):
    if t._creation != Creation.DEFAULT:
        raise RuntimeError(_view_message(t, t._creation))
    if requires_grad(t) and (t._base._edge is None or t._base._edge[0] is None):
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


def _view_message(t, creation, modified="is being"):
    node, number = t._edge or NO_EDGE
    without_graph = creation in (Creation.NO_GRAD_MODE, Creation.INFERENCE_MODE) or node is None
    made = "A view was created in"
    if node is not None:
        view = "view of a view which was created in" if without_graph else "view and"
        made = f"Output {number} of {operation_name(node)} is a {view}"
    if creation == Creation.INFERENCE_MODE:
        subject = f"{made} inference mode and {modified} modified inplace in normal mode."
    elif without_graph:
        subject = f"{made} no_grad mode and {modified} modified inplace with grad mode enabled."
    else:
        subject = f"{made} {modified} modified inplace."
    return f"{subject} {_VIEW_REASONS[creation]}"


def rebase_history(t, node, number=0):
    """An in-place operation wrote `t`, output `number` of `node`: its gradient flows through the node, and so does its base's."""
    base, is_view = (t, False) if t._base is None else (t._base, True)
    old_edge = base._edge
    set_history(base, (copy_slices(t, node), 0) if is_view else (node, number))
    if base._autograd_meta is not None:
        update_tensor_hooks_on_new_gradfn(base, old_edge, base._edge)
    if not is_view:
        return
    t._view_version = -1  # the view's own node is made again when it is next asked for
    refresh_view(t)


def mark_view(t, base, creation=Creation.DEFAULT):
    """Make `t` a view of `base` in autograd's eyes (a custom Function returned one)."""
    t._base = base if base._base is None else base._base
    t._creation = creation
    t._view_version = t._counter[0]
    t._keys |= OF_VIEWS


def as_view(base, t, creation):
    """Mark `t`, which an operator returned, as a view of `base`: it shares its version counter from now on.

    In PyTorch: `as_view` in `torch/csrc/autograd/VariableTypeUtils.h`.
    """
    if t is base or base._keys & INFERENCE_TENSOR:
        return
    t._counter = base._counter
    mark_view(t, base, base._creation if creation == Creation.DEFAULT and base._base is not None else creation)
    if not grad_mode_enabled():
        view_without_grad(base, t)


def view_without_grad(base, t):
    """Mark a view that was made while nothing is recorded. It requires grad if its base does."""
    t._creation = Creation.INFERENCE_MODE if tls.inference_mode else Creation.NO_GRAD_MODE
    if base._edge is not NO_EDGE:
        set_history(t, NULL_EDGE)


def as_strided_node(v):
    """A node that hands the gradient of the view `v` to its base, wherever `v`'s elements lie in it."""
    base, view = v._base, TensorGeometry(v)
    node = node_class(registry["aten::as_strided"])()
    Node.__init__(node, (gradient_edge(base),), view.sizes, view.dtype)
    node.saved_self_geometry = TensorGeometry(base)
    node.saved_size, node.saved_stride, node.saved_storage_offset = view.sizes, view.strides, view.offset
    note_stream(node, v)
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
    notes_device = True

    def apply(self, grad):
        if grad is None:
            return (None,) * len(self._next_edges)
        fn = self.fn
        if fn is None:
            raise RuntimeError(RELEASED)
        result = at.new_empty_strided(grad, self.base.sizes, self.base.strides)
        result.copy_(grad)
        grad_slice = replayed(result, self.base, self.view)
        with_clone = grad_slice.clone(memory_format=contiguous_format)
        own, *others = fn.apply(with_clone)
        if (wanted_edges(self) if partial_tasks else self._next_edges)[0][0] is None:
            return (None, *others)
        if own is not None:
            grad_slice.copy_(own)
        else:
            grad_slice.zero_()
        return (result, *others)

    def release_variables(self):
        fn, self.fn = self.fn, None
        if fn is not None:
            fn.release_variables()


def copy_slices(v, fn):
    """The CopySlices node for the write `fn` to the view `v`."""
    base = v._base
    node = CopySlices((gradient_edge(base),) + fn._next_edges[1:], base._array.shape, base._array.dtype)
    node.base, node.view, node.fn = TensorGeometry(base), TensorGeometry(v), fn
    fn._next_edges = node._next_edges  # `fn` computes what CopySlices is asked for
    note_stream(node, base)
    return node
