"""Iterators. In PyTorch: `torch/_dynamo/variables/iter.py`."""

import itertools

from readtorch._dynamo.exc import unimplemented

from .base import VariableTracker
from .lists import TupleVariable


class IteratorVariable(VariableTracker):
    """An iterator that was made while the function was interpreted."""

    def call_iter(self, tx):
        return self

    def call_bool(self, tx):
        return True

    def var_getattr(self, tx, name):
        return tx.method_of(self, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "__next__":
            return tx.next_or_raise(self)
        if name == "__iter__":
            return self
        self.unknown(f"call of method {name}")


class ListIteratorVariable(IteratorVariable):
    """Over the items of a list or tuple, which may grow meanwhile. over: that variable, for what must be made anew."""

    def __init__(self, over, items=None):
        self.over, self.items, self.index = over, over.items if items is None else items, 0

    def python_type(self):
        return type(iter([]))

    def next_variable(self, tx):
        if self.index is None or self.index >= len(self.items):
            self.index = None
            return None
        self.index += 1
        return self.items[self.index - 1]

    def reconstruct(self, codegen):
        over = self.over if self.items is getattr(self.over, "items", None) else TupleVariable(self.items)
        name = codegen.temporary(f"iter({codegen(over)})")
        if self.index != 0:
            codegen.line(f"{name}.__setstate__({1 << 60 if self.index is None else self.index})")
        return name


class RangeIteratorVariable(IteratorVariable):
    def __init__(self, over, index=0):
        self.over, self.index = over, index

    def next_variable(self, tx):
        if self.index >= len(self.over.value):
            return None
        self.index += 1
        return tx.constant(self.over.value[self.index - 1])

    def reconstruct(self, codegen):
        rest = codegen.writer.literal(self.over.value[self.index :])
        return codegen.temporary(f"iter({rest})")


class CountIteratorVariable(IteratorVariable):
    """`itertools.count`."""

    def __init__(self, start, step):
        self.value, self.step = start, step

    def next_variable(self, tx):
        value = self.value
        self.value = value + self.step
        return tx.constant(value)

    def reconstruct(self, codegen):
        count = codegen.writer.hold(itertools.count)
        return codegen.temporary(f"{count}({codegen.writer.literal(self.value)}, {codegen.writer.literal(self.step)})")


class EnumerateVariable(IteratorVariable):
    def __init__(self, inner, start):
        self.inner, self.count = inner, start

    def next_variable(self, tx):
        item = tx.next(self.inner)
        if item is None:
            return None
        self.count += 1
        return TupleVariable([tx.constant(self.count - 1), item])

    def reconstruct(self, codegen):
        return codegen.temporary(f"enumerate({codegen(self.inner)}, {self.count})")


class ZipVariable(IteratorVariable):
    def __init__(self, inner, strict):
        self.inner, self.strict = inner, strict

    def next_variable(self, tx):
        items = []
        for each in self.inner:
            item = tx.next(each)
            if item is None:
                if self.strict:
                    self.check_all_ended(tx, len(items))
                return None
            items.append(item)
        return TupleVariable(items) if self.inner else None

    def check_all_ended(self, tx, number):
        if number:
            first = "argument 1" if number == 1 else f"arguments 1-{number}"
            raise tx.error(ValueError, f"zip() argument {number + 1} is shorter than {first}")
        for i, each in enumerate(self.inner[1:]):
            if tx.next(each) is not None:
                first = "argument 1" if i == 0 else f"arguments 1-{i + 1}"
                raise tx.error(ValueError, f"zip() argument {i + 2} is longer than {first}")

    def reconstruct(self, codegen):
        inner = ", ".join(map(codegen, self.inner))
        return codegen.temporary(f"zip({inner}, strict={self.strict})")


class MapVariable(IteratorVariable):
    def __init__(self, function, inner):
        self.function, self.inner = function, inner

    def next_variable(self, tx):
        items = []
        for each in self.inner:
            item = tx.next(each)
            if item is None:
                return None
            items.append(item)
        return tx.call(self.function, items, {})

    def reconstruct(self, codegen):
        return codegen.temporary(f"map({', '.join(map(codegen, [self.function, *self.inner]))})")


class FilterVariable(IteratorVariable):
    def __init__(self, function, inner):
        self.function, self.inner = function, inner

    def next_variable(self, tx):
        while (item := tx.next(self.inner)) is not None:
            if tx.truth(item if tx.is_none(self.function) else tx.call(self.function, [item], {})):
                return item
        return None

    def reconstruct(self, codegen):
        return codegen.temporary(f"filter({codegen(self.function)}, {codegen(self.inner)})")


class ChainVariable(IteratorVariable):
    """`itertools.chain`."""

    def __init__(self, inner):
        self.inner = list(inner)

    def next_variable(self, tx):
        while self.inner:
            self.inner[0] = tx.iterator_of(self.inner[0])
            item = tx.next(self.inner[0])
            if item is not None:
                return item
            del self.inner[0]
        return None

    def reconstruct(self, codegen):
        held = codegen.writer.hold(itertools.chain)
        return codegen.temporary(f"{held}({', '.join(map(codegen, self.inner))})")


class IsliceVariable(IteratorVariable):
    """`itertools.islice`. numbers: those of the elements that come, as a range."""

    def __init__(self, inner, numbers):
        self.inner, self.numbers, self.index = inner, numbers, 0

    def next_variable(self, tx):
        if not self.numbers:
            return None
        while True:
            item = tx.next(self.inner)
            self.index += 1
            if item is None:
                return None
            if self.index - 1 == self.numbers[0]:
                self.numbers = self.numbers[1:]
                return item


def islice(tx, iterable, *numbers):
    wanted = slice(*numbers)
    if wanted.stop is None or wanted.step not in (None, 1):
        unimplemented("Unsupported islice without an end, or with steps")
    return IsliceVariable(tx.iterator_of(iterable), range(wanted.start or 0, wanted.stop))
