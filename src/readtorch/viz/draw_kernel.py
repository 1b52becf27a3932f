"""A still picture of what one thread of a kernel does: which elements it reads, which it writes.

It is drawn from a run on the kernel simulator, so it shows what the kernel does and not what somebody thinks that it
does. From above: arrays that are only read, the threads in their blocks, shared memory of the thread's block, arrays that
are written.
"""

from __future__ import annotations

import html
import itertools

import numpy as np

from .plots import Plot
from .watch_kernel import simulate

CELL, GAP = 15, 26  # of an element; between rows of the picture
BLUE, ORANGE = "#2f7fc1", "#c4711b"  # as in plots.py: to be told from a white and a black page
MOST = 512  # elements of an array
CELLS_A_LINE, THREADS_A_LINE = 20, 16  # of an array or a block of a single row: the rest goes on in the next line


def draw_kernel(kernel, grid, block, arrays, thread=0, of_block=0, shared=True):
    """The Plot of one thread, both numbers counting along x first. ValueError for arrays too large to draw."""
    at = tuple(map(int, np.unravel_index(of_block, padded(grid)[::-1])))[::-1]
    run = simulate(kernel, grid, block, arrays, 0, at)
    if run.error is not None:
        raise run.error
    drawing = Drawing(run, thread, of_block, ("global", "shared") if shared else ("global",))
    return Plot(drawing.svg())


class Drawing:
    """Rows of boxes, filled from above; then the lines between them."""

    def __init__(self, run, thread, of_block, spaces):
        self.run, self.thread, self.of_block = run, thread, of_block
        own = [a for a in run.watch.accesses if a.block == run.watch.block and a.linear == thread]
        self.own = [a for a in own if a.space in spaces]
        self.parts, self.cells, self.height, self.width = [], {}, 4, 0
        written = {a.array for a in run.watch.accesses if a.space == "global" and a.kind != "read"}
        names = [name for space, name in run.launch.arrays if space == "global"]
        shared = [name for space, name in run.launch.arrays if space == "shared"]
        self.row([("global", name) for name in names if name not in written])
        self.threads()
        self.row([("shared", name) for name in shared if "shared" in spaces])
        self.row([("global", name) for name in names if name in written])

    # ---- boxes

    def row(self, keys):
        """Arrays side by side."""
        x, deepest = 4, 0
        for key in keys:
            rows, columns = table_of(self.run.launch.arrays[key][0].shape, key[1])
            self.parts.append(words(f"{key[1]}" + (", shared" if key[0] == "shared" else ""), x, self.height + 9))
            self.cells[key] = x, self.height + 14, columns
            self.array(key, rows, columns)
            x += max(columns * CELL, 8 * len(key[1]) + (52 if key[0] == "shared" else 0)) + 18
            deepest = max(deepest, rows)
        if keys:
            self.width, self.height = max(self.width, x), self.height + 14 + deepest * CELL + GAP

    def array(self, key, rows, columns):
        left, top, _ = self.cells[key]
        used = {kind: {self.flat(a) for a in self.own if (a.space, a.array) == key and a.kind == kind} for kind in ("read", "write", "atomic")}  # fmt: skip
        for i in range(self.run.launch.arrays[key][0].size):
            read, wrote = i in used["read"], i in used["write"] | used["atomic"]
            fill = ORANGE if wrote else BLUE if read else "none"
            y, x = divmod(i, columns)
            self.parts.append(
                f'<rect x="{left + x * CELL}" y="{top + y * CELL}" width="{CELL}" height="{CELL}" fill="{fill}" '
                f'stroke="currentColor" stroke-opacity=".55" stroke-width=".8"/>'
            )

    def threads(self):
        """The blocks of the grid, a circle for each thread; the one that is looked at is filled."""
        across, down, deep = self.run.launch.block_size
        if deep > 1:
            raise ValueError("a block of three dimensions; the picture has two")
        total = across * down
        if down == 1 and across > THREADS_A_LINE:
            across, down = THREADS_A_LINE, -(-across // THREADS_A_LINE)
        x, top = 4, self.height + 14
        blocks = int(np.prod(self.run.launch.grid_size))
        self.parts.append(words("threads" if blocks == 1 else f"threads, {blocks} blocks", x, self.height + 9))
        for number in range(blocks):
            self.parts.append(
                f'<rect x="{x}" y="{top}" width="{across * CELL}" height="{down * CELL}" fill="none" stroke="currentColor" rx="4"/>'
            )
            for t in range(total):
                middle = x + (t % across + 0.5) * CELL, top + (t // across + 0.5) * CELL
                chosen = number == self.of_block and t == self.thread
                if chosen:
                    self.place = middle
                self.parts.append(
                    f'<circle cx="{middle[0]}" cy="{middle[1]}" r="4.5" fill="{"currentColor" if chosen else "none"}" stroke="currentColor" stroke-opacity=".55"/>'
                )
            x += across * CELL + 12
        self.width, self.height = max(self.width, x), top + down * CELL + GAP

    # ---- lines

    def flat(self, access):
        """The number of an element in its array, by rows."""
        shape = self.run.launch.arrays[access.space, access.array][0].shape
        return int(np.ravel_multi_index(tuple(map(int, access.index)), shape))

    def line(self, access):
        left, top, columns = self.cells[access.space, access.array]
        y, x = divmod(self.flat(access), columns)
        cell = left + (x + 0.5) * CELL, top + (y + 0.5) * CELL
        (x0, y0), (x1, y1) = (cell, self.place) if access.kind == "read" else (self.place, cell)
        colour = BLUE if access.kind == "read" else ORANGE
        return f'<path d="M{x0} {y0}L{x1} {y1}" stroke="{colour}" stroke-width="1.4" fill="none" stroke-opacity=".8"/>'

    def say(self):
        """In words what the picture shows."""
        found = {}
        for a in self.own:
            found.setdefault(("reads" if a.kind == "read" else "writes", a.array), {})[a.index] = None
        said = [
            f"{verb} {' and '.join(elements(array, list(found[verb, array])) for _, array in arrays)}"
            for verb, arrays in itertools.groupby(found, key=lambda key: key[0])
        ]
        blocks = int(np.prod(self.run.launch.grid_size))
        who = f"Thread {self.thread}" + (f" of block {self.of_block}" if blocks > 1 else "")
        return f"{who} {', '.join(said) or 'does nothing'}."

    def svg(self):
        said = html.escape(self.say())
        body = "".join([*self.parts, *dict.fromkeys(map(self.line, self.own))])
        height = self.height - GAP + 6
        return (
            f'<svg viewBox="0 0 {self.width} {height}" width="{self.width}" height="{height}" style="max-width: 100%; height: auto" '
            f'role="img" aria-label="{said}">{body}</svg><p style="font-size: .85em; margin: .2rem 0 0">{said}</p>'
        )


def padded(extent):
    extent = extent if isinstance(extent, tuple) else (extent,)
    return (*extent, *[1] * (3 - len(extent)))


def table_of(shape, name):
    """(rows, columns) that an array is drawn in."""
    size = int(np.prod(shape))
    if size > MOST:
        raise ValueError(f"{name} has {size} elements; the picture draws at most {MOST}")
    columns = shape[-1] if shape else 1
    if size == columns:
        columns = min(columns, CELLS_A_LINE)
    return -(-size // max(1, columns)), columns


def words(text, x, y):
    return (
        f'<text x="{x}" y="{y}" font-size="11" font-family="monospace" fill="currentColor">{html.escape(text)}</text>'
    )


def elements(array, indices):
    """Up to two elements by name; of more, how many."""
    if len(indices) > 2:
        return f"{len(indices)} elements of {array}"
    return " and ".join(f"{array}[{', '.join(map(str, index))}]" for index in indices)
