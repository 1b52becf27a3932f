"""What was timed, the times, and numbers as people read them. In PyTorch: `torch/utils/benchmark/utils/common.py`."""

import collections
import contextlib
import dataclasses
import math
import textwrap

import readtorch

__all__ = [
    "TaskSpec",
    "Measurement",
    "select_unit",
    "unit_to_english",
    "trim_sigfig",
    "ordered_unique",
    "set_torch_threads",
]

_MAX_SIGNIFICANT_FIGURES = 4
_MIN_CONFIDENCE_INTERVAL = 25e-9  # seconds
_IQR_WARN_THRESHOLD = 0.1
_IQR_GROSS_WARN_THRESHOLD = 0.25


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """What a Timer was told, but for its globals. Measurements of equal ones are repetitions of each other."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            sub_label = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{sub_label}\n{textwrap.indent(self.stmt, '  ')}"
        name = self.stmt if self.label is None else self.label
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def setup_str(self):
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        """The lines that a Measurement shows of it."""
        sections = [section for section in (self.title, self.description, self.setup_str()) if section]
        return "\n".join([f"{section}\n" if "\n" in section else section for section in sections])


_TASKSPEC_FIELDS = {field.name for field in dataclasses.fields(TaskSpec)}


@dataclasses.dataclass(repr=False)
class Measurement:
    """The times of a statement, in seconds: `raw_times` of `number_per_run` executions each.

    `times`, `median`, `mean` and `iqr` (between the quartiles) are those of one execution. Fields of the TaskSpec are attributes, too.
    """

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = None

    def __getattr__(self, name):
        if name in _TASKSPEC_FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def times(self):
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self):
        return self._seconds().mean().item() if self.raw_times else -1.0

    @property
    def median(self):
        return self._quantile(0.5)

    @property
    def iqr(self):
        return self._quantile(0.75) - self._quantile(0.25)

    def _seconds(self):
        return readtorch.tensor(sorted(self.times), dtype=readtorch.float64)

    def _quantile(self, q):
        return self._seconds().quantile(q).item() if self.raw_times else -1.0

    @property
    def significant_figures(self):
        """How many digits of the median mean something: a rough guess, from the spread of the middle half."""
        n = len(self.raw_times)
        middle = sorted(self.times)[n // 4 : math.ceil(3 * n / 4)]
        deviation = readtorch.tensor(middle).std(unbiased=False).item()
        sqrt_n = readtorch.tensor(len(middle)).sqrt().item()
        interval = max(1.645 * deviation / sqrt_n, _MIN_CONFIDENCE_INTERVAL)
        figures = math.floor(readtorch.tensor(self.median / interval).log10().item())
        return min(max(figures, 1), _MAX_SIGNIFICANT_FIGURES)

    def meets_confidence(self, threshold=_IQR_WARN_THRESHOLD):
        """Whether the times differ by less than this share of the median."""
        return self.iqr / self.median < threshold

    def _warnings(self):
        if not self.raw_times or self.meets_confidence(_IQR_WARN_THRESHOLD):
            return []
        gross = not self.meets_confidence(_IQR_GROSS_WARN_THRESHOLD)
        reason = (
            "This suggests significant environmental influence." if gross else "This could indicate system fluctuation."
        )
        share = self.iqr / self.median * 100
        return [f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.", f"           {reason}"]

    @property
    def has_warnings(self):
        return bool(self._warnings())

    @property
    def title(self):
        return self.task_spec.title

    @property
    def as_row_name(self):
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self):
        n, (unit, scale) = len(self.raw_times), select_unit(self.median)
        several = n > 1
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}",
        ]
        if n >= 4:
            low, high = (self._quantile(q) / scale for q in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {n} measurement{'s' if several else ''}, {self.number_per_run} runs {'per measurement,' if several else ','} "
            f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        )
        return "\n".join(lines + self._warnings())

    @staticmethod
    def merge(measurements):
        """One Measurement for all of the same TaskSpec, in seconds for one execution, without metadata."""
        groups = collections.defaultdict(list)
        for m in measurements:
            groups[m.task_spec] += m.times
        return [Measurement(1, times, task_spec) for task_spec, times in groups.items()]


def select_unit(t):
    """("us", 1e-6) and the like: the unit in which a time in seconds is a number from 1 to 1000."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(readtorch.tensor(t).log10().item() // 3), "s")
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def unit_to_english(u):
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x, n):
    """`x` with n digits that are not 0: 3.1 of 3.14159 and 2."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (int(readtorch.tensor(x).abs().log10().ceil().item()) - n)
    return float(readtorch.tensor(x / scale).round() * scale)


def ordered_unique(elements):
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n):
    """Operators use `n` threads within the block."""
    before = readtorch.get_num_threads()
    try:
        readtorch.set_num_threads(n)
        yield
    finally:
        readtorch.set_num_threads(before)
