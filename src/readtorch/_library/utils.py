"""Questions about schemas and operators that the parts of `torch.library` share.

In PyTorch: `torch/_library/utils.py`. Explained in the chapter "One operator call".
"""

import dataclasses
import inspect
import sys
from collections.abc import Callable

from readtorch import _C, _ops
from readtorch._tensor import Tensor
from readtorch.aten.tags import Tag
from readtorch.c10.layout import strided
from readtorch.csrc.jit.ir.type import DeviceObjType, ListType, OptionalType, TensorType


@dataclasses.dataclass
class Kernel:
    """A function, and where it was registered: "file.py:12"."""

    func: Callable
    source: str

    def __call__(self, *args, **kwargs):
        return self.func(*args, **kwargs)


class RegistrationHandle:
    """`destroy()` takes a registration back."""

    def __init__(self, on_destroy):
        self._on_destroy = on_destroy

    def destroy(self):
        self._on_destroy()


def get_source(stacklevel):
    """Where the function `stacklevel` callers up stands: "file.py:12"."""
    frame = inspect.getframeinfo(sys._getframe(stacklevel))
    return f"{frame.filename}:{frame.lineno}"


# -------------------------------------------------------------------------------------------------------- names


def parse_namespace(qualname):
    """("mylib", "add.out") for "mylib::add.out". Raises ValueError if there is no namespace, or more than one."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return tuple(parts)


def lookup_op(qualname):
    """The OpOverload of a full name. Raises AttributeError if there is none."""
    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    packet = getattr(getattr(_ops.ops, namespace), name)
    return getattr(packet, overload or "default")


def is_builtin(op):
    return op.namespace in {"aten", "prim", "prims"}


# -------------------------------------------------------------------------------------------------------- types


def is_tensor_like_type(typ):
    return _without_optional(typ) == TensorType.get()


def is_tensorlist_like_type(typ):
    """Tensor[], Tensor?[], Tensor[]?, Tensor?[]?"""
    typ = _without_optional(typ)
    return isinstance(typ, ListType) and is_tensor_like_type(typ.getElementType())


def _without_optional(typ):
    return typ.getElementType() if isinstance(typ, OptionalType) else typ


def _holds_tensors(argument):
    return is_tensor_like_type(argument.type) or is_tensorlist_like_type(argument.type)


# ------------------------------------------------------------------------------------------------------ schemas


def is_out(op):
    """Whether it writes its results to keyword-only arguments, which it does not read."""
    return Tag.out in op.tags


def is_inplace(op):
    """Whether it writes to its first argument and returns it."""
    return Tag.inplace in op.tags


def is_functional_schema(schema, *, allow_valid_view=False):
    """Whether an operator writes to nothing, returns something, and returns no views.

    allow_valid_view: one view of the only tensor may be returned.
    """
    schema = _C.parse_schema(schema) if isinstance(schema, str) else schema
    if schema.is_mutable or not schema.returns:
        return False
    if not any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns):
        return True
    tensors = [sum(isinstance(a.type, TensorType) for a in some) for some in (schema.arguments, schema.returns)]
    return allow_valid_view and tensors == [1, 1]


def has_kwarg_only_args(schema):
    return any(a.kwarg_only for a in schema.arguments)


def has_kwarg_only_tensors(schema):
    return any(a.kwarg_only and _holds_tensors(a) for a in schema.arguments)


def has_tensor_arg(schema):
    return any(map(_holds_tensors, schema.arguments))


def get_device_arg_index(schema):
    """The place of the argument `device`, or None."""
    places = [i for i, a in enumerate(schema.arguments) if a.name == "device" and isinstance(a.type, DeviceObjType)]
    return places[0] if places else None


def mutated_args_kwargs(schema):
    """(places of the arguments that are written to, names of the keyword-only ones)"""
    written = [(i, a) for i, a in enumerate(schema.arguments) if a.is_write]
    return [i for i, a in written if not a.kwarg_only], [a.name for _, a in written if a.kwarg_only]


def fill_defaults(schema, args, kwargs):
    """The arguments with those that were left out, because they have their defaults: kernels are not given them."""
    positional = [a for a in schema.arguments if not a.kwarg_only]
    keyword_only = [a for a in schema.arguments if a.kwarg_only]
    left_out = [a.default_value for a in positional[len(args) :]]
    return (*args, *left_out), {a.name: kwargs.get(a.name, a.default_value) for a in keyword_only}


def zip_schema(schema, args, kwargs):
    """(argument of the schema, value) for the values that were given."""
    if len(schema.arguments) < len(args) + len(kwargs):
        raise AssertionError(
            f"schema has {len(schema.arguments)} arguments but got {len(args)} args and {len(kwargs)} kwargs"
        )
    for place, argument in enumerate(schema.arguments):
        if place < len(args) and not argument.kwarg_only:
            yield argument, args[place]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


# ------------------------------------------------------------------------------------- what a fake kernel can know


def can_generate_trivial_fake_impl(op):
    """Whether what an operator does to shapes follows from its schema: it returns what it writes to, or nothing."""
    if is_builtin(op):
        return False
    return is_out(op) or is_inplace(op) or op._schema.is_mutable and not op._schema.returns


def generate_trivial_fake_impl(op, *args, **kwargs):
    """The results of such an operator."""
    if is_inplace(op):
        return args[0]
    if not is_out(op):
        return None
    outs = tuple(kwargs[name] for name in mutated_args_kwargs(op._schema)[1])
    return outs[0] if len(outs) == 1 else outs


# ----------------------------------------------------------------------------------------------------- aliasing


def iter_tensors(args, kwargs, allowed_nesting=1):
    """The tensors among arguments, and in lists and tuples among them."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            yield value
        elif allowed_nesting > 0 and isinstance(value, (tuple, list)):
            yield from iter_tensors(value, {}, allowed_nesting - 1)


def storage_of(tensor):
    """What two tensors share that share memory. A sparse tensor, which has no storage, shares with itself alone."""
    return tensor.untyped_storage()._impl if tensor.layout == strided else tensor


def check_aliasing_constraint(name, prev, result, get_module=lambda: "???"):
    """Raises RuntimeError if a result shares its storage with one of the tensors `prev`, or with another result."""
    storages = {storage_of(t) for t in prev if isinstance(t, Tensor)}
    for tensor in iter_tensors(result if isinstance(result, tuple) else (result,), {}):
        storage = storage_of(tensor)
        if storage in storages:
            raise RuntimeError(
                f"{name} (with implementation in {get_module()}): The output of this custom operator (1) must not also be an "
                "input to this custom operator and (2) may not alias any inputs to this custom operator or other returns. "
                "The most common way to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. "
                "Please instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the "
                "custom operator to not return y."
            )
        storages.add(storage)
