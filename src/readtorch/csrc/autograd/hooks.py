"""Handles that take a hook away again.

In PyTorch: `torch/utils/hooks.py`. Explained in the chapter "Hooks and __call__".
"""
import itertools
import weakref

_next_id = itertools.count().__next__


class RemovableHandle:
    """Removes a hook from the dict that holds it; also a context manager that removes it on exit."""

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = _reference(hooks_dict)
        self.id = _next_id()
        extra = extra_dict if isinstance(extra_dict, (list, tuple)) else () if extra_dict is None else (extra_dict,)
        self.extra_dict_ref = tuple(_reference(d) for d in extra)

    def remove(self):
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def _reference(hooks):
    try:
        return weakref.ref(hooks)
    except TypeError:  # a plain dict cannot be referenced weakly
        return lambda: hooks
