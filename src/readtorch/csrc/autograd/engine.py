"""The engine: walks a graph of nodes from its roots to its leaves, each node once, when all its gradients have arrived.

In PyTorch: `torch/csrc/autograd/engine.cpp`. Explained in the chapter "Autograd".

Note [ Order of nodes ]
First one walk counts, for each node, from how many others it will receive (its dependencies). Then a queue holds the nodes
that have received everything. Among those the one made last in forward runs first (highest sequence number): it is
nearest to the loss, so its result frees memory soonest. No step recurses, so a graph may be of any depth.
"""

import math
import os
import sys
import threading
import warnings
from collections import deque
from functools import lru_cache, partial
from sys import getrefcount

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.record_function import BACKWARD_FUNCTION, FUNCTION
from readtorch.aten.thread_local_state import ThreadLocalState
from readtorch.c10 import scalar_type
from readtorch.c10.autograd_state import autograd_state
from readtorch.c10.cuda.cuda_stream import StreamGuard, current_stream
from readtorch.c10.dispatch_key import META, NOT_CPU, SPARSE
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled, set_grad_mode, tls
from readtorch.c10.tensor_impl import dtype_of, host_array, legacy_type_name, wrap

from . import accumulate_grad as accumulation
from . import input_buffer
from .graph_task import GraphTask, get_current_graph_task
from .node import (
    CPU_DEVICE,
    FIRST,
    NO_DEVICE,
    AnomalyMode,
    Node,
    Streams,
    engine_thread,
    input_metadata,
    node_stream,
    note_stream,
    partial_tasks,
    returned_by,
    to_device,
)

MAX_DEPTH = 60  # calls of backward inside one another that one thread's stack has room for


# ------------------------------------------------------------------------------------------------------ ready queues


class ReadyQueue:
    """The nodes that have received all their gradients, as tasks (priority, graph task, node, gradients).

    It is a heap whose top runs next. Of several tasks with equal priorities, which are the AccumulateGrads of one node's
    inputs, the order follows from the steps below. They are those of C++'s `push_heap` and `pop_heap`, so that hooks of
    leaves are called in PyTorch's order.
    """

    __slots__ = ("heap",)

    def __init__(self):
        self.heap = []

    def push(self, graph_task, fn, inputs):
        graph_task.outstanding_tasks += 1
        heap, task = self.heap, (graph_task.priority + fn._seq_nr, graph_task, fn, inputs)
        heap.append(task)
        if len(heap) > 1:
            self.sift_up(task, len(heap) - 1)

    def sift_up(self, task, place):
        """Put `task` into the hole `place`; until what is above is no less, the two change places."""
        heap = self.heap
        while place:
            parent = (place - 1) // 2
            if heap[parent][0] >= task[0]:
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = task

    def pop(self):
        """Take the top out: the hole sinks to the bottom, behind the greater child each time; there the last task fits in."""
        heap = self.heap
        last = heap.pop()
        if not heap:
            return last
        top, count, place, child = heap[0], len(heap), 0, 2
        if count == 1:
            heap[0] = last
            return top
        while child < count:
            if heap[child][0] < heap[child - 1][0]:
                child -= 1
            heap[place] = heap[child]
            place, child = child, 2 * child + 2
        if child == count:
            heap[place] = heap[child - 1]
            place = child - 1
        self.sift_up(last, place)
        return top


class SharedReadyQueue(ReadyQueue):
    """The same for tasks that several threads push; one that pops waits while there are none."""

    __slots__ = ("not_empty",)

    def __init__(self):
        super().__init__()
        self.not_empty = threading.Condition()

    def push(self, graph_task, fn, inputs):
        with self.not_empty:
            super().push(graph_task, fn, inputs)
            self.not_empty.notify()

    def push_wake_up(self, graph_task):
        """A task without a node: whoever waits for one looks whether `graph_task` is completed."""
        with self.not_empty:
            self.heap.append(None)
            self.sift_up((math.inf, graph_task, None, ()), len(self.heap) - 1)
            self.not_empty.notify()

    def pop(self):
        with self.not_empty:
            self.not_empty.wait_for(lambda: self.heap)
            return super().pop()


# --------------------------------------------------------------------------------------------------- calls from outside


class GraphRoot(Node):
    """The node above several roots: "produces" the gradients that the caller gave."""

    __slots__ = ("gradients",)

    namespace = "torch::autograd::"

    def apply(self):
        return self.gradients


def execute(root_edges, inputs, keep_graph, create_graph, outputs=None, accumulate_grad=False):
    """Run backward from `root_edges`, which receive the gradients `inputs`.

    With `outputs` (a list of edges) only what lies on a way to them runs, and their gradients are returned, unless
    `accumulate_grad`: then leaves among them get their `.grad` instead.
    """
    inputs = validate_outputs(root_edges, inputs, str)
    if accumulate_grad and create_graph:
        warn_of_cycle()
    thread = engine_thread()
    if thread.ready_queue is None:
        thread.ready_queue = ReadyQueue()
    depth = 0 if thread.worker_device == NO_DEVICE else thread.total_depth + 1
    graph_task = GraphTask(keep_graph, create_graph, depth, thread.ready_queue)
    if len(root_edges) == 1:  # no root above the root
        (graph_root, input_nr), buffer = root_edges[0], inputs
        if type(graph_root._shape) is list:
            buffer = input_buffer.add(None, len(graph_root._shape), input_nr, inputs[0])
    else:
        graph_root, buffer = GraphRoot(tuple(root_edges)), ()
        graph_root.gradients = inputs
        note_stream(graph_root, inputs)
    compute_dependencies(graph_root, graph_task)
    if Streams.noted:
        prepare_for_devices(graph_task, graph_root, inputs)
    if outputs is not None:
        graph_task.init_to_execute(graph_root, outputs, accumulate_grad)
    execute_with_graph_task(graph_task, graph_root, buffer)
    if graph_task.exception is not None:
        exception, graph_task.exception = graph_task.exception, None
        try:
            raise exception
        finally:  # its traceback refers to this frame, and the frames to the graph: no cycle may keep them alive
            exception = None
    return graph_task.captured_vars


def compute_dependencies(root, graph_task):
    """How many edges lead to each node that can be reached from `root`."""
    dependencies, queue = graph_task.dependencies, [root]
    while queue:
        for node, _ in queue.pop()._next_edges:
            if node is not None:
                if node in dependencies:
                    dependencies[node] += 1
                else:
                    dependencies[node] = 1
                    queue.append(node)


# Note [ Reentrant backwards ]
# A node's function may call backward itself, as a checkpoint does. Then the thread, which has a node to finish, goes into
# `thread_main` again and works on the inner graph, on the same stack. From a depth of MAX_DEPTH such a call goes to a thread of
# a pool instead, which works on the same queue while this one waits. So there is no limit to the depth.


def execute_with_graph_task(graph_task, graph_root, inputs):
    """Put the root into a queue and work until the graph is done."""
    thread = engine_thread()
    is_outermost = thread.worker_device == NO_DEVICE
    if is_outermost:
        thread.worker_device = CPU_DEVICE
    graph_task.owner = thread.worker_device
    queue = graph_task.cpu_ready_queue
    queue = queue if graph_task.mutex is None else ready_queue(queue, graph_root)
    queue.push(graph_task, graph_root, inputs)
    if is_outermost:
        try:
            thread_main(graph_task)
        finally:
            thread.worker_device = NO_DEVICE
    elif thread.current_depth >= MAX_DEPTH or stack_is_short():
        add_thread_pool_task(graph_task)
    else:
        thread.total_depth += 1
        thread.current_depth += 1
        try:
            thread_main(graph_task)
        finally:
            thread.current_depth -= 1
            thread.total_depth -= 1


def stack_is_short():
    """Whether Python would allow this thread few more calls inside one another. In PyTorch, a frame of C++ counts for less."""
    try:
        return sys._getframe(sys.getrecursionlimit() - 150) is not None
    except ValueError:
        return False


def warn_of_cycle(told=[]):  # noqa: B006 (once in a process)
    if not told:
        told.append(True)
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
            "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
            "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
            "the cycle and avoid the leak.",
            stacklevel=2,
        )


# ---------------------------------------------------------------------------------------------------------- the loop


def thread_main(graph_task):
    """Take tasks from the queue of `graph_task` and evaluate their nodes until it is completed."""
    if graph_task.mutex is not None:
        return shared_thread_main(graph_task)
    thread, queue = engine_thread(), graph_task.cpu_ready_queue
    evaluate = evaluate_observed if graph_task.is_observed else evaluate_function
    previous = thread.graph_task, thread.node, thread.checkpoint_valid
    previous_mode = tls.grad_mode
    thread.graph_task = graph_task
    thread.checkpoint_valid = thread.checkpoint_valid and graph_task.exec_info is None
    if previous_mode is not graph_task.grad_mode:
        set_grad_mode(graph_task.grad_mode)
    try:
        while not graph_task.completed:
            _, local_graph_task, fn, inputs = queue.pop()
            if local_graph_task.exception is None:
                thread.node = fn
                try:
                    evaluate(local_graph_task, fn, inputs, queue)
                except BaseException as exception:
                    local_graph_task.set_exception(exception, fn)
            local_graph_task.outstanding_tasks -= 1
            if not local_graph_task.outstanding_tasks:
                local_graph_task.mark_as_completed_and_run_post_processing()
    finally:
        thread.graph_task, thread.node, thread.checkpoint_valid = previous
        if tls.grad_mode is not previous_mode:
            set_grad_mode(previous_mode)


def evaluate_function(graph_task, fn, inputs, cpu_ready_queue):
    """Run `fn`, give its results to the nodes that come next, and put those into the queue that have received everything."""
    exec_info = graph_task.exec_info
    if exec_info is not None:
        inputs, needed = call_captures(graph_task, fn, inputs)
        if not needed:
            return
        outputs = call_as_needed(graph_task, fn, inputs)
        if tls.is_unusual:  # a mode sees the order: all are validated before one goes on
            outputs = validate_outputs(fn._next_edges, outputs, returned_by(fn))
    else:
        is_plain = fn._hooks is None and not graph_task.is_observed
        outputs = fn.apply(*inputs) if is_plain else call_function(graph_task, fn, inputs)
    if not graph_task.keep_graph:
        fn.release_variables()
    edges = fn._next_edges
    if len(outputs) != len(edges):
        validate_outputs(edges, outputs, returned_by(fn))  # which says so
    if not edges:
        return
    if AnomalyMode.enabled and AnomalyMode.check_nan:
        check_nan(fn, outputs)
    if graph_task.mutex is not None:
        return push_outputs_on_streams(graph_task, fn, outputs)
    dependencies, not_ready = graph_task.dependencies, graph_task.not_ready
    for i, (next_fn, input_nr) in enumerate(edges):
        if next_fn is None:
            continue
        output = outputs[i]
        if output is not None and (output._array.shape != next_fn._shape or output._array.dtype is not next_fn._dtype):
            output = validate_output(i, output, next_fn, input_nr, returned_by(fn))
        left = dependencies[next_fn] = dependencies[next_fn] - 1
        if exec_info is not None and next_fn not in exec_info:
            continue
        buffer = not_ready.pop(next_fn, None)
        if buffer is None and output is not None and type(next_fn._shape) is not list:
            buffer = (output,)
        else:
            buffer = input_buffer.add(buffer, count_inputs(next_fn), input_nr, output)
        if left:
            not_ready[next_fn] = buffer
        else:
            cpu_ready_queue.push(graph_task, next_fn, buffer)


def count_inputs(fn):
    return len(fn._shape) if type(fn._shape) is list else 1


def call_captures(graph_task, fn, inputs):
    """Catch what flows into `fn` and is wanted; its gradients, after the tensors' hooks if it does not run; whether it does."""
    info = graph_task.exec_info.get(fn)
    if info is None:  # a root that leads nowhere
        return call_tensor_pre_hooks(fn, inputs), False
    if not info.needed:
        inputs = call_tensor_pre_hooks(fn, inputs)
    for input_nr, output_nr in info.captures:
        graph_task.captured_vars[output_nr] = inputs[input_nr]
        if graph_task.mutex is not None and node_stream(fn) is not None:
            graph_task.leaf_streams.add(node_stream(fn))
    return inputs, info.needed


def call_as_needed(graph_task, fn, inputs):
    """What `fn` returns. If not all of its gradients are needed, it asks which are: see `wanted_edges`."""
    exec_info = graph_task.exec_info
    for next_fn, _ in fn._next_edges:
        if next_fn not in exec_info and next_fn is not None:
            partial_tasks.append(graph_task)
            try:
                return call_function(graph_task, fn, inputs)
            finally:
                partial_tasks.remove(graph_task)
    return call_function(graph_task, fn, inputs)


def call_function(graph_task, fn, inputs):
    """`fn.apply` between the hooks: see Note [ Hooks ordering ]."""
    if fn._hooks is None:
        return call_node(fn, inputs)
    inputs = call_pre_hooks(fn, call_tensor_pre_hooks(fn, inputs))
    outputs = validate_outputs(fn._next_edges, call_node(fn, inputs), returned_by(fn))
    outputs = call_post_hooks(fn, outputs, inputs)
    if grad_mode_enabled() is not graph_task.grad_mode:  # a hook has set it
        set_grad_mode(graph_task.grad_mode)
    return outputs


def call_node(fn, inputs):
    """`fn.apply(*inputs)`, which the callbacks of this thread see. In PyTorch: `Node::operator()`."""
    around = tls.around
    if around is None:
        return fn.apply(*inputs)
    number = fn._seq_nr
    return around(recorded_names(type(fn))[0], number if number < FIRST else -1, BACKWARD_FUNCTION, fn.apply, inputs)


def evaluate_observed(*arguments):
    """`evaluate_function` as an event of its own: what it takes beyond the node itself is the engine's work."""
    around = tls.around
    if around is None:
        return evaluate_function(*arguments)
    fn = arguments[1]
    number = fn._seq_nr
    name = recorded_names(type(fn))[1]
    return around(name, number if number < FIRST else -1, FUNCTION, partial(evaluate_function, *arguments), ())


@lru_cache(1024)
def recorded_names(node_class):
    """What the events are called in which a node of this class runs, and is evaluated."""
    name = node_class.name(node_class.__new__(node_class))
    return name, f"autograd::engine::evaluate_function: {name}"


# -------------------------------------------------------------------------------------------------- what is checked


def validate_outputs(edges, grads, format_error):
    """The gradients that flow along `edges`, each brought to the shape and dtype of the tensor it belongs to.

    format_error: makes the whole message of one that says what a gradient is. Raises RuntimeError for one that does not fit.
    """
    if len(grads) != len(edges):
        raise RuntimeError(format_error(f"invalid number of gradients - expected {len(edges)}, but got {len(grads)}"))
    for i, (node, nr) in enumerate(edges):
        grad = grads[i]
        if grad is None or node is None:
            continue
        if grad._array.shape == node._shape and grad._array.dtype is node._dtype:
            if not (Streams.devices_noted or grad._keys & NOT_CPU):
                continue
        fitting = validate_output(i, grad, node, nr, format_error)
        if fitting is not grad:
            grads = (*grads[:i], fitting, *grads[i + 1 :])
    return grads


# Note [ Broadcasting ]
# Formulas ignore broadcasting: the gradient of `a` in `a + b` is simply `grad`. If `a` was expanded to `b`'s shape, each of its
# elements was used several times and its gradient is a sum over those uses. The engine takes that sum for all operations
# at once, here.


def validate_output(index, grad, node, nr, format_error):
    """`grad` with the shape and dtype of the tensor that it belongs to."""
    shape, dtype = input_metadata(node, nr)
    if grad._array.shape != shape:
        if not is_expandable_to(shape, grad._array.shape):
            raise RuntimeError(
                format_error(
                    f"invalid gradient at index {index} - got {list(grad._array.shape)} "
                    f"but expected shape compatible with {list(shape)}"
                )
            )
        grad = at.sum_to_size(grad, shape)
    if dtype is not None and grad._array.dtype != dtype:
        grad = to_dtype(grad, scalar_type.by_numpy[dtype])
    elif dtype is None and grad._array.dtype.kind in "biu":
        raise RuntimeError("isDifferentiableType(grad.scalar_type()) INTERNAL ASSERT FAILED")
    if Streams.devices_noted or grad._keys & NOT_CPU:
        grad = to_device(index, grad, node, format_error)
    return grad


def to_dtype(grad, wanted):
    """Of a complex gradient for a real tensor the real part. In PyTorch: formulas take it themselves (`handle_r_to_c`)."""
    if wanted.is_floating_point and dtype_of(grad).is_complex:
        grad = at.real(grad)
    return grad if dtype_of(grad) is wanted else grad.to(wanted)


def is_expandable_to(shape, target):
    if len(shape) > len(target):
        return False
    return all(a == b or a == 1 for a, b in zip(reversed(shape), reversed(target)))


def check_nan(fn, outputs):
    """Raises RuntimeError if there is a nan in what `fn` returned: anomaly mode asks for it."""
    for i, output in enumerate(outputs):
        if output is not None and has_nan(output):
            raise RuntimeError(f"Function '{fn.name()}' returned nan values in its {i}th output.")


def has_nan(grad):
    if grad._keys & META:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    array = grad._array.values if grad._keys & SPARSE else host_array(grad)
    return (array != array).any()


# ------------------------------------------------------------------------------------------------------------- hooks


def call_tensor_pre_hooks(fn, inputs):
    """Hooks of the tensors that this node made (or of the leaf), then what retain_grad asked for."""
    hooks = fn._hooks
    if hooks is None:
        return inputs
    for of_tensor, nr in list(hooks.tensor_pre):
        for hook in list(of_tensor.values()):
            replaced = hook(inputs[nr])
            if replaced is not None and replaced is not inputs[nr]:
                check_single_result(inputs[nr], replaced, hook)
                inputs = (*inputs[:nr], replaced, *inputs[nr + 1 :])
    for nr, hook in list(hooks.retains_grad.items()):
        if inputs[nr] is not None:
            hook(inputs[nr])
    return inputs


def call_pre_hooks(fn, inputs):
    for hook in list(fn._hooks.pre.values()):
        replaced = hook(tuple(inputs))
        if replaced is not None:
            check_result(inputs, replaced, hook)
            inputs = replaced
    return inputs


def call_post_hooks(fn, outputs, inputs):
    for hook in list(fn._hooks.post.values()):
        replaced = hook(tuple(outputs), tuple(inputs))
        if replaced is not None:
            check_result(outputs, replaced, hook)
            outputs = replaced
    return outputs


def check_result(values, replaced, hook):
    """What a node's hook returned instead of `values` must be a tuple of as many gradients, each like the one before."""
    if not isinstance(replaced, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(replaced).__name__}'")
    if len(replaced) != len(values):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values "
            f"(got {len(replaced)}, but expected {len(values)})"
        )
    for old, new in zip(values, replaced):
        if new is not None:
            check_single_result(old, new, hook)


def check_single_result(old, new, hook):
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


def queue_callback(callback):
    """Run `callback()` when the backward that is running now has finished (`Variable._execution_engine`)."""
    graph_task = get_current_graph_task()
    if graph_task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    graph_task.final_callbacks.append(callback)


# ------------------------------------------------------------------------------------------------ threads of devices
#
# Note [ A thread for each device ]
# Nodes of the CPU run in the thread that called backward. Nodes of a GPU run in a thread of that GPU, which has a queue for the
# tasks of all calls, so that a device that keeps its thread busy holds up no other one. Such a call has a mutex; a call
# without streams has none, and nobody waits for a lock.


def prepare_for_devices(graph_task, root, inputs):
    """If nodes of `graph_task` have streams: let several threads work on it, and note the streams that will wait for theirs."""
    streams = {node_stream(node) for node in (root, *graph_task.dependencies)} - {None}
    if not streams:
        return
    graph_task.mutex = threading.RLock()
    graph_task.thread_locals = ThreadLocalState()
    graph_task.caller_current_streams = {s.device_index: current_stream(s.device_index) for s in streams}
    graph_task.leaf_streams = set()
    graph_task.cpu_ready_queue = SharedReadyQueue()
    if node_stream(root) is not None:
        input_buffer.wait_for(node_stream(root), inputs)


device_ready_queues = {}  # device index -> the queue of its thread
device_threads_mutex = threading.Lock()


def ready_queue(cpu_ready_queue, fn):
    """The queue of the thread that is to run `fn`."""
    stream = node_stream(fn)
    if stream is None or not autograd_state.multithreading_enabled:
        return cpu_ready_queue
    return ready_queue_by_index(cpu_ready_queue, stream.device_index)


def ready_queue_by_index(cpu_ready_queue, device_index):
    if device_index == CPU_DEVICE:
        return cpu_ready_queue
    with device_threads_mutex:
        queue = device_ready_queues.get(device_index)
        if queue is None:
            queue = device_ready_queues[device_index] = start_device_thread(device_index)
    return queue


def start_device_thread(device_index):
    queue = SharedReadyQueue()
    name = f"pt_autograd_{device_index}"
    threading.Thread(target=thread_init, args=(device_index, queue), name=name, daemon=True).start()
    return queue


def thread_init(device_index, queue):
    """What the thread of a device does, as long as the process runs."""
    thread = engine_thread()
    thread.worker_device = device_index
    shared_thread_main(None, queue)


def forget_device_threads():
    """In a process that was forked none of the threads runs."""
    device_ready_queues.clear()
    thread_pool_shared.__init__()


os.register_at_fork(after_in_child=forget_device_threads)


def shared_thread_main(graph_task, queue=None):
    """The same where several threads work on `graph_task`; for ever if it is None. See Note [ A thread for each device ]."""
    thread = engine_thread()
    queue = queue or ready_queue_by_index(graph_task.cpu_ready_queue, graph_task.owner)
    previous = thread.graph_task, thread.node, thread.checkpoint_valid
    previous_mode, was_valid = tls.grad_mode, thread.checkpoint_valid
    thread.graph_task = None
    try:
        while graph_task is None or not graph_task.completed:
            _, local_graph_task, fn, inputs = queue.pop()
            if fn is None:  # woken up
                continue
            if local_graph_task is not thread.graph_task:
                work_on(thread, local_graph_task)
                thread.checkpoint_valid = was_valid and local_graph_task.exec_info is None
            if local_graph_task.exception is None:
                thread.node = fn
                try:
                    evaluate = evaluate_observed if local_graph_task.is_observed else evaluate_function
                    with StreamGuard(node_stream(fn)):
                        evaluate(local_graph_task, fn, inputs, local_graph_task.cpu_ready_queue)
                except BaseException as exception:
                    local_graph_task.set_exception(exception, fn)
                if not fn._next_edges and node_stream(fn) is not None:
                    local_graph_task.leaf_streams.add(node_stream(fn))
            inputs = None  # nobody here looks at them again
            if not local_graph_task.task_done():
                complete(local_graph_task, thread)
            if graph_task is None:  # the next task may be long in coming: keep nothing of this one
                local_graph_task = fn = thread.graph_task = thread.node = None
    finally:
        thread.graph_task, thread.node, thread.checkpoint_valid = previous
        if thread.worker_device >= 0 and thread.graph_task is not None:
            work_on(thread, thread.graph_task)
        elif tls.grad_mode is not previous_mode:
            set_grad_mode(previous_mode)


def work_on(thread, graph_task):
    """Make the thread's state that of the call of backward whose node it is to run."""
    thread.graph_task = graph_task
    if thread.worker_device >= 0:
        graph_task.thread_locals.restore()
    if tls.grad_mode is not graph_task.grad_mode:
        set_grad_mode(graph_task.grad_mode)


def complete(graph_task, thread):
    """The last node has run: finish, and wake the thread that waits for it."""
    graph_task.mark_as_completed_and_run_post_processing()
    if graph_task.owner != thread.worker_device:
        ready_queue_by_index(graph_task.cpu_ready_queue, graph_task.owner).push_wake_up(graph_task)


def push_outputs_on_streams(graph_task, fn, outputs):
    """The same loop for nodes that have streams and run in several threads: Note [ Streaming backwards ]."""
    stream, exec_info = node_stream(fn), graph_task.exec_info
    outputs = validate_outputs(fn._next_edges, outputs, returned_by(fn))
    with graph_task.mutex:
        for (next_fn, input_nr), output in zip(fn._next_edges, outputs):
            if next_fn is None:
                continue
            left = graph_task.dependencies[next_fn] = graph_task.dependencies[next_fn] - 1
            if exec_info is not None and next_fn not in exec_info:
                continue
            buffer = graph_task.not_ready.pop(next_fn, None)
            buffer = input_buffer.add_on_stream(
                buffer, count_inputs(next_fn), input_nr, output, stream, node_stream(next_fn)
            )
            if left:
                graph_task.not_ready[next_fn] = buffer
            else:
                ready_queue(graph_task.cpu_ready_queue, next_fn).push(graph_task, next_fn, buffer)


# ------------------------------------------------------------------------------------------- threads for deep nesting


class ThreadPoolShared:
    """The threads that take over calls of backward which are nested too deep, and what waits for one of them."""

    def __init__(self):
        self.num_workers = 0  # of them wait for work
        self.work = threading.Condition()
        self.graphtasks_queue = deque()


thread_pool_shared = ThreadPoolShared()


def add_thread_pool_task(graph_task):
    """Let a thread of the pool work on `graph_task`, and wait until it is completed."""
    done = threading.Event()
    pool, state = thread_pool_shared, ThreadLocalState()
    with pool.work:
        create_thread = pool.num_workers <= len(pool.graphtasks_queue)
        pool.graphtasks_queue.append((graph_task, state, done))
        pool.work.notify()
    if create_thread:
        threading.Thread(target=reentrant_thread_init, name="pt_autograd", daemon=True).start()
    done.wait()


def reentrant_thread_init():
    """What a thread of the pool does: wait for a call of backward, work on it with its caller's queue, wait again."""
    pool, thread = thread_pool_shared, engine_thread()
    while True:
        with pool.work:
            pool.num_workers += 1
            pool.work.wait_for(lambda: pool.graphtasks_queue)
            pool.num_workers -= 1
            graph_task, state, done = pool.graphtasks_queue.popleft()
        thread.worker_device = graph_task.owner
        thread.ready_queue = graph_task.cpu_ready_queue if graph_task.mutex is None else None
        thread.total_depth = graph_task.reentrant_depth
        state.restore()
        try:
            thread_main(graph_task)
        finally:
            done.set()
            graph_task = state = done = None


# ------------------------------------------------------------------------------------------ Note [ Stealing gradients ]


def measure_num_expected_refs():
    """How many references `apply` sees to a gradient that only the engine holds: sent once through the loop above."""
    counts = []

    class Maker(Node):
        def apply(self, *grads):
            return (wrap(np.zeros(())),)

    class Counter(Node):
        def apply(self, grad):
            counts.append(getrefcount(grad))
            return ()

    maker = Maker(((Counter((), (), np.dtype(np.float64)), 0),))
    execute([(maker, 0)], (None,), False, False)
    return counts[0]


accumulation.NUM_EXPECTED_REFS = measure_num_expected_refs()
