"""Written in the chapter "The profiler": its cells are this file, put together by `tools/mini.py`."""

import json
import os
import threading
import time

from .dispatcher import KEYS, below, fallbacks, thread

PROFILER = 1 << 8  # above all others
KEYS.insert(0, PROFILER)
callbacks = []  # (start, end)


class RecordFunction:
    """Something that has a name, while it runs."""

    def __init__(self, name, inputs=()):
        self.name = name
        self.inputs = inputs  # for callbacks that want shapes

    def __enter__(self):
        self.started = [(end, start(self))
                        for start, end in callbacks]
        return self

    def __exit__(self, *error):
        for end, context in self.started:
            end(self, context)


def observed(op, keys, *args):
    with RecordFunction(op.name, args):
        return op.redispatch(keys & below(PROFILER), *args)


fallbacks[PROFILER] = observed


def add_callback(start, end):
    callbacks.append((start, end))
    thread.included |= PROFILER


def remove_callback(start, end):
    callbacks.remove((start, end))
    if not callbacks:
        thread.included &= ~PROFILER


class Event:
    parent = None

    def __init__(self, begin, end, name):
        self.begin, self.end, self.name = begin, end, name
        self.inside = []

    @property
    def total(self):
        return self.end - self.begin

    @property
    def own(self):
        return self.total - sum(e.total for e in self.inside)


def build_tree(events):
    """Each goes below the innermost that contains it."""
    around = []
    for event in sorted(events, key=lambda e: (e.begin, -e.end)):
        while around and around[-1].end < event.end:
            around.pop()
        if around:
            event.parent = around[-1]
            event.parent.inside.append(event)
        around.append(event)
        yield event


class profile:
    def __enter__(self):
        self.log = []
        add_callback(self.start, self.end)
        return self

    def __exit__(self, *error):
        remove_callback(self.start, self.end)

    def start(self, record):
        return time.perf_counter_ns()

    def end(self, record, begin):
        now = time.perf_counter_ns()
        self.log.append((begin, now, record.name))

    def events(self):
        return list(build_tree(Event(*one) for one in self.log))

    def key_averages(self):
        """{name: [calls, own time, total time]}"""
        sums = {}
        for event in self.events():
            row = sums.setdefault(event.name, [0, 0, 0])
            for i, n in enumerate((1, event.own, event.total)):
                row[i] += n
        return sums

    def export_chrome_trace(self, path):
        place = {"pid": os.getpid(), "tid": threading.get_ident()}
        bars = [{"ph": "X", "cat": "cpu_op", "name": e.name,
                 "ts": e.begin / 1000, "dur": e.total / 1000,
                 **place} for e in self.events()]
        with open(path, "w") as file:
            json.dump({"traceEvents": bars}, file)


def schedule(wait, warmup, active, repeat=0):
    def action(step):
        cycle, place = divmod(step, wait + warmup + active)
        if place < wait or repeat and cycle >= repeat:
            return "none"
        if place < wait + warmup:
            return "warm up"
        is_last = place == wait + warmup + active - 1
        return "record and save" if is_last else "record"
    return action
