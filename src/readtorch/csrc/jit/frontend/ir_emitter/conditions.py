"""Conditions: whether they hold, and what that says about the types of variables.

    if x is not None:          # here x is no longer Optional
        ...
    elif isinstance(y, int):   # here y is an int

In PyTorch: `RefinementSet`, `CondValue`, `emitCondExpr`, `emitIsInstance`, `emitIfExpr` in
`torch/csrc/jit/frontend/ir_emitter.cpp`. Explained in the chapter "JIT: scripting".
"""

import ast
from dataclasses import dataclass

from readtorch.csrc.jit.frontend.error_report import ErrorReport
from readtorch.csrc.jit.frontend.schema_matching import NamedValue
from readtorch.csrc.jit.frontend.script_type_parser import type_name
from readtorch.csrc.jit.frontend.sugared_value import SpecialForm
from readtorch.csrc.jit.ir.type import (
    AnyListType,
    AnyTupleType,
    AnyType,
    BoolType,
    ListType,
    NoneType,
    OptionalType,
    TupleType,
    UnionType,
    unifyTypes,
    union_of,
    unwrap_optional,
)


@dataclass(frozen=True)
class Refinements:
    """variable -> its type, where the condition holds (`true`) and where it does not (`false`)."""

    true: dict
    false: dict

    def __and__(self, other):
        return Refinements(_both(self.true, other.true), _either(self.false, other.false))

    def __or__(self, other):
        return Refinements(_either(self.true, other.true), _both(self.false, other.false))

    def __invert__(self):
        return Refinements(self.false, self.true)


def _both(a, b):
    """Both conditions hold: the refinements of each, without those that contradict each other."""
    merged = dict(a)
    for name, type in b.items():
        if name in merged and merged[name] != type:
            del merged[name]
        else:
            merged[name] = type
    return merged


def _either(a, b):
    return {name: type for name, type in a.items() if b.get(name) == type}


NOTHING = Refinements({}, {})


@dataclass
class Condition:
    """value: the bool in the graph. known: its value, if that is known during compilation; then only one branch
    is compiled.
    """

    value: object
    refinements: Refinements = NOTHING
    known: bool | None = None


class Conditions:
    def condition(self, node):
        """The Condition that an expression is."""
        if isinstance(node, ast.BoolOp):
            return self._short_circuit(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            value = self.graph.insert("aten::__not__", [inner.value], range=self.range(node))
            return Condition(value, ~inner.refinements, None if inner.known is None else not inner.known)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self._is(node)
        if isinstance(node, ast.Call):
            form = self._form_of(node)
            if form == "isinstance":
                return self.isinstance_(node)
            if form == "hasattr":
                return self.hasattr_(node)
        value = self.to_bool(self.range(node), self.expression(node))
        return Condition(value, NOTHING, _known(value))

    def _form_of(self, call):
        """`isinstance` or `hasattr` if the call is one of these, under any name."""
        if not isinstance(call.func, (ast.Name, ast.Attribute)):
            return None
        names = ("isinstance", "hasattr")
        last = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
        if last not in names:
            return None
        callee = self.sugared(call.func)
        return callee.form if isinstance(callee, SpecialForm) else None

    def constant_condition(self, range, truth, refinements=NOTHING):
        return Condition(self.graph.insertConstant(truth, None, range), refinements, truth)

    def to_bool(self, range, value):
        """`bool(value)`. Raises ErrorReport for what has no truth."""
        try:
            result = self.frame.get("bool", range).call(range, self, [NamedValue(value)], []).as_value(range, self)
        except RuntimeError:
            raise ErrorReport(range, f"Could not cast value of type {type_name(value.type())} to bool") from None
        if not isinstance(result.type(), BoolType):
            raise ErrorReport(range, "expected a bool expression for condition but found " + type_name(result.type()))
        return result

    # --------------------------------------------------------------------------------------------- and, or

    def _short_circuit(self, node):
        """`a and b` is an If: b is looked at in the branch where a does not settle the answer."""
        is_or, range = isinstance(node.op, ast.Or), self.range(node)
        first = self.condition(node.values[0])
        second = None

        def settled():
            return self.graph.insertConstant(is_or, None, range)

        def go_on():
            nonlocal second
            second = self.condition(node.values[1])
            return second.value

        both = (settled, go_on) if is_or else (go_on, settled)
        value = self.if_expression(range, first, *both)
        if is_or:
            refinements = first.refinements | second.refinements
        else:
            refinements = first.refinements & second.refinements
        known = None
        if is_or in (first.known, second.known):
            known = is_or
        elif first.known is not None and second.known is not None:
            known = not is_or
        return Condition(value, refinements, known)

    def if_expression(self, range, condition, then, otherwise, type_hint=None):
        """A prim::If whose value is that of then() or otherwise()."""
        node = self.graph.insertNode(self.graph.create("prim::If", [condition.value], 0)).setSourceRange(range)
        types = []
        for emit, refinements in ((then, condition.refinements), (otherwise, ~condition.refinements)):
            block = node.addBlock()
            with self.inside(block):
                self.refine(range, refinements)
                value = emit()
                types.append(value.type())
                block.registerOutput(value)
        unified = self._if_type(range, types, type_hint)
        return node.addOutput().setType(unified)

    def _if_type(self, range, types, type_hint):
        if isinstance(type_hint, UnionType) and all(t.isSubtypeOf(type_hint) for t in types):
            return type_hint
        return unifyTypes(*types, default_to_union=True)

    # ------------------------------------------------------------------------------------------------- is

    def _is(self, node):
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        is_is, range = isinstance(node.ops[0], ast.Is), self.range(node)
        status = {_none_status(left), _none_status(right)}
        if status == {"always"}:
            return self.constant_condition(range, is_is)
        if status == {"always", "never"}:
            return self.constant_condition(range, not is_is)
        value = self.graph.insert("aten::__is__" if is_is else "aten::__isnot__", [left, right], range=range)
        return Condition(value, self._none_refinements(node, left, right, is_is))

    def _none_refinements(self, node, left, right, is_is):
        """`x is None`: elsewhere x is not None."""
        variable, value, other = node.left, left, node.comparators[0]
        if _is_none(node.left):
            variable, value, other = node.comparators[0], right, node.left
        if not _is_none(other) or not isinstance(variable, ast.Name):
            return NOTHING
        type = value.type()
        if isinstance(type, OptionalType):
            absent = {}
        elif isinstance(type, UnionType) and NoneType.get() in type.types:
            absent = {variable.id: NoneType.get()}
        else:
            return NOTHING
        present = {variable.id: unwrap_optional(type)}
        return Refinements(absent, present) if is_is else Refinements(present, absent)

    # ------------------------------------------------------------------------------------------ isinstance

    def isinstance_(self, call):
        self.check_inputs(call, 2)
        subject = call.args[0]
        value, types = self.expression(subject), self._class_types(call.args[1])
        range = self.range(subject)
        holds, fails, always = _divide(value.type(), types)
        refinements = NOTHING
        if isinstance(subject, ast.Name):
            refinements = Refinements(
                {subject.id: union_of(holds)} if holds else {}, {subject.id: union_of(fails)} if fails else {}
            )
        if always:
            return self.constant_condition(range, True, refinements)
        if not holds:
            return self.constant_condition(range, False, refinements)
        result = self.graph.insertNode(self.graph.createIsInstance(value, types)).output()
        return Condition(result, refinements)

    def _class_types(self, node):
        if isinstance(node, (ast.Tuple, ast.List)):
            return [t for part in node.elts for t in self._class_types(part)]
        return [self.types.type(node)]

    def hasattr_(self, call):
        self.check_inputs(call, 2)
        subject, name = call.args
        sugared = self.sugared(subject)
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            raise ErrorReport(self.range(name), "hasattr's second argument must be a string literal")
        return self.constant_condition(self.range(subject), sugared.has_attr(self.range(subject), self, name.value))


def _known(value):
    """Whether a condition is settled while compiling: a literal, `is_scripting()`."""
    kind = value.node().kind()
    if kind == "aten::is_scripting":
        return True
    if kind == "aten::has_torch_function":
        return False
    return bool(value.toIValue()) if value.isConstant() else None


def _is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def _none_status(value):
    if value.node().mustBeNone():
        return "always"
    type = value.type()
    maybe = isinstance(type, OptionalType) or (isinstance(type, UnionType) and NoneType.get() in type.types)
    return "maybe" if maybe else "never"


def _divide(type, wanted):
    """(the parts of `type` that are one of `wanted`, those that are not, whether all are)."""
    parts = [type.elem, NoneType.get()] if isinstance(type, OptionalType) else getattr(type, "types", None)
    if not isinstance(type, (OptionalType, UnionType)):
        parts = [type]
    holds, fails, always = [], [], True
    for part in parts:
        if isinstance(part, AnyType) and AnyType.get() not in wanted:
            holds += wanted
            fails.append(part)
            always = False
            continue
        found = next((smaller for w in wanted if (smaller := _smaller(part, w)) is not None), None)
        if found is None:
            fails.append(part)
            always = False
        else:
            holds.append(found)
            always = always and found == part
    return holds, fails, always


def _smaller(part, wanted):
    """What is known of a `part` that is a `wanted`; None if it cannot be one."""
    if isinstance(wanted, AnyListType) and isinstance(part, ListType):
        return part
    if isinstance(wanted, AnyTupleType) and isinstance(part, TupleType):
        return part
    if part.isSubtypeOf(wanted):
        return part
    return wanted if wanted.isSubtypeOf(part) else None
