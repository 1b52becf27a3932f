"""When a graph may run: conditions on what the function gets and reads, as one Python expression.

    def check(x0, x1): return not (type(x0) is Tensor and x0._array.dtype is F0 and … and G["scale"] == 2.0)

Guards on arguments: tensors by type, dtype, device, requires_grad, number of dimensions, and shape if the
trace has read sizes; other arguments by type and value. Guards on the rest: simple values among the globals
and closure variables that the function names (and those that the functions it calls name), the modules'
flags and simple attributes, and that parameters and buffers are still the same objects. That is what is
looked at; a value hidden deeper, such as a field of a configuration object, is not.

In PyTorch: `torch/_dynamo/guards.py`; each guard remembers the *source* that the bytecode has read, checked
in C++.
"""

import types
from typing import NamedTuple

import readtorch
from readtorch.c10.dispatch_key import AUTOGRAD, BACKENDS, grad_mode_enabled, tls
from readtorch.c10.tensor_impl import TensorImpl

SIMPLE = (int, float, bool, str, type(None))


class Origin(NamedTuple):
    """Where a function has a value from: container[key]. name: how a reader would spell it."""

    name: str
    container: object
    key: object

    def holds(self):
        """The value that stands there now."""
        try:
            return self.container[self.key]
        except (KeyError, IndexError, ValueError):
            return None


class Cell:
    """A closure's cell, to be read like a dictionary."""

    def __init__(self, cell):
        self.cell = cell

    def __getitem__(self, key):
        return self.cell.cell_contents


def surroundings(function):
    """(tensors by id -> Origin, simple values [Origin], modules [(name, Module)]) that a function names."""
    tensors, simple, modules, seen = {}, [], [], set()

    def visit(name, container, key, value):
        if isinstance(value, TensorImpl):
            tensors.setdefault(id(value), Origin(name, container, key))
        elif isinstance(value, SIMPLE):
            simple.append(Origin(name, container, key))
        elif isinstance(value, readtorch.nn.Module):
            visit_module(name, value)
        elif isinstance(value, (list, tuple)) and len(value) < 100:
            for i, part in enumerate(value):
                visit(f"{name}[{i}]", value, i, part)
        elif isinstance(value, types.FunctionType) and not value.__module__.startswith("readtorch"):
            visit_function(value)

    def visit_module(name, module):
        if id(module) in seen:
            return
        seen.add(id(module))
        modules.append((name, module))
        for group in (module._parameters, module._buffers):
            for key, tensor in group.items():
                if tensor is not None:
                    tensors.setdefault(id(tensor), Origin(f"{name}.{key}", group, key))
        for key, value in module.__dict__.items():
            if not key.startswith("_") and not isinstance(value, types.FunctionType):
                visit(f"{name}.{key}", module.__dict__, key, value)
        for key, child in module._modules.items():
            if child is not None:
                visit_module(f"{name}.{key}", child)
        visit_function(type(module).forward)

    def visit_function(f):
        code = getattr(f, "__code__", None)
        if code is None or code in seen or f.__module__.startswith("readtorch"):
            return
        seen.add(code)
        for name in names_of(code):
            if name in f.__globals__:
                visit(name, f.__globals__, name, f.__globals__[name])
        for name, cell in zip(code.co_freevars, f.__closure__ or ()):
            try:
                visit(name, Cell(cell), 0, cell.cell_contents)
            except ValueError:
                continue  # not assigned yet
        for i, value in enumerate(f.__defaults__ or ()):
            visit(f"default {i}", f.__defaults__, i, value)

    owner = getattr(function, "__self__", None)
    if isinstance(owner, readtorch.nn.Module):
        visit_module("self", owner)
    visit_function(getattr(function, "__func__", function))
    return tensors, simple, modules


def names_of(code):
    """The global names in a function's text, those of the functions inside it included."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_of(constant)
    return names


class Guards:
    """texts: the conditions; names: what they refer to. explain: the same for a reader."""

    def __init__(self):
        self.texts, self.names, self.explain = [], {}, []

    def name(self, value, prefix):
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def add(self, text, shown):
        self.texts.append(text)
        self.explain.append(shown)

    # ---------------------------------------------------------------------------------------------- arguments

    def argument(self, path, shown, value, static):
        """path: the expression that gives it inside the check."""
        if isinstance(value, TensorImpl):
            self.tensor(path, shown, value, static)
        elif isinstance(value, SIMPLE):
            self.add(
                f"type({path}) is {self.name(type(value), 'T')} and {path} == {self.name(value, 'V')}",
                f"{shown} == {value!r}",
            )
        else:
            self.add(f"{path} is {self.name(value, 'V')}", f"{shown} is the same {type(value).__name__}")

    def tensor(self, path, shown, t, static):
        array = t._array
        self.add(f"type({path}) is {self.name(type(t), 'T')}", f"type({shown}) is {type(t).__name__}")
        self.add(f"{path}._array.dtype is {self.name(array.dtype, 'D')}", f"{shown}.dtype is {t.dtype}")
        if static:
            self.add(f"{path}._array.shape == {array.shape}", f"{shown}.shape == {list(array.shape)}")
        else:
            self.add(f"{path}._array.ndim == {array.ndim}", f"{shown}.dim() == {array.ndim}")
        kept = BACKENDS | AUTOGRAD
        self.add(
            f"{path}._keys & {kept} == {t._keys & kept}",
            f"{shown}: device {t.device}, requires_grad {t.requires_grad}",
        )

    # ---------------------------------------------------------------------------------------- everything else

    def grad_mode(self):
        enabled = grad_mode_enabled()
        self.names["tls"] = tls
        self.add(f"{'' if enabled else 'not '}tls.mask & {AUTOGRAD}", f"grad mode is {enabled}")

    def value(self, origin):
        """A simple value that the function reads by name."""
        value = origin.holds()
        self.add(f"{self._read(origin)} == {self.name(value, 'V')}", f"{origin.name} == {value!r}")

    def same(self, origin, tensor):
        self.add(f"{self._read(origin)} is {self.name(tensor, 'P')}", f"{origin.name} is the same tensor")

    def _read(self, origin):
        read = origin.container.get if isinstance(origin.container, dict) else origin.container.__getitem__
        return f"{self.name(read, 'R')}({origin.key!r})"

    def modules(self, modules):
        for name, module in modules:
            hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
            m = self.name(module, "M")
            self.add(" and ".join(f"not {m}.{h}" for h in hooks), f"{name} has no hooks")

    def expression(self):
        return " and ".join(f"({text})" if " and " in text else text for text in self.texts) or "True"
