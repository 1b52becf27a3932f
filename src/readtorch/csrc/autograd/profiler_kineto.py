"""One run of the profiler: what starts it and ends it, and what it hands over.

In PyTorch: `torch/csrc/autograd/profiler_kineto.cpp`. Explained in the chapter "The profiler".
"""

import sys
import time
from time import perf_counter_ns

from readtorch.aten.record_function import add_thread_local_callback, remove_callback
from readtorch.csrc.profiler.collection import RecordQueue
from readtorch.csrc.profiler.orchestration.observer import ProfilerActivity


class Session:
    """The process's run: there is one at a time. None of it is there until `prepare_profiler`."""

    running = None


class KinetoThreadLocalState:
    """A run under way: its queue, the thread that is observed, and what is to be written beside the events."""

    def __init__(self, config, activities):
        self.config = config
        self.queue = RecordQueue(config, ProfilerActivity.CPU in activities)
        self.callback = None
        self.metadata = {}
        self.start_ns = self.epoch_ns = 0

    def start(self):
        self.epoch_ns = time.time_ns() - perf_counter_ns()
        self.start_ns = perf_counter_ns()
        self.observe(True)

    def observe(self, enabled):
        """Begin or cease to look at the calls of this thread, and of those that work for it."""
        if enabled and self.callback is None and self.queue.enabled:
            self.callback = add_thread_local_callback(self.queue.callback())
        elif not enabled and self.callback is not None:
            remove_callback(self.callback)
            self.callback = None

    def stop(self):
        self.observe(False)
        end_ns = perf_counter_ns()
        self.queue.stop()
        return ProfilerResult(self, end_ns)


class ProfilerResult:
    """What a run has collected."""

    __module__, __qualname__ = "torch._C._autograd", "_ProfilerResult"

    def __init__(self, state=None, end_ns=0):
        self._state = state
        self._end_ns = end_ns
        self._results = [] if state is None else None

    def trace_start_ns(self):
        return self._state.start_ns if self._state is not None else 0

    def trace_end_ns(self):
        return self._end_ns

    def events(self):
        """The Results in order of time, worked out when they are first asked for."""
        if self._results is None:
            self._results = self._state.queue.get_records(self._end_ns)
        return self._results

    def experimental_event_tree(self):
        """The Results that are in no other one; each has its `children`."""
        return [event for event in self.events() if event.parent is None]

    @property
    def tracer(self):
        """What was seen of modules and optimizers: a PythonTracer; None if memory or stacks were not wanted."""
        return self._state.queue.tracer

    def save(self, path):
        """Write the file for Chrome: see output_json.py."""
        if self._state is None:
            return
        from readtorch.csrc.profiler.output_json import save

        save(self, path)

    @property
    def config(self):
        return self._state.config

    @property
    def metadata(self):
        return self._state.metadata

    def unix_ns(self, time_ns):
        """A time of `perf_counter_ns` as one of `time.time_ns`."""
        return self._state.epoch_ns + time_ns


# ------------------------------------------------------------------------------------------------- the run's functions


def prepare_profiler(config, activities, activity_filter=None):
    """Make a run, which does not look at anything yet. One that is under way is over, and what it has collected is lost."""
    if Session.running is not None:
        Session.running.stop()
    Session.running = KinetoThreadLocalState(config, activities)


def enable_profiler(config, activities, scopes=()):
    """From now on calls of this thread are collected."""
    if Session.running is None:
        prepare_profiler(config, activities)
    Session.running.start()


def disable_profiler():
    """End the run. A ProfilerResult; without a run, one of nothing."""
    state, Session.running = Session.running, None
    if state is None:
        print(
            "Warning: disableProfiler called but no active profiling session found. This can happen if profiling was "
            "cancelled during warmup.",
            file=sys.stderr,
        )
        return ProfilerResult()
    return state.stop()


def toggle_collection_dynamic(enable, activities):
    """Let calls on the CPU be collected, or not, for a part of the run."""
    if Session.running is not None and ProfilerActivity.CPU in activities:
        Session.running.observe(enable)


def add_metadata_json(key, value):
    """Write `value`, a text of JSON, under `key` into the file of the run that is under way; without one it is lost."""
    if Session.running is not None:
        Session.running.metadata[key] = value


def kineto_available():
    """True: what Kineto does in PyTorch for calls on the CPU is done here."""
    return True


kineto_available.__module__ = "torch._C._autograd"  # as pybind11 says it


def supported_activities():
    """{ProfilerActivity.CPU}: no kernel of a device is timed."""
    return {ProfilerActivity.CPU}
