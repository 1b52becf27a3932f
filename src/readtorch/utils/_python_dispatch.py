"""Modes: Python code that sees every operator call.

In PyTorch: `torch/utils/_python_dispatch.py`. There a TorchDispatchMode sits below Autograd; here the Python key is the
highest, so a mode sees calls as they were made, and what it calls itself is recorded as usual.
Explained in the chapter "One operator call".
"""

import threading

from readtorch.aten import dispatcher
from readtorch.c10.dispatch_key import PYTHON, MaskGuard, set_mask, tls


class _Modes(threading.local):
    """The modes that this thread has entered, innermost last."""

    def __init__(self):
        self.stack = []


_modes = _Modes()


class TorchDispatchMode:
    """Subclass it and define `__torch_dispatch__(self, func, types, args, kwargs)`; `func(*args)` does the call."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

    def __enter__(self):
        _modes.stack.append(self)
        self._previous_mask = tls.mask
        set_mask(tls.mask | PYTHON)
        return self

    def __exit__(self, *exception):
        _modes.stack.pop()
        set_mask(self._previous_mask | (PYTHON if _modes.stack else 0))


class observe(TorchDispatchMode):
    """`with observe(on_call):` runs `on_call(operator, arguments, result)` after every operator call inside.

    The widgets and the memory profile are built on it.
    """

    def __init__(self, on_call):
        self.on_call = on_call

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args)
        self.on_call(func, args, result)
        return result


def call_mode(operator, keys):
    """The dispatcher's fallback for the Python key: hand the call to the innermost mode, with that mode switched off."""

    def python_kernel(*arguments):
        mode = _modes.stack.pop()
        exclude = 0 if _modes.stack else PYTHON
        try:
            with MaskGuard(exclude=exclude):
                return mode.__torch_dispatch__(operator.call, (), arguments, {})
        finally:
            _modes.stack.append(mode)

    return python_kernel


dispatcher.fallbacks[PYTHON] = call_mode
