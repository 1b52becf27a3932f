"""What loops go through beside lists, strings and tensors: `range`, `zip`, `enumerate`, tuples.

A loop over something whose length is known while compiling, such as a tuple, is unrolled. All others have a
length and an item for each index, which the body of the loop looks up.

In PyTorch: `RangeValue`, `IterableTree`, `SugaredTupleValue` of `torch/csrc/jit/frontend/sugared_value.h`.
Explained in the chapter "JIT: scripting".
"""

from ..ir.type import IntType
from .error_report import ErrorReport
from .script_type_parser import type_name
from .sugared_value import SimpleValue, SugaredValue


class RangeValue(SugaredValue):
    """`range(stop)`, `range(start, stop, step)`. turns: the number of turns, if known."""

    kind = "range"

    def __init__(self, range, emitter, values, turns=None):
        for i, value in enumerate(values):
            if not isinstance(value.type(), IntType):
                raise ErrorReport(
                    range,
                    f"all inputs of range must be ints, found {type_name(value.type())} in argument {i}",
                )
        if not 1 <= len(values) <= 3:
            count = "at least 1 arguments, got 0" if not values else f"at most 3 arguments, got {len(values)}"
            raise ErrorReport(range, f"range expected {count}")
        self.only_stop = len(values) == 1
        self.turns = turns
        constant = emitter.graph.insertConstant
        if self.only_stop:
            self.start, self.stop, self.step = constant(0, None, range), values[0], constant(1, None, range)
        else:
            self.start, self.stop = values[:2]
            self.step = values[2] if len(values) == 3 else constant(1, None, range)

    def iter(self, range, emitter):
        return self

    def static_length(self):
        return self.turns

    def length(self, range, emitter):
        if self.turns is not None:
            return emitter.graph.insertConstant(self.turns, None, range)
        if self.only_stop:
            return self.stop
        return emitter.graph.insert("aten::__range_length", [self.start, self.stop, self.step], range=range)

    def item(self, range, emitter, index, type_hint=None):
        if self.only_stop:
            return SimpleValue(index)
        return SimpleValue(
            emitter.graph.insert("aten::__derive_index", [index, self.start, self.step], range=range)
        )


class SugaredTuple(SugaredValue):
    """Several SugaredValues, one after the other."""

    kind = "Tuple"

    def __init__(self, parts):
        self.parts = parts

    def as_value(self, range, emitter):
        values = [part.as_value(range, emitter) for part in self.parts]
        return emitter.graph.insertNode(emitter.graph.createTuple(values)).output()

    def as_tuple(self, range, emitter, size=None):
        return self.parts

    def iter(self, range, emitter):
        return self

    def static_length(self):
        return len(self.parts)

    def item(self, range, emitter, index, type_hint=None):
        if not index.isConstant() or not isinstance(index.type(), IntType):
            raise ErrorReport(
                range,
                "Expected integer literal for index. ModuleList/Sequential indexing is only supported "
                "with integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is "
                "not a literal. Enumeration is supported, e.g. 'for index, v in enumerate(self): out = "
                "v(inp)'",
            )
        i = index.toIValue()
        if not -len(self.parts) <= i < len(self.parts):
            raise ErrorReport(range, f"Index {i} out of range of length {len(self.parts)}")
        return self.parts[i]


class IterableTree(SugaredValue):
    """Several iterables side by side: `zip(a, b)`, `enumerate(a)`. It is as long as the shortest."""

    kind = "iterabletree"

    def __init__(self, range, children):
        self.children = []
        lengths = [child.static_length() for child in children]
        if any(n is None for n in lengths) and any(n is not None for n in lengths):
            raise ErrorReport(
                range,
                "Can not iterate over a module list or tuple with a value that does not have a statically "
                "determinable length\n",
            )
        self.children = children
        self.turns = min(lengths) if lengths and lengths[0] is not None else None

    def iter(self, range, emitter):
        return self

    def static_length(self):
        return self.turns

    def leaves(self):
        return [leaf for c in self.children for leaf in (c.leaves() if isinstance(c, IterableTree) else [c])]

    def length(self, range, emitter):
        graph = emitter.graph
        lengths = [leaf.length(range, emitter) for leaf in self.leaves()]
        together = graph.insertNode(graph.createList(IntType.get(), lengths)).output()
        return graph.insert("prim::min", [together], range=range)

    def item(self, range, emitter, index, type_hint=None):
        return SugaredTuple([child.item(range, emitter, index) for child in self.children])
