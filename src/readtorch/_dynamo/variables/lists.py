"""Lists and tuples. In PyTorch: `torch/_dynamo/variables/lists.py`."""

import collections
import operator

from readtorch._dynamo.exc import unimplemented

from .base import VariableTracker
from .constant import ConstantVariable


class BaseListVariable(VariableTracker):
    """items: the variables in it."""

    cls = None

    def __init__(self, items, source=None, original=None):
        self.items, self.source, self.original = items, source, original

    def describe(self):
        return f"{type(self).__name__}(length={len(self.items)})"

    def python_type(self):
        return self.cls

    def as_python_constant(self):
        return self.cls([item.realize().as_python_constant() for item in self.items])

    def as_proxy(self, output):
        pairs = [item.realize().as_proxy(output) for item in self.items]
        make = list if self.cls is list else tuple
        return make(pair[0] for pair in pairs), make(pair[1] for pair in pairs)

    def call_bool(self, tx):
        return bool(self.items)

    def call_len(self, tx):
        return tx.constant(len(self.items))

    def call_iter(self, tx):
        return tx.iterator_over_list(self)

    def var_getattr(self, tx, name):
        if name == "__class__":
            return tx.held(self.python_type())
        if hasattr(self.python_type(), name):
            return tx.method_of(self, name)
        raise tx.error(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")

    def index(self, tx, key):
        """The place that a subscript names."""
        place = key.as_python_constant()
        if not hasattr(place, "__index__"):
            kind = type(place).__name__
            raise tx.error(TypeError, f"{self.cls.__name__} indices must be integers or slices, not {kind}")
        return operator.index(place)

    def getitem(self, tx, key):
        if isinstance(key.realize(), ConstantVariable) and isinstance(key.realize().value, slice):
            return type(self)(self.items[key.realize().value]) if self.cls in (list, tuple) else self.as_tuple(key)
        place = self.index(tx, key.realize())
        if not -len(self.items) <= place < len(self.items):
            raise tx.error(IndexError, f"{self.cls.__name__} index out of range")
        return self.items[place]

    def as_tuple(self, key):
        return TupleVariable(self.items[key.realize().value])

    def call_method(self, tx, name, args, kwargs):
        if name in ("index", "count", "__contains__"):
            return tx.fold_call(getattr(self.as_python_constant(), name), args, kwargs)
        if name == "__len__":
            return self.call_len(tx)
        if name == "__getitem__":
            return self.getitem(tx, args[0].realize())
        if name == "__iter__":
            return self.call_iter(tx)
        self.unknown(f"call of method {name}")

    def texts(self, codegen):
        return [codegen(item) for item in self.items]


class ListVariable(BaseListVariable):
    cls = list

    def call_method(self, tx, name, args, kwargs):
        if name == "copy":
            return ListVariable(list(self.items))
        if name == "sort":
            self.items[:] = tx.sorted_items(self.items, **kwargs)
        elif name == "append":
            self.items.append(args[0])
        elif name == "extend":
            self.items.extend(list(tx.iterate(args[0])))
        elif name == "insert":
            self.items.insert(args[0].realize().as_python_constant(), args[1])
        elif name in ("clear", "reverse"):
            getattr(self.items, name)()
        elif name == "pop":
            return self.pop(tx, args[0].realize().as_python_constant() if args else -1)
        elif name == "remove":
            self.remove(tx, args[0].realize())
        elif name == "__setitem__":
            self.setitem(tx, args[0].realize(), args[1])
        else:
            return super().call_method(tx, name, args, kwargs)
        tx.output.side_effects.store_list(self)
        return tx.constant(None)

    def pop(self, tx, place):
        if not -len(self.items) <= place < len(self.items):
            raise tx.error(IndexError, "pop from empty list" if not self.items else "pop index out of range")
        item = self.items.pop(place)
        tx.output.side_effects.store_list(self)
        return item

    def remove(self, tx, item):
        for i, each in enumerate(self.items):
            if each.realize() is item or tx.equal(each.realize(), item):
                del self.items[i]
                return
        raise tx.error(ValueError, "list.remove(x): x not in list")

    def setitem(self, tx, key, value):
        if isinstance(key, ConstantVariable) and isinstance(key.value, slice):
            self.items[key.value] = list(tx.iterate(value))
        else:
            place = self.index(tx, key)
            if not -len(self.items) <= place < len(self.items):
                raise tx.error(IndexError, "list assignment index out of range")
            self.items[place] = value
        tx.output.side_effects.store_list(self)

    def delitem(self, tx, key):
        place = key.as_python_constant()
        if not isinstance(place, slice) and not -len(self.items) <= place < len(self.items):
            raise tx.error(IndexError, "list assignment index out of range")
        del self.items[place]
        tx.output.side_effects.store_list(self)

    def reconstruct(self, codegen):
        return codegen.temporary(f"[{', '.join(self.texts(codegen))}]")


class TupleVariable(BaseListVariable):
    cls = tuple

    def reconstruct(self, codegen):
        return codegen.temporary(f"({''.join(text + ', ' for text in self.texts(codegen))})")


class SizeVariable(TupleVariable):
    """`Size` of variables: it is known when the function is compiled unless a size is symbolic."""

    def __init__(self, items, cls, source=None, original=None):
        super().__init__(items, source, original)
        self.cls = cls

    def reconstruct(self, codegen):
        return codegen.temporary(f"{codegen.writer.hold(self.cls)}([{', '.join(self.texts(codegen))}])")


class SliceVariable(VariableTracker):
    """A slice with a symbol of an export in it."""

    def __init__(self, parts):
        self.parts = parts

    def python_type(self):
        return slice

    def as_proxy(self, output):
        pairs = [part.as_proxy(output) for part in self.parts]
        return tuple(slice(*(pair[i] for pair in pairs)) for i in range(2))

    def as_python_constant(self):
        return slice(*(part.as_python_constant() for part in self.parts))


class NamedTupleVariable(TupleVariable):
    """A named tuple, or one of `return_types`."""

    def __init__(self, items, cls, source=None, original=None):
        super().__init__(items, source, original)
        self.cls = cls

    def as_python_constant(self):
        values = [item.realize().as_python_constant() for item in self.items]
        return self.cls(*values) if hasattr(self.cls, "_fields") else self.cls(values)

    def var_getattr(self, tx, name):
        fields = fields_of(self.cls)
        if name in fields:
            return self.items[fields.index(name)]
        if name in ("_fields", "__match_args__"):
            return tx.constant(tuple(fields))
        owner, found = tx.lookup(self.cls, name)
        if owner is not None and not hasattr(tuple, name) and not name.startswith("_"):
            return tx.bind(self.cls, owner, found, name, self)
        return super().var_getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "_replace":
            items = dict(zip(fields_of(self.cls), self.items)) | kwargs
            return NamedTupleVariable(list(items.values()), self.cls)
        if name == "_asdict":
            return tx.dict_of({field: item for field, item in zip(fields_of(self.cls), self.items)})
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, codegen):
        texts, held = ", ".join(self.texts(codegen)), codegen.writer.hold(self.cls)
        return codegen.temporary(f"{held}({texts})" if hasattr(self.cls, "_fields") else f"{held}(({texts},))")


class DequeVariable(ListVariable):
    cls = collections.deque

    def __init__(self, items, maxlen=None, source=None, original=None):
        super().__init__(items, source, original)
        self.maxlen = maxlen

    def as_python_constant(self):
        unimplemented("Unsupported use of a deque as a constant")

    def as_proxy(self, output):
        unimplemented("Unsupported use of a deque as an argument of an operator")

    def trim(self, left):
        if self.maxlen is not None and len(self.items) > self.maxlen:
            del self.items[-1 if left else 0]

    def call_method(self, tx, name, args, kwargs):
        if name == "maxlen":
            return tx.constant(self.maxlen)
        if name == "appendleft":
            self.items.insert(0, args[0])
            self.trim(True)
        elif name == "append":
            self.items.append(args[0])
            self.trim(False)
        elif name == "popleft":
            return self.pop(tx, 0)
        elif name in ("pop", "clear", "reverse") and not args:
            return super().call_method(tx, name, args, kwargs)
        elif name == "extend":
            for each in list(tx.iterate(args[0])):
                self.items.append(each)
                self.trim(False)
        else:
            self.unknown(f"call of method {name}")
        tx.output.side_effects.store_list(self)
        return tx.constant(None)

    def pop(self, tx, place):
        if not self.items:
            raise tx.error(IndexError, "pop from an empty deque")
        return super().pop(tx, place)

    def var_getattr(self, tx, name):
        return tx.constant(self.maxlen) if name == "maxlen" else super().var_getattr(tx, name)

    def reconstruct(self, codegen):
        held = codegen.writer.hold(collections.deque)
        return codegen.temporary(f"{held}([{', '.join(self.texts(codegen))}], {self.maxlen})")


def fields_of(cls):
    """The names of a named tuple's parts; those of `return_types` as well."""
    if hasattr(cls, "_fields"):
        return list(cls._fields)
    names = getattr(cls, "__match_args__", ())
    return list(names)
