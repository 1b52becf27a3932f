"""Modes: Python code that sees every operator call.

In PyTorch: `torch/utils/_python_dispatch.py`, and for the kernel `aten/src/ATen/core/PythonFallbackKernel.cpp`. Explained in the
chapter "One operator call".
"""

import threading

from readtorch.aten import dispatcher
from readtorch.c10.dispatch_key import ABOVE_PYTHON, PYTHON, PYTHON_TLS_SNAPSHOT
from readtorch.c10.local_dispatch_key_set import KeyGuard, tls, update_mask


class _Modes(threading.local):
    """The modes that this thread has entered, innermost last."""

    def __init__(self):
        self.stack = []


_modes = _Modes()


def _include_python():
    """The Python key is included while there is a mode."""
    python = PYTHON | PYTHON_TLS_SNAPSHOT
    tls.included = tls.included | python if _modes.stack else tls.included & ~python
    update_mask()


class TorchDispatchMode:
    """Subclass it and define `__torch_dispatch__(self, func, types, args, kwargs)`; `func(*args)` does the call.

    It sits below Autograd: compositions have become their parts when it is called, and what it calls is not recorded again.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

    def __enter__(self):
        _modes.stack.append(self)
        _include_python()
        return self

    def __exit__(self, *exception):
        _modes.stack.pop()
        _include_python()


def call_mode(operator, keys, args, kwargs):
    """The fallback for the Python key: hand the call to the innermost mode, with that mode and all keys above switched off."""
    mode = _modes.stack.pop()
    _include_python()
    try:
        with KeyGuard(exclude=ABOVE_PYTHON):
            return mode.__torch_dispatch__(operator.call, (), args, kwargs)
    finally:
        _modes.stack.append(mode)
        _include_python()


dispatcher.set_fallback(PYTHON, call_mode)
