"""Runs of CUDA kernels on the simulator, written down for the viewer of threads and memory accesses.

A step is one access of a warp, or a barrier. Numbers of elements ("cells") count from the beginning of an
array's memory, so that neighbours in the picture are neighbours in memory, whatever the array's shape.
"""

from __future__ import annotations

import inspect
import textwrap
from collections import defaultdict

import numpy as np

from readtorch.c10.cuda.simulator.recording import WarpAccess
from readtorch.c10.cuda.simulator.schedule import WARP

from .watch_kernel import Run, simulate

MOST_RUNS = 8
MOST_STEPS = 4000
MOST_CELLS = 8192  # of one array
ROW = 128  # bytes: the 32 banks of shared memory, and four sectors
WIDEST = 64  # cells side by side


def record_kernel(runs, block=(0, 0, 0)) -> dict:
    """Simulate each launch once -> JSON.

    runs: a dict or pairs of label and launch; a launch is `(kernel, grid, block, *arguments)` or a function
    without arguments that launches one kernel by `c10.cuda.launch.launch`. block: the one that is shown.
    ValueError for more than can be drawn.
    """
    pairs = list(runs.items() if hasattr(runs, "items") else runs)
    if not 1 <= len(pairs) <= MOST_RUNS:
        raise ValueError(f"{len(pairs)} runs; the viewer shows 1 to {MOST_RUNS}")
    shown = (*block, *[0] * (3 - len(block)))
    return {"runs": [{"label": label, **picture(simulate(*launch_of(launch), shown))} for label, launch in pairs]}


def launch_of(launch):
    """(kernel, grid, block, arguments, bytes of dynamic shared memory)"""
    if not callable(launch):
        kernel, grid, block, *arguments = launch
        return kernel, grid, block, arguments, 0
    from readtorch.c10.cuda.launch import launching_by

    found = []

    def note(kernel, grid, block, *arguments, shared=0):
        found.append((kernel, grid, block, arguments, shared))

    with launching_by(note):
        launch()
    if len(found) != 1:
        raise ValueError(f"{len(found)} kernels were launched; the viewer shows one")
    return found[0]


def picture(run: Run) -> dict:
    if len(run.steps) > MOST_STEPS:
        raise ValueError(f"{len(run.steps)} steps; the viewer shows at most {MOST_STEPS}")
    arrays = layouts(run)
    sources = Sources()
    return {
        "kernel": run.launch.kernel.__name__,
        "grid": list(run.launch.grid_size),
        "block": list(run.launch.block_size),
        "shown": list(run.watch.block),
        "arrays": [array.data for array in arrays.values()],
        "steps": [step(item, arrays, sources) for item in run.steps],
        "races": race_groups(run, arrays, sources),
        "error": None if run.error is None else f"{type(run.error).__name__}: {run.error}",
        "lines": by_line(run, sources),
        "totals": totals(run),
        "sources": sources.texts,
        "places": sources.places,
    }


# ------------------------------------------------------------------------------------------------- memory


class Layout:
    """Where the cells of one array are drawn."""

    def __init__(self, array, space, name, base, used):
        self.base, self.itemsize = base, array.itemsize
        columns, margin = rows_of(array, space, base)
        low, high = self.cell(min(used)), self.cell(max(used)) + 1
        whole = max(high, extent(array))
        low, high = (0, whole) if whole <= MOST_CELLS else (max(0, low - (low + margin) % columns), high)
        if high - low > MOST_CELLS:
            raise ValueError(f"{name}: {high - low} elements; the viewer draws at most {MOST_CELLS}")
        self.data = {
            "name": name,
            "space": space,
            "dtype": str(array.dtype),
            "itemsize": array.itemsize,
            "shape": list(array.shape),
            "strides": [s // array.itemsize for s in array.strides],
            "columns": columns,
            "margin": margin,
            "low": low,
            "high": high,
            "address": base % ROW,
        }

    def cell(self, address):
        return (address - self.base) // self.itemsize


def rows_of(array, space, base):
    """(cells side by side, empty ones before the array in its first row).

    In shared memory a row is the 32 banks. A matrix in global memory that is not too wide looks like one.
    """
    if space == "global" and array.ndim > 1:
        pitch = array.strides[-2] // array.itemsize
        if 8 <= pitch <= WIDEST and array.strides[-1] == array.itemsize:
            return pitch, 0
    return ROW // array.itemsize, base % ROW // array.itemsize


def extent(array):
    """How many elements of memory lie between the array's first element and its last."""
    steps = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides))
    return steps // array.itemsize + 1


def layouts(run):
    """(space, name) -> Layout of each array that the block has used, in the order of their making."""
    used = defaultdict(list)
    for item in run.steps:
        if isinstance(item, WarpAccess):
            used[item.space, item.array] += [access.address for access in item.accesses]
    return {
        (space, name): Layout(array, space, name, base, used[space, name])
        for (space, name), (array, base) in run.launch.arrays.items()
        if (space, name) in used
    }


# -------------------------------------------------------------------------------------------------- steps


def step(item, arrays, sources):
    """[kind, warp, place, array, cells, cost, least]; a barrier: [scope, warp or -1, place]."""
    if not isinstance(item, WarpAccess):
        warp = item.threads[0] // WARP if item.scope == "warp" else -1
        return [item.scope, warp, sources.number(item.place)]
    layout = arrays[item.space, item.array]
    cells = [(access.linear % WARP, layout.cell(access.address)) for access in item.accesses]
    return [
        item.kind,
        item.warp,
        sources.number(item.place),
        list(arrays).index((item.space, item.array)),
        progressions(sorted(cells)),
        *cost_of(item),
    ]


def cost_of(item):
    """Sectors moved and the fewest that would do, or turns of shared memory and the fewest."""
    return (item.sectors, item.fewest_sectors) if item.space == "global" else (item.turns, item.fewest_turns)


def progressions(cells):
    """[(lane, cell)] -> [[lane, how many lanes, cell, cells from lane to lane]]; mostly one is enough."""
    found = []
    for lane, cell in cells:
        last = found[-1] if found else None
        if last and last[0] + last[1] == lane and (last[1] == 1 or last[2] + last[1] * last[3] == cell):
            last[3] = cell - last[2] if last[1] == 1 else last[3]
            last[1] += 1
        else:
            found.append([lane, 1, cell, 0])
    return found


class Sources:
    """The functions in which accesses stand, each once, and the lines of them."""

    def __init__(self):
        self.texts, self.places, self.codes, self.known = [], [], {}, {}

    def number(self, place):
        if place not in self.known:
            self.known[place] = len(self.places)
            self.places.append([self.text(place.code), place.line])
        return self.known[place]

    def text(self, code):
        if code not in self.codes:
            self.codes[code] = len(self.texts)
            try:
                lines, first = inspect.getsourcelines(code)
            except OSError:
                lines, first = ["(the source is not at hand)"], code.co_firstlineno
            lines = textwrap.dedent("".join(lines)).rstrip().split("\n")
            self.texts.append({"name": code.co_name, "first": first, "lines": lines})
        return self.codes[code]


# -------------------------------------------------------------------------------------------------- races


def race_groups(run, arrays, sources):
    """The races of each pair of lines: the array, the cells, and both ends of one of them, in order.

    A race between blocks has an end without a step if its thread is in another block; races in which the
    shown block has no part are left out.
    """
    steps = StepsOfThreads(run)
    groups = defaultdict(list)
    for race in run.races:
        ends = [(stamp, steps.get(stamp, race.index)) for stamp in (race.first, race.second)]
        if any(found for _, found in ends):
            places = sorted((race.first.place, race.second.place), key=id)
            groups[race.space, race.array, *places].append((race, ends))
    return [race_group(arrays, key[:2], found, sources) for key, found in groups.items()]


class StepsOfThreads:
    """(place, thread, index) -> (number of the step, address), the first one if there are several."""

    def __init__(self, run):
        self.block, self.found = run.watch.block, {}
        for number, item in enumerate(run.steps):
            if isinstance(item, WarpAccess):
                for access in item.accesses:
                    self.found.setdefault((item.place, access.linear, access.index), (number, access.address))

    def get(self, stamp, index):
        """None for a thread of another block."""
        own = tuple(stamp.thread.block.index) == self.block
        return self.found.get((stamp.place, stamp.thread.linear, index)) if own else None


def race_group(arrays, key, found, sources):
    layout = arrays[key]
    cells = {layout.cell(next(step for _, step in ends if step)[1]) for _, ends in found}
    race, ends = next((entry for entry in found if between_warps(entry[0])), found[0])
    ends = sorted(ends, key=lambda end: end[1][0] if end[1] else MOST_STEPS)
    return {
        "array": list(arrays).index(key),
        "index": list(map(int, race.index)),
        "cells": sorted(cells),
        "ends": [end_data(stamp, step, sources) for stamp, step in ends],
    }


def end_data(stamp, step, sources):
    thread = stamp.thread
    return {
        "kind": stamp.kind,
        "thread": list(thread.index),
        "block": list(thread.block.index),
        "place": sources.number(stamp.place),
        "step": step and step[0],
    }


def between_warps(race):
    first, second = race.first.thread, race.second.thread
    return first.block is not second.block or first.linear // WARP != second.linear // WARP


# ------------------------------------------------------------------------------------------------- totals


def by_line(run, sources):
    """[place, array, kind, space, accesses of a warp, bytes, cost, least], of all blocks."""
    sums = {}
    for item in run.watch.warp_accesses():
        key = sources.number(item.place), item.array, item.kind, item.space
        cost, least = cost_of(item)
        new = 1, sum(a.size for a in item.accesses), cost, least
        sums[key] = tuple(map(sum, zip(sums.get(key, (0, 0, 0, 0)), new)))
    return [[*key, *map(int, numbers)] for key, numbers in sorted(sums.items())]


def totals(run):
    """[space, kind, bytes of all threads, of the one with least, of the one with most], of all blocks."""
    traffic = list(run.watch.traffic().values())
    silent = int(np.prod(run.launch.grid_size) * np.prod(run.launch.block_size)) - len(traffic)
    found = []
    for key in sorted({key for counts in traffic for key in counts}):
        numbers = [counts[key] for counts in traffic]
        found.append([*key, sum(numbers), 0 if silent else min(numbers), max(numbers)])
    return found
