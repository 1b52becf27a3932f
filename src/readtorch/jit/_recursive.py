"""Python modules and classes as TorchScript types: attributes, constants, submodules, and which methods are compiled.

In PyTorch: `torch/jit/_recursive.py`, `get_jit_def` in `torch/jit/frontend.py`,
`torch/csrc/jit/frontend/concrete_module_type.h`, `torch/csrc/jit/python/script_init.cpp`. Explained in the chapter "JIT:
scripting".
"""

import ast
import inspect
import warnings
from contextlib import contextmanager
from functools import cache

import readtorch
from readtorch import nn
from readtorch._jit_internal import (
    EXPORT,
    _get_fn_overloads,
    get_torchscript_modifier,
    is_final,
    is_ignored_fn,
    should_drop,
)
from readtorch.c10.module_names import is_in
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.api.module import ScriptModule
from readtorch.csrc.jit.frontend.definition import build_definition, definition_of, parse_object, parse_text
from readtorch.csrc.jit.frontend.ir_emitter import compile_lazily
from readtorch.csrc.jit.frontend.resolver import NativeResolver
from readtorch.csrc.jit.frontend.script_type_parser import ScriptTypeParser
from readtorch.csrc.jit.ir.constants import qualified_name, type_of_value
from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.type import (
    BoolType,
    ClassType,
    FunctionType,
    InterfaceType,
    NoneType,
    OptionalType,
    TensorType,
)
from readtorch.csrc.jit.python.pybind_utils import REJECTED, to_ivalue
from readtorch.csrc.jit.python.python_sugared_value import ModuleValue
from readtorch.csrc.jit.python.script_init import PythonResolver, lookup_of_closure
from readtorch.nn import Module

from ._builtins import find_builtin
from ._dataclass_impls import synthesized_methods
from .annotations import annotation_to_type


def methods_to_compile(module):
    """`forward`, unless it is ignored or missing, and the methods marked `@export`."""
    names = []
    forward = getattr(module.forward, "__func__", None)
    if forward is not None and forward is not nn.Module.forward and not is_ignored_fn(forward):
        names.append("forward")
    cls = type(module)
    names += [n for n in dir(cls) if get_torchscript_modifier(getattr(cls, n, None)) == EXPORT and n not in names]
    return names


def create_script_module(module):
    """A RecursiveScriptModule of an `nn.Module`. Raises RuntimeError for what cannot be compiled."""
    _check_initialized(module)
    with types_kept_only_on_success():
        return _create(module, concrete_type_of(module), methods_to_compile)


def _check_initialized(module):
    for name, tensor in [*module._parameters.items(), *module._buffers.items()]:
        if tensor is not None and nn.parameter.is_lazy(tensor):
            kind = "parameters" if name in module._parameters else "buffers"
            raise RuntimeError(
                f"'{readtorch.typename(type(module))}' has uninitialized {kind} {name}. Did you forget to "
                "run a "
                "forward pass?"
            )


def _create(module, concrete, names_of):
    from ._script import RecursiveScriptModule

    if isinstance(module, RecursiveScriptModule):
        return module
    names = names_of(module)
    object = ScriptModule(concrete.type)
    for name, found, _ in concrete.attributes:
        object.setattr(name, _attribute_value(module, name, found))
    scripted = RecursiveScriptModule(object, concrete, original=module)
    for name, child_type in concrete.modules.items():
        child = module._modules[name]
        if isinstance(child_type.type, InterfaceType):
            wanted = list(child_type.type.schemas)
            made = _create(child, concrete_type_of(child), lambda m: wanted)
        else:
            made = _create(child, child_type, names_of)
        object.setattr(name, made._c)
        scripted._modules[name] = made
    concrete.compile_all(names)
    return scripted


def _attribute_value(module, name, found):
    value = getattr(module, name)
    value = value.value if isinstance(value, readtorch.jit.Attribute) else value
    converted = to_ivalue(value, found)
    if converted is REJECTED:
        raise RuntimeError(f"Could not cast attribute '{name}' to type {found.annotation_str}: {value!r}")
    return converted


# ---------------------------------------------------------------------------------- what the compiler knows of a module


_CONTAINERS = (
    (nn.ModuleDict, "dict"),
    ((nn.ModuleList, nn.Sequential), "list"),
    (nn.ParameterList, "parameters"),
    (nn.ParameterDict, "parameter dict"),
)
_OF_EVERY_MODULE = set(nn.Module().__dict__) - {"training", "_is_full_backward_hook"}
_CONSTANT_TYPES = (bool, float, int, str, type(None), readtorch.device, readtorch.layout, readtorch.dtype)


class ConcreteModuleType:
    """What is known of a module while compiling: more than its TorchScript type, which modules of one shape
    share.

    attributes: [(name, type, kind)]; modules: name -> ConcreteModuleType; constants: name -> value;
    functions, builtins: Python functions that are attributes; failed: name -> why an attribute has no type.
    """

    def __init__(self, module):
        self.python_class = type(module)
        self.container = next((kind for cls, kind in _CONTAINERS if isinstance(module, cls)), None)
        self.attributes, self.modules, self.constants = [], {}, {}
        self.functions, self.builtins, self.failed = {}, {}, {}
        self.ignored = set(getattr(module, "__jit_ignored_attributes__", ()))
        self.hooks = list(module._forward_hooks.values()), list(module._forward_pre_hooks.values())
        self.annotations = _annotations_of(type(module))
        self.type = None
        self.compiled = False
        self._infer(module)

    def key(self):
        """Equal for modules that can share one type."""
        return (
            self.python_class,
            tuple(self.attributes),
            tuple((n, id(m.type)) for n, m in self.modules.items()),
            tuple((n, repr(v)) for n, v in self.constants.items()),
            tuple((n, id(f)) for n, f in self.functions.items()),
            tuple(map(id, [*self.hooks[0], *self.hooks[1]])),
        )

    def _infer(self, module):
        for kind, tensors in (("parameter", module._parameters), ("buffer", module._buffers)):
            for name, tensor in tensors.items():
                if name not in self.ignored:
                    self.attributes.append((name, self._type_of(name, tensor), kind))
        for name, child in module._modules.items():
            if child is None:
                self.attributes.append((name, NoneType.get(), "regular"))
            elif name not in self.ignored:
                self.modules[name] = self._concrete_type_of(name, child)
        self._infer_constants(module)
        self._infer_others(module)

    def _concrete_type_of(self, name, child):
        annotated = self.annotations.get(name)
        interface = getattr(annotated, "__torch_script_interface__", None)
        return _OfInterface(interface) if interface is not None else concrete_type_of(child)

    def _type_of(self, name, value):
        """By the class's annotation, else by the value. Raises RuntimeError if neither determines it."""
        if name in self.annotations and not is_final(self.annotations[name]):
            return annotation_to_type(self.annotations[name])
        if isinstance(value, readtorch.jit.Attribute):
            return annotation_to_type(value.type)
        return TensorType.get() if isinstance(value, readtorch.Tensor) else type_of_value(value)

    def _infer_constants(self, module):
        names = dict.fromkeys(getattr(module, "__constants__", ()))
        names.update(dict.fromkeys(n for n, a in self.annotations.items() if is_final(a)))
        taken = {n for n, _, _ in self.attributes} | set(self.modules)
        for name in names:
            if name in taken:
                kinds = (("submodule", module._modules), ("buffer", module._buffers), ("parameter", module._parameters))
                hint = next(kind for kind, members in kinds if name in members)
                warnings.warn(
                    f"'{name}' was found in ScriptModule constants,  but it is a non-constant {hint}. "
                    "Consider removing "
                    "it.",
                    stacklevel=2,
                )
            elif not hasattr(module, name):
                warnings.warn(
                    f"'{name}' was found in ScriptModule constants, but was not actually set in __init__. "
                    "Consider "
                    "removing it.",
                    stacklevel=2,
                )
            else:
                self.constants[name] = _valid_constant(name, getattr(module, name), type(module).__name__)

    def _infer_others(self, module):
        taken = (
            {n for n, _, _ in self.attributes}
            | set(self.modules)
            | set(self.constants)
            | _OF_EVERY_MODULE
            | self.ignored
        )
        for name, value in module.__dict__.items():
            if name in taken or name.startswith("__"):
                continue
            if name == "training":
                self.attributes.append((name, BoolType.get(), "regular"))
            elif name == "_is_full_backward_hook":
                self.attributes.append((name, OptionalType(BoolType.get()), "regular"))
            else:
                self._infer_other(name, value)

    def _infer_other(self, name, value):
        if inspect.isfunction(value):
            from ._script import script_function

            try:
                self.functions[name] = script_function(value)._function
            except Exception as error:
                self.failed[name] = (
                    "(This function exists as an attribute on the Python module, but we failed to compile "
                    "it to "
                    f"a TorchScript function. \nThe error stack is reproduced here:\n{error})"
                )
            return
        builtin = find_builtin(value) if callable(value) else None
        if builtin is not None:
            self.builtins[name] = builtin
            return
        try:
            found = self._type_of(name, value)
        except (RuntimeError, ValueError, AttributeError) as error:
            inferred = " Its type was inferred; try adding a type annotation for the attribute." * (
                name not in self.annotations
            )
            self.failed[name] = (
                f"(This attribute exists on the Python module, but we failed to convert Python type: "
                f"'{readtorch.typename(value)}' to a TorchScript type. {error}.{inferred})"
            )
            return
        if isinstance(found, FunctionType):
            self.functions[name] = found.function
        else:
            self.attributes.append((name, found, "regular"))

    # ------------------------------------------------------------------------------------------- the type

    def build(self):
        """Make the TorchScript type."""
        self.type = ClassType(python_cu.free_name(qualified_name(self.python_class)), python_cu, is_module=True)
        python_cu.register_type(self.type)
        for name, found, kind in self.attributes:
            self.type.addAttribute(name, found, kind == "parameter", kind == "buffer")
        for name, concrete in self.modules.items():
            self.type.addAttribute(name, concrete.type)
        self.type.constants.update(self.constants)
        return self

    def make_self(self, value):
        return ModuleValue(value, self)

    def declare_method(self, name, function=None):
        function = function or getattr(self.python_class, name, None)
        if inspect.isfunction(function) and _get_fn_overloads(function):
            raise NotImplementedError(
                f"readtorch compiles overloaded functions, but not the method '{function.__qualname__}'"
            )
        return define_method(self.type, name, function, None, self.make_self)

    def compile_method(self, name):
        """Compile a method that another one calls."""
        self.declare_method(name).ensure_defined()

    def compile_all(self, names):
        """Compile the methods that are entry points, the properties and the hooks."""
        if self.compiled:
            return
        self.compiled = True
        made = [self.declare_method(name) for name in names if self.type.findMethod(name) is None]
        made += self._properties()
        for method in made:
            method.ensure_defined()
        self._container_methods()
        for hooks, kept in zip(self.hooks, (self.type.hooks, self.type.pre_hooks)):
            for hook in hooks:
                definition = definition_of(hook)
                resolver = PythonResolver(lookup_of_closure(hook))
                kept.append(
                    compile_lazily(
                        python_cu,
                        f"{self.type.qualified}.{hook.__name__}",
                        definition,
                        resolver,
                        self.make_self,
                        self.type,
                    )
                )
                kept[-1].ensure_defined()

    def _container_methods(self):
        """`len` and `in` of containers: their entries are known."""
        from ._script import define_methods_from_text  # it compiles modules

        if self.container in ("list", "dict") and self.type.findMethod("__len__") is None:
            define_methods_from_text(self, f"def __len__(self):\n  return {len(self.modules)}\n")
        if self.container == "dict" and self.type.findMethod("__contains__") is None:
            known = f"key in {list(self.modules)!r}" if self.modules else "False"
            define_methods_from_text(self, f"def __contains__(self, key: str):\n  return {known}\n")

    def _properties(self):
        made, unused = [], getattr(self.python_class, "__jit_unused_properties__", ())
        for name in dir(self.python_class):
            member = inspect.getattr_static(self.python_class, name)
            if not isinstance(member, property) or name in self.ignored or name in unused or should_drop(member.fget):
                continue
            if is_ignored_fn(member.fget) or is_in("nn", self.python_class.__module__):
                continue
            getter = define_method(self.type, f"__{name}_getter", member.fget, None, self.make_self)
            setter = member.fset and define_method(self.type, f"__{name}_setter", member.fset, None, self.make_self)
            self.type.properties[name] = (getter.name, setter.name if setter else None)
            made += [m for m in (getter, setter) if m]
        return made


class _OfInterface:
    """The type of a submodule that is annotated with an interface: only its methods are known."""

    def __init__(self, interface):
        self.type = interface
        self.modules, self.failed, self.ignored, self.container, self.python_class = {}, {}, set(), None, None


class LoadedModuleType:
    """The same for a module that was loaded: it has no Python class."""

    def __init__(self, type):
        self.type = type
        self.modules = {
            a.name: LoadedModuleType(a.type)
            for a in type.attributes
            if isinstance(a.type, ClassType) and a.type.is_module()
        }
        self.failed, self.functions, self.builtins, self.ignored = {}, {}, {}, set()
        self.container = self.python_class = None


def _annotations_of(cls):
    """Of the class, else of the first base that has any."""
    for each in cls.__mro__:
        if each is nn.Module:
            break
        found = each.__dict__.get("__annotations__")
        if found:
            try:
                return inspect.get_annotations(each, eval_str=True)
            except NameError:
                return dict(found)
    return {}


def _valid_constant(name, value, owner):
    if isinstance(value, _CONSTANT_TYPES):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_valid_constant(name, v, owner) for v in value)
    constants = ", ".join(readtorch.typename(t) for t in _CONSTANT_TYPES)
    raise TypeError(
        f"\n'{readtorch.typename(type(value))}' object in attribute '{owner}.{name}' is not a valid "
        "constant.\nValid "
        f"constants are:\n1. a nn.ModuleList\n2. a value of type {{{constants}}}\n3. a list or tuple of (2)\n"
    )


_concrete_types = {}  # key -> ConcreteModuleType


@contextmanager
def types_kept_only_on_success():
    """`with types_kept_only_on_success():` a module that cannot be compiled leaves no half-compiled type.

    in PyTorch: it does, and the next try says "Can't redefine method".
    """
    before = dict(_concrete_types)
    try:
        yield
    except BaseException:
        _concrete_types.clear()
        _concrete_types.update(before)
        raise


def concrete_type_of(module):
    """The ConcreteModuleType of a module; modules of one shape share it."""
    known = getattr(module, "_concrete_type", None)
    if known is not None:
        return known
    made = ConcreteModuleType(module)
    key = made.key()
    if key not in _concrete_types:
        _concrete_types[key] = made.build()
    return _concrete_types[key]


# -------------------------------------------------------------------------------------------------------------- classes


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
    type = _script_classes[cls] = ClassType(python_cu.free_name(qualified_name(cls)), python_cu, doc=cls.__doc__ or "")
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
            from ._script import definition_function

            type.static_methods[name] = definition_function(member.__func__, qualified_name(member.__func__), resolver)
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
        definition = unused_definition(function, name) if should_drop(function) else definition_of(function, name)
    resolver = resolver or PythonResolver(lookup_of_closure(function))
    method = compile_lazily(type.compilation_unit, f"{type.qualified}.{name}", definition, resolver, make_self, type)
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
        define_method(type, node.name, None, NativeResolver(), None, build_definition(node, text)) for node in tree.body
    ]
    for method in methods:
        method.ensure_defined()
    return type


def interface(obj):
    """Decorator: a class whose methods say what a type must have. An attribute that is annotated with it may hold
    any module, or object, that has these methods.
    """
    is_module = issubclass(obj, Module)
    type = InterfaceType(python_cu.free_name(qualified_name(obj)), {}, is_module)
    python_cu.register_type(type)
    for name, function in obj.__dict__.items():
        if inspect.isfunction(function) and name != "__init__":
            type.schemas[name] = _declared_schema(type, name, function)
    obj.__torch_script_interface__ = type
    return obj


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


def unused_definition(function, name):
    """The Definition of a function with its parameters and the type of its result, and a body that raises."""
    text, tree = parse_object(function)
    node = tree.body[0]
    body = ast.parse('raise RuntimeError("Cannot call @unused methods")').body
    for part in ast.walk(body[0]):
        ast.copy_location(part, node)
    node.body, node.decorator_list = body, []
    node.args.vararg = node.args.kwarg = None
    for argument in node.args.args + node.args.kwonlyargs:
        if argument.arg != "self":
            argument.annotation = ast.copy_location(ast.Name("Any", ast.Load()), argument)
    return build_definition(node, text, name)
