"""Where in the program a call was made: the Python functions that were running.

In PyTorch: `torch/csrc/autograd/profiler_python.cpp` follows every call and return of the interpreter, so that Python functions
are events, too; here the stack is read when an operator is called. Explained in the chapter "One operator call".
"""

import sys
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_ROOT = str(_PACKAGE.parent) + "/"
# What is C++ in PyTorch has no frames of Python.
_ENGINE_ROOMS = tuple([f"{_PACKAGE}/{room}/" for room in ("aten", "c10", "csrc")])


def lines_now():
    """{(id of a frame, its code): its line} of the functions that are running when a run begins: they are shown at this line, those that
    are called later at their first one, as in PyTorch."""
    frame, lines = sys._getframe(1), {}
    while frame is not None:
        lines[id(frame), frame.f_code] = frame.f_lineno
        frame = frame.f_back
    return lines


def stack_of_caller(lines):
    """(code, line) of the functions that are running, the innermost first; what `stack_entries` takes."""
    frame, stack = sys._getframe(2), []
    while frame is not None:
        code = frame.f_code
        stack.append((code, lines.get((id(frame), code), code.co_firstlineno)))
        frame = frame.f_back
    return stack


def stack_entries(stack):
    """["file.py(7): function", …] of what `stack_of_caller` has given."""
    return [f"{file}({line}): {code.co_name}" for code, line in stack if (file := shown_file(code.co_filename))]


@cache
def shown_file(name):
    """A file's name as the profiler shows it, from the folder on in which packages lie; None for what is C++ in PyTorch."""
    if name.startswith(_ENGINE_ROOMS) or name.startswith("<"):
        return None
    for root in (_ROOT, *sorted(sys.path, key=len, reverse=True)):
        if root and name.startswith(root):
            return name[len(root) :].lstrip("/")
    return name
