"""`profile`, with a schedule of which steps of a training loop it looks at.

In PyTorch: `torch/profiler/profiler.py`. Explained in the chapter "The profiler".
"""

import enum
import gzip
import os
import shutil
import socket
import tempfile
import time
from functools import partial
from warnings import warn

import readtorch.autograd.profiler as prof
from readtorch.c10.cuda import runtime
from readtorch.csrc.autograd import profiler_kineto
from readtorch.csrc.profiler.orchestration.observer import ProfilerActivity

from ._memory_profiler import MemoryProfile, MemoryProfileTimeline

__all__ = ["supported_activities", "ProfilerAction", "schedule", "tensorboard_trace_handler", "profile"]

PROFILER_STEP_NAME = "ProfilerStep"

_WARNINGS_SHOWN = set()


def _warn_once(message):
    if message not in _WARNINGS_SHOWN:
        _WARNINGS_SHOWN.add(message)
        warn(message, stacklevel=3)


def supported_activities():
    """The activities that can be collected: {ProfilerActivity.CPU}. Kernels of GPUs are not timed."""
    return profiler_kineto.supported_activities()


def _parse_activities(activities):
    """(set of activities, {activity: names of what is wanted of it}) of a list of ProfilerActivity and of such dicts."""
    parsed, filters = set(), {}
    for item in activities:
        if not isinstance(item, (ProfilerActivity, dict)):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for activity in item if isinstance(item, dict) else (item,):
            if activity in parsed:
                raise ValueError(f"Activity {activity} specified more than once")
            parsed.add(activity)
        if isinstance(item, dict):
            filters |= {activity: set(names) for activity, names in item.items()}
    return parsed, filters


def _write_compressed(write, path, argument):
    """`write(path, argument)`, and the file compressed."""
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "trace.json")
        write(plain, argument)
        with open(plain, "rb") as source, gzip.open(path, "wb") as target:
            shutil.copyfileobj(source, target)


_DEPRECATED_TIMELINE = (
    "`export_memory_timeline` is deprecated and will be removed in a future version. "
    "Please use `torch.cuda.memory._record_memory_history` and `torch.cuda.memory._export_memory_snapshot` instead."
)


class _KinetoProfile:
    """A profiler that is started and stopped by hand. Its arguments are those of `profile`."""

    def __init__(
        self,
        *,
        activities=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
    ):
        self.activities, self.activity_filters = supported_activities(), {}
        if activities is not None:
            self.activities, self.activity_filters = _parse_activities(activities)
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        if experimental_config is not None:
            experimental_config = prof._without_conflict(experimental_config, with_stack)
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler = None
        self.use_device = "cuda" if ProfilerActivity.CUDA in self.activities else None
        self.preset_metadata = {}
        self._trace_metadata = {}
        self.mem_tl = None  # the MemoryProfileTimeline that was written last

    def start(self):
        self.prepare_trace()
        self.start_trace()

    def stop(self):
        self.stop_trace()

    def prepare_trace(self):
        """Make what collects, which does not look at anything yet."""
        if self.profiler is not None and not self.acc_events:
            _warn_once(
                "Warning: Profiler clears events at the end of each cycle. "
                "Only events from the current cycle will be reported. "
                "To keep events across cycles, set acc_events=True."
            )
        if self.profiler is None or not self.acc_events:
            self.profiler = prof.profile(
                use_cpu=ProfilerActivity.CPU in self.activities,
                use_device=self.use_device,
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                use_kineto=True,
                experimental_config=self.experimental_config,
                acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s,
                activity_filters=self.activity_filters or None,
            )
        self.profiler._prepare_trace()

    def start_trace(self):
        """Begin to collect."""
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        self.profiler._start_trace()
        for setting in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, setting):
                self.add_metadata_json(setting, "1")
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self):
        """Cease to collect."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self.profiler.__exit__(None, None, None)

    def _profiler_for(self, purpose):
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    def export_chrome_trace(self, path, use_python_export=False):
        """Write the last cycle for chrome://tracing and Perfetto; compressed if `path` ends in ".gz"."""
        profiler = self._profiler_for("exporting chrome trace")
        if not str(path).endswith(".gz"):
            return profiler.export_chrome_trace(path, self._trace_metadata)
        _write_compressed(profiler.export_chrome_trace, path, self._trace_metadata)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write a line "outermost;…;innermost microseconds" for each event with a stack, as flame graphs are made of."""
        return self._profiler_for("exporting stacks").export_stacks(path, metric)

    def toggle_collection_dynamic(self, enable, activities):
        """Collect, or leave out, these activities from now on."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """An EventList of the sums of the events that have one name (and shapes, stack, overload)."""
        profiler = self._profiler_for("getting key averages")
        return profiler.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def events(self):
        """An EventList of FunctionEvents in order of time."""
        return self._profiler_for("accessing events").function_events

    def add_metadata(self, key, value):
        """Write a text under `key` into the trace's file."""
        self.add_metadata_json(key, '"' + value.replace('"', '\\"') + '"')

    def add_metadata_json(self, key, value):
        """Write `value`, a text of JSON, under `key` into the trace's file."""
        self._trace_metadata[key] = value
        profiler_kineto.add_metadata_json(key, value)

    def preset_metadata_json(self, key, value):
        """The same before the profiler is started."""
        self.preset_metadata[key] = value

    def _memory_profile(self):
        """What the memory of the last cycle was for: see _memory_profiler.py."""
        missing = [name for name in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, name)]
        if missing:
            needed = ", ".join([f"{name}=True" for name in missing])
            raise ValueError(f"{needed} required for memory profiling.")
        if self.profiler is None or self.profiler.kineto_results is None:
            raise AssertionError("Profiler and kineto_results must be initialized for memory profiling")
        return MemoryProfile(self.profiler.kineto_results)

    def export_memory_timeline(self, path, device=None):
        """Write how many bytes of a device were in use for what: parameters, gradients, activations …

        path: its ending says what is written. ".html": a picture, with matplotlib. ".raw.json.gz": an entry [time in ns, -1 for what was
        there before; 1 there before, 2 new, 3 written into, 4 freed; bytes, negative for what goes; category] for each change.
        Otherwise [times in µs, for each of them a zero and the bytes in use of each category], as JSON, compressed if it ends in ".gz". Categories
        in both: 0 parameter, 1 optimizer's state, 2 input, 3 temporary, 4 activation, 5 gradient, 6 autograd detail, 7 unknown.
        device: "cuda:0" if there is one, otherwise "cpu". Needs record_shapes, profile_memory and with_stack, otherwise ValueError. Deprecated in PyTorch.
        """
        warn(_DEPRECATED_TIMELINE, FutureWarning, stacklevel=2)
        if device is None:
            device = "cuda:0" if runtime.is_available() else "cpu"
        timeline = self.mem_tl = MemoryProfileTimeline(self._memory_profile())
        if path.endswith(".html"):
            return timeline.export_memory_timeline_html(path, device)
        write = timeline.export_memory_timeline_raw if path.endswith("raw.json.gz") else timeline.export_memory_timeline
        _write_compressed(write, path, device) if path.endswith(".gz") else write(path, device)


# ----------------------------------------------------------------------------------------------------------- schedules


class ProfilerAction(enum.Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function from a step's number to a ProfilerAction.

    The first `skip_first` steps are skipped. Then cycles of `wait` steps in which nothing is done, `warmup` steps in which the profiler
    is ready, and `active` ones that it records; `repeat` cycles, 0: without end. skip_first_wait: 1 leaves the wait of the
    first cycle out. Raises AssertionError for negative numbers, and for no active step.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def schedule_fn(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait != 0 else 0) - skip_first
        if repeat > 0 and step / length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return schedule_fn


def _default_schedule_fn(step):
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, use_python_export=False):
    """An `on_trace_ready` that writes each cycle's trace into the folder `dir_name`, under a name that TensorBoard looks for.

    worker_name: what the files' names begin with, this machine's name and the process's number unless given.
    """

    def handler_fn(profiler):
        try:
            os.makedirs(dir_name, exist_ok=True)
        except Exception as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        profiler.export_chrome_trace(os.path.join(dir_name, name), use_python_export=use_python_export)

    return handler_fn


class profile(_KinetoProfile):
    """`with profile() as prof:` collects what this thread calls; with a schedule, in the steps that it names.

    activities: list of ProfilerActivity. CPU is the one that collects something here.
    schedule: function from a step's number to a ProfilerAction, see `schedule`; `prof.step()` ends a step.
    on_trace_ready: function of the profiler, called when a cycle of the schedule, or the block, is over.
    record_shapes: shapes, strides, dtypes and numbers of arguments. profile_memory: bytes allocated and freed.
    with_stack: the Python functions that were running. with_flops: operations of products of matrices, of convolutions, of `add` and `mul`.
    with_modules: noted in the file, without effect, as in PyTorch where no TorchScript runs.
    acc_events: keep the events of earlier cycles. custom_trace_id_callback: gives each cycle its id.
    post_processing_timeout_s: after so many seconds of working events out, the rest is left out.
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        use_cuda=None,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
    ):
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
        if activities is not None and not any(
            isinstance(a, ProfilerActivity) or isinstance(a, dict) and a for a in activities
        ):
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = bool(schedule)  # each step is an event of its own
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn = None
        self.current_action = self._scheduled_action(self.step_num)
        self.action_map = self._actions()
        prof.KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)

    def _scheduled_action(self, step):
        action = self.schedule(step)
        if action == ProfilerAction.DEVICE_STOPPED:
            raise ValueError(
                "ProfilerAction.DEVICE_STOPPED is set internally by the "
                "profiler and must not be returned by a user-provided schedule"
            )
        return action

    def _actions(self):
        """(what was done, what is to be done; None at the end) -> functions to be called."""
        none, warmup, record, save = list(ProfilerAction)[:4]
        prepare, start, stop, ready = self.prepare_trace, self.start_trace, self.stop_trace, self._trace_ready

        def wrong(order):
            return partial(warn, f"Incorrect schedule: {order}", stacklevel=4)

        actions = {
            (none, warmup): [prepare],
            (none, record): [prepare, start],
            (none, save): [prepare, start],
            (warmup, none): [wrong("WARMUP followed by NONE"), start, stop],
            (warmup, record): [start],
            (warmup, save): [start],
            (record, none): [wrong("RECORD followed by NONE"), stop],
            (record, warmup): [wrong("RECORD followed by WARMUP"), stop],
            (save, none): [stop, ready],
            (save, warmup): [stop, ready, prepare],
            (save, record): [stop, ready, prepare, start],
            (save, save): [stop, ready, prepare, start],
            (warmup, None): [start, stop],
            (record, None): [stop, ready],
            (save, None): [stop, ready],
        }
        nothing = ((none, none), (warmup, warmup), (record, record), (record, save))
        return actions | {pair: [] for pair in nothing}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.stop()
        prof.KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    def start(self):
        self._transit_action(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self):
        self._end_step()
        self._transit_action(self.current_action, None)

    def step(self):
        """The next step of training begins."""
        self._end_step()
        previous, self.current_action = self.current_action, self._scheduled_action(self.step_num + 1)
        self.step_num += 1
        self._transit_action(previous, self.current_action)
        self._begin_step()

    def _begin_step(self):
        if self.record_steps:
            self.step_rec_fn = prof.record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self):
        ending, self.step_rec_fn = self.step_rec_fn, None
        if ending is not None:
            ending.__exit__(None, None, None)

    def set_custom_trace_id_callback(self, callback):
        """`callback()` gives the next cycles their ids."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self):
        """The id of the current cycle; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id

    def _trace_ready(self):
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _transit_action(self, previous, current):
        for action in self.action_map.get((previous, current), ()):
            action()

    def _stats(self):
        return None if self.profiler is None else self.profiler._stats
