"""A function that every process forked from this one begins with. In PyTorch:
`torch/multiprocessing/_atfork.py`."""

import os

__all__ = ["register_after_fork"]


def register_after_fork(func):
    """Call `func()` in each child process right after the fork."""
    os.register_at_fork(after_in_child=func)
