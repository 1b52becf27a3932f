"""Where in the program a call was made: the Python functions that were running.

In PyTorch: `torch/csrc/autograd/profiler_python.cpp` follows every call and return of the interpreter, so that Python functions
are events, too; here the stack is read when an operator is called. Explained in the chapter "The profiler".
"""

import sys
import weakref
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


module_calls = []  # the code of Module.__call__, which Module puts in. In PyTorch: the tracer imports torch.nn


class PythonTracer:
    """Which memory is that of parameters, of gradients and of optimizers' state: what modules that call something, and optimizers
    that have done a step, hold when they are first seen.

    parameters, gradients, states: lists of TensorMetadata. memory: the run's MemoryWatcher.
    """

    def __init__(self, memory):
        self.memory = memory
        self.seen = weakref.WeakSet()  # modules and optimizers
        self.parameters, self.gradients, self.states = [], [], []

    def note_modules(self):
        """Look at the modules that are being called."""
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code in module_calls and (module := frame.f_locals["self"]) not in self.seen:
                self.seen.add(module)
                self._note_parameters(module._parameters.values())
            frame = frame.f_back

    def note_optimizer(self, optimizer):
        """Look at an optimizer after a step: many make their state in the first one."""
        if optimizer in self.seen:
            return
        self.seen.add(optimizer)
        for group in optimizer.param_groups:
            self._note_parameters(group["params"])
            for parameter in group["params"]:
                self._note(self.states, optimizer.state.get(parameter, {}).values())

    def _note_parameters(self, parameters):
        parameters = [parameter for parameter in parameters if parameter is not None]
        self._note(self.parameters, parameters)
        self._note(self.gradients, [parameter.grad for parameter in parameters])

    def _note(self, found, values):
        found += [memory for memory in self.memory.note_inputs(values) if memory is not None]


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
