"""Values that are known: numbers, strings, dtypes, members of enums. In PyTorch: `torch/_dynamo/variables/constant.py`."""

import enum
import inspect

from .base import VariableTracker


class ConstantVariable(VariableTracker):
    """value: what it is. Subclasses for types, modules and functions stand where PyTorch has them."""

    def __init__(self, value, source=None):
        self.value, self.source = value, source

    def describe(self):
        return f"ConstantVariable({type(self.value).__name__}: {self.value!r:.60})"

    def python_type(self):
        return type(self.value)

    def as_python_constant(self):
        return self.value

    def as_proxy(self, output):
        return self.value, self.value

    def reconstruct(self, codegen):
        return codegen.writer.literal(self.value)

    def call_bool(self, tx):
        return tx.fold(bool, self.value).value

    def call_len(self, tx):
        return tx.fold(len, self.value)

    def getitem(self, tx, key):
        return tx.fold(lambda: self.value[key.as_python_constant()])

    def contains(self, tx, item):
        return tx.fold(lambda: item.as_python_constant() in self.value).value

    def var_getattr(self, tx, name):
        attribute = inspect.getattr_static(type(self.value), name, None)
        if callable(attribute) and not isinstance(attribute, type):
            return tx.method_of(self, name)
        return tx.fold(getattr, self.value, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "join" and args:
            args = [tx.list_of(list(tx.iterate(args[0])))]
        return tx.fold_call(lambda *a, **k: getattr(self.value, name)(*a, **k), args, kwargs)

    def call_iter(self, tx):
        if not hasattr(type(self.value), "__iter__"):
            raise tx.error(TypeError, f"'{type(self.value).__name__}' object is not iterable")
        return tx.iterator_over([tx.constant(each) for each in self.value], self)


class EnumVariable(ConstantVariable):
    """A member of an enum: its class may have methods and properties."""

    def call_bool(self, tx):
        if isinstance(self.value, int) or type(self.value).__bool__ is object:
            return bool(self.value)
        method = tx.class_function(type(self.value), "__bool__")
        return tx.truth(tx.call(method, [self], {})) if method is not None else True

    def var_getattr(self, tx, name):
        if name in ("value", "name", "_value_", "_name_"):
            return tx.constant(getattr(self.value, name))
        owner, found = tx.lookup(type(self.value), name)
        if owner is None or owner is enum.Enum:
            return tx.fold(getattr, self.value, name)
        return tx.bind(type(self.value), owner, found, name, self)
