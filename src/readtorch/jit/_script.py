"""`script`: TorchScript from the source of a function, a module or a class; and what it gives for a module.

The parameters, buffers and attributes of a ScriptModule are those of the object that its graphs see; they can be read and
set as in any `nn.Module`.

In PyTorch: `torch/jit/_script.py`. Explained in the chapter "JIT: scripting".
"""

import ast
import enum
import inspect
import textwrap
import warnings
from collections.abc import MutableMapping
from functools import cache, wraps

import readtorch
from readtorch._jit_internal import _get_fn_overloads, is_ignored_fn
from readtorch.csrc.jit.api.compilation_unit import CompilationUnit as _CompilationUnit
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.frontend.definition import build_definition, definition_of, parse_text
from readtorch.csrc.jit.frontend.ir_emitter import compile_lazily
from readtorch.csrc.jit.frontend.resolver import NativeResolver
from readtorch.csrc.jit.frontend.sugared_value import FunctionValue
from readtorch.csrc.jit.ir.constants import qualified_name
from readtorch.csrc.jit.ir.type import ClassType, InterfaceType
from readtorch.csrc.jit.passes.inliner import inlined
from readtorch.csrc.jit.python.pybind_utils import REJECTED, to_ivalue
from readtorch.csrc.jit.python.script_init import (
    Compiled,
    PythonResolver,
    ScriptFunction,
    lookup_in_frame,
    lookup_of_closure,
)
from readtorch.nn import Module

from ._recursive import create_script_module, define_method, interface, script_class  # noqa: F401  in PyTorch: here

__all__ = ["Attribute", "CompilationUnit", "RecursiveScriptModule", "ScriptModule", "script", "script_if_tracing"]

_compiled = {}  # Python function -> ScriptFunction


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compile a function, an `nn.Module` (its `forward` and what that calls) or a class.

    Raises RuntimeError, with the line, where the program is not TorchScript. As a decorator it is used without arguments.
    """
    warnings.warn(
        "`torch.jit.script` is deprecated. Please switch to `torch.compile` or `torch.export`.", DeprecationWarning
    )
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead",
            FutureWarning,
            stacklevel=2,
        )
    if isinstance(obj, ScriptFunction) or hasattr(obj, "_c") and isinstance(obj, readtorch.nn.Module):
        return obj
    if isinstance(obj, readtorch.nn.Module):
        return create_script_module(obj)
    if inspect.isclass(obj):
        return _script_class(obj, _frames_up)
    if inspect.isfunction(obj) or inspect.ismethod(obj):
        return script_function(obj, _rcb)
    raise RuntimeError(
        f"`{obj}` is not a function. Recursive scripting only supports Python functions or methods "
        "currently.\n"
        f"Consider manually annotating `{obj}` with @torch.jit.script."
    )


def _script_class(cls, frames_up):
    if issubclass(cls, readtorch.nn.Module):
        raise RuntimeError(
            f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead"
        )
    if issubclass(cls, enum.Enum):
        return cls  # enums are compiled where they are used
    if hasattr(cls, "_fields") and issubclass(cls, tuple):
        return cls
    script_class(cls, PythonResolver(lookup_in_frame(2 + frames_up)))
    return cls


def script_function(function, lookup=None):
    """The ScriptFunction of a Python function, compiled once."""
    if function not in _compiled:
        compiled = _lazily_compiled(function, lookup)
        _compiled[function] = ScriptFunction(compiled)
        try:
            compiled.ensure_defined()
        except BaseException:
            del _compiled[function]
            raise
        _compiled[function].__doc__ = function.__doc__
        _compiled[function].__wrapped__ = function
    return _compiled[function]


def _lazily_compiled(function, lookup):
    resolver = PythonResolver(lookup or lookup_of_closure(function))
    return compile_lazily(python_cu, qualified_name(function), definition_of(function), resolver)


def definition_function(function, name, resolver):
    """A function of the given qualified name from a Python function: a static method of a class."""
    return compile_lazily(python_cu, name, definition_of(function), resolver)


def define_methods_from_text(concrete, source):
    """Methods of a module from a text in TorchScript."""
    text, tree = parse_text(textwrap.dedent(source), "<string>")
    for node in tree.body:
        definition = build_definition(node, text, defaults=_literal_defaults(node))
        define_method(concrete.type, node.name, None, NativeResolver(), concrete.make_self, definition).ensure_defined()


def try_compile_function(function):
    """The FunctionValue of a Python function that a program calls; None for one that stays in Python."""
    if is_ignored_fn(function):
        return None
    if _get_fn_overloads(function):
        return FunctionValue(*_compiled_overloads(function))
    return FunctionValue(script_function(function)._function)


@cache
def _compiled_overloads(function):
    """The function compiled once for each of its declarations, with their types."""
    made, resolver = [], PythonResolver(lookup_of_closure(function))
    for i, declared in enumerate(_get_fn_overloads(function)):
        definition, types = definition_of(function), definition_of(declared)
        for parameter, typed in zip(definition.parameters, types.parameters, strict=True):
            parameter.annotation = typed.annotation
        definition.returns = types.returns
        made.append(compile_lazily(python_cu, f"{qualified_name(function)}__{i}", definition, resolver))
    return made


def script_if_tracing(fn):
    """Decorator: in a trace `fn` is compiled rather than traced."""

    @wraps(fn)
    def wrapper(*args, **kwargs):
        if readtorch.jit.is_tracing():
            return script_function(fn)(*args, **kwargs)
        return fn(*args, **kwargs)

    wrapper.__original_fn = fn
    return wrapper


class Attribute:
    """`self.x = torch.jit.Attribute(value, type)`: an attribute with a type that does not follow from its value."""

    def __init__(self, value, type):
        self.value = value
        self.type = type


class CompilationUnit:
    """Functions from a text in TorchScript: each is an attribute."""

    def __init__(self, lang=None, _frames_up=0):
        self._unit = _CompilationUnit()
        if lang is not None:
            self.define(lang)

    def define(self, lang, rcb=None, _frames_up=0):
        text, tree = parse_text(textwrap.dedent(lang), "<string>")
        made = []
        for node in tree.body:
            definition = build_definition(node, text, defaults=_literal_defaults(node))
            made.append(compile_lazily(self._unit, node.name, definition, _UnitResolver(self._unit)))
        for function in made:
            function.ensure_defined()
        return self

    def __getattr__(self, name):
        function = self.__dict__["_unit"].find_function(name) if "_unit" in self.__dict__ else None
        if function is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return ScriptFunction(function)


class _UnitResolver(NativeResolver):
    """Functions of one text may call each other."""

    def __init__(self, unit):
        self.unit = unit

    def resolve_value(self, name, emitter, range):
        function = self.unit.find_function(name)
        return super().resolve_value(name, emitter, range) if function is None else FunctionValue(function)


def _literal_defaults(node):
    names = [a.arg for a in node.args.args]
    values = node.args.defaults
    return {name: ast.literal_eval(value) for name, value in zip(names[len(names) - len(values) :], values)}


# -------------------------------------------------------------------------------------------------------------- modules


class _Slots(MutableMapping):
    """The parameters (or the buffers) of an object, as the dictionary that `nn.Module` keeps them in."""

    def __init__(self, object, kind):
        self.object = object
        self.kind = kind

    def _names(self):
        return [a.name for a in self.object.type.attributes if a.kind == self.kind]

    def __getitem__(self, name):
        if name not in self:
            raise KeyError(name)
        return self.object.getattr(name)

    def __setitem__(self, name, value):
        if name not in self:
            raise RuntimeError("Can't add a new parameter after ScriptModule construction. Tried to add '" + name + "'")
        self.object.setattr(name, value)

    def __delitem__(self, name):
        raise RuntimeError("cannot delete methods or parameters of a script module")

    def __contains__(self, name):
        return name in self._names()

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())


class ScriptModule(Module):
    """Base of all modules in TorchScript. `_c` is the object that the graphs are methods of."""

    @property
    def original_name(self):
        """The name of the Python class that it was made from."""
        return self._c.type.name()

    def forward_magic_method(self, name, *args, **kwargs):
        method = self._c.type.findMethod(name)
        if method is None:
            raise NotImplementedError(f'Module [{self.original_name}] is missing the required "{name}" function')
        return method(self._c, *args, **kwargs)

    @property
    def graph(self):
        """The graph of `forward`."""
        return self._c.type.getMethod("forward").graph

    @property
    def inlined_graph(self):
        """The same, with all calls replaced by the graphs of what they call."""
        return inlined(self.graph)

    @property
    def code(self):
        """The graph of `forward` as TorchScript text."""
        return self.code_with_constants[0]

    @property
    def code_with_constants(self):
        from readtorch.csrc.jit.serialization.python_print import code_of_function

        return code_of_function(self._c.type.getMethod("forward"))

    def graph_for(self, *args, **kwargs):
        """The graph that really runs, after optimisation."""
        self(*args, **kwargs)
        return self._c.type.getMethod("forward").executor().plan()[0]

    def define(self, src):
        """Add methods: a text in TorchScript."""
        define_methods_from_text(self._concrete_type, src)

    def save(self, f, **kwargs):
        """Write it to a file."""
        from ._serialization import save

        save(self, str(f), **kwargs)

    def save_to_buffer(self, **kwargs):
        """The bytes of the archive."""
        import io

        from ._serialization import save

        buffer = io.BytesIO()
        save(self, buffer, **kwargs)
        return buffer.getvalue()


class RecursiveScriptModule(ScriptModule):
    """object: a ScriptObject whose type is a module's. concrete: what the compiler knows of it. original: the
    Python module, of which methods that stay in Python are kept."""

    def __init__(self, object, concrete, original=None):
        super().__init__()
        state = self.__dict__
        state.update(
            _c=object,
            _concrete_type=concrete,
            _original=original,
            _parameters=_Slots(object, "parameter"),
            _buffers=_Slots(object, "buffer"),
        )
        for name in ("training", "_is_full_backward_hook"):
            if object.hasattr(name):
                del state[name]

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        return f"original_name={self.original_name}"

    # ------------------------------------------------------------------------------------------ attributes

    def __getattr__(self, attr):
        object = self.__dict__.get("_c")
        if object is None:
            raise AttributeError(f"ScriptModule has not been initialized; '{attr}' is not there yet")
        type = object.type
        if attr in self.__dict__["_modules"]:
            return self.__dict__["_modules"][attr]
        if type.findMethod(attr) is not None:
            return ScriptMethod(object, type.getMethod(attr))
        if type.hasAttribute(attr):
            return object.getattr(attr)
        if attr in type.constants:
            return type.constants[attr]
        if attr in type.properties:
            return ScriptMethod(object, type.getMethod(type.properties[attr][0]))()
        return self._python_attribute(attr)

    def _python_attribute(self, name):
        """What stayed in Python: methods marked `@ignore`, attributes without a type."""
        original = self.__dict__["_original"]
        if original is not None and not name.startswith("__"):
            function = getattr(type(original), name, None)
            if callable(function) and hasattr(function, "__get__"):
                return function.__get__(self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, attr, value):
        object = self.__dict__.get("_c")
        if object is None or attr in self.__dict__ and not object.hasattr(attr):
            super().__setattr__(attr, value)
            return
        if object.hasattr(attr):
            self._set_slot(object, attr, value)
        elif attr in object.type.constants:
            raise AttributeError(f"Cannot mutate TorchScript constant value: '{attr}'. Value: '{value}'")
        else:
            super().__setattr__(attr, value)

    def _set_slot(self, object, name, value):
        found = object.type.getAttribute(name)
        converted = to_ivalue(value, found)
        if converted is REJECTED:
            raise RuntimeError(
                f"Could not assign a value of type {type(value).__name__} to attribute '{name}' of type "
                f"{found.annotation_str}"
            )
        object.setattr(name, converted)
        if isinstance(found, (ClassType, InterfaceType)) and isinstance(value, Module):
            self.__dict__["_modules"][name] = value

    # --------------------------------------------------------------------------------------------- methods

    def forward(self, *args, **kwargs):
        """Run the graph of `forward`."""
        return self.forward_magic_method("forward", *args, **kwargs)

    def __len__(self):
        return (
            len(self._modules) if self._c.type.findMethod("__len__") is None else self.forward_magic_method("__len__")
        )

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, key):
        modules = self._modules
        if isinstance(key, int):
            return list(modules.values())[key]
        return modules[key] if isinstance(key, str) else list(modules.values())[key]

    def __contains__(self, key):
        return key in self._modules

    def __bool__(self):
        return True

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def __reduce_ex__(self, protocol):
        raise RuntimeError("ScriptModules cannot be pickled: use torch.jit.save")

    def _replicate_for_data_parallel(self):
        """A copy of the object alone: `replicate` then sets its submodules, parameters and buffers."""
        return RecursiveScriptModule(self._c.copy(), self._concrete_type, self._original)

    def __copy__(self):
        return _wrapped_copy(self, self._c.copy())

    def __deepcopy__(self, memo):
        import copy

        return _wrapped_copy(self, copy.deepcopy(self._c, memo))


def _wrapped_copy(module, object):
    made = RecursiveScriptModule(object, module._concrete_type, module._original)
    for name, child in module._modules.items():
        made._modules[name] = _wrapped_copy(child, object.getattr(name))
    return made


class ScriptMethod(Compiled):
    """A method of an object, bound to it."""

    def __init__(self, object, function):
        super().__init__(function)
        self._object = object

    def __call__(self, *args, **kwargs):
        return self._function(self._object, *args, **kwargs)

    @property
    def owner(self):
        return self._object
