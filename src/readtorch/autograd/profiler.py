"""`profile`, what is under `readtorch.profiler.profile`, and `record_function`, by which a program names a part of itself.

`emit_nvtx` and `emit_itt`, which tell NVIDIA's and Intel's profilers, refuse when they are entered, and `load_nvprof` is not here:
nothing of a GPU is timed.

In PyTorch: `torch/autograd/profiler.py`. Explained in the chapter "The profiler".
"""

import contextlib
import copy
import logging
import uuid
import warnings
from collections import defaultdict
from dataclasses import dataclass
from time import perf_counter_ns

from readtorch.c10.cuda import runtime
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.csrc.autograd.profiler_kineto import (
    disable_profiler,
    enable_profiler,
    kineto_available,  # noqa: F401  (`torch.autograd.kineto_available`)
    prepare_profiler,
    toggle_collection_dynamic,
)
from readtorch.csrc.autograd.record_function_ops import record_function_enter_new, record_function_exit
from readtorch.csrc.profiler.orchestration.observer import (
    DeviceType,
    ExperimentalConfig,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
)
from readtorch.csrc.profiler.python_tracer import stack_entries
from readtorch.csrc.profiler.util import flattened_shapes

from .profiler_util import (
    MEMORY_EVENT_NAME,
    EventList,
    FunctionEvent,
    MemRecordsAcc,
    _filter_name,
    _filter_stack_entry,
    _rewrite_name,
)

__all__ = [
    "profile",
    "record_function",
    "emit_itt",
    "emit_nvtx",
    "KinetoStepTracker",
    "EventList",
    "FunctionEvent",
    "MemRecordsAcc",
]

log = logging.getLogger(__name__)

_is_profiler_enabled = False  # whether a run is under way anywhere in the process


def _set_is_profiler_enabled(enable):
    global _is_profiler_enabled
    _is_profiler_enabled = enable


@dataclass
class _ProfilerStats:
    """How long the profiler itself took."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


@contextlib.contextmanager
def _timed(stats, name):
    """Note in `stats` how many microseconds the block takes."""
    begin = perf_counter_ns()
    yield
    setattr(stats, name, (perf_counter_ns() - begin) // 1000)


class profile:
    """`with profile() as prof:` collects the operators that this thread calls, and what runs for it in backward.

    record_shapes: shapes and numbers of arguments. with_flops: operations of products and convolutions. profile_memory: what is
    allocated and freed. with_stack: where in the program a call was made. Most programs use `readtorch.profiler.profile`.
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        activity_filters=None,
    ):
        self.enabled = enabled
        if not enabled:
            return
        self.use_cuda = use_cuda
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory, self.with_stack = with_flops, profile_memory, with_stack
        self.with_modules, self.use_cpu, self.acc_events = with_modules, use_cpu, acc_events
        self.experimental_config = _without_conflict(experimental_config or ExperimentalConfig(), with_stack)
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = activity_filters or {}
        self._function_events = self._old_function_events = self.kineto_results = None
        self._needs_processing = self.entered = False  # the events are worked out when they are first asked for
        self.profiling_start_time_ns = self.profiling_end_time_ns = 0
        self.trace_id = ""
        self._stats = _ProfilerStats()
        self.profiler_kind = ProfilerState.KINETO
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.use_device = _checked_device(use_cuda, use_device)
        if self.use_device == "cuda" and not use_cpu:
            raise AssertionError("Legacy CUDA profiling requires use_cpu=True")
        self.kineto_activities = {ProfilerActivity.CPU} if use_cpu else set()
        if not self.kineto_activities:
            raise AssertionError("No activities specified for the profiler")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")

    # -------------------------------------------------------------------------------------------------------- the run

    def default_trace_id(self):
        return f"{uuid.uuid4().int:032X}"

    def create_trace_id(self):
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else self.default_trace_id()

    def config(self, create_trace_id=False):
        if create_trace_id:
            self.trace_id = self.create_trace_id()
        settings = (self.record_shapes, self.profile_memory, self.with_stack, self.with_flops, self.with_modules)
        return ProfilerConfig(self.profiler_kind, *settings, self.experimental_config, self.trace_id)

    def __enter__(self):
        if not self.enabled:
            return
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self):
        self.entered = True
        with _timed(self._stats, "profiler_prepare_call_duration_us"):
            prepare_profiler(self.config(create_trace_id=True), self.kineto_activities, self.activity_filters)

    def _start_trace(self):
        self.entered = True
        _set_is_profiler_enabled(True)
        with _timed(self._stats, "profiler_enable_call_duration_us"):
            enable_profiler(self.config(), self.kineto_activities)
        self.profiling_start_time_ns = perf_counter_ns()

    def __exit__(self, exc_type, exc_val, exc_tb):
        if not self.enabled:
            return
        if self._function_events and self.acc_events:
            self._old_function_events = self._function_events
        self._function_events, self._needs_processing = None, True
        self.profiling_end_time_ns = perf_counter_ns()
        with _timed(self._stats, "profiler_disable_call_duration_us"):
            self.kineto_results = disable_profiler()
        _set_is_profiler_enabled(False)
        self._stats.profiling_window_duration_sec = (self.profiling_end_time_ns - self.profiling_start_time_ns) / 1e9
        if self.acc_events and not self.experimental_config.trace_only:
            self._ensure_function_events()
        return False

    def toggle_collection_dynamic(self, enabled, activities):
        """Collect calls on the CPU, or leave them out, from now on. activities: a list of ProfilerActivity."""
        return toggle_collection_dynamic(enabled, set(activities))

    # ------------------------------------------------------------------------------------------------- what it has found

    def __repr__(self):
        return self._shown(repr)

    def __str__(self):
        return self._shown(str)

    def _shown(self, show):
        if self._needs_processing:
            self._ensure_function_events()
        return "<unfinished torch.autograd.profile>" if self._function_events is None else show(self._function_events)

    @property
    def function_events(self):
        """An EventList of all events in order of time."""
        if self._function_events is None or self._needs_processing:
            self._ensure_function_events()
        return self._function_events

    def _ensure_function_events(self):
        if self.experimental_config.trace_only:
            raise RuntimeError(
                "events() is not available when trace_only=True in "
                "ExperimentalConfig. Use export_chrome_trace() instead."
            )
        if self._function_events is not None:
            return
        self._needs_processing = False
        with _timed(self._stats, "parse_kineto_call_duration_us"):
            events = self._parse_kineto_results(self.kineto_results) if self.kineto_results else []
        self._function_events = EventList(
            events, use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops
        )
        with _timed(self._stats, "function_events_build_tree_call_duration_us"):
            self._function_events._build_tree()
        self._stats.number_of_events = len(self._function_events)
        if self._old_function_events and self.acc_events:
            self._function_events.extend(self._old_function_events)
            self._old_function_events = None

    def table(self, *args, **kwargs):
        return self.function_events.table(*args, **kwargs)

    table.__doc__ = EventList.table.__doc__

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    key_averages.__doc__ = EventList.key_averages.__doc__

    def total_average(self):
        return self.function_events.total_average()

    total_average.__doc__ = EventList.total_average.__doc__

    @property
    def self_cpu_time_total(self):
        """The sum of all events' own times, in microseconds."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path, metadata=None, use_python_export=False):
        """Write what the last run has collected for chrome://tracing and Perfetto."""
        self.kineto_results.save(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self._ensure_function_events()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return self._function_events.export_stacks(path, metric)

    export_stacks.__doc__ = EventList.export_stacks.__doc__

    def _parse_kineto_results(self, result):
        """FunctionEvents of a run's Results. Memory that no call allocated or freed gets events of its own."""
        results = result.events()
        memory = [[event, False] for event in results if event.name == MEMORY_EVENT_NAME]
        by_time = MemRecordsAcc(memory)
        deadline = perf_counter_ns() + int((self.post_processing_timeout_s or 1e9) * 1e9)
        events = []
        for event in results:
            if perf_counter_ns() > deadline:
                log.warning(
                    "Profiler _parse_kineto_results timed out after %.3f seconds, returning partial results with %d events",
                    self.post_processing_timeout_s,
                    len(events),
                )
                break
            if not _filter_name(event.name):
                records = by_time.in_interval(event.start_time_ns, event.end_time_ns)
                events.append(self._function_event(event, [record[0] for record in records], result.trace_start_ns()))
                for record in records:
                    record[1] = True
        alone = [event for event, is_counted in memory if not is_counted]
        events += [self._function_event(event, [event], result.trace_start_ns()) for event in alone]
        events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        return events

    def _function_event(self, event, memory, begin_ns):
        inputs = event.inputs
        is_memory = event.name == MEMORY_EVENT_NAME
        return FunctionEvent(
            id=event.correlation_id,
            name=_rewrite_name(event.name, with_wildcard=True),
            overload_name=event.overload_name,
            trace_name=None if is_memory else event.name,
            thread=event.start_tid,
            start_us=(event.start_time_ns - begin_ns) / 1000,
            end_us=(event.end_time_ns - begin_ns) / 1000,
            fwd_thread=event.fwd_thread_id,
            input_shapes=flattened_shapes(inputs.shapes),
            stack=[entry for entry in stack_entries(event.stack) if _filter_stack_entry(entry)],
            scope=event.scope,
            use_device=self.use_device,
            cpu_memory_usage=sum([m.nbytes for m in memory if m.device_type == DeviceType.CPU]),
            device_memory_usage=sum([m.nbytes for m in memory if m.device_type != DeviceType.CPU]),
            is_async=event.is_async,
            sequence_nr=event.sequence_nr,
            device_type=DeviceType.CPU,
            device_index=0 if is_memory else -1,
            flops=None if is_memory else inputs.flops,
            concrete_inputs=inputs.concrete,
            kwinputs={},
            is_user_annotation=event.is_user_annotation,
            activity_type="user_annotation" if event.is_user_annotation else "cpu_op",
            flow_id=event.flow_id,
            flow_start=event.flow_start,
            structured_input_shapes=inputs.shapes,
            structured_input_strides=inputs.strides,
            input_dtypes=inputs.dtypes,
        )


def _without_conflict(config, with_stack):
    """A copy of the config without trace_only, if stacks are wanted: these need the events."""
    if not (config.trace_only and with_stack):
        return config
    warnings.warn(
        "trace_only=True is incompatible with with_stack=True (stack traces require event post-processing). "
        "Disabling trace_only.",
        stacklevel=3,
    )
    config = copy.copy(config)
    config.trace_only = False
    return config


def _checked_device(use_cuda, use_device):
    """The device whose events are wanted; None, with a warning, if it has none."""
    if use_cuda:
        warnings.warn(
            "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
            FutureWarning,
            stacklevel=3,
        )
        use_device = "cuda"
    if use_device is None:
        return None
    if use_device not in ("cuda", "xpu", "mtia", "hpu"):
        warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=3)
    elif use_device == "cuda" and runtime.is_available():
        return "cuda"  # its memory is told; in PyTorch its kernels are timed, too
    else:
        name = use_device.upper()
        warnings.warn(f"{name} is not available, disabling {name} profiling", stacklevel=3)
    return None


class record_function(contextlib.ContextDecorator):
    """`with record_function("forward"):`, or as a decorator, makes the block an event of that name in what a profiler collects.

    args: a text that goes with it. Without a profiler it does nothing.
    """

    def __init__(self, name, args=None):
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True  # False once a future has been told to do so
        self.record = None

    def __enter__(self):
        self.record = record_function_enter_new(self.name, self.args)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        if not self.run_callbacks_on_exit:
            return
        if self.record is None:
            raise AssertionError("Expected record to be set")
        record_function_exit(self.record)

    def _call_end_callbacks_on_future(self, fut):
        """Let the event last until `fut` is done. Returns a future with its value, which is done when the event is over."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        if self.record is None:
            raise AssertionError("Expected record to be set")

        def end(done):
            record_function_exit(self.record)
            return done.value()

        return fut.then(end)


_NOBODY_LOOKS = contextlib.nullcontext()


def event_if_observed(name, owner):
    """A `record_function` for what the package itself names: an optimizer's step, a batch of a DataLoader. `{}` in `name` stands for the
    class of `owner`. It costs next to nothing while no profiler looks. In PyTorch: `record_function` each time."""
    return record_function(name.format(type(owner).__name__)) if threads_with_modes and tls.observers else _NOBODY_LOOKS


def show_optimizer(optimizer):
    """Let the profiler of this thread, if it follows the program, look at an optimizer that has done a step."""
    if threads_with_modes and tls.observers:
        for callback in tls.observers:
            if callback.python_tracer is not None:
                callback.python_tracer.note_optimizer(optimizer)


class emit_itt:
    """Every operator a range for Intel's VTune. Entering it raises RuntimeError unless `enabled` is False: no library of Intel's is loaded.
    (In PyTorch: a build without the library enters it and emits nothing.)
    """

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self):
        if self.enabled:
            raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")

    def __exit__(self, exc_type, exc_val, exc_tb):
        return None


class emit_nvtx:
    """Every operator a range for NVIDIA's profilers. Entering it, unless `enabled` is False, raises AssertionError without a GPU, as
    PyTorch built without CUDA, and RuntimeError with one: NVIDIA's library is not loaded.
    """

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self):
        if self.enabled:
            runtime.driver()
            raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")

    def __exit__(self, exc_type, exc_val, exc_tb):
        return None


class KinetoStepTracker:
    """The number of the training step, counted by all who count steps: it is the highest that one of them has reached."""

    _current_step = 0
    _step_dict = defaultdict(int)  # who counts -> how far

    @classmethod
    def init_step_count(cls, requester):
        """`requester` begins at the step that the others have reached."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester):
        """`requester` counts no more. Returns whether it did."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester):
        """`requester` has done a step. Returns the number of all."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        new_step = max(cls._step_dict.values())
        if new_step > cls._current_step + 1:
            warnings.warn(
                "Profiler step count has increased more than 1 - "
                f"current_step = {cls._current_step} step dict =  {cls._step_dict}",
                stacklevel=2,
            )
        cls._current_step = max(new_step, cls._current_step)
        return cls._current_step

    @classmethod
    def current_step(cls):
        return cls._current_step
