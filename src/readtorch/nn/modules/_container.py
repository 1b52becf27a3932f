"""What containers share. In PyTorch: repeated in each class of `torch/nn/modules/container.py`."""
import operator
from collections import OrderedDict
from collections.abc import Iterable

from readtorch.nn.modules.module import Module


class _Numbered(Module):
    """What modules with numbered entries share."""

    def _absolute_index(self, idx):
        idx = operator.index(idx)
        size = len(self)
        if not -size <= idx < size:
            raise IndexError(f"index {idx} is out of range")
        return idx % size

    def _get_abs_string_index(self, idx):
        return str(self._absolute_index(idx))


class _ModuleSequence(_Numbered):
    """What `Sequential` and `ModuleList` share: an ordered dictionary of modules that reads as a list."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __setitem__(self, idx, module) -> None:
        setattr(self, self._key_of(idx), module)

    def __delitem__(self, idx) -> None:
        indices = range(len(self))[idx] if isinstance(idx, slice) else [idx]
        for key in [self._key_of(i) for i in indices]:
            delattr(self, key)
        self._modules = OrderedDict((str(i), module) for i, module in enumerate(self._modules.values()))

    def pop(self, key):
        v = self[key]
        del self[key]
        return v

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def _add_numbered(self, modules):
        for i, module in enumerate(modules, len(self)):
            self.add_module(str(i), module)
        return self

    def _make_room(self, index):
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]


def _checked_pairs(pairs, owner):
    for j, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            kind = type(pair).__name__
            raise TypeError(f"{owner} update sequence element #{j} should be Iterable; is{kind}")
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{j} has length {len(pair)}; 2 is required")
        yield pair[0], pair[1]
