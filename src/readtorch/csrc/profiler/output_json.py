"""The file that chrome://tracing and Perfetto show: a row for each thread, a bar for each event.

The keys are those of PyTorch's own file. `ph` is the phase of an entry: "X" an event with a duration, "M" a name of a process or
thread, "s" and "f" the ends of an arrow from a call in forward to the node that it made, "i" an instant.

In PyTorch: Kineto's `libkineto/src/output_json.cpp`, and for what an event's `args` are `torch/csrc/profiler/collection.cpp`.
Explained in the chapter "The profiler".
"""

import json
import os
import socket
import time

from readtorch.aten.record_function import USER_SCOPE

from .python_tracer import stack_entries

TRIMONTH_NS = 7889238 * 10**9  # a quarter of a year: times count from the last multiple, so that doubles hold them


def save(result, path):
    """Write the events of a ProfilerResult to `path`."""
    base_ns = time.time_ns() // TRIMONTH_NS * TRIMONTH_NS

    def microseconds(time_ns):
        return (result.unix_ns(time_ns) - base_ns) / 1000

    trace = {"schemaVersion": 1, "deviceProperties": [], "trace_id": result.config.trace_id}
    trace |= {key: json.loads(value) for key, value in result.metadata.items()}
    trace |= {"host_name": socket.gethostname(), "displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns}
    events = result.events()
    trace["traceEvents"] = [*names(events, microseconds), *bars(events, microseconds), *window(result, microseconds)]
    trace["traceName"] = str(path)
    with open(path, "w", encoding="utf8") as file:
        json.dump(trace, file)


def names(events, microseconds):
    """How the process and its threads are called."""
    if not events:
        return
    pid, begin = os.getpid(), microseconds(events[0].start_time_ns)

    def entry(name, tid, args):
        return {"ph": "M", "name": name, "ts": begin, "pid": pid, "tid": tid, "args": args}

    yield entry("process_name", 0, {"name": "python"})
    yield entry("process_labels", 0, {"labels": "CPU"})
    yield entry("process_sort_index", 0, {"sort_index": pid})
    for tid in dict.fromkeys(event.start_kineto_tid for event in events):
        yield entry("thread_name", tid, {"name": f"thread {tid} (python)"})
        yield entry("thread_sort_index", tid, {"sort_index": tid})


def bars(events, microseconds):
    pid = os.getpid()
    running_bytes = {}
    for index, event in enumerate(events):
        place = {"pid": pid, "tid": event.start_kineto_tid, "ts": microseconds(event.start_time_ns)}
        if event.name == "[memory]":
            yield memory(event, index, place, running_bytes)
            continue
        category = "user_annotation" if event.scope == USER_SCOPE else "cpu_op"
        duration = (event.end_time_ns - event.start_time_ns) / 1000
        yield {"ph": "X", "cat": category, "name": event.name, **place, "dur": duration, "args": args_of(event, index)}
        if event.flow_id:
            arrow = {"id": event.flow_id, **place, "cat": "fwdbwd", "name": "fwdbwd"}
            yield {"ph": "s", **arrow} if event.flow_start else {"ph": "f", **arrow, "bp": "e"}


def args_of(event, index):
    args = {"External id": event.correlation_id, "Record function id": 0}
    if event.sequence_nr >= 0:
        args |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread_id}
    if event.stack:
        args["Call stack"] = ";".join(stack_entries(event.stack))
    inputs = event.inputs
    if inputs.shapes:
        args["Concrete Inputs"] = ["" if value is None else shown(value) for value in inputs.concrete]
        args |= {"Input type": inputs.dtypes, "Input Strides": inputs.strides, "Input Dims": inputs.shapes}
    args["Ev Idx"] = index
    return args


def shown(value):
    """A number as C++ prints it: `1.` for a float without a fraction."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        return f"{int(value)}."
    return f"{value:g}" if isinstance(value, float) else str(value)


def memory(event, index, place, running_bytes):
    """An allocation, with how much more than at the run's beginning is in use."""
    kind = event.device_type.value
    total = running_bytes[kind] = running_bytes.get(kind, 0) + event.nbytes
    args = {"Total Reserved": 0, "Total Allocated": total, "Bytes": event.nbytes, "Device Id": -1, "Device Type": kind}
    args |= {"Addr": event.memory.storage_data_ptr, "finished": False, "Ev Idx": index}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **place, "args": args}


def window(result, microseconds):
    """The bar of the whole run, and its ends."""
    begin, end = result.trace_start_ns(), result.trace_end_ns()
    start = microseconds(begin)
    span = {"pid": "Spans", "tid": "PyTorch Profiler", "ts": start, "dur": (end - begin) / 1000}
    yield {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", **span, "args": {"Op count": 0}}
    args = {"sort_index": 0x20000000}
    yield {"ph": "M", "name": "process_sort_index", "ts": start, "pid": "Spans", "tid": 0, "args": args}
    place = {"pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": start}
    yield {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", **place}
    yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": microseconds(end)}
