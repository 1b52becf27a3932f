"""Arguments of operators that are called as Python objects, and operators that are written in Python.

`bind` gives an operator's arguments in the schema's order, converted to its types; `PythonKernel` is a Python function as a
kernel.

In PyTorch: `torch/csrc/utils/python_dispatch.cpp`; `createStackForSchema` in `torch/csrc/jit/python/pybind_utils.h`. Explained in the chapter "One operator call".
"""

from readtorch.aten import tags
from readtorch.aten.dispatcher import registry
from readtorch.aten.function_schema import Type
from readtorch.aten.operator_entry import NativeKernel, keys_of, writers
from readtorch.aten.python_arg_parser import REJECTED, TooLarge, convert, default_of
from readtorch.aten.python_fallback_kernel import NUMBERS_AS_TENSORS
from readtorch.c10.dispatch_key import AUTOGRAD, AUTOGRAD_ALIAS, FACTS, INFERENCE_MODE, RUNTIME_BACKENDS, key_name
from readtorch.c10.dispatch_key_set import key_of, to_keys
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.tensor_impl import TensorImpl

# How the messages call a type of a schema.
_TYPE_NAMES = {"Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "SymInt": "int"}


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


def call_boxed(operator, arguments):
    """Calls an operator: see `as_python_sees`."""
    return as_python_sees(operator, operator.call(*arguments))


def as_python_sees(operator, result):
    """A result as calls through the dispatcher return it: a list where the schema returns one, several in a plain tuple.

    `torch.return_types.max` and its like are made by the bindings of `torch` and `Tensor` alone.
    """
    if isinstance(result, tuple):
        returns = operator.schema.returns
        if len(returns) == 1 and returns[0].type.is_list:
            return list(result)
        if len(returns) > 1 and type(result) is not tuple:
            return tuple(result)
    return result


def _converted(schema, position, value):
    argument = schema.arguments[position]
    if value is None and argument.type.optional:
        return None
    takes_numbers = schema.namespace == "aten" and schema.name.removesuffix("_") in NUMBERS_AS_TENSORS
    converted = as_type(argument.type, value, takes_numbers)
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
    """`value` as a schema's type, or REJECTED. What Python itself takes for a number is one, but a float is no int; a dtype has
    no other name than its own.
    """
    if kind.base == "bool" and not kind.is_list and (value is None or isinstance(value, (int, float))):
        return bool(value)
    if kind.base == "ScalarType" and isinstance(value, str):
        return REJECTED
    try:
        converted = convert(kind, value, numbers_as_tensors)
    except TooLarge:
        return REJECTED
    if converted is not REJECTED or kind.base not in _NUMBERS:
        return converted
    return _cast_number(kind, value)


_NUMBERS = {"int": int, "float": float, "bool": bool}


def _cast_number(kind, value):
    """In PyTorch: `py::cast<int64_t>` and its like."""
    if kind.is_list and isinstance(value, (list, tuple)):
        element = Type(kind.base)
        values = tuple(_cast_number(element, v) for v in value)
        return REJECTED if REJECTED in values else values
    if (
        kind.is_list
        or value is None
        or isinstance(value, (str, bytes))
        or kind.base == "int"
        and isinstance(value, float)
    ):
        return REJECTED
    try:
        number = _NUMBERS[kind.base](value)
    except (TypeError, ValueError, RuntimeError):
        return REJECTED
    return number if kind.base != "int" or -1 << 63 <= number < 1 << 63 else REJECTED


def why_not(kind, value):
    """Why a value is no value of a type: numbers and tensors are cast by PyTorch, the others by pybind11."""
    if (
        kind.is_list
        and isinstance(value, (list, tuple))
        and not kind.optional
        and (kind.symbolic or kind.inner_optional)
    ):
        element = Type(kind.base, optional=kind.inner_optional)
        return why_not(element, next((v for v in value if as_type(element, v) is REJECTED), value))
    if kind.base == "Scalar" and not kind.is_list:
        return f"Cannot cast {value!s} to number"
    if kind.base == "Tensor" and not kind.is_list:
        return f"Unable to cast {value!s} to Tensor"
    return (
        f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or "
        "compile in debug mode for details)"
    )


# ---------------------------------------------------------------------------------------------- operators as Python sees them

torch_api_function = (
    None  # Operator -> OpOverload; `_ops.py`, which is above, says how. In PyTorch: `getTorchApiFunction`
)
changes = 0  # how often libraries have defined or removed operators


class OperatorHandle:
    """An operator of the dispatcher, for Python. In PyTorch: `torch._C._DispatchOperatorHandle`."""

    def __init__(self, operator):
        self._operator = operator

    def schema(self):
        return function_schema(self._operator)

    def debug(self):
        return getattr(self._operator, "debug", "")

    def redispatch_boxed(self, keyset, *args, **kwargs):
        arguments = bind(self._operator.schema, args, kwargs)
        return as_python_sees(self._operator, self._operator.redispatch(keyset, *arguments))


class SafeKernelFunction:
    """One kernel of an operator, which stays the same when others are registered over it."""

    def __init__(self, operator, key):
        self._operator = operator
        self._key = key
        self._kernel, _ = operator.entry(key)

    def call_boxed(self, keyset, *args, **kwargs):
        arguments = bind(self._operator.schema, args, kwargs)
        keys = to_keys(keyset) | (keys_of(arguments) | INFERENCE_MODE) & tls.mask & FACTS
        return as_python_sees(self._operator, self._function_for(keys)(*arguments))

    def _function_for(self, keys):
        """What takes the operator's arguments, for calls with this set."""
        operator, kernel = self._operator, self._kernel
        if not isinstance(kernel, NativeKernel):
            return kernel.for_keys(operator, keys)
        if kernel.function is writers.get(AUTOGRAD if self._key & AUTOGRAD else self._key):
            return kernel.function(operator, keys)
        return operator.completed(kernel.function, keys) if self._key in RUNTIME_BACKENDS else kernel.function

    def __repr__(self):
        return f"SafeKernelFunction(debug='{self._kernel.debug}')"


def call_for_key(operator, key, arguments):
    """The kernel that is registered for one DispatchKey, called with all arguments."""
    return as_python_sees(operator, operator.redispatch(key, *arguments))


def _dispatch_get_computed_kernel_for_dispatch_key(name, key):
    """What calls of an operator reach at a key. RuntimeError if there is no such operator, for alias keys, and for no kernel."""
    if name not in registry:
        raise RuntimeError(f"operator {name} does not exist")
    key = key_of(key)
    if key >= AUTOGRAD_ALIAS:
        raise RuntimeError("Alias keys do not have runtime kernel registrations.")
    if registry[name].entry(key)[0] is None:
        raise RuntimeError(f"no kernel for {key_name(key)} on {name}")
    return SafeKernelFunction(registry[name], key)


def is_defined_in_python(operator):
    """Whether a Library has defined it."""
    return "function_schema" in vars(operator)


def tags_of(operator):
    """The tags of an operator: those of its definition, or of `native_functions.yaml`."""
    defined = getattr(operator, "tags", None)
    return tags.tags_of(operator.schema) if defined is None else defined


def function_schema(operator):
    """The schema with the types that TorchScript's graphs have: `torch.FunctionSchema`."""
    from readtorch.csrc.jit.frontend.function_schema_parser import parse_schema

    return getattr(operator, "function_schema", None) or parse_schema(str(operator.schema))


# ----------------------------------------------------------------------------------------------------- kernels in Python


class PythonKernel:
    """A Python function as a kernel. It is given keyword-only arguments by name, and no argument that has its default where
    nothing after it differs from its own.

    In PyTorch: `PythonKernelHolder`, `parseIValuesToPyArgsKwargs` and `pushPyOutToStack` in
    `torch/csrc/autograd/python_variable.cpp`.
    """

    def __init__(self, operator, function):
        self.operator = operator
        self.function = function
        arguments = operator.schema.arguments
        self.positional = sum(not a.keyword_only for a in arguments)
        self.names = [a.public_name for a in arguments]
        self.defaults = [default_of(a) if a.has_default else _NONE_GIVEN for a in arguments]

    def __call__(self, *arguments):
        return self.returned(self.function(*self.args(arguments), **self.kwargs(arguments)))

    def with_keyset(self, keyset, *arguments):
        return self.returned(self.function(keyset, *self.args(arguments), **self.kwargs(arguments)))

    def args(self, arguments):
        count = self.positional
        while count and _same(self.defaults[count - 1], arguments[count - 1]):
            count -= 1
        return [_as_list(value) for value in arguments[:count]]

    def kwargs(self, arguments):
        places = range(self.positional, len(arguments))
        return {self.names[i]: _as_list(arguments[i]) for i in places if not _same(self.defaults[i], arguments[i])}

    def returned(self, result):
        """What the function returned, as the schema's types."""
        returns = self.operator.schema.returns
        if not returns:
            if result is not None:
                raise RuntimeError(
                    f"Expected PythonKernelHolder for {self.operator.name} to return None but it returned something else "
                    "instead."
                )
            return None
        if len(returns) == 1:
            return _returned_value(returns[0].type, result)
        if not hasattr(result, "__getitem__") or isinstance(result, TensorImpl):
            raise TypeError(f"Object of type '{type(result).__name__}' is not an instance of 'sequence'")
        if len(result) != len(returns):  # in PyTorch: not checked, and memory that is not ours is read
            raise RuntimeError(
                f"Expected PythonKernelHolder for {self.operator.name} to return {len(returns)} values but it returned "
                f"{len(result)}."
            )
        return tuple(_returned_value(r.type, value) for r, value in zip(returns, result))


_NONE_GIVEN = object()


def _same(default, value):
    if default is value:
        return True
    return type(default) is type(value) and not isinstance(value, TensorImpl) and default == value


def _as_list(value):
    return list(value) if type(value) is tuple else value


def _returned_value(kind, value):
    if kind.base in ("ScalarType", "Layout", "MemoryFormat"):
        from readtorch.csrc.jit.ir.enums import as_number

        return as_number(value)
    if value is None and (kind.optional or kind.is_tensor and not kind.is_list):
        return None
    unfit = kind.base == "Scalar" and isinstance(value, TensorImpl)
    converted = REJECTED if unfit else as_type(kind, value)
    if converted is REJECTED:
        raise RuntimeError(why_not(kind, value))
    return _as_list(converted)
