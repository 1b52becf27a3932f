"""How long a statement takes. In PyTorch: `torch/utils/benchmark/utils/timer.py`."""

import enum
import textwrap
import timeit

import readtorch

from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Timer", "timer", "Language"]

MOST_RUNS = 2147483647


def timer():
    """The time in seconds, once the accelerator has done what it was given."""
    if readtorch.accelerator.is_available():
        readtorch.accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement as `timeit.Timer` does, after a warm-up, on `num_threads` threads, and with repetitions.

    stmt, setup: source of what is timed and of what runs before, once a measurement. globals: the names that both see; `torch` is
    readtorch unless it says otherwise. label, sub_label, description, env: what a table (`Compare`) makes of the result: its
    title, the row's name, the column's, and a second part of the row's.

    Raises ValueError for a statement that is no string, and for `global_setup`, which belongs to C++. In PyTorch C++ can be timed
    (`language="cpp"`) and instructions counted (`collect_callgrind`); here both are refused.
    """

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language=Language.PYTHON,
    ):
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("readtorch has no C++ to be timed: write `stmt` in Python")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        self._globals = {"torch": readtorch, **(globals or {})}
        stmt, setup = (textwrap.dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        self._timer = timeit.Timer(stmt, setup, timer, self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number):
        """Seconds for so many executions: never 0, by which one would divide."""
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1000000):
        """One measurement of `number` executions, after a hundredth as many to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat=-1, number=-1):
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time):
        """How many executions make one measurement: so many that the clock's own time does not matter. A warm-up as well."""
        with set_torch_threads(self._task_spec.num_threads):
            overhead = readtorch.tensor([self._timeit(0) for _ in range(5)]).median().item()
            number = 1
            while True:
                seconds = self._timeit(number)
                if overhead / seconds <= 1e-4 and seconds >= min_run_time / 1000:
                    return number
                if seconds > min_run_time or number * 10 > MOST_RUNS:
                    return number
                number *= 10

    def _measure(self, number, is_enough, min_run_time, max_run_time, callback):
        """Measurements until they have taken `min_run_time` seconds and are enough, or have taken `max_run_time`."""
        times, total = [], 0.0
        result = Measurement(number, times, self._task_spec)
        with set_torch_threads(self._task_spec.num_threads):
            while not times or total < min_run_time or not is_enough(result):
                times.append(self._timeit(number))
                total += times[-1]
                if callback:
                    callback(number, times[-1])
                if max_run_time and total > max_run_time:
                    break
        return result

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measurements of a fitting number of executions, for `min_run_time` seconds. callback: called with number and seconds."""
        number = self._estimate_block_size(min_run_time)
        return self._measure(number, lambda result: True, min_run_time, None, callback)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Measurements until they differ by less than `threshold` of the median, for at most `max_run_time` seconds."""
        number = self._estimate_block_size(min_run_time=0.05)

        def is_steady(result):
            return len(result.raw_times) > 3 and result.meets_confidence(threshold)

        return self._measure(number, is_steady, min_run_time, max_run_time, callback)

    def collect_callgrind(self, number=100, *, repeats=None, collect_baseline=True, retain_out_file=False):
        """Refused: Valgrind counts instructions of compiled code, which here is the interpreter's."""
        raise NotImplementedError(
            "readtorch counts no instructions: it is Python, and Callgrind would count the interpreter's. Use `blocked_autorange`"
        )
