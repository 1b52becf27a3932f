"""Dictionaries and sets. In PyTorch: `torch/_dynamo/variables/dicts.py`, `torch/_dynamo/variables/sets.py`."""

import collections

from .base import VariableTracker
from .lists import TupleVariable
from .misc import CellVariable
from .tensor import TensorVariable

UNHASHABLE = (list, dict, set)


class HashableTracker:
    """A tensor, module or object as a key: found by its identity. In PyTorch: `variables/hashable.py`."""

    def __init__(self, variable):
        self.variable = variable

    def __eq__(self, other):
        return isinstance(other, HashableTracker) and self.variable is other.variable

    def __hash__(self):
        return id(self.variable)


def has_identity(variable):
    """Whether equality of such objects is identity."""
    if isinstance(variable, (TensorVariable, CellVariable)):
        return True
    cls = getattr(variable, "cls", None)
    return isinstance(cls, type) and cls.__eq__ is object.__eq__ and cls.__hash__ is object.__hash__


def key_of(tx, variable):
    """The key that a variable stands for: it is known, or found by its identity."""
    variable = variable.realize()
    if has_identity(variable):
        if variable.source is not None:  # so it is not another of the keys
            tx.output.guard("ID_MATCH", variable.source, variable.original)
        return HashableTracker(variable)
    key = variable.as_python_constant()
    if isinstance(key, UNHASHABLE):
        raise tx.error(TypeError, f"unhashable type: '{type(key).__name__}'")
    return key


def variable_of_key(tx, key):
    return key.variable if isinstance(key, HashableTracker) else tx.constant(key)


def text_of_key(codegen, key):
    return codegen(key.variable) if isinstance(key, HashableTracker) else codegen.writer.literal(key)


class ConstDictVariable(VariableTracker):
    """items: key -> variable. keys_guarded: whether somebody has looked at all the keys."""

    def __init__(self, items, cls=dict, source=None, original=None, default_factory=None):
        self.items, self.cls, self.source, self.original = items, cls, source, original
        self.keys_guarded = False
        self.default_factory = default_factory  # the variable of a defaultdict's function

    def describe(self):
        return f"ConstDictVariable({self.cls.__name__})"

    def python_type(self):
        return self.cls

    def keys(self, tx):
        """All the keys are about to be looked at."""
        self.guard_keys(tx.output)
        return list(self.items)

    def guard_keys(self, output):
        if self.source is not None and not self.keys_guarded:
            self.keys_guarded = True
            output.guard("DICT_KEYS_MATCH", self.source, list(self.original))

    def has(self, tx, key):
        is_new = isinstance(key, HashableTracker) and key.variable.original is None  # so in no dictionary from before
        if self.source is not None and not self.keys_guarded and not is_new:
            there = key.variable.original if isinstance(key, HashableTracker) else key
            kind = "DICT_CONTAINS" if there in self.original else "DICT_NOT_CONTAINS"
            tx.output.guard(kind, self.source, there)
        return key in self.items

    def as_python_constant(self):
        self.realized_keys()
        return self.cls((key, item.realize().as_python_constant()) for key, item in self.items.items())

    def realized_keys(self):
        if self.source is not None and not self.keys_guarded:
            self.unknown("use as a constant before its keys are guarded")

    def as_proxy(self, output):
        self.guard_keys(output)
        pairs = {key: item.realize().as_proxy(output) for key, item in self.items.items()}
        return {k: pair[0] for k, pair in pairs.items()}, {k: pair[1] for k, pair in pairs.items()}

    def call_bool(self, tx):
        return bool(self.keys(tx))

    def call_len(self, tx):
        return tx.constant(len(self.keys(tx)))

    def call_iter(self, tx):
        return tx.iterator_over([variable_of_key(tx, key) for key in self.keys(tx)], self)

    def contains(self, tx, item):
        return self.has(tx, key_of(tx, item))

    def var_getattr(self, tx, name):
        if name == "__class__":
            return tx.held(self.cls)
        if name == "default_factory" and self.default_factory is not None:
            return self.default_factory
        if hasattr(self.cls, name):
            return tx.method_of(self, name)
        raise tx.error(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")

    def getitem(self, tx, key):
        found = key_of(tx, key)
        if found in self.items:
            return tx.output.touch(self.items[found])
        self.has(tx, found)
        if self.default_factory is not None:
            made = tx.call(self.default_factory, [], {})
            self.setitem(tx, key, made)
            return made
        raise tx.error(KeyError, found)

    def setitem(self, tx, key, value):
        name = key_of(tx, key)
        self.items[name] = value
        tx.output.side_effects.store_item(self, name, value)

    def delitem(self, tx, key):
        name = key_of(tx, key)
        if not self.has(tx, name):
            raise tx.error(KeyError, name)
        del self.items[name]
        tx.output.side_effects.delete_item(self, name)

    def call_method(self, tx, name, args, kwargs):
        method = getattr(self, "method_" + name.strip("_"), None)
        if method is None:
            self.unknown(f"call of method {name}")
        return method(tx, *args, **kwargs)

    def method_contains(self, tx, key):
        return tx.constant(self.contains(tx, key))

    def method_getitem(self, tx, key):
        return self.getitem(tx, key)

    def method_len(self, tx):
        return self.call_len(tx)

    def method_iter(self, tx):
        return self.call_iter(tx)

    def method_setitem(self, tx, key, value):
        self.setitem(tx, key, value)
        return tx.constant(None)

    def method_get(self, tx, key, default=None):
        name = key_of(tx, key)
        if self.has(tx, name):
            return self.items[name]
        return default if default is not None else tx.constant(None)

    def method_pop(self, tx, key, default=None):
        name = key_of(tx, key)
        if self.has(tx, name):
            item = self.items[name]
            self.delitem(tx, key)
            return item
        if default is None:
            raise tx.error(KeyError, name)
        return default

    def method_popitem(self, tx):
        keys = self.keys(tx)
        if not keys:
            raise tx.error(KeyError, "popitem(): dictionary is empty")
        key = variable_of_key(tx, keys[-1])
        return TupleVariable([key, self.method_pop(tx, key)])

    def method_setdefault(self, tx, key, default=None):
        name = key_of(tx, key)
        if not self.has(tx, name):
            self.setitem(tx, key, default if default is not None else tx.constant(None))
        return self.items[name]

    def method_update(self, tx, *args, **kwargs):
        pairs = {}
        for arg in args:
            arg = arg.realize()
            if isinstance(arg, ConstDictVariable):
                pairs |= {key: arg.items[key] for key in arg.keys(tx)}
            else:
                rows = [list(tx.iterate(row)) for row in tx.iterate(arg)]
                pairs |= {key_of(tx, row[0]): row[1] for row in rows}
        for name, value in (pairs | kwargs).items():
            self.items[name] = value
            tx.output.side_effects.store_item(self, name, value)
        return tx.constant(None)

    def method_clear(self, tx):
        for key in self.keys(tx):
            self.delitem(tx, variable_of_key(tx, key))
        return tx.constant(None)

    def method_copy(self, tx):
        self.keys(tx)
        return ConstDictVariable(dict(self.items), self.cls, default_factory=self.default_factory)

    def method_keys(self, tx):
        return DictViewVariable(self, "keys")

    def method_values(self, tx):
        return DictViewVariable(self, "values")

    def method_items(self, tx):
        return DictViewVariable(self, "items")

    def reconstruct(self, codegen):
        pairs = [f"{text_of_key(codegen, key)}: {codegen(item)}" for key, item in self.items.items()]
        text = "{" + ", ".join(pairs) + "}"
        if self.cls is dict:
            return codegen.temporary(text)
        held = codegen.writer.hold(self.cls)
        if self.cls is collections.defaultdict:
            factory = "None" if self.default_factory is None else codegen(self.default_factory)
            return codegen.temporary(f"{held}({factory}, {text})")
        return codegen.temporary(f"{held}({text})")


class DictViewVariable(VariableTracker):
    """What `keys()`, `values()` and `items()` give: it shows what the dictionary holds when somebody looks."""

    def __init__(self, owner, kind):
        self.owner, self.kind = owner, kind

    def python_type(self):
        return type(getattr({}, self.kind)())

    def elements(self, tx):
        keys = self.owner.keys(tx)
        if self.kind == "values":
            return [self.owner.items[key] for key in keys]
        names = [variable_of_key(tx, key) for key in keys]
        if self.kind == "keys":
            return names
        return [TupleVariable([name, self.owner.items[key]]) for name, key in zip(names, keys)]

    def call_iter(self, tx):
        return tx.iterator_over(self.elements(tx), self)

    def call_len(self, tx):
        return self.owner.call_len(tx)

    def call_bool(self, tx):
        return self.owner.call_bool(tx)

    def contains(self, tx, item):
        return self.owner.contains(tx, item) if self.kind == "keys" else super().contains(tx, item)

    def var_getattr(self, tx, name):
        return tx.method_of(self, name)

    def reconstruct(self, codegen):
        return codegen.temporary(f"{codegen(self.owner)}.{self.kind}()")


class SetVariable(VariableTracker):
    """A set of known values, guarded as a whole."""

    def __init__(self, items, cls=set, source=None, original=None):
        self.items, self.cls, self.source, self.original = items, cls, source, original

    def describe(self):
        return f"SetVariable({self.cls.__name__})"

    def python_type(self):
        return self.cls

    def as_python_constant(self):
        if any(isinstance(each, HashableTracker) for each in self.items):
            self.unknown("use as a constant")
        return self.cls(self.items)

    def call_bool(self, tx):
        return bool(self.items)

    def call_len(self, tx):
        return tx.constant(len(self.items))

    def call_iter(self, tx):
        if self.source is not None and len(self.items) > 1:
            self.unknown("iteration, in an order that equal sets need not have,")
        return tx.iterator_over([tx.constant(each) for each in self.as_python_constant()], self)

    def contains(self, tx, item):
        return key_of(tx, item) in self.items

    def var_getattr(self, tx, name):
        return tx.method_of(self, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "add":
            self.change(tx, lambda: self.items.add(key_of(tx, args[0])))
        elif name == "update":
            self.change(tx, lambda: self.items.update(key_of(tx, each) for arg in args for each in tx.iterate(arg)))
        elif name == "discard":
            self.change(tx, lambda: self.items.discard(key_of(tx, args[0])))
        elif name == "remove":
            if not self.contains(tx, args[0]):
                raise tx.error(KeyError, key_of(tx, args[0]))
            self.change(tx, lambda: self.items.remove(key_of(tx, args[0])))
        elif name == "clear":
            self.change(tx, self.items.clear)
        elif name in ("pop", "intersection_update", "difference_update", "symmetric_difference_update"):
            self.unknown(f"call of method {name}")
        else:
            return tx.fold_call(getattr(self.as_python_constant(), name), args, kwargs)
        return tx.constant(None)

    def change(self, tx, what):
        if self.cls is frozenset:
            self.unknown("a change")
        what()
        tx.output.side_effects.store_set(self)

    def reconstruct(self, codegen):
        elements = ", ".join(text_of_key(codegen, each) for each in self.items)
        return codegen.temporary(f"{codegen.writer.hold(self.cls)}([{elements}])")
