"""The node of a custom `autograd.Function`, and what `Function.apply` does around `forward`.

In PyTorch: `torch/csrc/autograd/python_function.cpp`, `torch/csrc/autograd/custom_function.cpp`.
Explained in the chapter "Autograd".
"""

import warnings

import numpy as np

from readtorch.aten.functorch.batched_tensor_impl import WrappedImpl
from readtorch.aten.functorch.tensor_wrapper import unwrap_if_dead
from readtorch.c10.device import cpu
from readtorch.c10.dispatch_key import GRAD_WRAPPER, NOT_CPU, TANGENT
from readtorch.c10.local_dispatch_key_set import AutoFwGradMode, AutoGradMode, grad_mode_enabled, trace_under_way
from readtorch.c10.tensor_impl import NO_EDGE, Creation, TensorImpl, dtype_of, wrap

from .custom_function import process_forward_mode
from .forward_grad import inherit_forward_base
from .node import (
    RELEASED,
    Node,
    Streams,
    next_sequence_nr,
    note_stream,
    notify_watchers,
    returned_by,
    to_device,
    watchers,
)
from .saved_variable import SavedVariable, save_output
from .variable import check_inplace, gradient_edge, rebase_history, requires_grad, set_history


class PyNode(Node):
    """`ctx`: the node of one call of a custom Function. `forward` fills it, `backward` reads it."""

    __slots__ = (
        "needs_input_grad",
        "materialize_grads",
        "to_save",
        "dirty_tensors",
        "non_differentiable",
        "_saved",
        "_released",
        "_input_count",
        "_input_places",
        "_output_info",
        "__dict__",
    )

    notes_device = True
    saved_for_forward = None  # what `jvp` finds in `saved_tensors`

    def __init__(self):
        self._seq_nr = next_sequence_nr()
        self._hooks = None
        self._next_edges = ()
        self._shape, self._dtype = [], []
        self.needs_input_grad = ()  # a bool for each argument of forward
        self.materialize_grads = True  # whether backward gets zeros where no gradient arrived
        self.to_save = ()
        self.dirty_tensors = ()
        self.non_differentiable = ()
        self._saved = None  # SavedVariables (or None), once forward is over
        self._released = False
        self._input_places = ()  # position among forward's arguments of each edge
        self._output_info = ()

    # ------------------------------------------------------------------------------------------- backward

    def apply(self, *grads):
        if self.materialize_grads:
            # What is no tensor has no gradient, not even zeros.
            grads = [
                _zeros(*info) if g is None and info[1] is not None else g for g, info in zip(grads, self._output_info)
            ]
        returned = self.run_backward(*grads)
        if not isinstance(returned, tuple):
            returned = (returned,)
        return self.match_inputs(returned)

    def run_backward(self, *grads):
        """The user's `backward(ctx, *grads)`; the class that `Function` makes for it defines this."""
        raise RuntimeError(f"{self.name()} has no backward")

    def match_inputs(self, returned):
        """Keep the gradients of arguments that were tensors; a gradient for anything else must be None."""
        count = self._input_count
        if len(returned) > count and all(r is None for r in returned[count:]):
            returned = returned[:count]
        if len(returned) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(returned)})"
            )
        for i, grad in enumerate(returned):
            if grad is not None and i not in self._input_places:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at "
                    f"position {i + 1}, but the corresponding forward input was not a "
                    "Variable"
                )
            if grad is not None and not isinstance(grad, TensorImpl):
                raise RuntimeError(f"expected Variable or None (got {type(grad).__name__})")
        grads = tuple([returned[i] for i in self._input_places])
        return tuple(
            [self.check_gradient(i, grad, *edge) for i, (grad, edge) in enumerate(zip(grads, self._next_edges))]
        )

    def check_gradient(self, i, grad, node, nr):
        """`grad` as the engine lets it through. In PyTorch the engine checks every node's; here formulas return what fits."""
        if grad is None or node is None:
            return grad
        check_complex(grad, node, nr)
        if Streams.devices_noted or grad._keys & NOT_CPU:
            return to_device(i, grad, node, returned_by(self))
        return grad

    def run_jvp(self, *tangents):
        """The user's `jvp(ctx, *tangents)`; the class that `Function` makes for it defines this."""
        raise RuntimeError(f"{self.name()} has no jvp")

    # ------------------------------------------------------------------------------------------ saved tensors

    @property
    def saved_tensors(self):
        if self.saved_for_forward is not None:
            return tuple(self.saved_for_forward)
        if self._released:
            raise RuntimeError(RELEASED)
        if self._saved is None:
            return ()
        return tuple([None if s is None else s.unpack(self, saved_for=self) for s in self._saved])

    @property
    def _raw_saved_tensors(self):
        return tuple(self._saved)

    saved_names = ("_saved_list",)

    @property
    def _saved_list(self):
        return list(self._saved or ())

    def release_variables(self):
        self._released = True
        for saved in self._saved or ():
            if saved is not None:
                saved.release()


def check_complex(grad, node, nr):
    """RuntimeError for a complex gradient of a real tensor, and for integers as that of a complex one."""
    kind = dtype_of(grad)
    if kind.is_floating_point:
        return
    input_kind = node._input_metadata[nr].dtype
    if input_kind is not None and kind.is_complex != input_kind.is_complex:
        raise RuntimeError(
            "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )


def apply(node, forward, setup_context, args):
    """What `Function.apply(*args)` does: run forward outside autograd, then make its node the grad_fn of the outputs."""
    tensors = [a for a in args if isinstance(a, TensorImpl)]
    if WrappedImpl.exists and any(
        [t._keys & GRAD_WRAPPER for t in tensors]
    ):  # operators unwrap what outlived its transform by themselves
        args = tuple([unwrap_if_dead(a) if isinstance(a, TensorImpl) else a for a in args])
        tensors = [a for a in args if isinstance(a, TensorImpl)]
    edges = [gradient_edge(a) for a in tensors]
    needed = grad_mode_enabled() and any(e is not NO_EDGE for e in edges)
    node.needs_input_grad = tuple([isinstance(a, TensorImpl) and gradient_edge(a) is not NO_EDGE for a in args])
    node._input_count = len(args)
    node._input_places = tuple([i for i, a in enumerate(args) if isinstance(a, TensorImpl)])
    trace = trace_under_way()
    is_recorded = trace is not None and not trace.inlines_functions
    recorded = trace.record_function(node._forward_cls, args) if is_recorded else None
    with AutoGradMode(False), AutoFwGradMode(False):
        if setup_context is None:
            outputs = forward(node, *args)
        else:
            outputs = forward(*args)
            setup_context(node, args, outputs)
    is_tuple = isinstance(outputs, tuple)
    outputs = outputs if is_tuple else (outputs,)
    wrapped = _wrap_outputs(node, tensors, edges, outputs, needed, setup_context is not None)
    if any([t._keys & TANGENT for t in tensors]):
        still, dirty = {id(t) for t in node.non_differentiable}, {id(t) for t in node.dirty_tensors}
        process_forward_mode(_jvp_caller(node, args), tensors, outputs, wrapped, still, dirty)
    if is_recorded:
        trace.set_outputs_of_function(recorded, wrapped, is_tuple, bool(node.dirty_tensors))
    node.to_save = node.dirty_tensors = node.non_differentiable = ()
    node.saved_for_forward = None
    return wrapped if is_tuple else wrapped[0]


def _jvp_caller(node, args):
    """What calls the user's `jvp`: with the tangent of each argument that is a tensor, zeros where it has none, and None for others."""

    def call_jvp(found):
        found = iter(found)
        given = [_tangent_of(a, next(found), node) if isinstance(a, TensorImpl) else None for a in args]
        returned = node.run_jvp(*given)
        returned = returned if isinstance(returned, tuple) else (returned,)
        for i, new in enumerate(returned):
            if new is not None and not isinstance(new, TensorImpl):
                raise RuntimeError(f"expected Variable or None (got {type(new).__name__}) for grad output {i}.")
        return returned

    return call_jvp


def _tangent_of(t, found, node):
    if found is not None or not node.materialize_grads:
        return found
    return _zeros(t._array.shape, t._array.dtype, t.device)


def _zeros(shape, numpy_dtype, device):
    """The gradient of an output that was not used."""
    zeros = wrap(np.zeros(shape, numpy_dtype))
    return zeros if device is cpu else zeros.to(device)


def _wrap_outputs(node, inputs, edges, outputs, needed, is_separate):
    """What the caller gets: outputs that are inputs as views of these, all that can have a gradient as this node's outputs.

    needed: whether there is a graph at all. is_separate: forward has a `setup_context` beside it.
    """
    for t in node.dirty_tensors:
        t._counter[0] += 1
    if needed:
        node._next_edges = tuple(edges)
    marks = _Marks(node, inputs, len(outputs), is_separate)
    results = tuple(
        [
            _with_history(o, node if needed else None, nr, marks) if isinstance(o, TensorImpl) else o
            for nr, o in enumerate(outputs)
        ]
    )
    if marks.differentiable_count > 1:
        for t in results:
            if isinstance(t, TensorImpl) and t._base is not None:
                t._creation = Creation.MULTI_OUTPUT_NODE
    _check_dirty(node, outputs)
    if not needed:
        return results
    node._output_info = [
        (t._array.shape, t._array.dtype, t.device) if isinstance(t, TensorImpl) else ((), None, cpu) for t in results
    ]
    node._shape = [t._array.shape if isinstance(t, TensorImpl) else () for t in results]
    node._dtype = [t._array.dtype if isinstance(t, TensorImpl) else None for t in results]
    for t, nr in marks.rebased:  # the node's shapes are known now, which a node of its base copies
        rebase_history(t, node, nr)
    _save(node)
    note_stream(node, [t for t in results if isinstance(t, TensorImpl)])
    if watchers:
        notify_watchers(node)
    return results


class _Marks:
    """What `forward` has said of its outputs, by their ids."""

    def __init__(self, node, inputs, output_count, is_separate):
        self.inputs = {id(t) for t in inputs}
        self.dirty = {id(t) for t in node.dirty_tensors}
        self.still = {id(t) for t in node.non_differentiable}
        self.kept_apart = {id(t) for t in node.to_save} if is_separate else ()
        self.output_count = output_count
        self.differentiable_count = 0
        self.rebased = []  # (tensor that was written to, its number among the outputs)


def _with_history(t, node, nr, marks):
    """The tensor that the caller gets for output number `nr`. In PyTorch: `set_history` of `_process_backward_mode_ad`."""
    is_input, is_modified = id(t) in marks.inputs, id(t) in marks.dirty
    if node is not None and id(t) not in marks.still and _differentiable(t):
        marks.differentiable_count += 1
        if is_modified:
            _check_modified(t, is_input, marks.output_count)
            marks.rebased.append((t, nr))
        else:
            t = _as_view(t, marks) if is_input else t
            set_history(t, (node, nr))
    elif not requires_grad(t):
        t = _as_view(t, marks) if is_input and not is_modified else t
    elif is_input:
        t = t.detach()
    elif t._base is None:
        t.detach_()
    if t._base is not None and not (is_input and is_modified):
        t._creation = Creation.IN_CUSTOM_FUNCTION
    return t


def _as_view(t, marks):
    """A view of an input that was returned as it is, so that it can have a history of its own."""
    if id(t) in marks.kept_apart:
        raise RuntimeError(
            "A input that has been returned as-is as output is being saved for backward. This is not supported if you override "
            "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside "
            "the forward function itself."
        )
    with AutoGradMode(False), AutoFwGradMode(False):
        view = t.view_as(t)
    inherit_forward_base(view, t)
    return view


def _check_modified(t, is_input, output_count):
    """Refuse to make the node the history of a tensor that was written to, where that cannot be."""
    if (t._edge is None or t._edge[0] is None) and requires_grad(t):
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if not is_input:
        warnings.warn(
            "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it to "
            "mark_dirty().",
            stacklevel=6,
        )
    if t._base is not None and output_count > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one "
            "Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view "
            "(using .clone() for example) or make your Function only return one Tensor (potentially splitting it into two "
            "Functions: one doing the inplace that returns a single Tensor and a second one that does the other operations). You "
            "can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
        )
    if t._autograd_meta is not None:
        t._autograd_meta.grad = None
    check_inplace(t, True)


def _check_dirty(node, outputs):
    returned = {id(o) for o in outputs}
    for t in node.dirty_tensors:
        if id(t) not in returned:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned "
                "as output. The inputs that are modified inplace must all be outputs of the "
                "Function."
            )


def _differentiable(t):
    return t.dtype.is_floating_point or t.dtype.is_complex


def _save(node):
    """Turn what `save_for_backward` was given into SavedVariables; an output is saved as this node's output."""
    node._saved = []
    for t in node.to_save:
        if t is None:
            node._saved.append(None)
            continue
        if not isinstance(t, TensorImpl):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(node._saved)} is "
                f"of type {type(t).__name__}"
            )
        is_output = t._edge is not None and t._edge[0] is node
        node._saved.append(save_output(t, t._edge[1]) if is_output else SavedVariable(t))
