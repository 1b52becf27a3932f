"""The tracer's view of Python: which line is running, what its variables are called, how to warn.

In PyTorch: `torch/csrc/jit/python/python_tracer.cpp`. Explained in the chapter "JIT: tracing".
"""

import sys
import warnings
from pathlib import Path

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.frontend.source_range import Source, SourceRange

# What PyTorch has in C++ has no line of Python.
_PACKAGE = Path(__file__).parents[3]
_INSIDE = tuple(str(_PACKAGE / room) for room in ("aten", "c10", "csrc", "_tensor.py")) + ("<readtorch generated",)


class TracerWarning(Warning):
    """What is traced may not do for other inputs what the program does."""

    @staticmethod
    def ignore_lib_warnings():
        """Say nothing of the library's own code."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="readtorch.(?!jit)")


TracerWarning.__module__ = "readtorch.jit._trace"
TracerWarning.ignore_lib_warnings()


def python_frames():
    """The frames of the program that is traced, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_INSIDE):
            yield frame
        frame = frame.f_back


def source_range():
    """The line that is running, with the calls that led there as its text."""
    frames = list(python_frames())
    calls = "".join(f"{f.f_code.co_filename}({f.f_lineno}): {f.f_code.co_name}\n" for f in frames)
    innermost = frames[0]
    return SourceRange(Source(calls, innermost.f_code.co_filename, innermost.f_lineno), 0, len(calls))


def name_of_variable(tensor):
    """The name of the local variable that holds `tensor` in the running frame; "" if none does."""
    frame = next(python_frames())
    for name, value in frame.f_locals.items():
        if isinstance(value, TensorImpl) and value is tensor:
            return name if name != "self" else ""
    return ""


def warn(message):
    """A TracerWarning that points at the program's line."""
    frame = next(python_frames())
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message,
        TracerWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<unknown>"),
        registry,
    )
