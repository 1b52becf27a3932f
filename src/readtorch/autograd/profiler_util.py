"""What a run's events become for its reader: a tree, sums for each operator, a table.

In PyTorch: `torch/autograd/profiler_util.py`. Explained in the chapter "The profiler".
"""

import bisect
import itertools
import json
import math
from collections import namedtuple

from readtorch.csrc.profiler.orchestration.observer import DeviceType

__all__ = [
    "EventList",
    "FormattedTimesMixin",
    "Interval",
    "Kernel",
    "FunctionEvent",
    "FunctionEventAvg",
    "MemRecordsAcc",
]

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"

Kernel = namedtuple("Kernel", ["name", "device", "duration"])
BACKWARD_FUNCTION = 1


class Interval:
    """From `start` to `end`, in microseconds."""

    def __init__(self, start, end):
        self.start = start
        self.end = end

    def elapsed_us(self):
        """The length of the interval."""
        return self.end - self.start


# ------------------------------------------------------------------------------------------------------------ numbers


def _format_time(time_us, unit=None):
    """Microseconds in the largest unit that is no larger than they are, or in `unit`: "s", "ms", "us"."""
    if unit == "s" or unit is None and time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if unit == "ms" or unit is None and time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def _format_time_share(time_us, total_time_us):
    if total_time_us == 0:
        if time_us != 0:
            raise AssertionError(f"Expected time_us == 0 but got {time_us}")
        return "NaN"
    return f"{time_us * 100.0 / total_time_us:.2f}%"


def _format_memory(nbytes):
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**power:
            return f"{nbytes / 1024**power:.2f} {unit}"
    return f"{nbytes} B"


def _as_text(name):
    return property(lambda self: _format_time(getattr(self, name)))


class FormattedTimesMixin:
    """Times as texts, and times of one call, for classes with `*_time_total` and `count`."""

    cpu_time_str = _as_text("cpu_time")
    device_time_str = _as_text("device_time")
    cpu_time_total_str = _as_text("cpu_time_total")
    device_time_total_str = _as_text("device_time_total")
    self_cpu_time_total_str = _as_text("self_cpu_time_total")
    self_device_time_total_str = _as_text("self_device_time_total")

    @property
    def cpu_time(self):
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self):
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count


# ------------------------------------------------------------------------------------------------------------- events


class FunctionEvent(FormattedTimesMixin):
    """One event: what ran, when, in which thread, inside what. Times are microseconds from the beginning of the run.

    time_range: Interval. cpu_parent, cpu_children: the events around and directly inside it. sequence_nr: of the node that the call
    makes, or that runs. input_shapes: with `record_shapes`, an entry for each argument, [] for what is no tensor. stack: with
    `with_stack`, the functions of Python that were running. cpu_memory_usage: bytes allocated less bytes freed, with what is inside.
    """

    def __init__(
        self,
        id,
        name,
        thread,
        start_us,
        end_us,
        overload_name=None,
        fwd_thread=None,
        input_shapes=None,
        stack=None,
        scope=0,
        use_device=None,
        cpu_memory_usage=0,
        device_memory_usage=0,
        is_async=False,
        is_remote=False,
        sequence_nr=-1,
        node_id=-1,
        device_type=DeviceType.CPU,
        device_index=0,
        device_resource_id=None,
        is_legacy=False,
        flops=None,
        trace_name=None,
        concrete_inputs=None,
        kwinputs=None,
        is_user_annotation=False,
        is_python_function=False,
        activity_type=None,
        flow_id=None,
        flow_start=None,
        structured_input_shapes=None,
        structured_input_strides=None,
        input_dtypes=None,
    ):
        given = dict(locals())
        for unused in ("self", "start_us", "end_us"):
            del given[unused]
        vars(self).update(given)
        self.time_range = Interval(start_us, end_us)
        if device_resource_id is None:
            self.device_resource_id = thread
        self.count = 1
        self.kernels = []
        self.cpu_children = []
        self.cpu_parent = None
        self.self_cpu_percent = self.total_cpu_percent = self.total_device_percent = -1

    @property
    def key(self):
        return self.name

    @property
    def on_cpu(self):
        return self.device_type == DeviceType.CPU

    def append_kernel(self, name, device, duration):
        self._check_on_cpu(self, "device_type")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        """Only direct children: their times are taken off this one's."""
        self._check_on_cpu(self, "device_type")
        self._check_event(child, "child")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent):
        self._check_on_cpu(self, "device_type")
        self._check_event(parent, "parent")
        self.cpu_parent = parent

    @staticmethod
    def _check_on_cpu(event, what):
        if event.device_type != DeviceType.CPU:
            raise AssertionError(f"Expected {what} to be CPU")

    def _check_event(self, event, role):
        if not isinstance(event, FunctionEvent):
            raise AssertionError(f"Expected {role} to be a FunctionEvent")
        self._check_on_cpu(event, f"{role} device_type")

    def _without_children(self, name):
        """What of a sum is this event's own. An event that ends in another thread, or is a kernel's, has nothing inside."""
        if self.is_async or not self.on_cpu:
            return 0
        return getattr(self, name) - sum([getattr(child, name) for child in self.cpu_children])

    self_cpu_memory_usage = property(lambda self: self._without_children("cpu_memory_usage"))
    self_device_memory_usage = property(lambda self: self._without_children("device_memory_usage"))
    self_cpu_time_total = property(lambda self: self._without_children("cpu_time_total"))

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us() if self.on_cpu else 0

    @property
    def device_time_total(self):
        if self.is_async or not self.use_device:
            return 0
        if not self.on_cpu:
            return self.time_range.elapsed_us()
        own = sum([kernel.duration for kernel in self.kernels])
        return own if self.is_legacy else own + sum([child.device_time_total for child in self.cpu_children])

    @property
    def self_device_time_total(self):
        if self.is_async or not self.use_device:
            return 0
        return self._without_children("device_time_total") if self.on_cpu else self.device_time_total

    def __repr__(self):
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} device_type={self.device_type} "
            f"node_id={self.node_id} cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
            f"end_us={self.time_range.end} cpu_children={[child.id for child in self.cpu_children]} "
            f"{device}_time={self.device_time_str} name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


_ADDED = (
    *("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total"),
    *("cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "count"),
)
_TAKEN_FROM_THE_FIRST = (
    *(
        "key",
        "node_id",
        "is_async",
        "is_remote",
        "cpu_parent",
        "cpu_children",
        "overload_name",
        "input_shapes",
        "stack",
    ),
    *("scope", "device_type", "is_legacy", "use_device", "is_user_annotation"),
)


class FunctionEventAvg(FormattedTimesMixin):
    """The sums of all events with one key; `cpu_time` and `device_time` are those of one call."""

    def __init__(self):
        self.key = self.use_device = self.input_shapes = self.overload_name = self.stack = self.scope = None
        self.cpu_children = self.cpu_parent = None
        self.count = self.node_id = self.flops = 0
        self.is_async = self.is_remote = self.is_legacy = False
        self.device_type = DeviceType.CPU
        for name in _ADDED:
            setattr(self, name, 0)

    def add(self, other):
        """Take a FunctionEvent, or the sums of others, in. Returns self."""
        if self.key is None:
            for name in _TAKEN_FROM_THE_FIRST:
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self.flops is None:
            self.flops = other.flops
        elif other.flops is not None:
            self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self):
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )


class MemRecordsAcc:
    """Memory records ([event, whether it has been counted]) by time."""

    def __init__(self, mem_records):
        self._mem_records = sorted(mem_records, key=lambda record: record[0].start_time_ns)
        self._start_nses = [record[0].start_time_ns for record in self._mem_records]

    def in_interval(self, start_ns, end_ns):
        """All records from `start_ns` to `end_ns`, both included."""
        first, last = bisect.bisect_left(self._start_nses, start_ns), bisect.bisect_right(self._start_nses, end_ns)
        return self._mem_records[first:last]


# -------------------------------------------------------------------------------------------------------------- lists


class EventList(list):
    """Events, or sums of events, with what one asks of them: a table, sums by key, files."""

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False):
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    def _build_tree(self):
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def __str__(self):
        return self.table()

    def _populate_cpu_children(self):
        """Make each event the child of the innermost one whose time it lies in. An event that ends in another thread is in none."""
        events = [event for event in self if not event.is_async and event.on_cpu]
        by_thread = sorted(events, key=lambda event: event.thread)
        for _, of_thread in itertools.groupby(by_thread, key=lambda event: (event.thread, event.node_id)):
            around = []  # the events that may still be parents, the innermost last
            for event in sorted(of_thread, key=lambda event: (event.time_range.start, -event.time_range.end)):
                start, end = event.time_range.start, event.time_range.end
                while around and (start >= around[-1].time_range.end or end > around[-1].time_range.end):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _remove_dup_nodes(self):
        """An event whose only child has its name stands for both: the call of an overload that calls another one."""
        while True:
            doubled = [
                event
                for event in self
                if (parent := event.cpu_parent) is not None
                and parent.name == event.name
                and len(parent.cpu_children) == 1
            ]
            if not doubled:
                return
            for event in doubled:
                parent = event.cpu_parent
                parent.cpu_children, parent.kernels = event.cpu_children, event.kernels
                for child in event.cpu_children:
                    child.cpu_parent = parent
            gone = set(map(id, doubled))
            self[:] = [event for event in self if id(event) not in gone]

    def _set_backward_stacktraces(self):
        """What a node runs has the stack of the call that made the node."""
        forward = {}
        for event in self:
            if _node_around(event) is None and event.stack is not None:
                forward.setdefault((event.sequence_nr, event.thread), event.stack)
        for event in self:
            node = _node_around(event)
            if node is None:
                continue
            if node.fwd_thread is None:
                raise AssertionError("Expected fwd_thread to be set for backward parent")
            event.stack = forward.get((node.sequence_nr, node.fwd_thread), [])

    @property
    def self_cpu_time_total(self):
        return sum([event.self_cpu_time_total for event in self])

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """The events as a table: a text of a line each.

        sort_by: the attribute by which to sort, the greatest first ("cpu_time_total", "self_cpu_memory_usage", "count" …); otherwise
        in order of time. row_limit: how many lines, -1 for all. header: a title. top_level_events_only: without events inside
        others. time_unit: "s", "ms" or "us" for all times.
        """
        widths = max_name_column_width, max_shapes_column_width, max_src_column_width
        return _Table(self, sort_by, widths, time_unit).text(row_limit, header, top_level_events_only)

    def export_chrome_trace(self, path):
        """Write the events as bars for chrome://tracing. `torch.profiler` writes a fuller file."""
        bars = [
            {
                "name": event.trace_name,
                "ph": "X",
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "tid": event.thread,
                "pid": "CPU functions",
                "args": {},
            }
            for event in self
            if event.trace_name is not None
        ]
        with open(path, "w", encoding="utf8") as file:
            json.dump(bars, file)

    def supported_export_stacks_metrics(self):
        return [f"self_{device}_time_total" for device in ("cpu", "cuda", "xpu", "privateuse1")]

    def export_stacks(self, path, metric):
        """Write a line "outermost;…;innermost microseconds" for each event with a stack, as flame graphs are made of."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        table = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf8") as file:
            for event in self:
                value = int(getattr(event, _attribute(metric))) if event.stack else 0
                if value > 0:
                    stack = ";".join([entry.translate(table) for entry in reversed(event.stack)])
                    file.write(f"{stack} {value}\n")

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """An EventList of FunctionEventAvg: the sums of the events that have one name (and shapes, the innermost
        `group_by_stack_n` places of their stacks, overload)."""
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        sums = {}
        for event in self:
            facts = (event.node_id, event.device_type, event.is_legacy, event.is_user_annotation)
            key = tuple(map(str, (event.key, *facts)))
            if group_by_overload_name:
                key += (event.overload_name,)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                key += tuple(event.stack[:group_by_stack_n])
            sums.setdefault(key, FunctionEventAvg()).add(event)
        averages = self._like(sums.values())
        for event in averages:
            event.stack = event.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                event.input_shapes = ""
            if not group_by_overload_name:
                event.overload_name = ""
        return averages

    def _like(self, events):
        return EventList(
            events, use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops
        )

    def total_average(self):
        """A FunctionEventAvg of all events together, under the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total


def _node_around(event):
    """The innermost node's run that the event is, or is in."""
    while event is not None and event.scope != BACKWARD_FUNCTION:
        event = event.cpu_parent
    return event


def _attribute(metric):
    """`self_cuda_time_total` is kept as `self_device_time_total`."""
    return metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")


# -------------------------------------------------------------------------------------------------------------- table

_WIDTH = 12  # of a column of numbers
_FLOPS_UNITS = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"]


class _Column:
    """A column: its title, width and side, and what stands in it for an event."""

    def __init__(self, title, cell, width=_WIDTH, side=">"):
        self.title, self.cell, self.width, self.side = title, cell, width, side

    def padded(self, text):
        return f"{text!s:{self.side}{self.width}}  "


class _Table:
    """A table of events: which columns it has follows from what the events know."""

    def __init__(self, events, sort_by, widths, time_unit):
        if sort_by is not None:
            by = _attribute(sort_by)
            events = events._like(sorted(events, key=lambda event: getattr(event, by), reverse=True))
        self.events = events
        self.name_limit, self.shapes_limit, self.source_limit = widths
        self.time = lambda time_us: _format_time(time_us, time_unit)
        self.device = events[0].use_device if events else None
        self.has_device_time = any(event.self_device_time_total > 0 for event in events)
        if self.has_device_time and not self.device:
            raise RuntimeError("use_device is None, but there is device performance data.")
        self.total = sum([event.self_cpu_time_total for event in events])
        self.device_total = sum(
            [
                event.self_device_time_total
                for event in events
                if (event.is_legacy if event.device_type == DeviceType.CPU else not event.is_user_annotation)
            ]
        )
        self.stacks = [event.stack for event in events if event.stack]

    def columns(self):
        """In PyTorch's order."""
        events = self.events
        width = limited(max(len(event.key) for event in events) + 4, self.name_limit)
        yield _Column("Name", lambda event: self.shortened(event.key), width)
        if any(event.overload_name for event in events):
            yield _Column("Overload Name", lambda event: self.shortened(event.overload_name), width)
        yield from self.time_columns()
        if events._profile_memory:
            yield from self.memory_columns()
        yield _Column("# of Calls", lambda event: event.count)
        if any(event.node_id != -1 for event in events):
            yield _Column("Node ID", lambda event: event.node_id)
        if any(event.input_shapes for event in events):
            width = limited(max(len(str(event.input_shapes)) for event in events) + 4, self.shapes_limit)
            yield _Column("Input Shapes", lambda event, width=width: str(event.input_shapes)[:width], width)
        flops = [event.flops for event in events if event.flops and event.flops > 0] if events._with_flops else []
        flops_column = _flops_column(min(flops)) if flops else None
        if flops_column:
            yield flops_column
        if self.stacks:  # in PyTorch: the title stands before that of the FLOPs, the places behind their numbers
            width = limited(max(len(entry) for stack in self.stacks for entry in stack) + 4, self.source_limit)
            yield _Column(
                "Source Location", lambda event: trimmed(event.stack[0], width) if event.stack else "", width, "<"
            )

    def time_columns(self):
        time, share = self.time, _format_time_share
        yield _Column("Self CPU %", lambda event: share(event.self_cpu_time_total, self.total))
        yield _Column("Self CPU", lambda event: time(event.self_cpu_time_total))
        yield _Column("CPU total %", lambda event: 0 if event.is_async else share(event.cpu_time_total, self.total))
        yield _Column("CPU total", lambda event: time(event.cpu_time_total))
        yield _Column("CPU time avg", lambda event: time(event.cpu_time))
        if self.has_device_time:
            name = self.device.upper()
            yield _Column(f"Self {name}", lambda event: time(event.self_device_time_total))
            yield _Column(f"Self {name} %", lambda event: share(event.self_device_time_total, self.device_total))
            yield _Column(f"{name} total", lambda event: time(event.device_time_total))
            yield _Column(f"{name} time avg", lambda event: time(event.device_time))

    def memory_columns(self):
        yield _Column("CPU Mem", lambda event: _format_memory(event.cpu_memory_usage))
        yield _Column("Self CPU Mem", lambda event: _format_memory(event.self_cpu_memory_usage))
        if self.device and any(event.self_device_memory_usage > 0 for event in self.events):
            name = self.device.upper()
            yield _Column(f"{name} Mem", lambda event: _format_memory(event.device_memory_usage))
            yield _Column(f"Self {name} Mem", lambda event: _format_memory(event.self_device_memory_usage))

    def shortened(self, name):
        limit = self.name_limit
        return name[: limit - 3] + "..." if limit is not None and len(name) >= limit - 3 else name

    def text(self, row_limit, header, top_level_events_only):
        """The whole table; "" if there are no events."""
        if not self.events:
            return ""
        columns = list(self.columns())
        ruler = "".join(["-" * column.width + "  " for column in columns])
        whole_width = len(ruler) - 2
        lines = [] if header is None else ["=" * whole_width, header]
        if top_level_events_only:
            lines += ["=" * whole_width, "This report only display top-level ops statistics"]
        lines += [ruler, "".join([column.padded(column.title) for column in columns]), ruler]
        shown = [event for event in self.events if not top_level_events_only or event.cpu_parent is None]
        for event in shown if row_limit < 0 else shown[:row_limit]:
            lines.append("".join([column.padded(column.cell(event)) for column in columns]))
            if self.stacks:
                lines += self.stack_lines(event, columns)
        lines += [ruler, f"Self CPU time total: {self.time(self.total)}"]
        if self.has_device_time:
            lines.append(f"Self {self.device.upper()} time total: {self.time(self.device_total)}")
        return "\n".join(lines) + "\n"

    def stack_lines(self, event, columns):
        """The rest of the event's stack, a place a line, and an empty line."""
        source = columns[-1]
        before = "".join([column.padded("") for column in columns[:-1]])
        return [before + source.padded(trimmed(entry, source.width)) for entry in [*event.stack[1:], ""]]


def _flops_column(least):
    """FLOPs in the largest unit in which the least number is one or more."""
    power = int(max(0, min(math.log10(least) / 3, len(_FLOPS_UNITS) - 1)))
    scale = 10.0 ** (-3 * power)
    return _Column(
        f"Total {_FLOPS_UNITS[power]}", lambda event: f"{event.flops * scale:8.3f}" if event.flops > 0 else "--"
    )


def limited(width, limit):
    return width if limit is None else min(width, limit)


def trimmed(path, width):
    """The end of a long path, behind three dots."""
    if len(path) <= width:
        return path
    path = path[len(path) - width :]
    return "..." + path[3:] if len(path) > 3 else path


# ------------------------------------------------------------------------------------------------------ what is left out

_HIDDEN = (MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME)
_HIDDEN_PLACES = (("autograd/__init__", "_make_grads"), ("autograd/__init__", "backward"), ("torch/tensor", "backward"))


def _filter_name(name):
    """Whether events of this name are left out: memory stands with the calls that allocated it."""
    return name in _HIDDEN


def _filter_stack_entry(entry):
    """Whether a place of a stack is shown: the entrance to backward is not."""
    return not any(file in entry and function in entry for file, function in _HIDDEN_PLACES)


def _rewrite_name(name, with_wildcard=False):
    """All steps of a schedule are summed under one name."""
    return "ProfilerStep*" if with_wildcard and name.startswith("ProfilerStep#") else name
