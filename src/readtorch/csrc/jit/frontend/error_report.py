"""An error that shows the line of the program that it is about.

In PyTorch: `torch/csrc/jit/frontend/error_report.h`. Explained in the chapter "Scripting".
"""
import threading

_calls = threading.local()  # which functions are being compiled, outermost first: [(name, range of the call)]


class ErrorReport(RuntimeError):
    """message, then the lines around `range`, underlined, then the calls through which the compiler came here."""

    def __init__(self, range, message):
        self.range = range
        self.message = message
        super().__init__(report_text(range, message))


def report_text(range, message):
    calls = getattr(_calls, "stack", [])
    text = f"\n{message}" + (f":\n{range.highlight()}" if range is not None else "\n")
    if calls:
        text += "".join(f"'{name}' is being compiled since it was called from '{caller}'\n{where.highlight()}"
                        for name, caller, where in reversed(calls) if where is not None)
    return text


class CallStackGuard:
    """`with CallStackGuard("h", "g", range):` errors inside say that `h` is being compiled because `g` calls it."""

    def __init__(self, name, caller, range):
        self.entry = (name, caller, range)

    def __enter__(self):
        if not hasattr(_calls, "stack"):
            _calls.stack = []
        _calls.stack.append(self.entry)

    def __exit__(self, *exception):
        _calls.stack.pop()
