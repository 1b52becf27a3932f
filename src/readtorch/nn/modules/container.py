"""Modules that hold modules, and modules that hold parameters.

In PyTorch: `torch/nn/modules/container.py`, where each class repeats what two base classes share here. The chapter
"Module and __setattr__" shows what a plain list would lose, the chapter "Parameter and Buffer" containers of parameters.
"""

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain

import readtorch
from readtorch._tensor import Tensor
from readtorch.nn.parameter import Parameter

from .module import Module

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


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
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

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
            raise TypeError("ModuleList.extend should be called with an iterable, but got " + type(modules).__name__)
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


class ParameterList(_Numbered):
    """A list of parameters that its owner can find. Tensors become parameters; other things stay as is."""

    def __init__(self, values=None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return self.__class__().extend(self[i] for i in range(*idx.indices(len(self))))
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx, param) -> None:
        setattr(self, self._get_abs_string_index(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def append(self, value):
        new_idx = len(self)
        self._size += 1
        self[new_idx] = value
        return self

    def extend(self, values):
        # A tensor is iterable, but its rows are not meant.
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError("ParameterList.extend should be called with an iterable, but got " + type(values).__name__)
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_entry_repr(k, p, lambda p: p.dtype) for k, p in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters that its owner can find. Tensors become parameters."""

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys = {}  # the keys in their order; the values are attributes of the same name
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is "
                f"not a string (type is '{type(key).__name__}'). Open an issue on "
                "github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value) -> None:
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __contains__(self, key) -> bool:
        return key in self._keys

    def copy(self):
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        for k in self._keys.copy():
            del self[k]

    def pop(self, key):
        v = self[key]
        del self[key]
        return v

    def popitem(self):
        """Remove the entry that was inserted last, and return `(key, parameter)`."""
        key, _ = self._keys.popitem()
        self._keys[key] = None  # `pop` wants to find it
        return key, self.pop(key)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        return ParameterDict((k, default) for k in keys)

    def keys(self):
        return self._keys.keys()

    def items(self):
        return ((k, self[k]) for k in self._keys)

    def values(self):
        return (self[k] for k in self._keys)

    def update(self, parameters) -> None:
        """Take over entries: of an ordered mapping in its order, of another mapping sorted, or pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an "
                "iterable of key/value pairs, but got " + type(parameters).__name__
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        else:
            pairs = _checked_pairs(parameters, "ParameterDict")
        for key, parameter in pairs:
            self[key] = parameter

    def extra_repr(self) -> str:
        return "\n".join(_entry_repr(k, p, readtorch.typename) for k, p in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other):
        copy = other.copy()
        copy.update(self)
        return copy

    def __ior__(self, other):
        self.update(other)
        return self


def _as_parameter(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _entry_repr(key, value, kind_of):
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(size) for size in value.size())
    device = f" ({value.device})" if value.device.type == "cuda" else ""
    return f"  ({key}): {name} containing: [{kind_of(value)} of size {size}{device}]"
