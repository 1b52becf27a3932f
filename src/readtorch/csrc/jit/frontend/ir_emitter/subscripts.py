"""x[i], x[a:b], x[..., None, 0].

A tensor's index is taken apart: each int becomes a `select`, each slice a `slice`, each None an `unsqueeze`;
tensors are left to one `index` at the end.

In PyTorch: `emitSubscript`, `emitIntAndSliceIndexing` in `torch/csrc/jit/frontend/ir_emitter.cpp`.
Explained in the chapter "JIT: scripting".
"""

import ast

from readtorch.csrc.jit.frontend.error_report import ErrorReport
from readtorch.csrc.jit.frontend.schema_matching import convertible_to_list
from readtorch.csrc.jit.frontend.script_type_parser import type_name
from readtorch.csrc.jit.frontend.sugared_value import SliceValue
from readtorch.csrc.jit.ir.type import IntType, ListType, NoneType, OptionalType, TensorType, TupleType

LAST = 2**63 - 1


class Subscripts:
    def expression_Subscript(self, node, type_hint):
        container, range = self.sugared(node.value), self.range(node)
        value_range = self.range(node.value)
        if isinstance(node.slice, ast.Tuple):
            return self._of_tensor(range, container.as_value(value_range, self), node.slice)
        if isinstance(node.slice, ast.Slice):
            if container.kind == "module":
                container = container.as_module_tuple(value_range, self)
            value = container.as_value(value_range, self)
            dim = self.graph.insertConstant(0, None, range) if value.type().isSubtypeOf(TensorType.get()) else None
            return self._slice(range, value, dim, node.slice)
        if container.kind == "module":
            return container.item(range, self, self.expression(node.slice), type_hint)
        if isinstance(node.slice, ast.Constant) and node.slice.value is Ellipsis:
            return self._of_tensor(range, container.as_value(value_range, self), node.slice)
        value = container.as_value(value_range, self)
        index = self.sugared(node.slice)
        if isinstance(index, SliceValue):
            dim = self.graph.insertConstant(0, None, range) if value.type().isSubtypeOf(TensorType.get()) else None
            return self._slice_of(range, value, dim, index.start, index.stop, index.step)
        if isinstance(value.type(), TupleType):
            return self._of_tuple(range, value, index.as_value(value_range, self))
        if value.type().isSubtypeOf(TensorType.get()):
            return self._of_tensor(range, value, node.slice)
        return container.item(range, self, index.as_value(value_range, self), type_hint)

    # ------------------------------------------------------------------------------------------------- tuples

    def _of_tuple(self, range, value, index):
        types = value.type().elements()
        if not isinstance(index.type(), IntType):
            raise ErrorReport(range, "tuple index must be an integer")
        i = index.toIValue()
        if i is None:
            if not types or not convertible_to_list(value.type(), ListType(types[0])):
                raise ErrorReport(
                    range,
                    f"Cannot index into a {type_name(value.type())} with a non-integer literal because we "
                    "cannot resolve the output type",
                )
            type = types[0]
        elif not -len(types) <= i < len(types):
            raise ErrorReport(range, f"Tuple index out of range. Tuple is length {len(types)} and index is {i}")
        else:
            type = types[i]
        return self.graph.insertNode(self.graph.createTupleIndex(value, index, type)).setSourceRange(range).output()

    def tuple_slice(self, range, value, start, stop, step):
        """Values of the bounds, or None."""
        bounds = [self._literal(range, bound) for bound in (start, stop, step)]
        chosen = _range(len(value.type().types))[slice(*bounds)]
        step = bounds[2] or 1
        return self.graph.insertNode(self.graph.createTupleSlice(value, chosen.start, step, len(chosen))).output()

    def _literal(self, range, value):
        if value is None:
            return None
        if not value.isConstant():
            raise ErrorReport(range, "tuple slice indices must be integer constants")
        number = value.toIValue()
        return None if number == LAST else number

    # ------------------------------------------------------------------------------------------------- slices

    def _slice(self, range, value, dim, node):
        bounds = [None if bound is None else self.expression(bound) for bound in (node.lower, node.upper, node.step)]
        return self._slice_of(range, value, dim, *bounds)

    def _slice_of(self, range, value, dim, start, stop, step):
        if isinstance(value.type(), TupleType):
            return self.tuple_slice(range, value, start, stop, step)
        constant = self.graph.insertConstant
        args = [value] + [dim] * (dim is not None)
        args.append(constant(None, None, range) if start is None else start)
        args.append(constant(None, None, range) if stop is None else stop)
        step = constant(1, None, range) if step is None else step
        return self.graph.insert("aten::slice", args, {"step": step}, range)

    # ------------------------------------------------------------------------------------------------ tensors

    def _of_tensor(self, range, value, index):
        if not value.type().isSubtypeOf(TensorType.get()):
            raise ErrorReport(
                range, "Unsupported operation: attempted to use multidimensional indexing on a non-tensor type"
            )
        value, indices = self.int_and_slice_indexing(range, value, index)
        if not indices:
            return value
        return self.graph.insert("aten::index", [value, self.index_list(indices)], range=range)

    def index_list(self, indices):
        type = OptionalType(TensorType.get())
        return self.graph.insertNode(self.graph.createList(type, indices)).output()

    def int_and_slice_indexing(self, range, value, index):
        """(the view that ints, slices and None choose, the tensors of the index that are left, one for each
        dimension).

        The dimension of an entry depends on the entries before it; after an ellipsis, on those after it.
        """
        entries = index.elts if isinstance(index, ast.Tuple) else [index]
        ellipses = [i for i, e in enumerate(entries) if _is_ellipsis(e)]
        if len(ellipses) > 1:
            raise ErrorReport(range, "An index can only have a single ellipsis ('...')")
        dots = ellipses[0] if ellipses else len(entries)
        dims, values = {}, {}
        dim = 0
        for i in _range(dots):
            dims[i] = dim
            dim += self._entry(range, i, entries[i], values)
        dim = -1
        for i in reversed(_range(dots + 1, len(entries))):
            dims[i] = dim
            dim -= self._entry_from_end(range, i, entries[i], values)
        return self._apply(range, value, entries, dims, values)

    def _entry(self, range, i, entry, values):
        """Evaluate an entry; returns how many dimensions the result has for it."""
        if isinstance(entry, ast.Slice):
            return 1
        sugared = self.sugared(entry)
        if isinstance(sugared, SliceValue):
            values[i] = sugared
            return 1
        value = sugared.as_value(self.range(entry), self)
        if isinstance(value.type(), ListType):
            value = self.graph.insert("aten::tensor", [value], {"dtype": 4}, range)
        values[i] = value
        type = value.type()
        if isinstance(type, IntType):
            return 0
        if isinstance(type, NoneType) or type.isSubtypeOf(OptionalType(TensorType.get())):
            return 1
        raise _unsupported_index(range, type)

    def _entry_from_end(self, range, i, entry, values):
        """The same, counted from the last dimension: how many of the tensor's dimensions it takes."""
        self._entry(range, i, entry, values)
        type = values[i].type() if i in values and not isinstance(values[i], SliceValue) else None
        if isinstance(type, TensorType):
            raise ErrorReport(range, "Ellipses followed by tensor indexing is currently not supported")
        return 0 if isinstance(type, NoneType) else 1

    def _apply(self, range, value, entries, dims, values):
        tensors = {}
        for i, entry in enumerate(entries):
            if i not in dims:
                continue
            dim = self.graph.insertConstant(dims[i], None, range)
            given = values.get(i)
            if given is None:
                value = self._slice(range, value, dim, entry)
            elif isinstance(given, SliceValue):
                value = self._slice_of(range, value, dim, given.start, given.stop, given.step)
            elif isinstance(given.type(), NoneType):
                value = self.graph.insert("aten::unsqueeze", [value, dim], range=range)
            elif isinstance(given.type(), IntType):
                value = self.graph.insert("aten::select", [value, dim, given], range=range)
            else:
                tensors[dims[i]] = given
        count = max(tensors) + 1 if tensors else 0
        none = [tensors.get(d) or self.graph.insertNode(self.graph.createNone()).output() for d in _range(count)]
        return value, none


def _unsupported_index(range, type):
    return ErrorReport(
        range,
        f"Unsupported operation: indexing tensor with unsupported index type '{type_name(type)}'. Only "
        "ints, slices, lists and tensors are supported",
    )


def _is_ellipsis(node):
    return isinstance(node, ast.Constant) and node.value is Ellipsis


_range = range
