"""Which signatures an operator has, and its arguments in the order of one of them. In PyTorch: `torch/fx/operator_schemas.py`."""

import enum
import functools
import inspect
import numbers
import typing
import warnings
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import readtorch
from readtorch._jit_internal import boolean_dispatched
from readtorch._ops import OpOverload, OpOverloadPacket, ops

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "get_signature_for_torch_op",
    "create_type_hint",
    "type_matches",
    "normalize_function",
    "normalize_module",
]


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call: `args`, a tuple, and `kwargs`, a dict."""

    args: tuple
    kwargs: dict


# ------------------------------------------------------------------------------------------------- signatures


class _Torch:
    """What types in schemas that are classes are called by: `__torch__.torch.classes.…`."""

    def __getattr__(self, name):
        if name == "torch":
            return readtorch
        raise RuntimeError("Expected a torch namespace lookup")


@functools.cache
def _types():
    """What the names in a schema's types mean."""
    return {name: getattr(typing, name) for name in dir(typing)} | {
        "Tensor": readtorch.Tensor,
        "Device": readtorch.device,
        "Layout": readtorch.layout,
        "number": numbers.Number,
        "Future": readtorch.jit.Future,
        "AnyEnumType": enum.Enum,
        "__torch__": _Torch(),
        "NoneType": type(None),
        "Storage": readtorch.UntypedStorage,
        "t": typing.TypeVar("t"),
        "PyObject": Any,
    }


def _python_type(type):
    return eval(type.annotation_str, _types())


@functools.cache
def _signature_of_overload(overload):
    return _torchscript_schema_to_signature(overload._schema)


def _torchscript_schema_to_signature(schema):
    """A FunctionSchema as a Signature: `self` is called input there, and what stands before `from` goes by position."""
    parameters = []
    for argument in schema.arguments:
        default = argument.default_value if argument.has_default_value() else Parameter.empty
        kind = Parameter.KEYWORD_ONLY if argument.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD
        name = "input" if argument.name == "self" else argument.name
        if name == "from":  # a word of Python's: nobody can pass it by name
            kind = Parameter.POSITIONAL_ONLY
            parameters = [parameter.replace(kind=kind) for parameter in parameters]
        parameters.append(Parameter(name, kind, default=default, annotation=_python_type(argument.type)))
    returns = [_python_type(result.type) for result in schema.returns]
    annotation = returns[0] if len(returns) == 1 else tuple(returns) or None
    return Signature(parameters, return_annotation=annotation)


@functools.cache
def _nonzero_signatures():
    """The two of `nonzero`, of which the schema knows one."""
    tensor = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD, annotation=readtorch.Tensor)
    as_tuple = Parameter("as_tuple", Parameter.KEYWORD_ONLY, annotation=bool)
    return [Signature([tensor]), Signature([tensor, as_tuple])]


def _overloads(op):
    """The operators that a function of `torch`, a packet or an overload may call; None if it is none."""
    if isinstance(op, OpOverload):
        return [op]
    if not isinstance(op, OpOverloadPacket):
        name = readtorch.jit._builtins.find_builtin(op)
        op = name and getattr(ops.aten, name.removeprefix("aten::"), None)
        if not isinstance(op, OpOverloadPacket):  # functions of Python that TorchScript has as operators
            return None
    return [getattr(op, overload) for overload in op.overloads()]


def get_signature_for_torch_op(op, return_schemas=False):
    """The list of `inspect.Signature`s of an operator's overloads, None for what is no operator.

    return_schemas: the pair of that and the list of FunctionSchemas.
    """
    if op is readtorch.nonzero:
        return (_nonzero_signatures(), None) if return_schemas else None
    overloads = _overloads(op)
    if overloads is None:
        return (None, None) if return_schemas else None
    signatures = [_signature_of_overload(overload) for overload in overloads]
    return (signatures, [overload._schema for overload in overloads]) if return_schemas else signatures


def _matching(signatures, args, kwargs):
    """(position, signature) of those that the arguments can be bound to."""
    found = []
    for i, signature in enumerate(signatures):
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        found.append((i, signature))
    return found


def check_for_mutable_operation(target, args, kwargs):
    """Raises RuntimeError if the call writes to one of its arguments: if it fits one schema, and that one does."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    matching = _matching(signatures, args, kwargs) if signatures and schemas else []
    if len(matching) == 1 and schemas[matching[0][0]].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {schemas[matching[0][0]]}. FX only supports functional code, so operations "
            f"that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


# ------------------------------------------------------------------------------------------------------ types


def create_type_hint(x):
    """list[T] for a list of types, with T the class of all; tuple[T, …] for a tuple. Anything else is returned as it is."""
    try:
        if isinstance(x, (list, tuple)):
            element = _common_type(x)
            return list[element] if isinstance(x, list) else tuple[element, ...]
    except Exception:
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
    return x


def _common_type(types):
    base = types[0] if types else Any
    for t in types:
        if issubclass(base, t):
            base = t
        elif not issubclass(t, base):
            return Any
    return base


def type_matches(signature_type, argument_type):
    """Whether an argument of one type may stand where a signature wants the other."""
    origin = typing.get_origin(signature_type)
    if signature_type is argument_type:
        return True
    if origin is typing.Union and signature_type != argument_type:
        return any(type_matches(member, argument_type) for member in typing.get_args(signature_type))
    if origin is list:
        return _list_type_matches(signature_type, argument_type)
    if signature_type is int and argument_type is readtorch.dtype:
        return True  # schemas say int for element types
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    return (
        inspect.isclass(argument_type) and inspect.isclass(signature_type) and issubclass(argument_type, signature_type)
    )


def _list_type_matches(signature_type, argument_type):
    [element] = typing.get_args(signature_type)
    if argument_type is int and element is int:
        return True  # one number for all
    if not inspect.isclass(element):
        warnings.warn(
            f"Does not support nested parametric types, got {signature_type}. Please file a bug.", stacklevel=3
        )
        return False
    given = typing.get_args(argument_type)
    if typing.get_origin(argument_type) is list:
        return issubclass(given[0], element)
    if typing.get_origin(argument_type) is not tuple:
        return False
    return given == ((),) or all(kind is Ellipsis or issubclass(kind, element) for kind in given)


# --------------------------------------------------------------------------------------------------- arguments


def normalize_function(target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """The arguments of target(*args, **kwargs) with names and defaults, an ArgsKwargsPair; None if no signature is found.

    arg_types, kwarg_types: choose among overloads that all fit. normalize_to_only_use_kwargs: nothing by position.
    Raises RuntimeError if several overloads fit and no types are given.
    """
    kwargs = kwargs or {}
    signatures = get_signature_for_torch_op(target)
    if signatures is None and not isinstance(target, (OpOverload, OpOverloadPacket)):
        signature = _signature_of_function(target)
        return signature and _bound(signature, args, kwargs, normalize_to_only_use_kwargs)
    matching = [signature for _, signature in _matching(signatures, args, kwargs)]
    if len(matching) > 1:
        if arg_types is None and kwarg_types is None:
            printed = "\n".join(str(signature) for signature in matching)
            raise RuntimeError(
                f"Tried to normalize arguments to {readtorch.typename(target)} but the schema match was ambiguous! "
                f"Please provide argument types to the normalize_arguments() call. Available schemas:\n{printed}"
            )
        matching = [s for s in signatures if _types_match(s, arg_types or (), kwarg_types or {})]
    return _bound(matching[0], args, kwargs, normalize_to_only_use_kwargs) if matching else None


def _signature_of_function(target):
    """The signature of a function that is written in Python, in PyTorch as here; None if it depends on the call."""
    if target in boolean_dispatched:
        if_true, if_false = boolean_dispatched[target][-2:]
        if inspect.signature(if_true).parameters != inspect.signature(if_false).parameters:
            return None
        target = if_true
    return inspect.signature(inspect.unwrap(target))


def _types_match(signature, arg_types, kwarg_types):
    try:
        bound = signature.bind(*arg_types, **kwarg_types).arguments
    except TypeError:
        return False
    return all(type_matches(signature.parameters[name].annotation, given) for name, given in bound.items())


def normalize_module(root, target, args, kwargs=None, normalize_to_only_use_kwargs=False):
    """The same for a call of the submodule `target` of `root`; None unless its class is one of `torch.nn`."""
    try:
        submodule = root.get_submodule(target)
    except AttributeError as e:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!") from e
    if getattr(readtorch.nn, type(submodule).__name__, None) is not type(submodule):
        return None
    signature = inspect.signature(inspect.unwrap(submodule.forward))
    return _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _bound(signature, args, kwargs, only_kwargs):
    names = list(signature.parameters)
    usual = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    if any(p.kind not in usual for p in signature.parameters.values()) and names != [
        "input",
        "from",
        "to",
        "generator",
    ]:
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    count = 0 if only_kwargs else len(args)
    positional = tuple(bound.arguments[name] for name in names[:count])
    return ArgsKwargsPair(positional, {name: bound.arguments[name] for name in names[count:]})
