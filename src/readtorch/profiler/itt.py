"""Marks for Intel's profilers. They need Intel's library, which readtorch does not load: is_available() is False.

In PyTorch: `torch/profiler/itt.py`; in a build without the library its functions raise the same. `record_function` marks
ranges for the profiler that is here.
"""

from contextlib import contextmanager

__all__ = ["is_available", "range_push", "range_pop", "mark", "range"]


def _absent():
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def is_available():
    """Whether marks can be made: never."""
    return False


def range_push(msg):
    """Begin a range inside the one that is open. Raises RuntimeError."""
    _absent()


def range_pop():
    """End the innermost range. Raises RuntimeError."""
    _absent()


def mark(msg):
    """Note a moment. Raises RuntimeError."""
    _absent()


@contextmanager
def range(msg, *args, **kwargs):
    """A range for `with`, or around a function."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
