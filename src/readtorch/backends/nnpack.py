"""A library of convolutions for phones: not here. In PyTorch: `torch/backends/nnpack/__init__.py`."""

import contextlib

from readtorch.aten.context import check_bool, context

__all__ = ["is_available", "flags", "set_flags"]


def is_available():
    """Whether the library is there."""
    return False


def set_flags(_enabled):
    """Whether it may be used, if it is there. Returns what was set before, as a tuple. RuntimeError for no bool."""
    before = (context.nnpack_enabled,)
    check_bool(_enabled, "set_enabled_NNPACK")
    context.nnpack_enabled = _enabled
    return before


@contextlib.contextmanager
def flags(enabled=False):
    """`with flags(enabled=False):`"""
    before = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(*before)
