"""Marks for NVIDIA's profilers. They need NVIDIA's library, which readtorch does not load: every function raises RuntimeError.

In PyTorch: `torch/cuda/nvtx.py`; without CUDA its functions raise the same. `readtorch.profiler.record_function` marks ranges
for the profiler that is here.
"""

from contextlib import contextmanager

__all__ = ["range_push", "range_pop", "range_start", "range_end", "mark", "range"]


def _absent():
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


def range_push(msg):
    """Begin a range inside the one that is open."""
    _absent()


def range_pop():
    """End the innermost range."""
    _absent()


def range_start(msg):
    """Begin a range that another thread may end."""
    _absent()


def range_end(range_id):
    """End a range of `range_start`."""
    _absent()


def mark(msg):
    """Note a moment."""
    _absent()


@contextmanager
def range(msg, *args, **kwargs):
    """A range for `with`, or around a function."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
