"""Which overload a call in a program means, and what must be inserted so that its arguments fit.

First every overload is tried as it is; then again with implicit conversions (a tensor to the number it holds,
numbers one after another to a list, a string to a device).

In PyTorch: `torch/csrc/jit/frontend/schema_matching.cpp`. Explained in the chapter "JIT: scripting".
"""

from dataclasses import dataclass

from readtorch.csrc.jit.ir.type import (
    ComplexType,
    DeviceObjType,
    FloatType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    VarType,
    matchTypeVariables,
    tryEvalTypeVariables,
    unwrap_optional,
)
from readtorch.csrc.jit.ir.value import Value
from readtorch.csrc.jit.runtime.operator import getAllBuiltinFunctionsFor, getAllOperatorsFor

from .error_report import ErrorReport


@dataclass
class NamedValue:
    """One argument of a call: a Value, or a Python value that becomes a constant where it is needed."""

    content: object
    name: str | None = None
    range: object = None

    def value(self, graph):
        if not isinstance(self.content, Value):
            self.content = graph.insertConstant(self.content, None, self.range)
        return self.content


def named(argument, name=None, range=None):
    return argument if isinstance(argument, NamedValue) else NamedValue(argument, name, range)


@dataclass
class MatchedSchema:
    """A schema that a call fits. inputs: Values for all its arguments; return_types; return_names, or
    None.
    """

    schema: object
    inputs: list
    return_types: list
    return_names: list | None


# ----------------------------------------------------------------------------------------------- one argument


def try_convert_to_type(range, graph, concrete_type, value, allow_conversions):
    """A Value made from `value` that should be a `concrete_type`; the caller checks whether it is."""
    if isinstance(concrete_type, OptionalType):
        if not isinstance(value.type(), (OptionalType, NoneType)):
            return try_convert_to_type(range, graph, concrete_type.elem, value, allow_conversions)
    if value.node().kind() == "prim::EmptyListLiteral" and isinstance(concrete_type, ListType):
        value = graph.insertNode(graph.createList(concrete_type.elem, [])).output()
    if isinstance(value.type(), TupleType):
        value = _convert_tuple(range, graph, concrete_type, value, allow_conversions)
    if allow_conversions:
        kind = _implicit_conversion(value.type(), concrete_type)
        if kind:
            return graph.insert(kind, [value], range=range)
    return value


def _convert_tuple(range, graph, concrete_type, value, allow_conversions):
    """A tuple of equals as a list; a tuple as another one, part by part."""
    wanted = unwrap_optional(concrete_type)
    if convertible_to_list(value.type(), wanted):
        parts = graph.insertNode(graph.createTupleUnpack(value)).outputs()
        return graph.insertNode(graph.createList(wanted.elem, parts)).output()
    if (
        isinstance(concrete_type, TupleType)
        and not value.type().isSubtypeOf(concrete_type)
        and len(concrete_type.types) == len(value.type().types)
    ):
        parts = graph.insertNode(graph.createTupleUnpack(value)).outputs()
        converted = [
            try_convert_to_type(range, graph, t, part, allow_conversions) for t, part in zip(concrete_type.types, parts)
        ]
        return graph.insertNode(graph.createTuple(converted)).output()
    return value


def convertible_to_list(type, list_type):
    """Whether it is such a list, or a tuple all of whose elements could be in one."""
    if not isinstance(list_type, ListType):
        return False
    if type.isSubtypeOf(list_type):
        return True
    return isinstance(type, TupleType) and all(t.isSubtypeOf(list_type.elem) for t in type.types)


_FROM_TENSOR = {
    FloatType: "aten::FloatImplicit",
    ComplexType: "aten::ComplexImplicit",
    IntType: "aten::IntImplicit",
    NumberType: "aten::ScalarImplicit",
}
_FROM_NUMBER = {FloatType: "aten::Float", ComplexType: "aten::Complex", IntType: "aten::Int"}


def _implicit_conversion(have, want):
    """The operator that converts a `have` to a `want`, or None."""
    if have.isSubtypeOf(TensorType.get()):
        return _FROM_TENSOR.get(type(want))
    if isinstance(have, NumberType):
        return _FROM_NUMBER.get(type(want))
    if isinstance(have, StringType) and isinstance(want, DeviceObjType):
        return "aten::device"
    return None


def _repeats(value, argument):
    """Whether one number stands for a whole list: `int[2] stride`."""
    wanted = unwrap_optional(argument.type)
    return (
        argument.N is not None
        and isinstance(wanted, ListType)
        and isinstance(value.type(), (IntType, FloatType))
        and value.type() == wanted.elem
    )


# ------------------------------------------------------------------------------------------------- one schema


class _Matching:
    """One attempt to match one schema. reasons: collects why it failed, unless None."""

    def __init__(self, graph, schema, range, reasons, allow_conversions):
        self.graph = graph
        self.schema = schema
        self.range = range
        self.reasons = reasons
        self.allow_conversions = allow_conversions
        self.env = {}

    def fail(self, message):
        if self.reasons is not None:
            self.reasons.append(f"\n{self.schema}:\n{message}")
        return None

    def argument(self, argument, given):
        """The Value to pass for `argument`, or None."""
        value = given.value(self.graph)
        if _repeats(value, argument):
            value = self.graph.insertNode(self.graph.createList(value.type(), [value] * argument.N)).output()
        reason = matchTypeVariables(argument.type, value.type(), self.env)
        if reason is not None:
            return self.fail(
                f"Could not match type {value.type().annotation_str} to {argument.type.annotation_str} in "
                f"argument '{argument.name}': {reason}.\n"
            )
        concrete = tryEvalTypeVariables(argument.type, self.env)
        if concrete is None:
            return self.fail(
                f"Type variables in type {argument.type.annotation_str} could not be inferred from actual type "
                f"{value.type().annotation_str}"
            )
        value = try_convert_to_type(self.range, self.graph, concrete, value, self.allow_conversions)
        if not value.type().isSubtypeOf(concrete):
            return self.fail(mismatch_message(argument, value.type()))
        return value

    def rest_as_list(self, argument, rest):
        """A list of all positional arguments that are left: `zeros(1, 2)`."""
        element = unwrap_optional(argument.type).elem
        kind = type(argument)
        values = [self.argument(kind("<varargs>", element), given) for given in rest]
        return None if None in values else self.graph.insertNode(self.graph.createList(element, values)).output()


def mismatch_message(argument, type):
    """Why a value of type `type` cannot be passed for `argument`."""
    message = (
        f"Expected a value of type '{argument.type.annotation_str}' for argument '{argument.name}' but instead found "
        f"type '{type.annotation_str}'.\n"
    )
    if isinstance(type, TensorType) and type.isInferredType():
        message += (
            f"Inferred the value for argument '{argument.name}' to be of type 'Tensor' because it was not annotated "
            "with an explicit type.\n"
        )
    if isinstance(type, ListType) and isinstance(type.elem, TensorType):
        message += (
            "Empty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty "
            "list of another type (torch.jit.annotate(List[T, []]) where T is the type of elements in the list "
            "for Python 2)\n"
        )
    return message


def _takes_the_rest(schema, index):
    """Whether argument `index` is a list, the last that can be given by position, and one number does not
    stand for it.
    """
    argument = schema.arguments[index]
    last = index + 1 == len(schema.arguments) or schema.arguments[index + 1].kwarg_only
    is_list = isinstance(argument.type, ListType) and not isinstance(argument.type.elem, VarType)
    return last and is_list and argument.N is None


def try_match_schema(schema, range, graph, args, kwargs, self=None, reasons=None, allow_conversions=True):
    """A MatchedSchema, or None. args, kwargs: NamedValues; self: of a method call, for the argument of that
    name.
    """
    if schema.full_name == "aten::view.dtype":
        return None  # a dtype is an int here: x.view(1) means a shape
    matching = _Matching(graph, schema, range, reasons, allow_conversions)
    inputs, used, used_names = [], 0, set()
    for i, argument in enumerate(schema.arguments):
        keyword = _keyword(schema, argument, kwargs)
        if argument.name == "self" and self is not None:
            given, self = self, None
        elif not argument.kwarg_only and used < len(args):
            if allow_conversions and _takes_the_rest(schema, i) and not _is_list(args[used].value(graph), argument):
                value = matching.rest_as_list(argument, args[used:])
                if value is None:
                    return None
                inputs.append(value)
                used = len(args)
                continue
            given = args[used]
            used += 1
        elif keyword is not None:
            given = keyword
            used_names.add(keyword.name)
        elif argument.has_default:
            given = NamedValue(_default(graph, argument))
        else:
            return matching.fail(f"Argument {argument.name} not provided.\n")
        value = matching.argument(argument, given)
        if value is None:
            return None
        inputs.append(value)
    if self is not None:
        matching.fail("Provided self argument not used in schema.\n")
    if schema.is_vararg:
        inputs += [given.value(graph) for given in args[used:]]
        used = max(used, len(args))
    if used < len(args):
        return matching.fail(f"Expected at most {used} arguments but found {len(args)} positional arguments.\n")
    for given in kwargs:
        if given.name not in used_names:
            known = schema.argument_index(given.name) is not None
            return matching.fail(f"Keyword argument {given.name} {'specified twice' if known else 'unknown'}.\n")
    types = [tryEvalTypeVariables(r.type, matching.env) for r in schema.returns]
    names = [r.name for r in schema.returns]
    return MatchedSchema(schema, inputs, types, names if all(names) and len(names) > 1 else None)


def _default(graph, argument):
    """A constant for what the call leaves out; no line of the program says it."""
    value = argument.default_value
    constant = graph.insertConstant(value, None if value is None else argument.type)
    constant.node().setSourceRange(None)
    return constant


def _is_list(value, argument):
    return isinstance(value.type(), ListType) or convertible_to_list(value.type(), unwrap_optional(argument.type))


def _keyword(schema, argument, kwargs):
    """The keyword argument for `argument`; a function's `input` is its operator's `self`."""
    names = {argument.name}
    if argument.name == "self" and schema.name.startswith("aten::"):
        names.add("input")
    return next((given for given in kwargs if given.name in names), None)


# ---------------------------------------------------------------------------------------------------- several


def match_schema(schema, range, graph, args, kwargs=(), self=None):
    """The call of one function. Raises RuntimeError (with the source line) if the arguments do not fit."""
    reasons = []
    args, kwargs = [named(a) for a in args], _keywords(kwargs)
    matched = try_match_schema(schema, range, graph, args, kwargs, self, reasons, True)
    if matched is None:
        raise ErrorReport(range, "".join(reasons))
    return matched


def match_schemas(schemas, range, graph, args, kwargs=(), self=None):
    """(index, MatchedSchema) of the first that fits. Raises RuntimeError, listing why each does not."""
    if len(schemas) == 1:
        return 0, match_schema(schemas[0], range, graph, args, kwargs, self)
    args, kwargs = [named(a) for a in args], _keywords(kwargs)
    for allow_conversions in (False, True):
        for i, schema in enumerate(schemas):
            matched = try_match_schema(schema, range, graph, args, kwargs, self, None, allow_conversions)
            if matched is not None:
                return i, matched
    reasons = []
    for schema in schemas:
        try_match_schema(schema, range, graph, args, kwargs, self, reasons, True)
    lines = "".join(f"  {line}" for line in "".join(reasons).splitlines(keepends=True))
    raise ErrorReport(
        range,
        f"Arguments for call are not valid.\nThe following variants are available:\n{lines}\nThe original call is",
    )


def _keywords(kwargs):
    if isinstance(kwargs, dict):
        return [named(value, name) for name, value in kwargs.items()]
    return list(kwargs)


def emit_builtin_call(graph, kind, args, kwargs=(), range=None, self=None):
    """Insert the operator `kind` whose schema the arguments fit; returns its output, a tuple for several.

    Operators that are written in TorchScript (builtin_functions.py) are tried last; their body is inserted.
    Raises RuntimeError for an unknown operator, or if no overload fits.
    """
    operators, functions = getAllOperatorsFor(kind), getAllBuiltinFunctionsFor(kind)
    if not operators and not functions:
        raise ErrorReport(
            range,
            f"Unknown builtin op: {kind}.\nCould not find any similar ops to {kind}. This op may not "
            "exist or may not be currently supported in TorchScript.\n",
        )
    index, matched = match_schemas([o.schema for o in [*operators, *functions]], range, graph, args, kwargs, self)
    if index >= len(operators):
        return pack_outputs(graph, graph.insertGraph(functions[index - len(operators)].graph, matched.inputs))
    node = graph.insertNode(graph.create(kind, matched.inputs, 0)).setSourceRange(range)
    for type in matched.return_types:
        node.addOutput().setType(type)
    node._operator = operators[index]
    return pack_outputs(graph, node.outputs(), matched.return_names)


def pack_outputs(graph, values, names=None):
    """One Value for several: a tuple of them, named if the schema names them."""
    if len(values) == 1:
        return values[0]
    if not values:
        return graph.insertNode(graph.createNone()).output()
    type = TupleType([v.type() for v in values], None, names) if names else None
    return graph.insertNode(graph.createTuple(values, type)).output()
