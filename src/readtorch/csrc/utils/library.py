"""Registers operators and kernels, and takes them back.

In PyTorch: `aten/src/ATen/core/library.cpp`. Explained in the chapter "One operator call".
"""

import copy
import functools
import weakref
from dataclasses import replace

from readtorch.aten.dispatcher import Operator, fallbacks, fallthrough, make_call, registry, remove, set_fallback
from readtorch.aten.function_schema import Argument, Return, Schema, Type
from readtorch.c10.dispatch_key import ADINPLACEORVIEW, AUTOGRAD, key_name, keys_below
from readtorch.c10.dispatch_key_set import from_keys, key_of
from readtorch.csrc.autograd.autograd_not_implemented_fallback import inplace_or_view_fallback
from readtorch.csrc.jit.frontend.function_schema_parser import parse_schema
from readtorch.csrc.jit.ir.type import ListType, OptionalType

from . import python_dispatch
from .python_dispatch import PythonKernel

_TITLES = {"DEF": "TORCH_LIBRARY", "IMPL": "TORCH_LIBRARY_IMPL", "FRAGMENT": "TORCH_LIBRARY_FRAGMENT"}

_namespaces = {
    "aten": "registered at readtorch/aten/native"
}  # namespace -> where it was defined, of those that have a DEF
_registrations = {}  # full name of an operator -> the kernels that were registered for it, which may be before it is defined
# Full name -> the Operator, also when it is not defined any more: who holds it calls the next that is defined under its name.
_operators = weakref.WeakValueDictionary()


class Registration:
    """One kernel of one operator, from `impl` to `reset`. It waits until the operator is defined."""

    def __init__(self, name, key, function, with_keyset, debug):
        self.name, self.key, self.function, self.with_keyset, self.debug = name, key, function, with_keyset, debug
        self.handle = None
        _registrations.setdefault(name, []).append(self)
        if name in registry:
            self.apply(registry[name])

    def apply(self, operator):
        if self.function is fallthrough:
            self.handle = operator.set_kernel(self.key, fallthrough, debug=self.debug)
            return
        kernel = PythonKernel(operator, self.function)
        self.handle = operator.set_kernel(
            self.key, kernel.with_keyset if self.with_keyset else kernel, with_keyset=self.with_keyset, debug=self.debug
        )

    def remove(self):
        _registrations[self.name].remove(self)
        if self.handle is not None and self.name in registry:
            self.handle.remove()
        self.handle = None


class Library:
    """Registers operators and kernels; `reset` takes all of them back. In PyTorch: `torch::Library`."""

    def __init__(self, kind, namespace, dispatch_key, file, line):
        self.kind, self.namespace = kind, namespace
        self.key = key_of(dispatch_key) if dispatch_key else None
        self.debug = f"registered at {file}:{line}"
        self.context = f"(Error occurred while processing {_TITLES[kind]} block at {file}:{line})"
        self.undo = []
        title = _TITLES[kind]
        if kind != "IMPL" and namespace == "_":
            raise RuntimeError(
                f"{title}: cannot define {title} with the wildcard namespace _ (every {title} defines operators for a distinct "
                f"namespace!) Did you mean to use TORCH_LIBRARY_IMPL instead?  {self.context}"
            )
        if kind != "IMPL" and self.key is not None:
            raise RuntimeError(f"a {title} block has no dispatch key. {self.context}")
        if kind == "DEF":
            self._claim_namespace()

    def _claim_namespace(self):
        if self.namespace in _namespaces:
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {self.namespace}; please put all of your "
                "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, consider using "
                "TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define operators for a single "
                "namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to explicitly indicate this.  Previous "
                f"registration of TORCH_LIBRARY was {_namespaces[self.namespace]}; latest registration was {self.debug}"
            )
        _namespaces[self.namespace] = self.debug
        self.undo.append(lambda: _namespaces.pop(self.namespace))

    def define(self, text, alias_analysis="", tags=()):
        """A new operator. Returns its name as the schema spells it."""
        schema = parse_schema(text, allow_typevars=False)
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema.full_name}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All def()s should '
                f"be placed in the (unique) TORCH_LIBRARY block for their namespace.  {self.context}"
            )
        operator = self._new_operator(replace(schema, name=self._in_namespace(schema.name)), tags)
        registry[operator.name] = operator
        python_dispatch.changes += 1
        for registration in _registrations.get(operator.name, ()):
            registration.apply(operator)
        self.undo.append(lambda: _remove(operator))
        return schema.name

    def _in_namespace(self, name):
        namespace = name.partition("::")[0]
        if "::" not in name:
            return f"{self.namespace}::{name}"
        if namespace != self.namespace:
            raise RuntimeError(
                f"Explicitly provided namespace ({namespace}) in schema string does not match namespace of enclosing "
                f"{_TITLES[self.kind]} block ({self.namespace}).  Move this definition to the (unique) TORCH_LIBRARY block "
                f"corresponding to this namespace (and consider deleting the namespace from your schema string.)  {self.context}"
            )
        return name

    def _new_operator(self, schema, tags):
        if schema.full_name in registry:
            raise RuntimeError(
                f"Tried to register an operator ({schema}) with the same name and overload name multiple times. Each "
                "overload's schema should only be registered with a single call to def(). Duplicate registration: "
                f"{self.debug}. Original registration: {python_dispatch.OperatorHandle(registry[schema.full_name]).debug()}"
            )
        operator = _operators.get(schema.full_name)
        if operator is None:
            operator = _operators[schema.full_name] = Operator(dispatcher_schema(schema))
        operator.schema = dispatcher_schema(schema)
        operator.function_schema, operator.tags, operator.debug = schema, list(tags), self.debug
        operator.call = entry(operator, operator.table)
        operator.call_from_python = entry(operator, operator.binding_table)
        return operator

    def impl(self, name, key, function, with_keyset=False):
        """A kernel for an operator, which may be defined later."""
        key = key_of(key)
        prelude = f'impl("{name}", ...): Explicitly provided '
        namespace = name.partition("::")[0] if "::" in name else self.namespace
        block = f"{_TITLES[self.kind]} block"
        if namespace != self.namespace:
            raise RuntimeError(
                f"{prelude}namespace ({namespace}) in operator name does not match namespace of enclosing {block} "
                f"({self.namespace}).  Move this definition to the {block} corresponding to this namespace (and consider "
                f"deleting the namespace from your schema string.)  {self.context}"
            )
        if self.key is not None and key != self.key:
            raise RuntimeError(
                f"{prelude}dispatch key ({key_name(key)}) is inconsistent with the dispatch key of the enclosing {block} "
                f"({key_name(self.key)}).  Please declare a separate {block} for this dispatch key and move your impl() "
                f"there.  {self.context}"
            )
        full_name = name if "::" in name else f"{self.namespace}::{name}"
        registration = Registration(full_name, key, function, with_keyset, self.debug)
        self.undo.append(registration.remove)

    def fallback(self, key, function, with_keyset=False):
        """What every operator does at a key that has no kernel for it: function(op, *args, **kwargs)."""
        if self.kind != "IMPL":
            raise RuntimeError(
                f"fallback(...): Cannot define an operator inside of a {_TITLES[self.kind]} block.  Did you mean to call this "
                f"function inside a TORCH_LIBRARY_IMPL block?  {self.context}"
            )
        key = key_of(key)
        if key in fallbacks:
            raise RuntimeError(
                f"Tried to register multiple backend fallbacks for the same dispatch key {key_name(key)}; previous registration "
                f"{fallbacks[key].debug}, new registration {self.debug}"
            )
        if function is not fallthrough:
            function = _boxed(function, with_keyset, key)
        self.undo.append(set_fallback(key, function, debug=self.debug).remove)

    def register_ad_inplace_or_view_fallback(self, name):
        """At ADInplaceOrView: results that the schema calls views are marked as such, what is written to gets a version."""
        handle = registry[self._in_namespace(name)].set_kernel(
            ADINPLACEORVIEW, inplace_or_view_fallback, boxed=True, debug=self.debug
        )
        self.undo.append(handle.remove)

    def reset(self):
        for undo in reversed(self.undo):
            undo()
        self.undo.clear()


def _boxed(function, with_keyset, key):
    """A Python function as the fallback of `key`. It sees the keys that are left: this one and those below."""

    def fallback(operator, keys, args, kwargs):
        highest = AUTOGRAD if key & AUTOGRAD else key
        first = (from_keys(keys & (keys_below(highest) | highest)),) if with_keyset else ()
        op = python_dispatch.torch_api_function(operator)
        return PythonKernel(operator, functools.partial(function, *first, op))(*args)

    return fallback


def _remove(operator):
    """Takes an operator out of the dispatcher; kernels that others registered wait for the next of its name."""
    if registry.get(operator.name) is operator:
        remove(operator)
        for registration in _registrations.get(operator.name, ()):
            registration.handle = None
        python_dispatch.changes += 1


def entry(operator, table):
    """`operator.call` (with its table) for a schema that may name its arguments as it likes: what is generated calls them a0, a1 …"""
    arguments = [replace(a, name=f"a{i}") for i, a in enumerate(operator.schema.arguments)]
    stand_in = copy.copy(operator)
    stand_in.schema = replace(operator.schema, arguments=tuple(arguments))
    return make_call(stand_in, table)


def dispatcher_schema(schema):
    """A FunctionSchema as the dispatcher knows schemas."""
    namespace, name = schema.name.split("::")
    arguments = tuple(
        Argument(a.name, _dispatcher_type(a), a.default_value, a.has_default, a.kwarg_only) for a in schema.arguments
    )
    returns = tuple(Return(_dispatcher_type(r), r.name or None) for r in schema.returns)
    return Schema(name, schema.overload_name, arguments, returns, str(schema).removeprefix(f"{namespace}::"), namespace)


def _dispatcher_type(argument):
    """Tensor(a!)[]?: an optional list of tensors that are written to."""
    kind = argument.type
    optional = isinstance(kind, OptionalType)
    kind = kind.getElementType() if optional else kind
    is_list = isinstance(kind, ListType)
    kind = kind.getElementType() if is_list else kind
    inner_optional = is_list and isinstance(kind, OptionalType)
    kind = kind.getElementType() if inner_optional else kind
    base = argument.real_name if argument.real_name not in (None, "SymInt") else kind.str()
    alias = argument.alias_info
    return Type(
        base,
        is_list,
        argument.N,
        optional,
        inner_optional,
        sorted(alias.before)[0] if alias else None,
        bool(alias and alias.is_write),
        argument.real_name == "SymInt",
    )
