"""Expressions: names, literals, operators, comprehensions.

In PyTorch: `emitSugaredExpr`, `emitSimpleExpr` in `torch/csrc/jit/frontend/ir_emitter.cpp`. Explained in the
chapter "JIT: scripting".
"""

import ast

from readtorch.csrc.jit.frontend.definition import NotSupportedError, UnsupportedNodeError
from readtorch.csrc.jit.frontend.error_report import ErrorReport, update_pending_range
from readtorch.csrc.jit.frontend.schema_matching import NamedValue
from readtorch.csrc.jit.frontend.script_type_parser import type_name
from readtorch.csrc.jit.frontend.sugared_value import BuiltinFunction, MagicMethod, SimpleValue
from readtorch.csrc.jit.ir.type import (
    AnyType,
    DictType,
    ListType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    UnionType,
    unifyTypeList,
)
from readtorch.csrc.jit.passes.constant_propagation import run_node

# operator: (its name in graphs, the method of objects)
_BINARY = {
    ast.Add: ("aten::add", "__add__"),
    ast.Sub: ("aten::sub", "__sub__"),
    ast.Mult: ("aten::mul", "__mul__"),
    ast.Pow: ("aten::pow", "__pow__"),
    ast.Div: ("aten::div", "__truediv__"),
    ast.Mod: ("aten::remainder", "__mod__"),
    ast.BitAnd: ("aten::__and__", "__and__"),
    ast.BitOr: ("aten::__or__", "__or__"),
    ast.BitXor: ("aten::__xor__", "__xor__"),
    ast.LShift: ("aten::__lshift__", "__lshift__"),
    ast.RShift: ("aten::__rshift__", "__rshift__"),
    ast.FloorDiv: ("aten::floordiv", None),
    ast.MatMult: ("aten::matmul", None),
    ast.Eq: ("aten::eq", "__eq__"),
    ast.NotEq: ("aten::ne", "__ne__"),
    ast.Lt: ("aten::lt", "__lt__"),
    ast.LtE: ("aten::le", "__le__"),
    ast.Gt: ("aten::gt", "__gt__"),
    ast.GtE: ("aten::ge", "__ge__"),
    ast.In: ("aten::__contains__", "__contains__"),
}
_UNARY = {ast.USub: ("aten::neg", "__neg__"), ast.Invert: ("aten::bitwise_not", "__invert__")}


class Expressions:
    def expression(self, node, type_hint=None):
        """The Value of an expression. type_hint: the type that it is wanted to have, for literals that leave
        it open.
        """
        update_pending_range(self.range(node))
        value = self.sugared(node, type_hint).as_value(self.range(node), self)
        if isinstance(type_hint, AnyType) and not isinstance(value.type(), AnyType):
            value = self.graph.insertUncheckedCast(value, type_hint)
        return value

    def sugared(self, node, type_hint=None):
        """What an expression means: a SugaredValue."""
        handler = getattr(self, f"expression_{type(node).__name__}", None)
        if handler is None:
            raise UnsupportedNodeError(self.text.first_character(node), f"{type(node).__name__} aren't supported")
        found = handler(node, type_hint)
        return found if not hasattr(found, "debugName") else SimpleValue(found)

    def expression_Name(self, node, type_hint):
        return self.frame.get(node.id, self.range(node))

    def expression_Attribute(self, node, type_hint):
        return self.sugared(node.value).attr(self.range(node), self, node.attr)

    def expression_Constant(self, node, type_hint):
        if node.value is Ellipsis:
            raise ErrorReport(self.range(node), "Cannot emit expr for: ...")
        return self.graph.insertConstant(node.value, None, self.range(node))

    def expression_Starred(self, node, type_hint):
        raise ErrorReport(self.range(node), "Unexpected starred expansion. File a bug report")

    def expression_IfExp(self, node, type_hint):
        condition = self.condition(node.test)
        if condition.known is not None:
            self.refine(self.range(node), condition.refinements if condition.known else ~condition.refinements)
            return self.expression(node.body if condition.known else node.orelse, type_hint)
        return self.if_expression(
            self.range(node),
            condition,
            lambda: self.expression(node.body, type_hint),
            lambda: self.expression(node.orelse, type_hint),
            type_hint,
        )

    # -------------------------------------------------------------------------------------------- operators

    def expression_BoolOp(self, node, type_hint):
        return self.condition(node).value

    def expression_Compare(self, node, type_hint):
        op = node.ops[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self.condition(node).value
        return self._binary(node, op, node.left, node.comparators[0])

    def expression_BinOp(self, node, type_hint):
        return self._binary(node, node.op, node.left, node.right)

    def _binary(self, node, op, left, right):
        name, magic = _BINARY[type(op)]
        range = self.range(node)
        args = [NamedValue(self.expression(e), None, self.range(e)) for e in (left, right)]
        if isinstance(op, ast.Mod) and isinstance(args[0].content.type(), StringType):
            return self._percent_format(range, args)
        if isinstance(op, ast.In):
            args.reverse()  # x in xs is xs.__contains__(x)
        function = BuiltinFunction(name)
        return (MagicMethod(magic, function) if magic else function).call(range, self, args, [])

    def _percent_format(self, range, args):
        values = [a.value(self.graph) for a in args]
        node = self.graph.insertNode(self.graph.create("aten::percentFormat", values)).setSourceRange(range)
        return node.output().setType(StringType.get())

    def expression_UnaryOp(self, node, type_hint):
        range = self.range(node)
        if isinstance(node.op, ast.Not):
            return self.condition(node).value
        if isinstance(node.op, ast.UAdd):
            raise NotSupportedError(range, "unsupported unary operator: UAdd")
        name, magic = _UNARY[type(node.op)]
        args = [NamedValue(self.expression(node.operand))]
        value = MagicMethod(magic, BuiltinFunction(name)).call(range, self, args, []).as_value(range, self)
        return self._folded(value, name, range)

    def _folded(self, value, name, range):
        """`-1` is a constant."""
        node = value.node()
        if (
            node.kind() != name
            or isinstance(value.type(), TensorType)
            or not all(v.isConstant() for v in node.inputs())
        ):
            return value
        found = run_node(node)
        return value if found is None else self.graph.insertConstant(found[0], None, range)

    # ----------------------------------------------------------------------------------------------- literals

    def values_of(self, nodes):
        """The Values of expressions; `*xs` stands for its parts."""
        return [named.value(self.graph) for named in self.named_values(nodes)]

    def named_values(self, nodes):
        found = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                parts = self.sugared(node.value).as_tuple(self.range(node), self)
                found += [NamedValue(p.as_value(self.range(node), self), None, self.range(node)) for p in parts]
            else:
                found.append(NamedValue(self.expression(node), None, self.range(node)))
        return found

    def expression_Tuple(self, node, type_hint):
        if (
            isinstance(type_hint, TupleType)
            and len(type_hint.types) == len(node.elts)
            and not any(isinstance(e, ast.Starred) for e in node.elts)
        ):
            values = [self.expression(e, t) for e, t in zip(node.elts, type_hint.types)]
        else:
            values = self.values_of(node.elts)
        return self.graph.insertNode(self.graph.createTuple(values)).output()

    def expression_List(self, node, type_hint):
        hint = _part_of_hint(type_hint, ListType)
        range = self.range(node)
        if type_hint is not None and hint is None and not isinstance(type_hint, AnyType):
            raise ErrorReport(range, f"Expected an annotation of type List but got {type_name(type_hint)}")
        if not node.elts and hint is None:
            empty = self.graph.insertNode(self.graph.create("prim::EmptyListLiteral"))
            return empty.output().setType(ListType(TensorType.get()))
        values = self._hinted(node.elts, hint.elem) if hint else self.values_of(node.elts)
        element = TensorType.get()
        if hint is not None:
            element = hint.elem
            for value in values:
                if not value.type().isSubtypeOf(element):
                    unified = unifyTypeList([v.type() for v in values], default_to_union=True)
                    more = f", which were unified to {type_name(unified)}" if isinstance(unified, UnionType) else ""
                    raise ErrorReport(
                        range,
                        f"List type annotation `{type_name(hint)}` did not match the types of the given "
                        f"list elements{more}",
                    )
        elif values:
            element = unifyTypeList([v.type() for v in values], default_to_union=True)
        return self.graph.insertNode(self.graph.createList(element, values)).output()

    def _hinted(self, nodes, hint):
        """The Values of expressions that are wanted to have a type: a literal inside a literal."""
        if any(isinstance(n, ast.Starred) for n in nodes):
            return self.values_of(nodes)
        inner = hint if isinstance(hint, (ListType, DictType, TupleType)) else None
        return [self.expression(n, inner if isinstance(n, (ast.List, ast.Dict, ast.Tuple)) else None) for n in nodes]

    def expression_Dict(self, node, type_hint):
        range = self.range(node)
        hint = _part_of_hint(type_hint, DictType)
        keys, values = [], []
        for key, value in zip(node.keys, node.values):
            if key is None:
                raise ErrorReport(range, "Dict expansion (e.g. `{**dict}`) is not supported")
            keys.append(self.expression(key))
            values.append(
                self.expression(value, hint.value if hint and isinstance(value, (ast.List, ast.Dict)) else None)
            )
        if hint is not None:
            key_type, value_type = hint.key, hint.value
        elif not keys:
            key_type, value_type = StringType.get(), TensorType.get()
        else:
            key_type = keys[0].type()
            value_type = unifyTypeList([v.type() for v in values], default_to_union=True)
        self._check_parts("keys", key_type, keys, node.keys)
        self._check_parts("values", value_type, values, node.values)
        return self.graph.insertNode(self.graph.createDict(key_type, value_type, keys, values)).output()

    def _check_parts(self, what, type, values, nodes):
        for value, node in zip(values, nodes):
            if not value.type().isSubtypeOf(type):
                raise ErrorReport(
                    self.range(node),
                    f"Dict {what} must contain only a single type, expected: {type_name(type)} "
                    f"but found {type_name(value.type())} instead",
                )

    # ----------------------------------------------------------------------------------------- comprehensions

    def expression_ListComp(self, node, type_hint):
        hint = _part_of_hint(type_hint, ListType)
        if type_hint is not None and hint is None:
            raise ErrorReport(self.range(node), f"Expected an annotation of type List but got {type_name(type_hint)}")

        def add(made, typed):
            element = self.expression(node.elt)
            if not typed:
                made.setType(ListType(element.type()))
            self.graph.insert("aten::append", [made, element], range=self.range(node))

        made = self.graph.create("prim::ListConstruct")
        return self._comprehension(node, made, hint, ListType(TensorType.get()), add)

    def expression_DictComp(self, node, type_hint):
        hint = _part_of_hint(type_hint, DictType)

        def add(made, typed):
            key, value = self.expression(node.key), self.expression(node.value)
            if not typed:
                made.setType(DictType(key.type(), value.type()))
            self.graph.insert("aten::_set_item", [made, key, value], range=self.range(node))

        made = self.graph.create("prim::DictConstruct")
        return self._comprehension(node, made, hint, DictType(StringType.get(), TensorType.get()), add)

    def _comprehension(self, node, made, hint, default, add):
        """An empty container, and a loop that fills it. Its variables stay inside: a
        prim::ComprehensionScope.
        """
        range = self.range(node)
        if len(node.generators) != 1:
            raise NotSupportedError(range, "Only a single generator is currently supported")
        if node.generators[0].ifs:
            raise NotSupportedError(range, "Comprehension ifs are not supported yet")
        value = self.graph.insertNode(made).output().setType(hint or default)
        typed = hint is not None
        scope = self.graph.insertNode(self.graph.create("prim::ComprehensionScope", (), 0)).setSourceRange(range)

        def body():
            nonlocal typed
            add(value, typed)
            typed = True

        with self.inside(scope.addBlock()):
            self.loop_over(range, node.generators[0].target, node.generators[0].iter, body)
        return value


def _part_of_hint(hint, kind):
    """The List (or Dict) that is hinted at, also inside an Optional or Union; None if there is none."""
    if isinstance(hint, kind):
        return hint
    parts = [hint.elem] if isinstance(hint, OptionalType) else list(hint.types) if isinstance(hint, UnionType) else []
    fitting = [p for p in parts if isinstance(p, kind)]
    return fitting[0] if len(fitting) == 1 else None
