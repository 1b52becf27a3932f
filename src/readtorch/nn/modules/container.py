"""Modules that hold modules, and modules that hold parameters.

In PyTorch: `torch/nn/modules/container.py`. The chapter "Module and __setattr__" shows what a plain Python
list would lose. `ParameterList` and `ParameterDict` are in `_parameter_container.py`, what the classes
share in `_container.py`.
"""
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain

from readtorch.nn.modules._container import _checked_pairs, _ModuleSequence, _Numbered
from readtorch.nn.modules._parameter_container import ParameterDict, ParameterList
from readtorch.nn.modules.module import Module

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class Container(Module):
    """Deprecated: `Module` itself can do all of it."""

    def __init__(self, **kwargs) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. "
            "All of its functionality is now implemented in `nn.Module`. Subclass that instead.",
            category=FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


class Sequential(_ModuleSequence):
    """Calls its modules one after the other, each with the result of the one before.

    `Sequential(module, …)` numbers them; `Sequential(OrderedDict(name=module, …))` names them.
    """

    def __init__(self, *args) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named_modules = args[0].items()
        else:
            named_modules = ((str(idx), module) for idx, module in enumerate(args))
        for name, module in named_modules:
            self.add_module(name, module)

    def forward(self, input):
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key_of(idx)]

    def _key_of(self, idx):
        return list(self._modules)[self._absolute_index(idx)]

    def insert(self, index, module):
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        index += n if index < 0 else 0
        self._make_room(index)
        self._modules[str(index)] = module
        return self

    def extend(self, sequential):
        for layer in sequential:
            self.append(layer)
        return self

    def __add__(self, other):
        self._check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other):
        self._check_sequential(other)
        return self._add_numbered(other)

    def __mul__(self, other):
        self._check_factor(other)
        return Sequential(*[module for _ in range(other) for module in self])

    __rmul__ = __mul__

    def __imul__(self, other):
        self._check_factor(other)
        numbers = range(len(self))  # with other names there is a KeyError, as in PyTorch
        return self._add_numbered(self._modules[str(i)] for _ in range(other - 1) for i in numbers)

    def _check_sequential(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )

    def _check_factor(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")


class ModuleList(_ModuleSequence):
    """A list of modules that their owner can find. It is not called: the owner uses its entries."""

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return self.__class__(list(self._modules.values())[idx])
        return self._modules[self._key_of(idx)]

    _key_of = _Numbered._get_abs_string_index

    def insert(self, index, module) -> None:
        self._make_room(index)
        self._modules[str(index)] = module

    def extend(self, modules):
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got " + type(modules).__name__
            )
        return self._add_numbered(modules)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        combined = ModuleList()
        for module in chain(self, other):
            combined.append(module)
        return combined

    def __repr__(self) -> str:
        """Neighbours with the same repr share a line: `(0-5): 6 x Linear(…)`."""
        runs = []  # [repr, first index, last index]
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][0] == text:
                runs[-1][2] = i
            else:
                runs.append([text, i, i])
        lines = [_run_repr(*run).replace("\n", "\n  ") for run in runs]
        return self._get_name() + "(" + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"


def _run_repr(text, first, last):
    return f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"


class ModuleDict(Module):
    """A dictionary of modules, in the order of insertion, that their owner can find."""

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key) -> bool:
        return key in self._modules

    def clear(self) -> None:
        self._modules.clear()

    def pop(self, key):
        v = self[key]
        del self[key]
        return v

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules) -> None:
        """Take over the entries of a mapping, or of an iterable of pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an "
                "iterable of key/value pairs, but got " + type(modules).__name__
            )
        is_mapping = isinstance(modules, (ModuleDict, Mapping))
        for key, module in modules.items() if is_mapping else _checked_pairs(modules, "ModuleDict"):
            self[key] = module
