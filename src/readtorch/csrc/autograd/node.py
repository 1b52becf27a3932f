"""Nodes of the graph that backward walks.

In PyTorch: `torch/csrc/autograd/node.h`, `torch/csrc/autograd/edge.h`, `torch/csrc/autograd/input_metadata.h`.
Explained in the chapter "Autograd".
"""

import itertools
import threading
import traceback

from .hooks import RemovableHandle

next_sequence_nr = itertools.count().__next__

# Higher than any number that it gives: a node with this one runs before all others that are ready.
FIRST = 2**64 - 1

# Not empty while some feature wants to see every new node: saved-tensor hooks, anomaly mode. One truth test is all
# that an ordinary call pays for them.
watchers = {}

RELEASED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class NodeHooks:
    """Everything that runs around a node's `apply`; made when the first hook is registered."""

    __slots__ = ("tensor_pre", "retain_grad", "pre", "post")

    def __init__(self):
        self.tensor_pre = {}  # handle id -> (input number, hook): from Tensor.register_hook
        self.retain_grad = {}  # input number -> hook: from Tensor.retain_grad, run after the tensor hooks
        self.pre = {}  # handle id -> hook(grad_outputs)
        self.post = {}  # handle id -> hook(grad_inputs, grad_outputs)


class Node:
    """One step of backward: takes the gradients of an operation's outputs, gives those of its inputs.

    A subclass is named as in PyTorch (`MulBackward0`) and implements `apply`.
    """

    __slots__ = ("_seq_nr", "_next_edges", "_shape", "_dtype", "_hooks", "_metadata", "__weakref__")

    def __init__(self, next_edges=(), shape=(), dtype=None):
        self._seq_nr = next_sequence_nr()
        self._next_edges = next_edges  # one (node, input number) for each input of the forward operation
        self._shape = shape  # of the forward output; a list if there are several, as is dtype
        self._dtype = dtype
        self._hooks = None

    def apply(self, *grads):
        raise TypeError(f"{self.name()} has no derivative")

    def release_variables(self):
        """Drop what was saved for backward; the graph can then not be walked again."""

    # What Python sees of a node.

    def name(self):
        """The class's name; with its C++ namespace for the engine's own nodes, as PyTorch says it."""
        return self.namespace + type(self).__name__

    namespace = ""

    @property
    def next_functions(self):
        return tuple(self._next_edges)

    @property
    def metadata(self):
        """A dict for whoever wants to note something on the node; anomaly mode does."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata = {}
            return self._metadata

    def _sequence_nr(self):
        return self._seq_nr

    def _input_metadata_count(self):
        return len(self._shape) if type(self._shape) is list else 1

    def _register_hook_dict(self, dictionary):
        self._own_hooks().pre.update(dictionary)

    def register_hook(self, hook):
        """`hook(grad_inputs, grad_outputs)` runs after `apply` and may replace the grad_inputs."""
        return _add(self._own_hooks().post, hook)

    def register_prehook(self, hook):
        """`hook(grad_outputs)` runs before `apply` and may replace its arguments."""
        return _add(self._own_hooks().pre, hook)

    def _own_hooks(self):
        if self._hooks is None:
            self._hooks = NodeHooks()
        return self._hooks

    def __call__(self, *grads):
        results = self.apply(*grads)
        return results[0] if len(results) == 1 else results

    def __repr__(self):
        return f"<{type(self).__name__} object at {hex(id(self))}>"


def operation_name(node):
    """The operation behind a node, as error messages name it: "Exp" for ExpBackward0, "Lerp1" for LerpBackward1."""
    operation, _, number = node.name().rpartition("Backward")
    return operation if number == "0" else operation + number


def _add(hooks, hook):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def input_metadata(node, nr):
    """Shape and dtype that a gradient flowing into input `nr` of `node` must have."""
    shape = node._shape
    return (shape[nr], node._dtype[nr]) if type(shape) is list else (shape, node._dtype)


# ------------------------------------------------------------------------------------------- anomaly mode


class _Evaluating(threading.local):
    """The node that this thread's engine runs right now; nodes made meanwhile are its children."""

    node = None


evaluating = _Evaluating()


class AnomalyMode:
    """Whether new nodes note where they were made, and whether the engine looks for nan."""

    enabled = False
    check_nan = True

    @classmethod
    def set_enabled(cls, enabled, check_nan=True):
        cls.enabled, cls.check_nan = enabled, check_nan
        if enabled:
            watchers["anomaly"] = note_origin
        else:
            watchers.pop("anomaly", None)


def note_origin(node):
    node.metadata["traceback_"] = traceback.format_stack()[:-3]
    if evaluating.node is not None:
        node.metadata["parent_"] = evaluating.node


def notify_watchers(node):
    for watcher in list(watchers.values()):
        watcher(node)


class Error(Node):
    """A node that raises `message` when backward reaches it (`torch/csrc/autograd/functions/basic_ops.h`)."""

    __slots__ = ("message",)

    namespace = "torch::autograd::"

    def apply(self, *grads):
        raise RuntimeError(self.message)


class NotImplemented(Error):
    """The node of an operator that has no derivative. It runs before all others that are ready."""

    __slots__ = ()

    def __init__(self, next_edges):
        super().__init__(next_edges)
        self._seq_nr = FIRST

    def name(self):
        return "torch::autograd::NotImplemented"
