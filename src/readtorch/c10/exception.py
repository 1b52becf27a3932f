"""Warnings that are given once a process.

In PyTorch: `TORCH_WARN_ONCE` and `WarningUtils` in `c10/util/Exception.h`.
"""

import sys
import warnings

_always = False
_given = set()  # where a warning was given: (code, line)


def warn_once(message, category=UserWarning, stacklevel=1):
    """`warnings.warn`, at the first time only that the caller's line is reached, unless `set_warn_always(True)`."""
    caller = sys._getframe(1)
    place = caller.f_code, caller.f_lineno
    if _always or place not in _given:
        if not _always:
            _given.add(place)
        warnings.warn(message, category, stacklevel + 1)


def set_warn_always(b, /):
    """Whether warnings that are given once a process are given each time. Raises RuntimeError unless it is a bool."""
    global _always
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _always = b


def is_warn_always_enabled():
    """Whether warnings that are given once a process are given each time."""
    return _always
