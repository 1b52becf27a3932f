"""`script`: TorchScript from the source of a function, a module or a class.

In PyTorch: `torch/jit/_script.py`. Explained in the chapter "JIT: scripting".
"""

import ast
import enum
import inspect
import textwrap
import warnings
from functools import cache

import readtorch
from readtorch._jit_internal import _get_fn_overloads, is_ignored_fn
from readtorch.csrc.jit.api.compilation_unit import CompilationUnit as _CompilationUnit
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.frontend.sugared_value import FunctionValue
from readtorch.csrc.jit.frontend.definition import build_definition, definition_of, parse_text
from readtorch.csrc.jit.frontend.ir_emitter import compile_lazily
from readtorch.csrc.jit.frontend.resolver import NativeResolver
from readtorch.csrc.jit.ir.constants import qualified_name
from readtorch.csrc.jit.python.script_init import PythonResolver, ScriptFunction, lookup_in_frame, lookup_of_closure
from readtorch.jit._recursive import create_script_module
from readtorch.jit._script_class import define_method, interface, script_class  # noqa: F401  in PyTorch: here
from readtorch.jit._script_module import RecursiveScriptModule, ScriptModule  # noqa: F401  in PyTorch: here

__all__ = ["Attribute", "CompilationUnit", "script", "script_if_tracing"]

_compiled = {}  # Python function -> ScriptFunction


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compile a function, an `nn.Module` (its `forward` and what that calls) or a class.

    Raises RuntimeError where the program leaves TorchScript, with the line. As a decorator it stands alone.
    """
    warnings.warn(
        "`torch.jit.script` is deprecated. Please switch to `torch.compile` or `torch.export`.",
        DeprecationWarning,
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
            f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing an instance "
            "instead"
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
        define_method(
            concrete.type, node.name, None, NativeResolver(), concrete.make_self, definition
        ).ensure_defined()


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

    def wrapper(*args, **kwargs):
        if readtorch.jit.is_tracing():
            return script_function(fn)(*args, **kwargs)
        return fn(*args, **kwargs)

    wrapper.__original_fn = fn
    return wrapper


class Attribute:
    """`self.x = torch.jit.Attribute(value, type)`: an attribute with a type that its value does not tell."""

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
