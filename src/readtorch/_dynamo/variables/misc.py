"""Modules of Python, cells, `super()`, methods of built-in types, and what is only handed on.

In PyTorch: `torch/_dynamo/variables/misc.py`.
"""

import types
import weakref

from readtorch._dynamo import trace_rules
from readtorch._dynamo.exc import unimplemented
from readtorch._dynamo.source import AttrSource, ConstantSource, GetItemSource, WeakRefCallSource

from .base import VariableTracker
from .constant import ConstantVariable


class PythonModuleVariable(ConstantVariable):
    """source: where the program has it from, if another may stand there in the next call. A number in it may be another then."""

    def describe(self):
        return f"PythonModuleVariable({self.value.__name__})"

    def var_getattr(self, tx, name):
        written = tx.output.side_effects.global_written(self.value.__dict__, name)
        if written is not None:
            return written
        members, source = self.value.__dict__, self.source or ConstantSource(self.value)
        if name in members:
            return tx.output.read(members[name], AttrSource(source, name))
        if name != "__dict__" and not hasattr(types.ModuleType, name):
            tx.output.guard("DICT_NOT_CONTAINS", ConstantSource(members), name)
            if not isinstance(members.get("__getattr__"), types.FunctionType):
                tx.output.guard("NO_HASATTR", source, name)
            elif not trace_rules.is_ours(members["__getattr__"]):
                getter = tx.output.read(members["__getattr__"], AttrSource(source, "__getattr__"))
                return tx.call(getter, [tx.constant(name)], {})
        return tx.fold(getattr, self.value, name)

    def var_setattr(self, tx, name, value):
        tx.output.side_effects.store_global(self.value.__dict__, name, value)


class CellVariable(VariableTracker):
    """A closure's cell. content: the variable in it, None while it is empty."""

    def __init__(self, content=None, source=None, original=None):
        self.content, self.source, self.original = content, source, original

    def python_type(self):
        return types.CellType

    def call_bool(self, tx):
        return True

    def reconstruct(self, codegen):
        name = codegen.temporary(codegen.writer.hold(types.CellType) + "()")
        codegen.made(self, name)  # it may hold itself
        if self.content is not None:
            codegen.line(f"{name}.cell_contents = {codegen(self.content)}")
        return name


class SuperVariable(VariableTracker):
    """`super(cls, owner)`: the attributes of what comes after `cls` in the order of the owner's class."""

    def __init__(self, cls, owner):
        self.cls, self.owner = cls, owner

    def var_getattr(self, tx, name):
        owner = self.owner
        is_class = isinstance(owner, ConstantVariable)
        tx.output.guard_class(owner.value if is_class else owner.python_type())
        order = (owner.value if is_class else owner.python_type()).__mro__
        for cls in order[order.index(self.cls) + 1 :]:
            if name not in cls.__dict__:
                continue
            found = cls.__dict__[name]
            if isinstance(found, types.FunctionType):
                tx.output.guard("ID_MATCH", AttrSource(ConstantSource(cls), name), found)
                function = tx.held(found)
                return function if is_class else tx.bound(owner, function)
            return self.of_descriptor(tx, cls, found, name)
        raise tx.error(AttributeError, f"'super' object has no attribute '{name}'")

    def of_descriptor(self, tx, cls, found, name):
        owner, is_class = self.owner, isinstance(self.owner, ConstantVariable)
        entry = GetItemSource(AttrSource(ConstantSource(cls), "__dict__"), name)
        if not hasattr(type(found), "__get__"):
            written = tx.output.side_effects.classes.get((cls, name))
            return written if written is not None else tx.output.read(found, entry)
        if isinstance(found, (classmethod, staticmethod, property)):
            tx.output.guard("ID_MATCH", entry, found)
        if isinstance(found, classmethod):
            return tx.bound(tx.held(owner.value if is_class else owner.python_type()), tx.held(found.__func__))
        if isinstance(found, staticmethod):
            return tx.held(found.__func__)
        if isinstance(found, property) and not is_class:
            return tx.call(tx.held(found.fget), [owner], {})
        return self.of_builtin(tx, cls, name)

    def of_builtin(self, tx, cls, name):
        """A method that a class written in C has."""
        if isinstance(self.owner, ConstantVariable):
            unimplemented("Unsupported super() of a class", context=f"{cls.__name__}.{name}")
        return BuiltinMethodVariable(self.owner, name, cls)


class GetAttrVariable(VariableTracker):
    """A method of a variable that is none of Python's functions: `list.append`, `tensor.relu`."""

    def __init__(self, owner, name, source=None):
        self.owner, self.name, self.source = owner, name, source

    def describe(self):
        return f"GetAttrVariable({self.owner.describe()}, {self.name})"

    def python_type(self):
        return types.BuiltinMethodType

    def call_function(self, tx, args, kwargs):
        return self.owner.call_method(tx, self.name, args, kwargs)

    def call_bool(self, tx):
        return True

    def var_getattr(self, tx, name):
        if name == "__self__":
            return self.owner
        if name == "__name__":
            return ConstantVariable(self.name)
        self.unknown(f"attribute {name}")

    def reconstruct(self, codegen):
        return codegen.temporary(f"{codegen.as_owner(self.owner)}.{self.name}")


class BuiltinMethodVariable(GetAttrVariable):
    """A method that a class in C gives to an object of a class in Python: `object.__init__`, `dict.__setitem__`."""

    def __init__(self, owner, name, cls):
        super().__init__(owner, name)
        self.cls = cls

    def call_function(self, tx, args, kwargs):
        return self.owner.call_builtin_method(tx, self.cls, self.name, args, kwargs)

    def reconstruct(self, codegen):
        held = codegen.writer.hold(self.cls)
        return codegen.temporary(f"{held}.{self.name}.__get__({codegen(self.owner)})")


class WeakRefVariable(VariableTracker):
    """A weak reference. What it refers to is kept by the capture as long as that lasts."""

    def __init__(self, original, source):
        self.original, self.source = original, source

    def python_type(self):
        return weakref.ReferenceType

    def call_bool(self, tx):
        return True

    def call_function(self, tx, args, kwargs):
        return tx.output.read(self.original(), WeakRefCallSource(self.source))


class UnknownVariable(VariableTracker):
    """An object of which nothing is known: it may be handed on, and its type be asked for."""

    def __init__(self, value, source):
        self.original, self.source = value, source

    def describe(self):
        return f"UnknownVariable({type(self.original).__name__})"

    def python_type(self):
        if self.source is None:
            self.unknown("type()")
        return type(self.original)
