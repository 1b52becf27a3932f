"""The right-hand side of a statement: what one node computes.

In PyTorch: `printRHS` in `torch/csrc/jit/serialization/python_print.cpp`.
"""

from ..ir.constant_text import quoted
from ..ir.type import DictType, FunctionType, ListType, NoneType, OptionalType, TupleType, UnionType
from .print_constants import constant_text


def is_identifier(name):
    return name.isascii() and name.isidentifier()


def expression_text(node, body):
    """body: knows the text of the inputs."""
    special = _SPECIAL.get(node.kind())
    return special(node, body) if special else _operator(node, body)


def _operator(node, body):
    """`torch.add(x, y, alpha=2)`; arguments at the end that have their defaults are left out."""
    schema = node.getSchema()
    inputs = node.inputs()
    count = len(inputs)
    if not schema.is_vararg:
        count = _needed(schema, inputs)
    parts = []
    for i, value in enumerate(inputs[:count]):
        keyword = i < len(schema.arguments) and schema.arguments[i].kwarg_only
        parts.append(f"{schema.arguments[i].name}={body.use(value)}" if keyword else body.use(value))
    return f"{_name(node.kind())}({', '.join(parts)})"


def _needed(schema, inputs):
    """How many arguments must be written."""
    arguments = schema.arguments
    if any(a.is_out for a in arguments):
        return len(inputs)
    count = len(inputs)
    while count and _has_default(arguments[count - 1], inputs[count - 1]):
        count -= 1
    return count


def _has_default(argument, value):
    if not argument.has_default or not value.isConstant():
        return False
    given, default = value.toIValue(), argument.default_value
    return type(given) is type(default) and given == default


def _name(kind):
    namespace, _, name = kind.partition("::")
    if kind in ("aten::backward", "aten::grad"):
        return f"torch.autograd.{name}"
    return f"torch.{name}" if namespace == "aten" else f"ops.{namespace}.{name}"


# ---------------------------------------------------------------------------------------------- special forms


def _constant(node, body):
    type = node.output().type()
    if isinstance(type, FunctionType):
        body.out.dependencies.add(type)
        return body.out.type_text(type)
    if node.mustBeNone():
        return "None"
    return constant_text(node.constant_value(), body.out)


def _annotated(node, body, text):
    return f"annotate({body.out.type_text(node.output().type())}, {text})"


def _conversion(node, body):
    return _annotated(node, body, body.use(node.input()))


def _call_of(name):
    return lambda node, body: f"{name}({body.list_of(node.inputs())})"


def _getitem(node, body):
    container, index = map(body.use, node.inputs())
    return f"{container}[{index}]" if is_identifier(container) else f"({container})[{index}]"


def _tuple(node, body):
    type = node.output().type()
    name = body.out.type_text(type) if type.qualified else ""
    return f"{name}({body.list_of(node.inputs())}{',' if node.inputsSize() == 1 else ''})"


def _tuple_index(node, body):
    container, index = map(body.use, node.inputs())
    return f"({container})[{index}]"


def _tuple_slice(node, body):
    return f"({body.use(node.input())})[{node.i('beg')}:{node.i('end')}]"


def _can_be_inferred(type):
    """Whether a list of such elements shows its type."""
    if isinstance(type, (OptionalType, UnionType, NoneType)):
        return False
    if isinstance(type, (ListType, DictType, TupleType)):
        return all(map(_can_be_inferred, type.containedTypes()))
    return True


def _list(node, body):
    text = f"[{body.list_of(node.inputs())}]"
    if not node.inputs() or not _can_be_inferred(node.output().type().elem):
        return _annotated(node, body, text)
    return text


def _dict(node, body):
    inputs = node.inputs()
    text = "{" + ", ".join(f"{body.use(k)}: {body.use(v)}" for k, v in zip(inputs[::2], inputs[1::2])) + "}"
    type = node.output().type()
    if not inputs or not (_can_be_inferred(type.key) and _can_be_inferred(type.value)):
        return _annotated(node, body, text)
    return text


def _new_object(node, body):
    name = body.out.type_text(node.output().type())
    return f"{name}.__new__({name})"


def _get_attr(node, body):
    name, object = node.s("name"), body.use(node.input())
    return f"{object}.{name}" if is_identifier(name) else f"getattr({object}, {quoted(name)})"


def _arguments(values, body):
    return "".join(f"{body.use(v)}, " for v in values)


def _call_function(node, body):
    function, *given = node.inputs()
    return f"{body.use(function)}({_arguments(given, body)})"


def _call_method(node, body):
    object, *given = node.inputs()
    body.out.dependencies.add(object.type())
    return f"({body.use(object)}).{node.s('name')}({_arguments(given, body)})"


def _unwrap(node, body):
    text = body.use(node.input())
    if node.input().mustBeNone():
        text = f"annotate({body.out.type_text(OptionalType(node.output().type()))}, {text})"
    return f"torch._unwrap_optional({text})"


def _cast(node, body):
    return f"unchecked_cast({body.out.type_text(node.output().type())}, {body.use(node.input())})"


def _isinstance(node, body):
    types = [body.out.type_text(t) for t in node.attribute("types")]
    wanted = types[0] if len(types) == 1 else f"({', '.join(types)})"
    return f"isinstance({body.use(node.input())}, {wanted})"


def _raise(node, body):
    message, name = node.inputs()
    more = "" if name.mustBeNone() else f", {body.use(name)}"
    return f"ops.prim.RaiseException({body.use(message)}{more})"


def _python_op(node, body):
    scalars = ", ".join(map(repr, node.attribute("scalar_args")))
    return f"^{node.pyname()}({scalars})({body.list_of(node.inputs())})"


_SPECIAL = {
    "prim::Constant": _constant,
    "prim::PythonOp": _python_op,
    "prim::Uninitialized": lambda node, body: f"uninitialized({body.out.type_text(node.output().type())})",
    "aten::ScalarImplicit": _conversion,
    "aten::FloatImplicit": _conversion,
    "aten::IntImplicit": _conversion,
    "aten::ComplexImplicit": _conversion,
    "aten::Int": _call_of("int"),
    "aten::Float": _call_of("float"),
    "aten::Complex": _call_of("complex"),
    "aten::Bool": _call_of("bool"),
    "aten::str": _call_of("str"),
    "prim::Print": _call_of("print"),
    "aten::sorted": _call_of("sorted"),
    "aten::__getitem__": _getitem,
    "prim::TupleConstruct": _tuple,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "prim::ListConstruct": _list,
    "prim::DictConstruct": _dict,
    "prim::CreateObject": _new_object,
    "prim::GetAttr": _get_attr,
    "prim::CallFunction": _call_function,
    "prim::CallMethod": _call_method,
    "aten::_unwrap_optional": _unwrap,
    "prim::unchecked_unwrap_optional": _cast,
    "prim::unchecked_cast": _cast,
    "prim::isinstance": _isinstance,
    "prim::tolist": lambda node, body: _annotated(node, body, f"{body.use(node.input(0))}.tolist()"),
    "prim::EnumValue": lambda node, body: f"({body.use(node.input())}).value",
    "prim::EnumName": lambda node, body: f"({body.use(node.input())}).name",
    "prim::RaiseException": _raise,
}
