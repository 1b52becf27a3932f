"""Classes of Python and their objects. In PyTorch: `torch/_dynamo/variables/user_defined.py`."""

import abc
import enum
import functools
import inspect
import types

from readtorch._dynamo import trace_rules
from readtorch._dynamo.exc import unimplemented
from readtorch._dynamo.source import AttrSource, ConstantSource, GetItemSource

from .base import VariableTracker
from .constant import ConstantVariable
from .lists import NamedTupleVariable, TupleVariable
from .misc import BuiltinMethodVariable

MISSING = object()
IS_HEAP_TYPE = 1 << 9  # a class that a `class` statement has made
OF_TYPE = ("__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__doc__", "__members__", "__match_args__")


def lookup(cls, name):
    """(the class that has the attribute, the attribute as it stands there), (None, MISSING) if none has it."""
    for each in cls.__mro__:
        if name in each.__dict__:
            return each, each.__dict__[name]
    return None, MISSING


def class_function(tx, cls, name):
    """The variable of a special method that a class defines in Python; None if it has none but those of `object`."""
    owner, found = lookup(cls, name)
    if not isinstance(found, types.FunctionType):
        if found is MISSING or found is None or owner is object:
            return None
        return unimplemented("Unsupported special method of a class written in C", context=f"{cls.__name__}.{name}")
    if cls.__flags__ & IS_HEAP_TYPE:
        tx.output.guard("ID_MATCH", AttrSource(ConstantSource(cls), name), found)
    return tx.held(found)


def bind(tx, cls, owner, found, name, instance):
    """A class's attribute as it is seen through an instance, or through the class (instance None)."""
    written = tx.output.side_effects.classes.get((owner, name))
    if written is not None:
        return written
    if isinstance(found, types.FunctionType):
        tx.output.guard("ID_MATCH", AttrSource(ConstantSource(cls), name), found)
        return tx.held(found) if instance is None else tx.bound(instance, tx.held(found))
    entry = GetItemSource(AttrSource(ConstantSource(owner), "__dict__"), name)
    if isinstance(found, (staticmethod, classmethod, property, functools.cached_property)):
        tx.output.guard("ID_MATCH", entry, found)
    if isinstance(found, staticmethod):
        return tx.held(found.__func__)
    if isinstance(found, classmethod):
        return tx.bound(tx.held(cls), tx.held(found.__func__))
    if isinstance(found, property) and instance is not None:
        return tx.call(tx.held(found.fget), [instance], {})
    if isinstance(found, functools.cached_property) and instance is not None:
        value = tx.call(tx.held(found.func), [instance], {})
        instance.store(tx, name, value)
        return value
    if hasattr(type(found), "__get__") and not isinstance(found, type):
        owners = [tx.constant(None) if instance is None else instance, tx.held(cls)]
        return call_descriptor(tx, entry, found, "__get__", owners)
    return tx.output.read(found, AttrSource(ConstantSource(cls), name))


def call_descriptor(tx, entry, found, method, args):
    """`__get__` or `__set__` of a descriptor that a class in Python has made. entry: where it stands."""
    function = lookup(type(found), method)[1]
    if not isinstance(function, types.FunctionType) or not type(found).__flags__ & IS_HEAP_TYPE:
        unimplemented("Unsupported descriptor", context=f"{type(found).__name__} {entry.name}")
    tx.output.guard("ID_MATCH", entry, found)
    descriptor = tx.held(found)
    return tx.call(class_function(tx, type(found), method), [descriptor, *args], {})


class UserDefinedClassVariable(ConstantVariable):
    """A class."""

    def describe(self):
        return f"UserDefinedClassVariable({self.value})"

    def call_bool(self, tx):
        meta = type(self.value)
        if meta is not type and not isinstance(self.value, enum.EnumMeta):
            tx.output.guard_class(meta)
            for name in ("__bool__", "__len__"):
                method = class_function(tx, meta, name)
                if method is not None:
                    return tx.truth(tx.call(method, [self], {}))
        return True

    def var_setattr(self, tx, name, value):
        """A plain value in place of another. What Python makes of other attributes hangs on more than their value."""
        cls, value = self.value, value.realize()
        is_plain = type(cls) in (type, abc.ABCMeta) and cls.__flags__ & IS_HEAP_TYPE and not trace_rules.is_ours(cls)
        both = type(cls.__dict__.get(name, MISSING)), value.python_type()
        if (
            not is_plain
            or name.startswith("__")
            or not all(kind in (int, float, bool, str, type(None)) for kind in both)
        ):
            self.unknown(f"assignment to attribute {name}")
        tx.output.side_effects.store_class_attr(cls, name, value)

    def call_iter(self, tx):
        if isinstance(self.value, enum.EnumMeta):
            return super().call_iter(tx)
        self.unknown("iteration")

    def var_getattr(self, tx, name):
        cls = self.value
        if name == "__dict__" and tx.output.side_effects.classes:
            self.unknown("use of __dict__ after a class was written to")
        owner, found = lookup(cls, name)
        if isinstance(cls, enum.EnumMeta):
            return self.of_enum(tx, name, owner, found)
        if name in OF_TYPE and cls.__flags__ & IS_HEAP_TYPE and isinstance(getattr(cls, name), str):
            return tx.output.read(getattr(cls, name), AttrSource(ConstantSource(cls), name))
        if name in OF_TYPE:
            return tx.fold(getattr, cls, name)
        if owner is None:
            if hasattr(cls, name):
                self.unknown(f"attribute {name}, which its metaclass has,")
            tx.output.guard("NO_HASATTR", ConstantSource(cls), name)
            raise tx.error(AttributeError, f"type object '{cls.__name__}' has no attribute '{name}'")
        if not cls.__flags__ & IS_HEAP_TYPE and not isinstance(found, types.FunctionType):
            return tx.fold(getattr, cls, name)
        return bind(tx, cls, owner, found, name, None)

    def of_enum(self, tx, name, owner, found):
        """Members stay what they are; what else a class statement has put there may be replaced."""
        is_own = isinstance(owner, enum.EnumMeta) and not owner.__module__ == "enum" and not name.startswith("__")
        if not is_own or name in self.value.__members__:
            return tx.fold(getattr, self.value, name)
        return bind(tx, self.value, owner, found, name, None)

    def getitem(self, tx, key):
        if isinstance(self.value, enum.EnumMeta):
            return tx.fold(lambda: self.value[key.as_python_constant()])
        self.unknown("subscript")

    def call_function(self, tx, args, kwargs):
        cls = self.value
        if isinstance(cls, enum.EnumMeta):
            return tx.fold_call(cls, args, kwargs)
        if issubclass(cls, BaseException):
            return self.new_exception(tx, args, kwargs)
        if issubclass(cls, tuple) and hasattr(cls, "_field_defaults"):
            return self.new_named_tuple(tx, args, kwargs)
        if not self.is_plain() or not trace_rules.inlines_class(cls):
            unimplemented("Unsupported constructor", f"Dynamo cannot make a {cls.__name__}", context=str(cls))
        tx.output.guard_class(cls)
        made = UserDefinedObjectVariable(cls)
        init = lookup(cls, "__init__")[1]
        if isinstance(init, types.FunctionType):
            tx.output.guard("ID_MATCH", AttrSource(ConstantSource(cls), "__init__"), init)
            tx.call(tx.held(init), [made, *args], kwargs)
        elif args or kwargs:
            raise tx.error(TypeError, f"{cls.__name__}() takes no arguments")
        return made

    def is_plain(self):
        """Whether `object.__new__` makes its objects."""
        cls = self.value
        plain = type(cls) in (type, abc.ABCMeta) and cls.__new__ is object.__new__ and cls.__flags__ & IS_HEAP_TYPE
        return plain and not inspect.isabstract(cls) and not trace_rules.is_module_class(cls)

    def new_exception(self, tx, args, kwargs):
        tx.output.guard_class(self.value)
        made = ExceptionVariable(self.value, args)
        init = lookup(self.value, "__init__")[1]
        if isinstance(init, types.FunctionType):
            tx.call(tx.held(init), [made, *args], kwargs)
        elif kwargs:
            unimplemented("Unsupported exception with keyword arguments")
        return made

    def new_named_tuple(self, tx, args, kwargs):
        cls = self.value
        if "__init__" in cls.__dict__ or not cls.__new__.__qualname__.endswith(("__new__", "new")):
            unimplemented("Unsupported constructor of a named tuple")
        given = dict(zip(cls._fields, args)) | kwargs
        defaults = cls._field_defaults
        if len(args) > len(cls._fields) or any(n not in given and n not in defaults for n in cls._fields):
            unimplemented("failed to bind arguments when attempting to inline", f"arguments of {cls.__name__}()")
        return NamedTupleVariable([given[n] if n in given else tx.constant(defaults[n]) for n in cls._fields], cls)


class UserDefinedObjectVariable(VariableTracker):
    """An object. attributes: what the program has written to it; MISSING: what it has deleted."""

    def __init__(self, cls, source=None, original=None):
        self.cls, self.source, self.original = cls, source, original
        self.attributes = {}
        self.moved = set()  # names that were deleted and written again: they stand last
        self.dict_taken = False  # whether somebody holds its `__dict__`

    def describe(self):
        return f"UserDefinedObjectVariable({self.cls.__name__})"

    def python_type(self):
        return self.cls

    # ------------------------------------------------------------------------------------------------- attributes

    def var_getattr(self, tx, name):
        """In Python's order: data descriptors of the class, the object's own, the class's other attributes."""
        if name == "__class__":
            return tx.held(self.cls)
        if name == "__dict__":
            return InstanceDictVariable(self)
        owner, found = lookup(self.cls, name)
        if isinstance(found, property):
            return bind(tx, self.cls, owner, found, name, self)
        is_slot = isinstance(found, types.MemberDescriptorType)
        if hasattr(type(found), "__set__") and not is_slot and found is not MISSING:
            return self.data_descriptor(tx, name, owner, found)
        if name in self.attributes:
            return self.written(tx, name)
        if is_slot:
            return self.slot(tx, found, name)
        own = self.own_dict(tx)
        if name in own:
            return tx.output.read(own[name], self.own_source(name))
        if found is not MISSING:
            if self.source is not None and hasattr(self.original, "__dict__"):
                tx.output.guard("NOT_PRESENT_IN_GENERIC_DICT", self.source, name)
            if not owner.__flags__ & IS_HEAP_TYPE and not isinstance(found, (type, *trace_rules.PLAIN)):
                return BuiltinMethodVariable(self, name, owner)
            return bind(tx, self.cls, owner, found, name, self)
        return self.absent(tx, name)

    def own_dict(self, tx):
        """The object's `__dict__` as it was before the call."""
        own = getattr(self.original, "__dict__", {})
        if self.dict_taken and tx.output.tracked[id(own)] in tx.output.side_effects:
            self.unknown("use of an attribute after its __dict__ was written to")
        return own

    def own_source(self, name):
        """Of what `own_dict` has under a name."""
        return AttrSource(self.source, name)

    def written(self, tx, name):
        if self.attributes[name] is MISSING:
            raise tx.error(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        return self.attributes[name]

    def data_descriptor(self, tx, name, owner, found):
        return bind(tx, self.cls, owner, found, name, self)

    def slot(self, tx, found, name):
        if self.original is not None:
            try:
                return tx.output.read(found.__get__(self.original), AttrSource(self.source, name))
            except AttributeError:
                tx.output.guard("NO_HASATTR", self.source, name)
        raise tx.error(AttributeError, name)

    def absent(self, tx, name):
        getter = class_function(tx, self.cls, "__getattr__")
        if getter is not None:
            if self.source is not None and hasattr(self.original, "__dict__"):
                tx.output.guard("NOT_PRESENT_IN_GENERIC_DICT", self.source, name)
            return tx.call(getter, [self, tx.constant(name)], {})
        if self.source is not None:
            tx.output.guard("NO_HASATTR", self.source, name)
        raise tx.error(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")

    def own_attribute(self, tx, name):
        """What the object's dictionary has under a name; None if it has nothing."""
        found = lookup(self.cls, name)[1]
        if hasattr(type(found), "__set__") and found is not MISSING:
            self.unknown(f"use of __dict__, where {name} is behind a descriptor,")
        if name in self.attributes:
            return None if self.attributes[name] is MISSING else self.attributes[name]
        own = self.own_dict(tx)
        if name in own:
            return tx.output.read(own[name], self.own_source(name))
        if self.source is not None:
            tx.output.guard("NOT_PRESENT_IN_GENERIC_DICT", self.source, name)
        return None

    def instance_dict(self, tx):
        if self.original is None or self.attributes:
            self.unknown("use of the __dict__ of an object that was written to")
        self.dict_taken = True
        return tx.output.wrap(self.original.__dict__, AttrSource(self.source, "__dict__")).realize()

    def var_setattr(self, tx, name, value):
        owner, found = lookup(self.cls, name)
        if isinstance(found, property):
            if found.fset is None:
                raise tx.error(AttributeError, f"property '{name}' of '{self.cls.__name__}' object has no setter")
            tx.call(tx.held(found.fset), [self, value], {})
            return
        if hasattr(type(found), "__set__") and not isinstance(found, types.MemberDescriptorType):
            entry = GetItemSource(AttrSource(ConstantSource(owner), "__dict__"), name)
            call_descriptor(tx, entry, found, "__set__", [self, value])
            return
        setter = lookup(self.cls, "__setattr__")[1]
        if setter is object.__setattr__ or issubclass(self.cls, BaseException):
            self.store(tx, name, value)
        else:
            self.call_setter(tx, name, value)

    def keeps_setter(self):
        """Whether an assignment after the graph goes through the class's `__setattr__`."""
        return False

    def call_setter(self, tx, name, value):
        tx.call(class_function(tx, self.cls, "__setattr__"), [self, tx.constant(name), value], {})

    def store(self, tx, name, value):
        if self.dict_taken:
            self.unknown("assignment to an object whose __dict__ is in use")
        if self.attributes.get(name) is MISSING:
            del self.attributes[name]
            self.moved.add(name)
        self.attributes[name] = value
        tx.output.side_effects.store_attr(self, name, value)

    def var_delattr(self, tx, name):
        if lookup(self.cls, "__delattr__")[1] is not object.__delattr__ or lookup(self.cls, name)[1] is not MISSING:
            self.unknown(f"deletion of attribute {name}")
        self.var_getattr(tx, name)
        if self.original is None:
            del self.attributes[name]
            return
        self.attributes[name] = MISSING
        tx.output.side_effects.delete_attr(self, name)

    # --------------------------------------------------------------------------------- what special methods say

    def special(self, tx, name, *args):
        """The result of a special method, None if the class has none."""
        method = class_function(tx, self.cls, name)
        return None if method is None else tx.call(method, [self, *args], {}).realize()

    def required(self, tx, name, what, *args):
        result = self.special(tx, name, *args)
        if result is None:
            self.unknown(what)
        return result

    def call_function(self, tx, args, kwargs):
        method = class_function(tx, self.cls, "__call__")
        if method is None:
            self.unknown("call")
        return tx.call(method, [self, *args], kwargs)

    def call_bool(self, tx):
        for name in ("__bool__", "__len__"):
            result = self.special(tx, name)
            if result is not None:
                return tx.truth(result)
        return True

    def call_len(self, tx):
        return self.required(tx, "__len__", "len()")

    def call_iter(self, tx):
        return tx.iterator_of(self.required(tx, "__iter__", "iteration"), is_iterator=True)

    def next_variable(self, tx):
        return tx.until_stop(lambda: self.required(tx, "__next__", "next()"))

    def contains(self, tx, item):
        return tx.truth(self.required(tx, "__contains__", "`in`", item))

    def getitem(self, tx, key):
        return self.required(tx, "__getitem__", "subscript", key)

    def setitem(self, tx, key, value):
        self.required(tx, "__setitem__", "item assignment", key, value)

    def delitem(self, tx, key):
        self.required(tx, "__delitem__", "item deletion", key)

    def call_method(self, tx, name, args, kwargs):
        return tx.call(self.var_getattr(tx, name).realize(), args, kwargs)

    def call_builtin_method(self, tx, cls, name, args, kwargs):
        """A method that comes from a class written in C."""
        if cls is object and name == "__init__":
            return tx.constant(None)
        if cls is object and name == "__setattr__":
            self.store(tx, args[0].realize().as_python_constant(), args[1])
            return tx.constant(None)
        self.unknown(f"call of {cls.__name__}.{name}")

    def reconstruct(self, codegen):
        name = codegen.temporary(f"object.__new__({codegen.writer.hold(self.cls)})")
        codegen.made(self, name)
        self.write_attributes(codegen, name)
        return name

    def write_attributes(self, codegen, name):
        for attribute, value in self.attributes.items():
            if value is not MISSING:
                codegen.line(f"object.__setattr__({name}, {attribute!r}, {codegen(value)})")


class InstanceDictVariable(VariableTracker):
    """An object's `__dict__`: questions for single names are asked of the object; for all else it is a dictionary."""

    def __init__(self, owner):
        self.owner = owner

    def python_type(self):
        return dict

    def contains(self, tx, item):
        return self.owner.own_attribute(tx, item.realize().as_python_constant()) is not None

    def getitem(self, tx, key):
        name = key.realize().as_python_constant()
        found = self.owner.own_attribute(tx, name)
        if found is None:
            raise tx.error(KeyError, name)
        return found

    def var_getattr(self, tx, name):
        if name in ("get", "update", "__contains__", "__getitem__"):
            return tx.method_of(self, name)
        return self.whole(tx).var_getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "__contains__":
            return tx.constant(self.contains(tx, args[0]))
        if name == "__getitem__":
            return self.getitem(tx, args[0])
        if name == "update":
            for key, value in tx.call(tx.held(dict), args, kwargs).realize().items.items():
                self.setitem(tx, tx.constant(key), value)
            return tx.constant(None)
        found = self.owner.own_attribute(tx, args[0].realize().as_python_constant())
        default = args[1] if len(args) > 1 else tx.constant(None)
        return default if found is None else found

    def whole(self, tx):
        return self.owner.instance_dict(tx)

    def names(self, tx):
        """The names of all attributes, in the order of the dictionary."""
        owner = self.owner
        if not owner.attributes:
            return [tx.known(key) for key in tx.iterate(self.whole(tx))]
        before = list(owner.own_dict(tx))
        if owner.source is not None:
            tx.output.guard("DICT_KEYS_MATCH", AttrSource(owner.source, "__dict__"), before)
        written = [
            name for name in owner.attributes if not isinstance(lookup(owner.cls, name)[1], types.MemberDescriptorType)
        ]
        names = dict.fromkeys([*(name for name in before if name not in owner.moved), *written])
        return [name for name in names if owner.attributes.get(name) is not MISSING]

    def call_iter(self, tx):
        return tx.iterator_over([tx.constant(name) for name in self.names(tx)], self)

    def call_len(self, tx):
        return tx.constant(len(self.names(tx)))

    def call_bool(self, tx):
        return bool(self.names(tx))

    def setitem(self, tx, key, value):
        """Written as an attribute where that does the same."""
        owner, name = self.owner, key.realize().as_python_constant()
        is_plain = type(name) is str and name.isidentifier() and not owner.dict_taken and not owner.keeps_setter()
        if is_plain and lookup(owner.cls, name)[1] is MISSING:
            owner.store(tx, name, value)
        else:
            self.whole(tx).setitem(tx, key, value)

    def delitem(self, tx, key):
        self.whole(tx).delitem(tx, key)

    def reconstruct(self, codegen):
        return codegen.temporary(f"{codegen(self.owner)}.__dict__")


class ExceptionVariable(UserDefinedObjectVariable):
    """An exception that the program has made. chained: whether it has a cause or context, which cannot be made anew."""

    def __init__(self, cls, args=()):
        super().__init__(cls)
        self.args, self.chained = list(args), False

    def var_getattr(self, tx, name):
        if name == "args":
            return TupleVariable(list(self.args))
        if name == "value" and self.cls is StopIteration:
            return self.args[0] if self.args else tx.constant(None)
        return super().var_getattr(tx, name)

    def data_descriptor(self, tx, name, owner, found):
        if name in ("__traceback__", "__cause__", "__context__"):
            self.unknown(f"attribute {name}")
        return super().data_descriptor(tx, name, owner, found)

    def call_builtin_method(self, tx, cls, name, args, kwargs):
        if name == "__init__":
            self.args = list(args)
            return tx.constant(None)
        if name == "with_traceback":
            return self
        self.unknown(f"call of {cls.__name__}.{name}")

    def text(self, tx):
        """`str()` of it."""
        if lookup(self.cls, "__str__")[0] is not BaseException:
            self.unknown("str()")
        return tx.fold_call(lambda *args: str(BaseException(*args)), self.args, {})

    def reconstruct(self, codegen):
        args = ", ".join(map(codegen, self.args))
        held = codegen.writer.hold(self.cls)
        init = lookup(self.cls, "__init__")[1]
        made = f"{held}.__new__({held}, {args})" if isinstance(init, types.FunctionType) else f"{held}({args})"
        name = codegen.temporary(made)
        codegen.made(self, name)
        self.write_attributes(codegen, name)
        return name
