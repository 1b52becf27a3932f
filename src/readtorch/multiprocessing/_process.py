"""Names of threads, and the signal that a process gets when its parent ends: what Python has no functions for.

In PyTorch: `torch/csrc/multiprocessing/init.cpp`.
"""

import ctypes
import sys

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_GET_NAME = 1, 15, 16  # from linux/prctl.h
_NAME_BYTES = 16


def _prctl_pr_set_pdeathsig(signal):
    """Ask for `signal` when the thread that started this process ends. Linux only: elsewhere nothing
    happens."""
    _prctl(_PR_SET_PDEATHSIG, int(signal))


def _set_thread_name(name):
    """Name the calling thread, for `top` and debuggers; of a long name Linux keeps the first 15 bytes."""
    _prctl(_PR_SET_NAME, ctypes.create_string_buffer(name.encode()[: _NAME_BYTES - 1]))


def _get_thread_name():
    """The name of the calling thread."""
    name = ctypes.create_string_buffer(_NAME_BYTES)
    _prctl(_PR_GET_NAME, name)
    return name.value.decode()


def _prctl(option, argument):
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
