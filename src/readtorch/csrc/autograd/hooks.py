"""Handles that remove a hook.

In PyTorch: `torch/utils/hooks.py`. Explained in the chapter "Hooks and __call__".
"""

import weakref
from collections import OrderedDict


class RemovableHandle:
    """What every `register_…_hook` returns: `remove()` takes the hook out of the dictionary it was put in.

    hooks_dict: ordered dictionary from hook id to hook; extra_dict: a dictionary, or a list of them, with marks
    under the same id. The handle keeps none of them alive, so they cannot be plain dicts, which have no weak
    references. As a context manager it removes at the end of the block.
    """

    next_id: int = 0

    def __init__(self, hooks_dict, *, extra_dict=None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id: int = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra_dicts = [extra_dict] if isinstance(extra_dict, dict) else extra_dict
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dicts) if isinstance(extra_dicts, list) else ()

    def remove(self) -> None:
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state) -> None:
        hooks_dict, self.id = state[:2]
        extra_dicts = state[2] if len(state) > 2 and state[2] is not None else ()
        # Without a dictionary the reference is dead from the start: nothing else holds the new one.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks_dict is None else hooks_dict)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dicts)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, type, value, tb) -> None:
        self.remove()
