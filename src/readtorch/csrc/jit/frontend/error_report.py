"""An error that shows the line of the program that it is about.

In PyTorch: `torch/csrc/jit/frontend/error_report.h`. Explained in the chapter "JIT: scripting".
"""

import threading

_calls = (
    threading.local()
)  # .stack: the functions that are being compiled, outermost first: [[name, where it has come]]


def ErrorReport(range, message):
    """A RuntimeError: message, then the lines around `range`, underlined, then the calls through which the compiler came
    here. In PyTorch: an exception class, which the Python binding turns into RuntimeError.
    """
    return RuntimeError(report_text(range, message))


def report_text(range, message):
    text = f"\n{message}" + (f":\n{range.highlight()}" if range is not None else "\n")
    calls = getattr(_calls, "stack", [])
    for (inner, _), (outer, where) in zip(calls[:0:-1], calls[-2::-1]):
        text += f"'{inner}' is being compiled since it was called from '{outer}'\n{where.highlight()}"
    return text


class CallStackGuard:
    """`with CallStackGuard("h", range):` errors inside say that `h` is being compiled, and which call led there."""

    def __init__(self, name, range):
        self.entry = [name, range]

    def __enter__(self):
        if not hasattr(_calls, "stack"):
            _calls.stack = []
        _calls.stack.append(self.entry)

    def __exit__(self, *exception):
        _calls.stack.pop()


def update_pending_range(range):
    """The compiler has come to `range` in the function that it is compiling."""
    if getattr(_calls, "stack", None):
        _calls.stack[-1][1] = range
