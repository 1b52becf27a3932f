"""Nodes of the graph that backward walks.

In PyTorch: `torch/csrc/autograd/node.h`, `torch/csrc/autograd/edge.h`, `torch/csrc/autograd/input_metadata.h`; what Python
sees of them: `torch/csrc/autograd/python_cpp_function.cpp`. Explained in the chapter "Autograd".
"""

import threading
import traceback
import warnings
from collections import OrderedDict

from readtorch.aten.sequence_number import next_sequence_nr, peek_sequence_nr  # noqa: F401  (other rooms find it here)
from readtorch.c10 import scalar_type
from readtorch.c10.cuda.cuda_stream import current_stream
from readtorch.c10.device import cpu, cuda_device, device
from readtorch.c10.dispatch_key import GPUS, META, NOT_CPU
from readtorch.c10.tensor_impl import NO_EDGE, TensorImpl

from .hooks import RemovableHandle

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
    """Everything that runs around a node's `apply`; made when the first hook is registered.

    Note [ Hooks ordering ]
    Before the node runs: the hooks of the tensors that it made, then what `retain_grad` asked for, then its own pre-hooks;
    afterwards its post-hooks.
    """

    __slots__ = ("tensor_pre", "retains_grad", "pre", "post")

    def __init__(self):
        self.tensor_pre = []  # (`_backward_hooks` of a tensor, the number of the input that is its gradient)
        self.retains_grad = {}  # input number -> hook
        self.pre = OrderedDict()  # handle id -> hook(grad_outputs)
        self.post = OrderedDict()  # handle id -> hook(grad_inputs, grad_outputs)


class Node:
    """One step of backward: takes the gradients of an operation's outputs, gives those of its inputs.

    A subclass is named as in PyTorch (`MulBackward0`) and implements `apply`.
    """

    __slots__ = (
        "_seq_nr",
        "_next_edges",
        "_shape",
        "_dtype",
        "_hooks",
        "_metadata",
        "_stream",
        "_device",
        "__weakref__",
    )

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
    notes_device = False  # whether it is certain that it has noted it, if its outputs do not lie on the CPU

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

    requires_grad = property(lambda self: True)

    def _sequence_nr(self):
        return self._seq_nr

    def _set_sequence_nr(self, number):
        """Among the nodes that are ready the one with the highest number runs first."""
        if not isinstance(number, int):
            raise TypeError("an integer is required")
        if number < 0:
            raise OverflowError("can't convert negative int to unsigned")
        self._seq_nr = number

    @property
    def _input_metadata(self):
        """What a gradient for each of the node's inputs must be like."""
        count = len(self._shape) if type(self._shape) is list else 1
        return tuple([InputMetadata(self, nr) for nr in range(count)])

    def _register_hook_dict(self, tensor):
        """The hooks of `tensor`, which this node made, are called with its gradient, also those that are registered later."""
        if not isinstance(tensor, TensorImpl):
            raise TypeError("_register_hook_dict expected a variable")
        self._own_hooks().tensor_pre.append((tensor._backward_hooks, tensor.output_nr))

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

    def __call__(self, *grads, **named):
        """The node's function by itself, without hooks. Raises TypeError for a wrong number of gradients."""
        if named:
            raise TypeError("keyword arguments are not supported")
        expected = len(self._shape) if type(self._shape) is list else 1
        if len(grads) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
        for i, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, TensorImpl):
                raise TypeError(f"argument {i} is not a Variable")
        results = self.apply(*grads)
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self):
        return f"<{type(self).__name__} object at {hex(id(self))}>"


def operation_name(node):
    """The operation behind a node, as error messages name it: "Exp" for ExpBackward0, "Lerp1" for LerpBackward1."""
    name = node.name()
    operation, _, number = name.rpartition("Backward")
    if number and not number.isdigit():
        return name  # "torch::autograd::CopyBackwards"
    return operation if number == "0" else operation + number


def _add(hooks, hook):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def input_metadata(node, nr):
    """Shape and dtype that a gradient flowing into input `nr` of `node` must have."""
    shape = node._shape
    return (shape[nr], node._dtype[nr]) if type(shape) is list else (shape, node._dtype)


class InputMetadata:
    """What a gradient for one input of a node must be like: a look at the node, made when it is asked for."""

    __slots__ = ("shape", "dtype", "device")

    is_nested_tensor = is_cpp_nested_tensor = False
    __module__, __qualname__ = "torch._C._autograd", "_InputMetadata"

    def __init__(self, node, nr):
        shape, dtype = input_metadata(node, nr)
        self.shape = list(shape or ())
        self.dtype = None if dtype is None else scalar_type.by_numpy[dtype]
        self.device = node_device(node)


# ------------------------------------------------------------------------------------------------------- streams
#
# Note [ Streaming backwards ]
# A node whose operation ran on a GPU notes the stream, and backward runs it on that stream again, so what forward did at the
# same time backward does at the same time. The engine makes the stream that reads a gradient wait for the one that
# wrote it (input_buffer.py), and the caller's stream, in the end, for those that filled `.grad`.


class Streams:
    """Whether any node has noted a stream, or that it is of another device than the CPU: until then the engine need not ask."""

    noted = devices_noted = False


def note_stream(node, outputs):
    """Note on `node` the stream that the first of `outputs` (a tensor or several) lies on, or that it is on no CPU."""
    t = outputs if isinstance(outputs, TensorImpl) else next((t for t in outputs if t is not None), None)
    if t is None or not t._keys & NOT_CPU:
        return
    Streams.devices_noted = True
    if t._keys & GPUS:
        node._stream = current_stream(t._storage_impl.device.index)
        Streams.noted = True
    else:
        node._device = META_DEVICE


META_DEVICE = device("meta")


def node_stream(node):
    """The stream of the operation that made `node`; None for one on the CPU."""
    try:
        return node._stream
    except AttributeError:
        return None


def node_device(node):
    stream = node_stream(node)
    return getattr(node, "_device", cpu) if stream is None else cuda_device(stream.device_index)


def to_device(index, grad, node, format_error):
    """Only a gradient without dimensions may lie on another device than it should."""
    wanted = node_device(node)
    if wanted is cpu and not grad._keys & META:
        return grad
    found = META_DEVICE if grad._keys & META else grad.device
    is_known = type(node._shape) is not list and (wanted != cpu or found == META_DEVICE and node.notes_device)
    if not is_known or found == wanted:
        return grad
    if grad._array.ndim == 0:
        return grad.to(wanted)
    raise RuntimeError(format_error(f"invalid gradient at index {index} - expected device {wanted} but got {found}"))


def returned_by(fn):
    return lambda message: f"Function {fn.name()} returned an {message}"


# ------------------------------------------------------------------------------------------------ a thread's part


class EngineThread:
    """What the engine notes of a thread. In PyTorch: thread-local variables of engine.cpp, one each."""

    __slots__ = (
        "worker_device",
        "ready_queue",
        "graph_task",
        "node",
        "checkpoint_valid",
        "total_depth",
        "current_depth",
    )

    def __init__(self):
        self.worker_device = (
            NO_DEVICE  # the device whose queue it works on; CPU_DEVICE while it runs a backward of its own
        )
        self.ready_queue = None
        self.graph_task = None  # the call of backward that it works on (`current_graph_task`)
        self.node = None  # the node that runs; those made meanwhile are its children (`current_evaluating_node`)
        self.checkpoint_valid = True  # none of the calls of backward that it is in has `inputs`
        self.total_depth = self.current_depth = 0  # calls of backward inside one another: in all, and on this stack


NO_DEVICE, CPU_DEVICE = -2, -1


class _Here(threading.local):
    def __init__(self):
        self.thread = EngineThread()


_here = _Here()


def engine_thread():
    """The EngineThread of the calling thread."""
    return _here.thread


# The calls of backward with `inputs` that run a node now of which not all gradients are needed: it asks which are.
partial_tasks = []


def wanted_edges(node):
    """The node's edges, NO_EDGE for a gradient that the running backward does not need. In PyTorch: `task_should_compute_output`."""
    task = engine_thread().graph_task
    if task is None or task.exec_info is None:
        return node._next_edges
    return tuple([edge if edge[0] in task.exec_info else NO_EDGE for edge in node._next_edges])


# ------------------------------------------------------------------------------------------- anomaly mode


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
    parent = engine_thread().node
    if parent is not None:
        node.metadata["parent_"] = parent


def print_stack(node):
    """Warn with the traceback of the forward call of `node`, and those of the nodes that made it."""
    origin = node.metadata.get("traceback_")
    if origin is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable "
            "detect anomaly during forward pass for more information.",
            stacklevel=2,
        )
        return
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(origin)}",
        stacklevel=2,
    )
    parent = node.metadata.get("parent_")
    while parent is not None:
        above = parent.metadata.get("traceback_", ["No forward pass information available.\n"])
        warnings.warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call "
            f"that induced the previous calculation:\n{''.join(above)}",
            stacklevel=2,
        )
        parent = parent.metadata.get("parent_")


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
