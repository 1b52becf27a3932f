"""Assignments. In PyTorch: `emitAssignment`, `emitAugAssignment`, `emitExprsAssign` in
`torch/csrc/jit/frontend/ir_emitter.cpp`.

Explained in the chapter "JIT: scripting".
"""

import ast

from readtorch.csrc.jit.frontend.error_report import ErrorReport
from readtorch.csrc.jit.frontend.schema_matching import NamedValue
from readtorch.csrc.jit.frontend.script_type_parser import type_name
from readtorch.csrc.jit.frontend.sugared_value import BuiltinFunction, MagicMethod, MethodValue
from readtorch.csrc.jit.ir.type import (
    AnyTupleType,
    BoolType,
    ClassType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NumberType,
    TensorType,
)

# operator: (what it does to a number, to a tensor or list in place, methods of objects)
_AUGMENTED = {
    ast.Add: ("aten::add", "aten::add_", "__iadd__", "__add__"),
    ast.Sub: ("aten::sub", "aten::sub_", "__isub__", "__sub__"),
    ast.Div: ("aten::div", "aten::div_", "__itruediv__", "__truediv__"),
    ast.Mult: ("aten::mul", "aten::mul_", "__imul__", "__mul__"),
    ast.Mod: ("aten::fmod", "aten::fmod_", "__imod__", "__mod__"),
    ast.BitOr: ("aten::__or__", "aten::bitwise_or", None, None),
    ast.BitAnd: ("aten::__and__", "aten::bitwise_and", None, None),
    ast.BitXor: ("aten::__xor__", "aten::bitwise_xor", None, None),
    ast.LShift: ("aten::__lshift__", "aten::__lshift__", None, None),
    ast.RShift: ("aten::__rshift__", "aten::__irshift__", None, None),
    ast.Pow: ("aten::pow", "aten::pow", None, None),
    ast.FloorDiv: ("aten::floordiv", "aten::floor_divide_", None, None),
}


class Assignments:
    def statement_Assign(self, node):
        if len(node.targets) == 1:
            self._assign_expression(node, node.targets[0], node.value)
            return
        # a = b = expression: it is evaluated once, then assigned from left to right
        name, range = self.temporary("tmp_assign_"), self.range(node.value)
        self.frame.set(range, name, self.sugared(node.value))
        for target in node.targets:
            self._assign_expression(node, target, ast.copy_location(ast.Name(name, ast.Load()), node.value))

    def statement_AnnAssign(self, node):
        if node.value is None:
            raise ErrorReport(self.range(node), "For an assignment, expected an expression on the right-hand side")
        type = self.types.type(node.annotation)
        if isinstance(node.target, ast.Attribute):
            self._assign_attribute(node, node.target, self.sugared(node.value, type))
            return
        value = self.sugared(node.value, type)
        self.frame.set(self.range(node.target), node.target.id, value, type)

    def _assign_expression(self, node, target, value):
        if isinstance(target, ast.Name):
            self.frame.set(self.range(target), target.id, self.sugared(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, self.sugared(value), self.range(value))
        elif isinstance(target, ast.Attribute):
            self._assign_attribute(node, target, self.sugared(value))
        elif isinstance(target, ast.Subscript):
            self._assign_item(self.range(node), target, NamedValue(self.expression(value), None, self.range(value)))
        else:
            raise ErrorReport(self.range(target), "unexpected expression on left-hand side of assignment")

    def _assign_attribute(self, node, target, value):
        object = self.sugared(target.value)
        object.set_attr(self.range(node), self, target.attr, value.as_value(self.range(node), self))

    # ------------------------------------------------------------------------------------------- unpacking

    def check_targets(self, targets, range):
        """How many of them are starred: none or one. Raises ErrorReport."""
        starred = sum(isinstance(t, ast.Starred) for t in targets)
        for target in targets:
            if not isinstance(target, (ast.Name, ast.Subscript, ast.Tuple, ast.List, ast.Starred, ast.Attribute)):
                raise ErrorReport(
                    self.range(target), "lhs of assignment must be a variable, subscript, or starred expression"
                )
        if starred > 1:
            raise ErrorReport(range, "Only one starred expression is allowed on the lhs")
        if starred == len(targets):
            raise ErrorReport(
                range,
                "A Starred expression may only appear on the lhs within the presence of another non-starred expression",
            )
        return starred

    def _unpack(self, target, sugared, value_range):
        """`a, *b = value`."""
        range = self.range(target)
        starred = self.check_targets(target.elts, range)
        wanted = len(target.elts) - starred
        parts = sugared.as_tuple(value_range, self, None if starred else wanted)
        if len(parts) < wanted:
            raise ErrorReport(
                range, f"need {'at least ' if starred else ''}{wanted} values to unpack but found only {len(parts)}"
            )
        if len(parts) > wanted and not starred:
            raise ErrorReport(range, f"too many values to unpack: need {wanted} but found {len(parts)}")
        rest = len(parts) - wanted
        i = 0
        for element in target.elts:
            if isinstance(element, ast.Starred):
                values = [p.as_value(self.range(element), self) for p in parts[i : i + rest]]
                packed = self.graph.insertNode(self.graph.createTuple(values)).output()
                self.frame.set_value(self.range(element), element.value.id, packed)
                i += rest
            else:
                self.assign(element, parts[i], value_range)
                i += 1

    def assign(self, target, sugared, value_range):
        """Assign a value that has been computed to the left-hand side of `=`."""
        if isinstance(target, ast.Name):
            self.frame.set(self.range(target), target.id, sugared)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, sugared, value_range)
        elif isinstance(target, ast.Subscript):
            self._assign_item(value_range, target, NamedValue(sugared.as_value(value_range, self), None, value_range))
        elif isinstance(target, ast.Attribute):
            self._assign_attribute(target, target, sugared)
        else:
            raise ErrorReport(self.range(target), "unexpected expression on the left-hand side")

    # ----------------------------------------------------------------------------------------------- x[i] = y

    def _assign_item(self, range, target, value):
        container = self.expression(target.value)
        if container.type().isSubtypeOf(TensorType.get()):
            self._assign_to_slice(range, target, container, value)
            return
        if isinstance(target.slice, (ast.Slice, ast.Tuple)) and not isinstance(container.type(), (DictType, ClassType)):
            raise ErrorReport(
                self.range(target.slice),
                "Sliced expression not yet supported for subscripted assignment. File a bug if you want this",
            )
        if container.type().isSubtypeOf(AnyTupleType.get()):
            raise ErrorReport(
                self.range(target), f"{type_name(container.type())} does not support subscripted assignment"
            )
        args = [NamedValue(container), NamedValue(self.expression(target.slice)), value]
        MagicMethod("__setitem__", BuiltinFunction("aten::_set_item")).call(range, self, args, [])

    def _assign_to_slice(self, range, target, container, value):
        """A tensor: the view that ints and slices choose is written to, or where tensors point to."""
        view, indices = self.int_and_slice_indexing(self.range(target), container, target.slice)
        new = self._as_tensor(value.value(self.graph), view)
        if not indices:
            self.graph.insert("aten::copy_", [view, new], range=range)
            return
        together = self.index_list(indices)
        self.graph.insert("aten::index_put_", [view, together, new], range=range)

    def _as_tensor(self, value, like):
        """A number as a tensor of the dtype and device of `like`."""
        if not isinstance(value.type(), (NumberType, IntType, BoolType, FloatType)):
            return value
        dtype = self.graph.insert("prim::dtype", [like])
        device = self.graph.insert("prim::device", [like])
        return self.graph.insert("aten::tensor", [value], {"dtype": dtype, "device": device})

    # -------------------------------------------------------------------------------------------------- +=

    def statement_AugAssign(self, node):
        target = node.target
        if isinstance(target, ast.Name):
            old = self.expression(target)
            self.frame.set_value(self.range(target), target.id, self._augmented(node, old))
        elif isinstance(target, ast.Attribute):
            object, range = self.sugared(target.value), self.range(target)
            old = object.attr(range, self, target.attr).as_value(range, self)
            object.set_attr(self.range(node), self, target.attr, self._augmented(node, old))
        else:
            self._augment_item(node, target)

    def _operator(self, node, type):
        """The operator's name: tensors and lists are changed in place."""
        names = _AUGMENTED.get(node.op.__class__)
        if names is None:
            raise ErrorReport(self.range(node), f"Unknown augmented assignment: {type(node.op).__name__}")
        return names[1] if isinstance(type, (TensorType, ListType)) else names[0]

    def _augmented(self, node, old):
        range = self.range(node)
        if not isinstance(old.type(), ClassType):
            new = self.expression(node.value)
            return self.graph.insert(self._operator(node, old.type()), [old, new], range=range)
        in_place, out_of_place = _AUGMENTED[type(node.op)][2:]
        method = next((m for m in (in_place, out_of_place) if m and old.type().findMethod(m) is not None), None)
        if method is None:
            raise ErrorReport(
                range,
                f"Cannot emit inplace op on {type_name(old.type())} since it does not define an {in_place} "
                f"or {out_of_place} method",
            )
        args = [NamedValue(self.expression(node.value))]
        return MethodValue(old, method).call(range, self, args, []).as_value(range, self)

    def _augment_item(self, node, target):
        container, range = self.expression(target.value), self.range(node)
        if container.type().isSubtypeOf(TensorType.get()):
            self._augment_slice(node, target, container)
            return
        type = container.type()
        if isinstance(target.slice, (ast.Slice, ast.Tuple)):
            raise ErrorReport(
                self.range(target.slice),
                f"Sliced expression not yet supported for {type_name(type)} augmented "
                "assignment. File a bug if you want this",
            )
        if not isinstance(type, (ListType, DictType)):
            raise ErrorReport(self.range(target), f"{type_name(type)} does not support augmented assignment.")
        index, change = self.expression(target.slice), self.expression(node.value)
        element = type.elem if isinstance(type, ListType) else type.key
        old = self.graph.insert("aten::__getitem__", [container, index], range=range)
        new = self.graph.insert(self._operator(node, element), [old, change], range=range)
        self.graph.insert("aten::_set_item", [container, index, new], range=range)

    def _augment_slice(self, node, target, container):
        range = self.range(node)
        view, indices = self.int_and_slice_indexing(self.range(target), container, target.slice)
        change = self.expression(node.value)
        operator = self._operator(node, TensorType.get())
        if not indices:
            self.graph.insert(operator, [view, change], range=range)
            return
        together = self.index_list(indices)
        old = self.graph.insert("aten::index", [view, together], range=range)
        new = self.graph.insert(operator, [old, change], range=range)
        self.graph.insert("aten::index_put_", [view, together, new], range=range)
