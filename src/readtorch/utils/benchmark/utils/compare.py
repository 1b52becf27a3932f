"""Measurements as a table: a row for each `sub_label`, a column for each `description`.

In PyTorch: `torch/utils/benchmark/utils/compare.py`.
"""

import enum

import readtorch

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

BEST, GOOD, BAD, VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
BOLD, TERMINATE = "\033[1m", "\033[0m"


class Colorize(enum.Enum):
    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements for each label: `str(compare)`, or `compare.print()`. ValueError for what is no Measurement."""

    def __init__(self, results):
        self._results = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def extend_results(self, results):
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Show as many digits as the spread of the times allows."""
        self._trim_significant_figures = True

    def colorize(self, rowwise=False):
        """Mark the best and the bad of a column, or of a row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Show the spread of times that differ much."""
        self._highlight_warnings = True

    def print(self):
        print(str(self))

    def __str__(self):
        results = Measurement.merge(self._results)
        options = self._colorize, self._trim_significant_figures, self._highlight_warnings
        groups = [[r for r in results if r.label == label] for label in ordered_unique([r.label for r in results])]
        return "\n".join([Table(group, *options).render() for group in groups])


class Table:
    """The measurements of one label, in cells; None where there is none."""

    def __init__(self, results, colorize, trim, highlight):
        self.results, self.colorize, self.highlight = results, colorize, highlight
        self.unit, self.scale = select_unit(min(r.median for r in results))
        self.descriptions = ordered_unique([r.description for r in results])
        # Rows are those of one number of threads, of one environment; within, in the order in which they came.
        keys = sorted(ordered_unique([row_key(r) for r in results]), key=lambda key: key[:2])
        cells = {(row_key(r), r.description): r for r in results}
        self.rows = {key: [cells.get((key, d)) for d in self.descriptions] for key in keys}
        self.columns = [Column(cells, self.scale, trim, highlight) for cells in zip(*self.rows.values())]

    def render(self):
        texts = [["", *self.descriptions], *self.row_texts()]
        widths = [max(map(len, column)) for column in zip(*texts)]
        lines = ["  |  ".join([text.center(width) for text, width in zip(texts[0], widths)])]
        whole, threads_before = len(lines[0]), None
        for (key, cells), text in zip(self.rows.items(), texts[1:]):
            if key[0] != threads_before:
                threads_before = key[0]
                lines.append(f"{threads_before} threads: ".ljust(whole, "-"))
            lines.append("  |  ".join([text[0].ljust(widths[0]), *self.shown(key, cells, text[1:], widths[1:])]))
        title = f" {self.results[0].label or ''} ".center(whole - 2, "-")
        note = ""
        if self.highlight and any([r.has_warnings for r in self.results]):
            note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        body = "\n".join(lines)
        return f"[{title}]\n{body}\n\nTimes are in {unit_to_english(self.unit)}s ({self.unit}).\n{note}"

    def row_texts(self):
        """The name of each row, with the environment where it changes, and its numbers."""
        environments = {key[1] for key in self.rows}
        length = max(len(env) for env in environments) if len(environments) > 1 else 0
        before = None
        for key, cells in self.rows.items():
            new = len(environments) > 1 and key[:2] != before
            before = key[:2]
            name = "  " + (f"({key[1]})" if new else "").ljust(length + 4) + key[2]
            yield [name, *[column.text(r) for column, r in zip(self.columns, cells)]]

    def shown(self, key, cells, texts, widths):
        """The numbers in the middle of their columns, in colors."""
        for i, (r, text, width) in enumerate(zip(cells, texts, widths)):
            text = text.center(width)
            if r is None or self.colorize is Colorize.NONE:
                yield text
                continue
            rivals = (
                cells if self.colorize is Colorize.ROWWISE else [c[i] for k, c in self.rows.items() if k[0] == key[0]]
            )
            yield colored(text, r.median, min(rival.median for rival in rivals if rival is not None))


def row_key(r):
    return r.num_threads, r.env, r.as_row_name


class Column:
    """How the numbers of a column are written: with room for the longest, and as many decimals as all of them deserve."""

    def __init__(self, results, scale, trim, highlight):
        results = [r for r in results if r is not None]
        self.scale, self.trim = scale, trim
        self.highlight = highlight and any([r.has_warnings for r in results])
        digits = [int(readtorch.tensor(r.median / scale).log10().ceil()) for r in results]
        self.decimals = min(max(r.significant_figures - d, 0) for d, r in zip(digits, results)) if trim else 1
        self.length = max(digits) + self.decimals + (1 if self.decimals else 0)

    def text(self, r):
        if r is None:
            return " " * len(self.formatted(trim_sigfig(1, 1) if self.trim else 1, ""))
        value = r.median / self.scale
        value = trim_sigfig(value, r.significant_figures) if self.trim else value
        return self.formatted(value, f" (! {r.iqr / r.median * 100:.0f}%)" if self.highlight and r.has_warnings else "")

    def formatted(self, value, spread):
        return f"{value:>{self.length}.{self.decimals}f}{spread:>{7 if self.highlight else 0}}"


def colored(text, value, best):
    """By how much longer it took than the best."""
    if value <= best * 1.01 or value <= best + 100e-9:
        return BEST + BOLD + text + TERMINATE * 2
    if value <= best * 1.1:
        return GOOD + BOLD + text + TERMINATE * 2
    if value >= best * 5:
        return VERY_BAD + BOLD + text + TERMINATE * 2
    if value >= best * 2:
        return BAD + text + TERMINATE * 2
    return text
