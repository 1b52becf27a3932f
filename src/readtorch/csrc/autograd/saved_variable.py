"""Tensors kept for backward.

In PyTorch: `torch/csrc/autograd/saved_variable.cpp`. Explained in the chapter "Autograd".
"""

import threading
import weakref

from readtorch.aten.python_fallback_kernel import python_detach
from readtorch.aten.thread_local_state import carry
from readtorch.c10.dispatch_key import HISTORY, INFERENCE_TENSOR, TANGENT, WRAPPED_NUMBER
from readtorch.c10.local_dispatch_key_set import AutoGradMode
from readtorch.c10.tensor_impl import KEPT_BY_ALIASES, NO_EDGE, alias, legacy_type_name, wrap

from .node import RELEASED, AnomalyMode, operation_name, watchers
from .variable import autograd_meta, grad_accumulator, refresh_view


def refuse_inference_tensor():
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created "
        "in inference mode in computation tracked by autograd. To work around this, you can "
        "make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` instead of `torch.inference_mode()`."
    )


def refuse_detached(tensor, node):
    """RuntimeError if `tensor` had a graph when `node` saved it, and has none since `detach_`."""
    if tensor._autograd_meta.detached_at > node._seq_nr and (tensor._edge is None or tensor._edge[0] is None):
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
            "This is not supported, please use out-of-place `.detach()` instead"
        )


class SavedVariable:
    """A tensor that a node needs later, and the version it had when it was saved.

    Of an output of the node only its parts are kept: node -> output -> node would be a cycle.
    """

    __slots__ = ("kept", "version", "output_nr", "packed", "unpack_hook")

    def __init__(self, tensor=None, output_nr=None):
        if tensor is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        self.kept = (
            tensor if output_nr is None else (tensor._array, tensor._counter, tensor._storage_impl, tensor._keys)
        )
        self.version = tensor._counter[0]
        self.output_nr = output_nr
        self.unpack_hook = None
        if tensor._keys & INFERENCE_TENSOR:
            refuse_inference_tensor()

    def unpack(self, node, saved_for=None):
        """The tensor as it was saved. RuntimeError if it was written to since, or freed; or cut off, unless saved_for is the node."""
        if self.unpack_hook is not None:
            return self._unpack_from_hook(node)
        kept = self.kept  # read once: another thread may release it now
        if kept is None:
            raise RuntimeError(RELEASED)
        tensor = kept if self.output_nr is None else self._as_output(node, kept)
        if tensor._autograd_meta is not None and tensor._autograd_meta.detached_at and saved_for is None:
            refuse_detached(tensor, node)
        if tensor._counter[0] != self.version:
            if tensor._base is not None:
                refresh_view(tensor)  # the message names the node that the view has now, or it may have none
            raise RuntimeError(self._modified_message(tensor, node))
        return tensor

    def _as_output(self, node, kept):
        """The saved output with its edge into the graph restored."""
        output = self._without_edge(kept)
        output._edge = (node, self.output_nr)
        output._keys |= HISTORY
        return output

    def _without_edge(self, kept):
        if type(kept) is not tuple:
            detached = python_detach(kept)
            return alias(kept, kept._array) if detached is None else detached
        array, counter, storage, keys, *forward = kept
        output = wrap(array)
        output._counter, output._storage_impl, output._keys = counter, storage, keys & KEPT_BY_ALIASES
        if forward:  # it was a dual: see `save_tangent` in forward_grad.py
            autograd_meta(output).forward_grad = forward[0]
            output._keys |= TANGENT
        return output

    def _modified_message(self, tensor, node):
        kind = legacy_type_name(tensor)
        origin = (
            f", which is output {self.output_nr} of {operation_name(node)},"
            if self.output_nr is not None
            else _origin(tensor)
        )
        return (
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{kind} {list(tensor._array.shape)}]{origin} is at version "
            f"{tensor._counter[0]}; expected version {self.version} instead. Hint: " + _hint()
        )

    # ------------------------------------------------------------------------------------------ packing hooks

    def register_hooks(self, pack_hook, unpack_hook, saved_for=None):
        """Keep `pack_hook(tensor)` instead of the tensor; `unpack_hook` must give it back.

        saved_for: the node, if these are the thread's hooks: they get the tensor with its history, others without.
        """
        if self.unpack_hook is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. "
                "Hint: only one pair of hooks is allowed at a time."
            )
        if self.kept is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
                "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through "
                "the graph a second time or if you need to access saved variables after calling backward."
            )
        if self.output_nr is None:
            tensor = self.kept
        else:
            tensor = self._without_edge(self.kept) if saved_for is None else self._as_output(saved_for, self.kept)
        with AutoGradMode(False):
            self.packed = pack_hook(tensor.detach() if saved_for is None else tensor)
        if tensor._counter[0] != self.version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided "
                "as input to pack hook cannot be modified by in-place operations as this "
                "can lead to unexpected side-effects. Please open an issue if you need to "
                "perform in-place operations on the input to a pack hook."
            )
        self.unpack_hook = unpack_hook
        self.kept = (tensor._edge, tensor._keys & HISTORY, tensor if _is_leaf(tensor) else None)

    def _unpack_from_hook(self, node):
        packed, kept = self.packed, self.kept  # in this order: `release` goes the other way round
        if kept is None:
            raise RuntimeError(RELEASED)
        edge, history, leaf = kept
        with AutoGradMode(False):
            data = self.unpack_hook(packed)
        if not hasattr(data, "_keys"):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{full_type_name(data)}"
            )
        if edge is NO_EDGE and self.output_nr is None and not data._keys & HISTORY:
            return data  # no gradient goes there
        restored = alias(data, data._array)
        if self.output_nr is not None:
            restored._edge, history = (node, self.output_nr), HISTORY
        else:
            restored._edge = edge
            if edge is None:  # a leaf: its gradient must reach the original, so both have one accumulator
                autograd_meta(restored).grad_accumulator = weakref.ref(grad_accumulator(leaf))
        restored._keys |= history
        return restored

    def release(self):
        self.kept = None
        self.packed = None


def _is_leaf(tensor):
    return tensor._edge is None


WRITTEN_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE: such a type's name in C is that of the class alone


def full_type_name(value):
    """The name of a value's type as C has it: with the module if the type is an extension's."""
    kind = type(value)
    is_alone = kind.__module__ == "builtins" or kind.__flags__ & WRITTEN_IN_PYTHON
    return kind.__name__ if is_alone else f"{kind.__module__}.{kind.__qualname__}"


def save_output(output, output_nr):
    """A SavedVariable of an output that a dispatch mode or its own class must detach: see `python_detach`."""
    saved = SavedVariable(output, output_nr)
    detached = python_detach(output)
    if detached is not None:
        saved.kept, saved.version = detached, detached._counter[0]
    return saved


def save_list(tensors):
    return [None if t is None else SavedVariable(t) for t in tensors]


def _origin(tensor):
    edge = tensor._edge
    if not edge or edge[0] is None:
        return ""
    return (
        f", which is output 0 of {operation_name(edge[0])},"  # PyTorch notes the number where it keeps no tensor alone
    )


def _hint():
    if AnomalyMode.enabled:
        return (
            "the backtrace further above shows the operation that failed to compute its gradient. The "
            "variable in question was changed in there or anywhere later. Good luck!"
        )
    return (
        "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


# --------------------------------------------------------------------------------------------- default hooks


class SavedTensorDefaultHooks(threading.local):
    """Pairs of hooks that this thread puts on everything it saves (`saved_tensors_hooks`)."""

    def __init__(self):
        self.stack = []
        self.disabled_message = None


default_hooks = SavedTensorDefaultHooks()
carry(default_hooks, "stack", "disabled_message")


def pack_saved(node):
    """Watcher: put the thread's innermost pair of hooks on what a new node has saved."""
    if not default_hooks.stack:
        return
    pack, unpack = default_hooks.stack[-1]
    for saved in saved_variables(node):
        keys = saved.kept[3] if type(saved.kept) is tuple else saved.kept._keys
        if not keys & WRAPPED_NUMBER:  # a number of the program stays one
            saved.register_hooks(pack, unpack, node)


def saved_variables(node):
    """Every SavedVariable that a generated node holds."""
    for name in getattr(type(node), "saved_names", ()):
        value = getattr(node, name)
        yield from (v for v in (value if type(value) is list else (value,)) if v is not None)


def push_default_hooks(pack, unpack):
    if default_hooks.disabled_message is not None:
        raise RuntimeError(default_hooks.disabled_message)
    default_hooks.stack.append((pack, unpack))
    watchers["saved_tensors_hooks"] = pack_saved


def pop_default_hooks():
    default_hooks.stack.pop()
