"""Tensors kept for backward.

In PyTorch: `torch/csrc/autograd/saved_variable.cpp`. Explained in the chapter "Autograd".
"""

import threading
import weakref

from readtorch.aten.python_fallback_kernel import python_detach
from readtorch.c10.dispatch_key import HISTORY, INFERENCE_TENSOR
from readtorch.c10.local_dispatch_key_set import AutoGradMode
from readtorch.c10.tensor_impl import KEPT_BY_ALIASES, alias, legacy_type_name, wrap

from .node import RELEASED, AnomalyMode, operation_name, watchers
from .variable import autograd_meta, grad_accumulator


def refuse_inference_tensor():
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created "
        "in inference mode in computation tracked by autograd. To work around this, you can "
        "make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` instead of `torch.inference_mode()`."
    )


class SavedVariable:
    """A tensor that a node needs later, and the version it had when it was saved.

    Of an output of the node only its parts are kept: node -> output -> node would be a cycle.
    """

    __slots__ = ("kept", "version", "output_nr", "packed", "unpack_hook")

    def __init__(self, tensor, output_nr=None):
        self.kept = (
            tensor if output_nr is None else (tensor._array, tensor._counter, tensor._storage_impl, tensor._keys)
        )
        self.version = tensor._counter[0]
        self.output_nr = output_nr
        self.unpack_hook = None
        if tensor._keys & INFERENCE_TENSOR:
            refuse_inference_tensor()

    def unpack(self, node):
        """The tensor as it was saved. Raises RuntimeError if it was written to since, or freed."""
        if self.unpack_hook is not None:
            return self._unpack_from_hook(node)
        if self.kept is None:
            raise RuntimeError(RELEASED)
        tensor = self.kept if self.output_nr is None else self._as_output(node)
        if tensor._counter[0] != self.version:
            raise RuntimeError(self._modified_message(tensor, node))
        return tensor

    def _as_output(self, node):
        """The saved output with its edge into the graph restored."""
        output = self._without_edge()
        output._edge = (node, self.output_nr)
        output._keys |= HISTORY
        return output

    def _without_edge(self):
        if type(self.kept) is not tuple:
            detached = python_detach(self.kept)
            return alias(self.kept, self.kept._array) if detached is None else detached
        array, counter, storage, keys = self.kept
        output = wrap(array)
        output._counter, output._storage_impl, output._keys = counter, storage, keys & KEPT_BY_ALIASES
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

    def register_hooks(self, pack_hook, unpack_hook):
        """Keep `pack_hook(tensor)` instead of the tensor; `unpack_hook` must give it back."""
        if self.unpack_hook is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. "
                "Hint: only one pair of hooks is allowed at a time."
            )
        if self.kept is None:
            raise RuntimeError(RELEASED)
        tensor = self.kept if self.output_nr is None else self._without_edge()
        with AutoGradMode(False):
            self.packed = pack_hook(tensor)
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
        if self.kept is None:
            raise RuntimeError(RELEASED)
        edge, history, leaf = self.kept
        with AutoGradMode(False):
            data = self.unpack_hook(self.packed)
        if not hasattr(data, "_keys"):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{full_type_name(data)}"
            )
        restored = alias(data, data._array)
        if self.output_nr is not None:
            restored._edge, history = (node, self.output_nr), HISTORY
        else:
            restored._edge = edge
            if edge is None:  # a leaf: its gradient must reach the original, so both have one accumulator
                autograd_meta(restored).accumulator = weakref.ref(grad_accumulator(leaf))
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
    return f", which is output {edge[1]} of {operation_name(edge[0])},"


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


def pack_saved(node):
    """Watcher: put the thread's innermost pair of hooks on what a new node has saved."""
    if not default_hooks.stack:
        return
    pack, unpack = default_hooks.stack[-1]
    for saved in saved_variables(node):
        saved.register_hooks(pack, unpack)


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
