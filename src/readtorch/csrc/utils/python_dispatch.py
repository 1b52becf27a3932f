"""Arguments of operators that are called as Python objects, and operators that are written in Python.

`bind` gives an operator's arguments in the schema's order, converted to its types; `PythonKernel` is a Python function as a
kernel; a `Library` registers operators and kernels, and takes them back.

In PyTorch: `torch/csrc/utils/python_dispatch.cpp`, `aten/src/ATen/core/library.cpp`; `createStackForSchema` in
`torch/csrc/jit/python/pybind_utils.h`. Explained in the chapter "One operator call".
"""

from readtorch.aten import tags
from readtorch.aten.python_arg_parser import REJECTED, TooLarge, convert

# How the messages call a type of a schema.
_TYPE_NAMES = {"Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "SymInt": "int"}

# The operators that take a number in a tensor's place. In PyTorch: `should_allow_numbers_as_tensors`.
NUMBERS_AS_TENSORS = {
    f"aten::{name}"
    for name in "add sub subtract mul multiply div divide true_divide floor_divide copy to _to_copy".split()
}


def bind(schema, args, kwargs):
    """The arguments in the schema's order, converted to its types. Raises RuntimeError.

    In PyTorch: `createStackForSchema` and `tryMatchSchema`.
    """
    name, arguments = schema.qualified_name, schema.arguments
    if len(args) + len(kwargs) > len(arguments):
        raise RuntimeError(
            f"{name}() expected at most {len(arguments)} argument(s) but "
            f"received {len(args) + len(kwargs)} argument(s). Declaration: {schema}"
        )
    positional = sum(not a.keyword_only for a in arguments)
    if len(args) > positional:
        raise RuntimeError(
            f"{name}() takes {positional} positional argument(s) but {len(args)} was/were given.  Declaration: {schema}"
        )
    bound = [_converted(schema, i, value) for i, value in enumerate(args)]
    for position in range(len(args), len(arguments)):
        argument = arguments[position]
        if argument.public_name in kwargs:
            bound.append(_converted(schema, position, kwargs[argument.public_name]))
        elif argument.has_default or argument.type.optional:
            bound.append(default_of(argument))
        else:
            raise RuntimeError(
                f"{name}() is missing value for argument '{argument.public_name}'. Declaration: {schema}"
            )
    if kwargs:
        _check_keywords(schema, len(args), kwargs)
    return bound


def _check_keywords(schema, given, kwargs):
    """Raises RuntimeError for a keyword that the schema has not, or that names one of the first `given` arguments."""
    places = {a.public_name: i for i, a in enumerate(schema.arguments)}
    for name in kwargs:
        if name not in places:
            raise RuntimeError(
                f"Unknown keyword argument '{name}' for operator '{schema.qualified_name}'. Schema: {schema}"
            )
        if places[name] < given:
            raise RuntimeError(f"Argument '{name}' specified both as positional and keyword argument. Schema: {schema}")


def default_of(argument):
    """An argument's default as its type has it: the schema spells `int64` and `mean` as words and 0 for (0, 0)."""
    if argument.default is None or argument.type.is_tensor:
        return argument.default
    return convert(argument.type, argument.default, numbers_as_tensors=False)


def _converted(schema, position, value):
    argument = schema.arguments[position]
    if value is None and argument.type.optional:
        return None
    base = schema.qualified_name.removesuffix("_")
    converted = as_type(argument.type, value, base in NUMBERS_AS_TENSORS)
    if converted is not REJECTED:
        return converted
    raise RuntimeError(
        f"{schema.qualified_name}() Expected a value of type '{_type_name(argument.type)}' for argument "
        f"'{argument.public_name}' but instead found type '{type(value).__name__}'.\n"
        f"Position: {position}\nValue: {value!r}\nDeclaration: {schema}\n"
        f"Cast error details: {why_not(argument.type, value)}"
    )


def _type_name(kind):
    name = _TYPE_NAMES.get(kind.base, kind.base)
    name = f"Optional[{name}]" if kind.inner_optional else name
    name = f"List[{name}]" if kind.is_list else name
    return f"Optional[{name}]" if kind.optional else name


def as_type(kind, value, numbers_as_tensors=False):
    """`value` as a schema's type, or REJECTED: a bool may be any number, a dtype has no other name than its own."""
    if kind.base == "bool" and not kind.is_list and (value is None or isinstance(value, (int, float))):
        return bool(value)
    if kind.base == "ScalarType" and isinstance(value, str):
        return REJECTED
    try:
        return convert(kind, value, numbers_as_tensors)
    except TooLarge:
        return REJECTED


def why_not(kind, value):
    """Why a value is no value of a type: numbers and tensors are cast by PyTorch, the others by pybind11."""
    shown = f"{value}"
    if kind.base == "Scalar" and not kind.is_list:
        return f"Cannot cast {shown} to number"
    if kind.base == "Tensor" and not kind.is_list:
        return f"Unable to cast {shown} to Tensor"
    if kind.base in ("int", "float") and kind.is_list and not kind.optional and isinstance(value, (list, tuple)):
        value = next((v for v in value if as_type(type(kind)(kind.base), v) is REJECTED), value)
    return (
        f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or "
        "compile in debug mode for details)"
    )


# ---------------------------------------------------------------------------------------------- operators as Python sees them

torch_api_function = (
    None  # Operator -> OpOverload; `_ops.py`, which is above, says how. In PyTorch: `getTorchApiFunction`
)
changes = 0  # how often operators were defined or removed by libraries


class OperatorHandle:
    """An operator of the dispatcher, for Python. In PyTorch: `torch._C._DispatchOperatorHandle`."""

    def __init__(self, operator):
        self._operator = operator

    def schema(self):
        return function_schema(self._operator)

    def debug(self):
        return getattr(self._operator, "debug", "")

    def redispatch_boxed(self, keyset, *args, **kwargs):
        return self._operator.redispatch(keyset, *bind(self._operator.schema, args, kwargs))


def tags_of(operator):
    """The tags of an operator: those of its definition, or of `native_functions.yaml`."""
    return getattr(operator, "tags", None) or tags.tags_of(operator.schema)


def function_schema(operator):
    """The schema with the types that TorchScript's graphs have: `torch.FunctionSchema`."""
    from readtorch.csrc.jit.frontend.function_schema_parser import parse_schema

    return parse_schema(str(operator.schema))


def call_for_key(operator, key, arguments):
    """The kernel that is registered for one DispatchKey, called with all arguments."""
    return operator.redispatch(key, *arguments)
