"""Marks on names of fx: which ones PyTorch promises to keep.

In PyTorch: `torch/fx/_compatibility.py`.
"""

_BACK_COMPAT_OBJECTS = {}  # what is kept; dicts, not sets: their order is that of the program
_MARKED_WITH_COMPATIBILITY = {}  # that, and what is marked as experimental


def compatibility(is_backward_compatible):
    """A decorator that notes a function or class as one that is kept, or as experimental. (In PyTorch: it also says so in the docstring.)"""

    def mark(fn):
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        return fn

    return mark
