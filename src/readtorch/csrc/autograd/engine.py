"""The engine: walks a graph of nodes from its roots to its leaves, each node once, when all its gradients have arrived.

In PyTorch: `torch/csrc/autograd/engine.cpp`. Explained in the chapter "Autograd".

Note [ Order of nodes ]
First one walk counts, for each node, from how many others it will receive (its dependencies). Then a queue holds the nodes
that have received everything. Among those the one made last in forward runs first (highest sequence number): it is
nearest to the loss, so its result frees memory soonest. No step recurses, so a graph may be of any depth.
"""

import threading
import warnings
from heapq import heappop, heappush
from sys import getrefcount

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import SPARSE_CPU
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled, set_grad_mode
from readtorch.c10.tensor_impl import dtype_of, host_array, legacy_type_name, wrap

from . import accumulate_grad as accumulation
from .node import AnomalyMode, Node, NodeHooks, evaluating, input_metadata


class GraphTask:
    """One call of backward(): which nodes will run, what they have received so far, what the caller wants to keep."""

    __slots__ = ("keep_graph", "dependencies", "buffers", "ready", "needed", "captures", "results", "tie", "callbacks")

    def __init__(self, keep_graph):
        self.keep_graph = keep_graph
        self.dependencies = {}  # node -> how many gradients it still waits for
        self.buffers = {}  # node -> gradients received so far, one entry per input (InputBuffer in PyTorch)
        self.ready = []  # heap of (-sequence number, tie breaker, node)
        self.needed = None  # with `inputs`: the nodes that lie on a way to one of them
        self.captures = {}  # node -> [(input number, position in results)]
        self.results = None
        self.tie = 0
        self.callbacks = []


class GraphRoot(Node):
    """The node above all roots: "produces" the gradients that the caller gave."""

    __slots__ = ("gradients",)

    namespace = "torch::autograd::"

    def apply(self):
        return self.gradients


def execute(root_edges, gradients, keep_graph, create_graph, inputs=None, accumulate_grad=False):
    """Run backward from `root_edges`, which receive `gradients`.

    With `inputs` (a list of edges) only what lies on a way to them runs, and their gradients are returned, unless
    `accumulate_grad`: then leaves among them get their `.grad` instead.

    A backward inside a backward runs here too, on the stack of its caller. In PyTorch: up to 60 deep (`MAX_DEPTH` in
    engine.h), then in a pool of threads, so that there is no limit of depth.
    """
    task = GraphTask(keep_graph)
    root = GraphRoot(tuple(root_edges))
    root.gradients = tuple(gradients)
    count_dependencies(task, root)
    if inputs is not None:
        mark_needed(task, root, inputs, accumulate_grad)
    previous_mode, previous_node = grad_mode_enabled(), evaluating.node
    set_grad_mode(create_graph)
    tasks.stack.append(task)
    try:
        task.ready.append((float("-inf"), 0, root))
        run(task)
        for callback in task.callbacks:
            callback()
    finally:
        tasks.stack.pop()
        set_grad_mode(previous_mode)
        evaluating.node = previous_node
    return task.results


class _Tasks(threading.local):
    """The calls of backward that this thread is in: more than one when a node's `apply` calls backward itself."""

    def __init__(self):
        self.stack = []


tasks = _Tasks()


def count_dependencies(task, root):
    """How many edges lead to each node that can be reached from `root`."""
    dependencies, stack = task.dependencies, [root]
    while stack:
        for node, _ in stack.pop()._next_edges:
            if node is not None:
                if node in dependencies:
                    dependencies[node] += 1
                else:
                    dependencies[node] = 1
                    stack.append(node)


def mark_needed(task, root, inputs, accumulate_grad):
    """Find the nodes from which one of `inputs` can be reached; note where gradients are to be captured."""
    task.results = None if accumulate_grad else [None] * len(inputs)
    targets = set()
    for position, (node, nr) in enumerate(inputs):
        targets.add(node)
        if not accumulate_grad:
            task.captures.setdefault(node, []).append((nr, position))
    needed = {}
    stack = [(root, iter(root._next_edges))]
    on_way = {root}
    while stack:
        node, edges = stack[-1]
        for child, _ in edges:
            if child is None:
                continue
            if child not in on_way:
                on_way.add(child)
                stack.append((child, iter(child._next_edges)))
                break
        else:
            stack.pop()
            needed[node] = (node in targets and accumulate_grad) or any(
                c is not None and (needed.get(c) or c in targets) for c, _ in node._next_edges
            )
    needed[root] = True
    task.needed = needed


def run(task):
    """Apply the ready nodes, one after the other, and pass their results on, until none is left."""
    ready, buffers, needed = task.ready, task.buffers, task.needed
    while ready:
        node = heappop(ready)[2]
        grads = tuple(buffers.pop(node, ()))  # a list would be one reference more: Note [ Stealing gradients ]
        if node._hooks is not None:
            grads = run_tensor_hooks(node, grads)
        if needed is not None:
            capture(task, node, grads)
            if not needed.get(node, False):
                continue
        evaluating.node = node
        if node._hooks is None and not AnomalyMode.enabled:
            outputs = node.apply(*grads)
        else:
            outputs = apply_with_hooks(node, grads)
        if len(outputs) != len(node._next_edges):
            outputs = check_count(node, outputs)
        if not task.keep_graph:
            node.release_variables()
        deliver(task, node, outputs)
        grads = outputs = None  # nobody here looks at them again: see Note [ Stealing gradients ]


def measure_sole_owner():
    """How many references `apply` sees to a gradient that only the engine holds: sent once through the loop above."""
    counts = []

    class Maker(Node):
        def apply(self, *grads):
            return (wrap(np.zeros(())),)

    class Counter(Node):
        def apply(self, grad):
            counts.append(getrefcount(grad))
            return ()

    counter = Counter((), (), np.dtype(np.float64))
    maker = Maker(((counter, 0),))
    task = GraphTask(keep_graph=False)
    count_dependencies(task, maker)
    task.ready.append((0, 0, maker))
    run(task)
    return counts[0]


def deliver(task, node, outputs):
    """Put each result of `node` into the buffer of the node it is for, which becomes ready if it was the last one."""
    buffers, dependencies = task.buffers, task.dependencies
    for i, (child, nr) in enumerate(node._next_edges):
        if child is None:
            continue
        grad = outputs[i]
        if grad is not None:
            array = grad._array
            if array.shape != child._shape or array.dtype is not child._dtype:
                grad = validate(node, i, grad, child, nr)
            received = buffers.get(child)
            if received is None and type(child._shape) is not list:
                buffers[child] = (grad,)
            else:
                buffers[child] = add_to_buffer(child, received, nr, grad)
        left = dependencies[child] = dependencies[child] - 1
        if left == 0:
            if child not in buffers:
                buffers[child] = add_to_buffer(child, None, nr, None)
            task.tie += 1
            heappush(task.ready, (-child._seq_nr, task.tie, child))


def add_to_buffer(child, received, nr, grad):
    """What `child` has received, one entry per input, with `grad` added to entry `nr`."""
    count = len(child._shape) if type(child._shape) is list else 1
    received = [None] * count if received is None else list(received)
    if grad is not None:
        old = received[nr]
        if old is None:
            received[nr] = grad
        else:  # a dense tensor takes a sparse one, but not the other way round
            received[nr] = grad + old if old._keys & SPARSE_CPU else old + grad
    return received


def validate(node, index, grad, child, nr):
    """Bring a gradient to the shape and dtype of the tensor it belongs to; Note [ Broadcasting ].

    Note [ Broadcasting ]
    Formulas ignore broadcasting: the gradient of `a` in `a + b` is simply `grad`. If `a` was expanded to `b`'s shape,
    each of its elements was used several times and its gradient is a sum over those uses. The engine takes that sum for
    all operations at once, here. In PyTorch: `validate_outputs`.
    """
    shape, dtype = input_metadata(child, nr)
    if grad._array.shape != shape:
        if not _is_expandable_to(shape, grad._array.shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - got "
                f"{list(grad._array.shape)} but expected shape compatible with {list(shape)}"
            )
        grad = at.sum_to_size(grad, shape)
    if dtype is not None and grad._array.dtype != dtype:
        wanted = scalar_type.by_numpy[dtype]
        if wanted.is_floating_point and dtype_of(grad).is_complex:
            grad = at.real(grad)
        if dtype_of(grad) is not wanted:
            grad = grad.to(wanted)
    return grad


def _is_expandable_to(shape, target):
    if len(shape) > len(target):
        return False
    return all(a == b or a == 1 for a, b in zip(reversed(shape), reversed(target)))


def check_count(node, outputs):
    """A custom Function may return more gradients than it had inputs, if the rest are None."""
    wanted = len(node._next_edges)
    if len(outputs) > wanted and all(o is None for o in outputs[wanted:]):
        return outputs[:wanted]
    raise RuntimeError(
        f"Function {node.name()} returned an incorrect number of gradients (expected {wanted}, got {len(outputs)})"
    )


# ------------------------------------------------------------------------------------------- hooks and captures


def run_tensor_hooks(node, grads):
    """Hooks of the tensors that this node made (or of the leaf), then what retain_grad asked for."""
    hooks, grads = node._hooks, list(grads)
    for nr, hook in list(hooks.tensor_pre.values()):
        replaced = hook(grads[nr])
        if replaced is not None:
            check_hook_result(grads[nr], replaced, hook)
            grads[nr] = replaced
    for nr, hook in hooks.retain_grad.items():
        if grads[nr] is not None:
            hook(grads[nr])
    return grads


def apply_with_hooks(node, grads):
    """`node.apply` with the hooks of the node itself around it, and with anomaly mode's checks."""
    hooks = node._hooks or NO_HOOKS
    for hook in list(hooks.pre.values()):
        replaced = hook(tuple(grads))
        if replaced is not None:
            grads = check_replaced(hook, grads, replaced)
    outputs = apply_checked(node, grads) if AnomalyMode.enabled else node.apply(*grads)
    for hook in list(hooks.post.values()):
        replaced = hook(tuple(outputs), tuple(grads))
        if replaced is not None:
            outputs = check_replaced(hook, outputs, replaced)
    return outputs


NO_HOOKS = NodeHooks()


def check_replaced(hook, values, replaced):
    """What a node's hook returned instead of `values`: a tuple of as many gradients, each like the one before."""
    if not isinstance(replaced, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(replaced).__name__}'")
    if len(replaced) != len(values):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values "
            f"(got {len(replaced)}, but expected {len(values)})"
        )
    for old, new in zip(values, replaced):
        if new is not None:
            check_hook_result(old, new, hook)
    return replaced


def check_hook_result(old, new, hook):
    """RuntimeError or TypeError if a hook has changed a gradient's size or type."""
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not hasattr(new, "_array"):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if new._array.shape != old._array.shape:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value")
    if new._array.dtype != old._array.dtype:
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has changed the type of value (was "
            f"{legacy_type_name(old)} got {legacy_type_name(new)})"
        )


def hook_name(hook):
    return getattr(hook, "__name__", type(hook).__name__)


def capture(task, node, grads):
    for nr, position in task.captures.get(node, ()):
        task.results[position] = grads[nr]


# ------------------------------------------------------------------------------------------------ anomaly mode


def apply_checked(node, grads):
    """`node.apply`, with the forward traceback shown on error and a search for nan in what comes out."""
    try:
        outputs = node.apply(*grads)
    except Exception:
        warn_origin(node)
        raise
    if AnomalyMode.check_nan:
        for i, output in enumerate(outputs):
            if output is not None and has_nan(output):
                warn_origin(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    return outputs


def has_nan(grad):
    array = grad._array.values if grad._keys & SPARSE_CPU else host_array(grad)
    return (array != array).any()


def warn_origin(node):
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


def queue_callback(callback):
    """Run `callback()` when the backward that is running now has finished (`Variable._execution_engine`)."""
    if not tasks.stack:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    tasks.stack[-1].callbacks.append(callback)


accumulation.SOLE_OWNER = measure_sole_owner()
