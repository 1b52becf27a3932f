"""Looking at the graph and hooking into it: nodes, gradient edges, hooks on several tensors and on what is saved.

In PyTorch: `torch/autograd/graph.py`. Explained in the chapter "Autograd".
"""

import abc
import contextlib
import functools
import logging
import re
import threading
from collections import defaultdict, deque
from typing import NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

from readtorch.aten.functions import at
from readtorch.c10.device import has_accelerator
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.c10.torch_dispatch_mode_tls import pop, push
from readtorch.csrc.autograd import init, node, python_engine, saved_variable
from readtorch.csrc.autograd.hooks import RemovableHandle
from readtorch.csrc.autograd.variable import gradient_edge

from .variable import Variable

__all__ = [
    "saved_tensors_hooks",
    "save_on_cpu",
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
    "allow_mutation_on_saved_tensors",
    "Node",
    "GradientEdge",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "set_warn_on_accumulate_grad_stream_mismatch",
    "set_override_stale_capture_stream",
]

log = logging.getLogger(__name__)


class Node(abc.ABC):
    """What every node of the graph can do. It is no base class of theirs, but each is an instance of it."""

    @abc.abstractmethod
    def name(self):
        """The name of the node's class: "CloneBackward0"."""
        raise NotImplementedError

    @property
    @abc.abstractmethod
    def next_functions(self):
        """For each input of the forward operation the node that its gradient goes to (or None), and to which input of it."""
        raise NotImplementedError

    @abc.abstractmethod
    def metadata(self):
        """A dict of notes on the node."""
        raise NotImplementedError

    @abc.abstractmethod
    def _sequence_nr(self):
        raise NotImplementedError

    @property
    @abc.abstractmethod
    def _input_metadata(self):
        raise NotImplementedError

    @abc.abstractmethod
    def _register_hook_dict(self, tensor):
        raise NotImplementedError

    @abc.abstractmethod
    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after the node has run; a tuple that it returns replaces grad_inputs."""
        raise NotImplementedError

    @abc.abstractmethod
    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before the node runs; a tuple that it returns replaces grad_outputs."""
        raise NotImplementedError

    @classmethod
    def __subclasshook__(cls, subclass):
        return True if cls is Node and issubclass(subclass, node.Node) else NotImplemented


class GradientEdge(NamedTuple):
    """Where in the graph a gradient arrives: input `output_nr` of `node`.

    ownership_token: in PyTorch something that keeps the graph behind a node of Python's alive; None here, where nodes do.
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor):
    """The edge along which the gradient of `tensor` flows: `grad(loss, edge)` is `grad(loss, tensor)`.

    Raises RuntimeError if it requires no gradient.
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(_get_grad_fn_or_grad_acc(tensor), tensor.output_nr)


def increment_version(tensor):
    """Tell autograd that `tensor`, or each of an iterable, was written to in a way that it could not see.

    Tensors of inference mode, which have no counter, are passed over. Raises RuntimeError for what is no tensor.
    """
    init.increment_version((tensor,) if isinstance(tensor, TensorImpl) else tensor)


def set_warn_on_accumulate_grad_stream_mismatch(enabled):
    """Whether to warn when a gradient was computed on another stream than that of the leaf's AccumulateGrad."""
    init.stream_settings.warn_on_accumulate_grad_mismatch = bool(enabled)


def set_override_stale_capture_stream(enabled):
    """Whether a CUDA graph capture takes nodes whose stream it does not capture onto its own. Without effect here."""
    init.stream_settings.override_stale_capture = bool(enabled)


def region_activation_memory_budget(budget):
    """For code that `torch.compile` compiles: the share of activations that a region may keep, between 0 and 1.

    Raises TypeError or ValueError for another budget, and RuntimeError outside compiled code, which is everywhere here.
    """
    where = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{where}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{where}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{where} can only be used inside a torch.compile region; it has no effect in eager mode.")


# ---------------------------------------------------------------------------------------- hooks on what is saved


class saved_tensors_hooks:
    """Inside, `pack(tensor)` is kept instead of each tensor that is saved for backward, which then calls `unpack`.

    Of nested ones the innermost counts. Entering raises RuntimeError inside `disable_saved_tensors_hooks`.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        saved_variable.push_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception):
        saved_variable.pop_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keep what operations save in host memory and bring it back when backward needs it.

    pin_memory: in page-locked memory, from where it is copied without waiting.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack_to_cpu(tensor):
            if not pin_memory:
                return tensor.device, tensor.cpu()
            pin = has_accelerator() and not tensor.is_sparse
            packed = at.empty(tensor.size(), dtype=tensor.dtype, layout=tensor.layout, pin_memory=pin)
            packed.copy_(tensor, non_blocking=pin)
            return tensor.device, packed

        def unpack_from_cpu(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Entering `saved_tensors_hooks` inside raises RuntimeError(error_message); so does this itself inside of them."""
    previous = init._saved_tensors_hooks_get_disabled_error_message()
    try:
        init._saved_tensors_hooks_disable(error_message)
        yield
    finally:
        if previous is None:
            init._saved_tensors_hooks_enable()
        else:
            init._saved_tensors_hooks_disable(previous)


# ------------------------------------------------------------------------------------- one hook for several tensors


class _MultiHandle(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __getstate__(self):
        return self.handles

    def __setstate__(self, state):
        self.handles = state


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call `fn` once per backward: `fn(gradients)` when the last has arrived, or (mode "any") `fn(gradient)` with the first.

    mode "all" waits for those of `tensors` that this backward reaches; the others' gradients are None.
    Returns a handle with `remove()`. Raises ValueError for another mode.
    """
    modes = ("all", "any")
    if mode not in modes:
        raise ValueError(f"Expects mode to be one of {modes} but got {mode}")
    if mode == "all":
        collector = _Collector([_get_grad_fn_or_grad_acc(t) for t in tensors], fn)
        handles = [t.register_hook(functools.partial(collector.receive, i)) for i, t in enumerate(tensors)]
    else:
        hook = _only_first_of_a_backward(fn)
        handles = [t.register_hook(hook) for t in tensors if t.requires_grad]
    return _MultiHandle(tuple(handles))


class _Collector:
    """The gradients that have arrived of several tensors, for each backward by itself: two may run at a time."""

    def __init__(self, nodes, fn):
        self.nodes, self.fn = nodes, fn
        self.gradients = {}  # number of the backward -> a gradient, or None, for each tensor
        self.arrived = defaultdict(int)
        self.expected = None  # how many tensors the backward that began last reaches
        self.lock = threading.Lock()

    def receive(self, position, grad):
        task = _running_backward()
        gradients = self.gradients.setdefault(task, [None] * len(self.nodes))
        with self.lock:
            before = self.arrived[task]
            self.arrived[task] += 1
            if before == 0:
                self.expected = sum(map(python_engine.will_engine_execute_node, self.nodes))
        gradients[position] = grad
        if before == self.expected - 1:
            self.fn(gradients)
            del self.arrived[task], self.gradients[task]


def _only_first_of_a_backward(fn):
    began, lock = set(), threading.Lock()

    @functools.wraps(fn)
    def hook(grad):
        task = _running_backward()
        with lock:
            is_first = task not in began
            began.add(task)
        if is_first:
            fn(grad)

    return hook


def _running_backward():
    task = python_engine.current_graph_task_id()
    if task == -1:
        raise AssertionError("expected this hook to be called inside a backward call")
    return task


def _get_grad_fn_or_grad_acc(t):
    """The node that the gradient of a tensor, or of an edge, goes to."""
    found = t.node if isinstance(t, GradientEdge) else gradient_edge(t)[0]
    if found is None:
        raise AssertionError("Expected gradient function to be set")
    return found


# ---------------------------------------------------------------------------- writing to what is saved for backward
#
# Note [ Cloned before they are written ]
# Every saved tensor is replaced by a handle, by hooks on saved tensors. A dispatch mode looks at each operator that writes:
# what it is about to write and what is saved share memory and version, so the numbers that backward needs are those that
# are there now. They are cloned, once a saved tensor; the handle then stands for the clone.

_allow_mutation_on_saved_tensors_enabled = False


class _Handle:
    """Stands for a saved tensor."""


class _AllowMutationOnSavedContext:
    """Which tensors are saved, and what was cloned of them."""

    def __init__(self):
        self.cloned = WeakKeyDictionary()  # handle -> the clone
        self.original = WeakKeyDictionary()  # handle -> the tensor itself, as long as nobody wrote to it
        self.tid_to_weakhandle = WeakValueDictionary()  # (id, address, version) of a tensor -> its handle
        self.sid_to_tid = defaultdict(set)  # (address, version) -> all saved tensors that have these

    def clear(self):
        for kept in (self.cloned, self.original, self.tid_to_weakhandle, self.sid_to_tid):
            kept.clear()


def _get_sid(tensor):
    return tensor.data_ptr(), tensor._version


def _get_tid(tensor):
    return (id(tensor), *_get_sid(tensor))


class _swap_with_cloned(saved_tensors_hooks):
    def __init__(self, ctx):
        def pack_hook(tensor):
            tid = _get_tid(tensor)
            ctx.sid_to_tid[_get_sid(tensor)].add(tid)
            handle = ctx.tid_to_weakhandle.get(tid)
            if handle is None:
                handle = ctx.tid_to_weakhandle[tid] = _Handle()
                ctx.original[handle] = tensor
            return handle

        def unpack_hook(handle):
            if not _allow_mutation_on_saved_tensors_enabled or handle not in ctx.cloned and handle not in ctx.original:
                raise AssertionError(
                    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                    "originally recorded."
                )
            return ctx.cloned[handle] if handle in ctx.cloned else ctx.original[handle]

        super().__init__(pack_hook, unpack_hook)


class _CloneArgBeforeMutateMode:
    """The dispatch mode of Note [ Cloned before they are written ]. In PyTorch: a TorchDispatchMode, which is a storey above here."""

    def __init__(self, ctx):
        self.ctx = ctx

    def __enter__(self):
        push(self)
        return self

    def __exit__(self, *exception):
        pop()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for i, argument in enumerate(func._schema.arguments):
            if argument.is_write:
                written = args[i] if i < len(args) else kwargs[argument.name]
                for tensor in written if isinstance(written, list) else (written,):
                    self.clone_what_is_saved(tensor)
        return func(*args, **kwargs)

    def clone_what_is_saved(self, tensor):
        ctx = self.ctx
        for tid in ctx.sid_to_tid.get(_get_sid(tensor), ()):
            handle = ctx.tid_to_weakhandle.get(tid)  # None if backward was here already
            if handle is not None and handle not in ctx.cloned:
                ctx.cloned[handle] = ctx.original[handle].clone()
                del ctx.original[handle]


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Inside, what is saved for backward may be written to: it is cloned before. Backward must run inside, too.

    Yields an object with the clones. Raises RuntimeError if nested.
    """
    global _allow_mutation_on_saved_tensors_enabled
    ctx = _AllowMutationOnSavedContext()
    with _swap_with_cloned(ctx), _CloneArgBeforeMutateMode(ctx):
        try:
            if _allow_mutation_on_saved_tensors_enabled:
                raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
            _allow_mutation_on_saved_tensors_enabled = True
            yield ctx
        finally:
            ctx.clear()
            _allow_mutation_on_saved_tensors_enabled = False


# ------------------------------------------------------------------------------------------------------ into the engine


def _engine_run_backward(t_outputs, *args, **kwargs):
    """Run backward; each node says what it gets to the logger `torch.autograd.graph` if that listens to DEBUG."""
    if not log.isEnabledFor(logging.DEBUG):
        return Variable._execution_engine.run_backward(t_outputs, *args, **kwargs)
    handles = [node.register_prehook(_log_node) for node in _nodes_behind(map(_get_grad_fn_or_grad_acc, t_outputs))]
    try:
        return Variable._execution_engine.run_backward(t_outputs, *args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()


def _nodes_behind(roots):
    """All nodes that can be reached, each once."""
    queue = deque(roots)
    seen = set(queue)
    while queue:
        node = queue.popleft()
        yield node
        following = {f for f, _ in node.next_functions if f is not None} - seen
        seen |= following
        queue.extend(following)


def _log_node(grad_outputs):
    log.debug(
        "Executing: %s with grad_outputs: [%s]",
        python_engine.current_node(),
        ",".join(map(_type_and_shape, grad_outputs)),
    )


def _type_and_shape(t):
    return "None" if t is None else f"{_abbreviated(t.dtype)}[{', '.join(map(str, t.shape))}]"


def _abbreviated(dtype):
    """f32 for float32, i64 for int64."""
    letters, digits = re.fullmatch("([a-z]+)(.*)", dtype.name).groups()
    short = {"bool": "b8", "bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i"}[letters]
    return short + digits.replace("_", "")
