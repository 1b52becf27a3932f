"""One call of backward: what runs in it, what has arrived where, what the caller gets.

In PyTorch: `torch/csrc/autograd/graph_task.h`; its functions are in `torch/csrc/autograd/engine.cpp`. Explained in the
chapter "Autograd".
"""

import contextlib
import itertools

from readtorch.c10.cuda.cuda_stream import StreamGuard, stream_wait_stream
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls

from .node import NO_DEVICE, AnomalyMode, engine_thread, print_stack

next_graph_task_id = itertools.count().__next__


class GraphTask:
    """What the engine knows of one call of backward.

    Note [ Exec info ]
    Usually every node runs that can be reached, and `exec_info` is None. With `inputs` only those run from which one of the
    inputs can be reached: they have an ExecInfo. It also says which gradients are to be caught on their way into a node.
    """

    exec_info = None  # node -> ExecInfo, see above
    captured_vars = None  # what `exec_info` has caught, one entry for each of `inputs`
    completed = False
    exception = None  # the first one that was raised; nothing runs after it
    is_observed = False  # whether the thread that called has callbacks: aten/record_function.py
    owner = NO_DEVICE  # the device of the thread that called backward
    mutex = None  # while only the calling thread works on it
    thread_locals = None  # what threads of devices take over from the calling one
    caller_current_streams = leaf_streams = ()  # device index -> stream; the streams that filled `.grad`

    def __init__(self, keep_graph, grad_mode, reentrant_depth, cpu_ready_queue):
        self.id = next_graph_task_id()
        self.keep_graph = keep_graph
        self.grad_mode = grad_mode  # whether what runs is recorded: create_graph
        self.reentrant_depth = reentrant_depth  # in how many other calls of backward it was made
        self.priority = reentrant_depth << 64  # the innermost call's nodes go first, whatever their numbers
        self.cpu_ready_queue = cpu_ready_queue  # of the calling thread
        self.dependencies = {}  # node -> how many gradients it waits for; its keys are all nodes that can be reached
        self.not_ready = {}  # node -> the gradients that have arrived at it, while others are awaited: input_buffer.py
        self.outstanding_tasks = 0  # how many nodes are in a ready queue, or run
        self.final_callbacks = []
        if threads_with_modes and tls.around is not None:
            self.is_observed = True

    def init_to_execute(self, graph_root, outputs, accumulate_grad):
        """Find the nodes from which one of the edges `outputs` can be reached, without recursion."""
        exec_info = self.exec_info = {}
        self.captured_vars = None if accumulate_grad else [None] * len(outputs)
        for output_nr, (node, input_nr) in enumerate(outputs):
            info = exec_info.get(node)
            if info is None:
                info = exec_info[node] = ExecInfo()
            if accumulate_grad:
                info.needed = True
            else:
                info.captures.append((input_nr, output_nr))
        seen, stack = set(), [(graph_root, iter(graph_root._next_edges))]
        while stack:
            fn, edges = stack[-1]
            for child, _ in edges:
                if child is None:
                    continue
                if child not in seen:
                    seen.add(child)
                    stack.append((child, iter(child._next_edges)))
                    break
                if child in exec_info:
                    self._need(fn)
            else:  # all that `fn` leads to is decided
                stack.pop()
                if fn in exec_info and stack:
                    self._need(stack[-1][0])

    def _need(self, fn):
        info = self.exec_info.get(fn)
        if info is None:
            self.exec_info[fn] = ON_THE_WAY
        else:
            info.needed = True

    def task_done(self):
        """One of the outstanding tasks is; how many are left. For a call on which several threads work."""
        with self.mutex:
            self.outstanding_tasks -= 1
            return self.outstanding_tasks

    def set_exception(self, exception, fn):
        """Note the exception that `fn` raised; later ones are dropped."""
        if self.exception is None:
            self.exception = exception
            if AnomalyMode.enabled and fn is not None:
                print_stack(fn)

    def mark_as_completed_and_run_post_processing(self):
        """Run what was queued for the end, then let the caller go on."""
        try:
            if self.exception is None:
                self.exec_post_processing()
        except BaseException as exception:
            self.exception = exception
        self.completed = True

    def exec_post_processing(self):
        if self.not_ready:
            raise RuntimeError("could not compute gradients for some functions")
        for stream in self.leaf_streams:
            if self.caller_current_streams[stream.device_index] != stream:
                stream_wait_stream(self.caller_current_streams[stream.device_index], stream)
        if self.final_callbacks:
            self.call_final_callbacks()

    def call_final_callbacks(self):
        """On the streams of the caller, which have waited for all gradients."""
        with contextlib.ExitStack() as guards:
            for device_index in self.caller_current_streams:
                guards.enter_context(StreamGuard(self.caller_current_streams[device_index]))
            for callback in self.final_callbacks:  # which may queue more
                callback()


class ExecInfo:
    """Why a node runs: `needed`, because one of the inputs lies behind it; `captures`, because a gradient of its is caught."""

    __slots__ = ("needed", "captures")

    def __init__(self, needed=False):
        self.needed = needed
        self.captures = []  # (number of the node's input, position among `captured_vars`)


ON_THE_WAY = ExecInfo(needed=True)  # of all nodes that are no end themselves


# ------------------------------------------------------------------------- what a hook may ask of the task that runs


def get_current_graph_task():
    """The call of backward that this thread is in, the innermost one; None outside."""
    return engine_thread().graph_task


def get_current_graph_task_id():
    """A number that each call of backward has for itself; -1 outside."""
    task = get_current_graph_task()
    return -1 if task is None else task.id


def get_current_graph_task_keep_graph():
    task = get_current_graph_task()
    return True if task is None else task.keep_graph
