"""What a run collects: a log, and the events that are made of it when it is over.

Note [ A log, not events ]
While the program runs, a call that is over costs one entry in the log: the operator (or a node's name), its sequence number and
scope, when it began and ended, the thread, and details, if they are asked for. A block that the program names stands there twice, as a
RecordFunction, when it begins and when it is over, with the time and the thread. Everything else is worked out afterwards: which call is inside which, which call in forward made the
node that runs in backward, what each allocated. In PyTorch: a queue for each thread, since its threads run at the same time.

In PyTorch: `torch/csrc/profiler/collection.cpp`. Explained in the chapter "The profiler".
"""

import itertools
import threading
from collections import namedtuple
from itertools import islice
from threading import get_ident
from time import perf_counter_ns

from readtorch.aten.record_function import (
    BACKWARD_FUNCTION,
    USER_SCOPE,
    RecordFunction,
    RecordFunctionCallback,
    name_of,
    overload_name_of,
)

from .data_flow import Allocation, MemoryWatcher
from .orchestration.observer import DeviceType
from .python_tracer import PythonTracer, lines_now, stack_of_caller
from .util import NO_INPUTS, Inputs, compute_flops, raw_inputs

next_correlation_id = itertools.count(1).__next__

FILLS_A_LEAF = "torch::autograd::AccumulateGrad"  # the name of the node that adds to a leaf's `.grad`
thread_numbers = {}  # a thread's ident -> its number, from 1 on, in the order in which threads were first seen in a log


class Result:
    """One event: a call, or what was allocated or freed.

    Times are of `perf_counter_ns`. Of an allocation, `nbytes` is negative if it was freed, and end is start; `memory` says which it is.
    With memory: schema is that of an operator's call, tensors what `MemoryWatcher.note_inputs` says of its arguments; of the node
    that fills a leaf's gradient, gradient is (the gradient's TensorMetadata, whether it was there before).
    """

    __slots__ = (
        "name",
        "overload_name",
        "scope",
        "sequence_nr",
        "start_time_ns",
        "end_time_ns",
        "start_tid",
        "end_tid",
        "start_kineto_tid",
        "fwd_thread_id",
        "correlation_id",
        "inputs",
        "stack",
        "flow_id",
        "flow_start",
        "nbytes",
        "memory",
        "schema",
        "tensors",
        "gradient",
        "parent",
        "children",
    )

    def __init__(self, name, start_time_ns, thread, scope=0, sequence_nr=-1, overload_name=""):
        self.name = name
        self.overload_name = overload_name
        self.scope = scope
        self.sequence_nr = sequence_nr
        self.start_time_ns = self.end_time_ns = start_time_ns
        self.start_tid = self.end_tid = number_of_thread(thread)
        self.start_kineto_tid = thread
        self.fwd_thread_id = self.correlation_id = self.flow_id = self.nbytes = 0
        self.memory = self.schema = self.gradient = None
        self.tensors = ()
        self.inputs = NO_INPUTS
        self.stack = ()
        self.flow_start = False
        self.parent = None
        self.children = []

    @property
    def device_type(self):
        return DeviceType.CPU if self.memory is None or self.memory.device.type == "cpu" else DeviceType.CUDA

    @property
    def is_async(self):
        return self.start_tid != self.end_tid

    @property
    def is_user_annotation(self):
        return self.scope == USER_SCOPE

    def __repr__(self):
        return f"<Result {self.name}>"


# What an entry of the log knows beside its time: `raw_inputs` of the arguments, how many operations, the stack, and what a Result with memory
# has of tensors and of a leaf's gradient.
Details = namedtuple("Details", ["raw", "flops", "stack", "tensors", "gradient"])


class RecordQueue:
    """The log of a run, and the callback that writes it."""

    def __init__(self, config, collects):
        """collects: whether anything is to be collected; a run that looks at devices alone has nothing here."""
        self.config = config
        self.enabled = collects
        self.log = []  # see Note [ A log, not events ]
        self.memory = MemoryWatcher(self.log_allocation) if config.profile_memory else None
        self.tracer = PythonTracer(self.memory) if config.profile_memory and config.with_stack else None

    def callback(self):
        """What calls are to be shown to."""
        config = self.config
        if config.with_stack or config.with_flops or self.memory:
            return DetailedLogCallback(self.log, config, self.memory, self.tracer)
        return ShapesLogCallback(self.log) if config.report_input_shapes else LogCallback(self.log)

    def log_allocation(self, allocation):
        if self.enabled:
            self.log.extend((allocation, perf_counter_ns(), get_ident()))

    def stop(self):
        self.enabled = False

    # ------------------------------------------------------------------------------------------------- afterwards

    def get_records(self, end_time_ns):
        """All Results, by the time when they began; a block that is not over ends now, a call that is not over is not there."""
        results, begun = [], {}
        entries = iter(self.log)
        for entry in entries:
            if type(entry) is Allocation:
                results.append(allocated(entry, *islice(entries, 2)))
            elif type(entry) is not RecordFunction:
                results.append(self._call(entry, *islice(entries, 6)))
            elif entry not in begun:
                time, thread = islice(entries, 2)
                begun[entry] = self._call(entry.operator, -1, entry.scope, time, end_time_ns, thread, None)
                results.append(begun[entry])
            else:
                begun[entry].end_time_ns, thread = islice(entries, 2)
                begun[entry].end_tid = number_of_thread(thread)
        results.sort(key=lambda result: (result.start_time_ns, -result.end_time_ns))
        finish(results)
        return results

    def _call(self, operator, number, scope, time, end, thread, details):
        has_overload = self.config.experimental_config.capture_overload_names
        overload = overload_name_of(operator) if has_overload else ""
        result = Result(name_of(operator), time, thread, scope, number, overload)
        result.end_time_ns = end
        if type(details) is Details:
            _, _, result.stack, result.tensors, result.gradient = details
            result.inputs = Inputs(details.raw, details.flops)
        elif details:
            result.inputs = Inputs(details)
        if type(operator) is not str:
            result.schema = operator.schema
        return result


def number_of_thread(ident):
    return thread_numbers.setdefault(ident, len(thread_numbers) + 1)


class LogCallback(RecordFunctionCallback):
    """Writes calls into a log. Every operator passes through `around`, so it does nothing else, and makes no record."""

    def __init__(self, log):
        extend, clock, thread = log.extend, perf_counter_ns, get_ident

        def mark(record, context=None):
            extend((record, clock(), thread()))

        def around(operator, sequence_nr, scope, function, arguments):
            begin = clock()
            try:
                return function(*arguments)
            finally:
                extend((operator, sequence_nr, scope, begin, clock(), thread(), None))

        super().__init__(mark, mark)
        self.around = around


class ShapesLogCallback(LogCallback):
    """The same with the `raw_inputs` of the arguments."""

    def __init__(self, log):
        super().__init__(log)
        extend, clock, thread, same = log.extend, perf_counter_ns, get_ident, {}.setdefault

        def around(operator, sequence_nr, scope, function, arguments):
            raw = raw_inputs(arguments, same) if arguments else ()
            begin = clock()
            try:
                return function(*arguments)
            finally:
                extend((operator, sequence_nr, scope, begin, clock(), thread(), raw))

        self.around = around


class DetailedLogCallback(LogCallback):
    """The same with Details, as far as the config asks for them."""

    def __init__(self, log, config, memory, tracer):
        super().__init__(log)
        self.python_tracer = tracer
        extend, clock, thread, same = log.extend, perf_counter_ns, get_ident, {}.setdefault
        lines = lines_now() if config.with_stack else {}

        def around(operator, sequence_nr, scope, function, arguments):
            raw = raw_inputs(arguments, same) if config.report_input_shapes else ()
            flops = compute_flops(name_of(operator), arguments) if config.with_flops else 0
            stack = stack_of_caller(lines) if config.with_stack else ()
            tensors, leaf, gradient = (), None, None
            if memory:
                tensors = memory.note_inputs(arguments)
                leaf = function.__self__.variable if operator == FILLS_A_LEAF else None
                was_there = leaf is not None and leaf.grad is not None
            if tracer:
                tracer.note_modules()
            begin = clock()
            try:
                outputs = function(*arguments)
                if memory:
                    memory.note_outputs(outputs)
                if leaf is not None and leaf.grad is not None:
                    memory.note_outputs(leaf.grad)
                    gradient = memory.metadata(leaf.grad), was_there
                return outputs
            finally:
                details = Details(raw, flops, stack, tensors, gradient)
                extend((operator, sequence_nr, scope, begin, clock(), thread(), details))

        self.around = around


def allocated(allocation, time, thread):
    result = Result("[memory]", time, thread)
    result.nbytes, result.memory = allocation
    return result


def finish(results):
    """Number the Results, and give threads the numbers that the system knows them by."""
    native = {thread.ident: thread.native_id for thread in threading.enumerate()}
    for result in results:
        result.correlation_id = next_correlation_id()
        result.start_kineto_tid = native.get(result.start_kineto_tid, result.start_kineto_tid)
    build_tree(results)
    link_forward_and_backward(results)


def build_tree(results):
    """Put each Result under the innermost one of its thread that contains it. results: by time. In PyTorch: under the innermost that was not over then."""
    around = {}  # thread -> the Results that are not over, the innermost last
    for result in results:
        outer = around.setdefault(result.start_tid, [])
        while outer and outer[-1].end_time_ns < result.end_time_ns:
            outer.pop()
        if outer:
            result.parent = outer[-1]
            outer[-1].children.append(result)
        outer.append(result)


def link_forward_and_backward(results):
    """Say of each node that ran which thread's call made it, and give both one flow: the last call that had the node's number
    is the one that made it, since calls inside it have the same number.

    In PyTorch: `generateForwardBackwardLinks`.
    """
    made_by = {}
    numbers = itertools.count(1)
    for result in results:
        if result.sequence_nr < 0 or result.scope == USER_SCOPE:
            continue
        runs = result.scope == BACKWARD_FUNCTION or result.name.startswith("autograd::engine::")
        if not runs:
            made_by[result.sequence_nr] = result
            continue
        forward = made_by.get(result.sequence_nr)
        result.fwd_thread_id = forward.start_tid if forward is not None else result.start_tid
        if forward is not None and result.scope == BACKWARD_FUNCTION:
            forward.flow_id = result.flow_id = next(numbers)
            forward.flow_start = True
