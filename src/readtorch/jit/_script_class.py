"""Python classes as TorchScript types.

In PyTorch: `_compile_and_register_class` in `torch/jit/_recursive.py`. Explained in the chapter "JIT:
scripting".
"""

import inspect
from functools import cache

import readtorch
from readtorch._jit_internal import get_torchscript_modifier, should_drop
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.frontend.definition import build_definition, definition_of, parse_text
from readtorch.csrc.jit.frontend.ir_emitter import compile_lazily
from readtorch.csrc.jit.frontend.resolver import NativeResolver
from readtorch.csrc.jit.python.script_init import PythonResolver, lookup_of_closure
from readtorch.csrc.jit.frontend.script_type_parser import ScriptTypeParser
from readtorch.csrc.jit.ir.constants import qualified_name
from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.type import ClassType, InterfaceType, TensorType
from readtorch.jit._dataclass_impls import synthesized_methods
from readtorch.jit._unused import unused_definition
from readtorch.nn import Module

_script_classes = {}  # Python class -> ClassType


def try_script_class(cls):
    """The ClassType of a class that is or can be compiled; None if it cannot."""
    if cls in _script_classes:
        return _script_classes[cls]
    interface = cls.__dict__.get("__torch_script_interface__")
    if interface is not None:
        return interface
    if not isinstance(cls.__dict__.get("__init__"), type(try_script_class)):
        return None
    try:
        return script_class(cls, PythonResolver(lookup_of_closure(cls.__init__)))
    except OSError:
        return None


def script_class(cls, resolver):
    """Compile a class: `__init__`, which declares the attributes, then its other methods."""
    if cls in _script_classes:
        return _script_classes[cls]
    type = _script_classes[cls] = ClassType(
        python_cu.free_name(qualified_name(cls)), python_cu, doc=cls.__doc__ or ""
    )
    python_cu.register_type(type)
    try:
        _define_methods(cls, type, PythonResolver(resolver.lookup, (cls.__name__, type)))
    except BaseException:
        del _script_classes[cls], python_cu.types[type.qualified]
        raise
    return type


def _define_methods(cls, type, resolver):
    made, synthesized = [], synthesized_methods(cls)
    for name, member in cls.__dict__.items():
        if isinstance(member, property):
            made += _define_property(type, name, member, resolver)
        elif inspect.isfunction(member) and get_torchscript_modifier(member) != "drop":
            made.append(define_method(type, name, member, resolver, definition=synthesized.get(name)))
        elif isinstance(member, staticmethod):
            from readtorch.jit._script import definition_function

            type.static_methods[name] = definition_function(
                member.__func__, qualified_name(member.__func__), resolver
            )
    for method in sorted(made, key=lambda m: m.name != "__init__"):
        method.ensure_defined()


def _define_property(type, name, member, resolver):
    getter = define_method(type, f"__{name}_getter", member.fget, resolver)
    setter = member.fset and define_method(type, f"__{name}_setter", member.fset, resolver)
    type.properties[name] = (getter.name, setter.name if setter else None)
    return [m for m in (getter, setter) if m]


def define_method(type, name, function, resolver=None, make_self=None, definition=None):
    """A method of a class; its graph is made when it is first asked for."""
    if definition is None:
        definition = (
            unused_definition(function, name) if should_drop(function) else definition_of(function, name)
        )
    resolver = resolver or PythonResolver(lookup_of_closure(function))
    method = compile_lazily(
        type.compilation_unit, f"{type.qualified}.{name}", definition, resolver, make_self, type
    )
    type.addMethod(method)
    return method


# In PyTorch: the classes are compiled as they stand. Ours switch a dispatch mask (`autograd/grad_mode.py`), of which
# TorchScript knows nothing.
_GRAD_MODE = """
def __init__(self) -> None:
    self.prev = False

def __enter__(self) -> None:
    self.prev = torch.is_grad_enabled()
    torch.set_grad_enabled({enabled})

def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
    torch.set_grad_enabled(self.prev)
"""


@cache
def grad_mode_class(cls):
    """The ClassType of `no_grad` or `enable_grad`; None for any other class."""
    if cls not in (readtorch.no_grad, readtorch.enable_grad):
        return None
    type = python_cu.register_type(ClassType(qualified_name(cls), python_cu))
    text, tree = parse_text(_GRAD_MODE.format(enabled=cls is readtorch.enable_grad))
    methods = [
        define_method(type, node.name, None, NativeResolver(), None, build_definition(node, text))
        for node in tree.body
    ]
    for method in methods:
        method.ensure_defined()
    return type


def interface(cls):
    """Decorator: a class whose methods say what a type must have. An attribute that is annotated with it may hold
    any module, or object, that has these methods.
    """
    is_module = issubclass(cls, Module)
    type = InterfaceType(python_cu.free_name(qualified_name(cls)), {}, is_module)
    python_cu.register_type(type)
    for name, function in cls.__dict__.items():
        if inspect.isfunction(function) and name != "__init__":
            type.schemas[name] = _declared_schema(type, name, function)
    cls.__torch_script_interface__ = type
    return cls


def _declared_schema(type, name, function):
    definition = definition_of(function, name)
    parser = ScriptTypeParser(definition.text, PythonResolver(lookup_of_closure(function)))
    if definition.returns is None:
        raise RuntimeError("interface declarations must have a return type annotated.")
    arguments = [Argument("self", type)]
    for parameter in definition.parameters[1:]:
        annotated = parameter.annotation is not None
        found = parser.type(parameter.annotation) if annotated else TensorType.get()
        arguments.append(Argument(parameter.name, found))
    return FunctionSchema(name, "", tuple(arguments), (Argument("", parser.type(definition.returns)),))
