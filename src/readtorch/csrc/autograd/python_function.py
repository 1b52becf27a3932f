"""The node of a custom `autograd.Function`, and what `Function.apply` does around `forward`.

In PyTorch: `torch/csrc/autograd/python_function.cpp`, `torch/csrc/autograd/custom_function.cpp`.
Explained in the chapter "Autograd".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.device import cpu
from readtorch.c10.local_dispatch_key_set import AutoGradMode, grad_mode_enabled
from readtorch.c10.tensor_impl import NO_EDGE, Creation, TensorImpl, alias, seen_by_python, wrap

from .node import RELEASED, Node, next_sequence_nr, notify_watchers, watchers
from .saved_variable import SavedVariable, save_output
from .variable import check_inplace, gradient_edge, mark_view, rebase_history, set_history


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
            grads = [_zeros(*info) if g is None else g for g, info in zip(grads, self._output_info)]
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
        return tuple([returned[i] for i in self._input_places])

    # ------------------------------------------------------------------------------------------ saved tensors

    @property
    def saved_tensors(self):
        if self._released:
            raise RuntimeError(RELEASED)
        if self._saved is None:
            return ()
        return tuple([None if s is None else s.unpack(self) for s in self._saved])

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


def apply(node, forward, setup_context, args):
    """What `Function.apply(*args)` does: run forward outside autograd, then make its node the grad_fn of the outputs."""
    tensors = [a for a in args if isinstance(a, TensorImpl)]
    edges = [gradient_edge(a) for a in tensors]
    needed = grad_mode_enabled() and any(e is not NO_EDGE for e in edges)
    node.needs_input_grad = tuple([isinstance(a, TensorImpl) and gradient_edge(a) is not NO_EDGE for a in args])
    node._input_count = len(args)
    node._input_places = tuple([i for i, a in enumerate(args) if isinstance(a, TensorImpl)])
    with AutoGradMode(False):
        if setup_context is None:
            outputs = forward(node, *args)
        else:
            outputs = forward(*args)
            setup_context(node, args, outputs)
    is_tuple = isinstance(outputs, tuple)
    wrapped = _wrap_outputs(node, tensors, edges, outputs if is_tuple else (outputs,), needed)
    node.to_save = node.dirty_tensors = node.non_differentiable = ()
    return wrapped if is_tuple else wrapped[0]


def _zeros(shape, numpy_dtype, device):
    """The gradient of an output that was not used."""
    zeros = wrap(np.zeros(shape, numpy_dtype))
    return zeros if device is cpu else zeros.to(device)


def _wrap_outputs(node, inputs, edges, outputs, needed):
    dirty = {id(t) for t in node.dirty_tensors}
    _check_dirty(node, outputs)
    if not needed:
        for t in node.dirty_tensors:
            t._counter[0] += 1
        return tuple([_without_graph(o, inputs, dirty) for o in outputs])
    node._next_edges = tuple(edges)
    still = {id(t) for t in node.non_differentiable}
    results = tuple([_with_graph(node, o, inputs, dirty, still) for o in outputs])
    node._output_info = [
        (t._array.shape, t._array.dtype, t.device) if isinstance(t, TensorImpl) else ((), None, cpu) for t in results
    ]
    node._shape = [t._array.shape if isinstance(t, TensorImpl) else () for t in results]
    node._dtype = [t._array.dtype if isinstance(t, TensorImpl) else None for t in results]
    for nr, (result, original) in enumerate(zip(results, outputs)):
        if isinstance(result, TensorImpl) and id(original) not in still and _differentiable(result):
            if id(original) in dirty:
                rebase_history(result, node) if result._base is not None else set_history(result, (node, nr))
            else:
                set_history(result, (node, nr))
    _save(node, outputs, results)
    if watchers:
        notify_watchers(node)
    return results


def _check_dirty(node, outputs):
    returned = {id(o) for o in outputs}
    for t in node.dirty_tensors:
        if id(t) not in returned:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned "
                "as output. The inputs that are modified inplace must all be outputs of the "
                "Function."
            )


def _without_graph(output, inputs, dirty):
    if isinstance(output, TensorImpl) and id(output) not in dirty and any(output is i for i in inputs):
        return at.detach(output)
    return output


def _with_graph(node, output, inputs, dirty, still):
    """The tensor that the caller gets for one output of forward."""
    if not isinstance(output, TensorImpl):
        return output
    if id(output) in dirty:
        if output._edge is None and output._base is None:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        check_inplace(output, True)
        output._counter[0] += 1
        return output
    same_as_input = any(output is i for i in inputs)
    if same_as_input:
        result = _alias_of(output)
        if id(output) not in still:
            mark_view(result, output, Creation.IN_CUSTOM_FUNCTION)
        return result
    if output._edge is None:  # a leaf made in forward must not become a graph's output itself
        output = _alias_of(output)
    if output._base is not None:
        output._creation = Creation.IN_CUSTOM_FUNCTION
    return output


def _alias_of(t):
    """Another tensor over the same elements, which autograd does not follow; of the same class if that sees operators."""
    if not seen_by_python(t):
        return alias(t, t._array)
    with AutoGradMode(False):
        return t.view_as(t)


def _differentiable(t):
    return t.dtype.is_floating_point or t.dtype.is_complex


def _save(node, outputs, results):
    """Turn what `save_for_backward` was given into SavedVariables; an output is saved as this node's output."""
    output_nr = {id(o): nr for nr, o in enumerate(outputs)}
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
        nr = output_nr.get(id(t))
        own = nr is not None and results[nr]._edge[0] is node if nr is not None and results[nr]._edge else False
        node._saved.append(save_output(results[nr], nr) if own else SavedVariable(t))
