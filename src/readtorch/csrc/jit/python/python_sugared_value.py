"""Python objects that a program names: functions, modules, classes, constants; and nn.Modules.

An nn.Module's attributes are those of its type; methods that have not been compiled are compiled when they are named. A
ModuleList, Sequential or ModuleDict is unrolled: every submodule has a type of its own.

In PyTorch: `torch/csrc/jit/python/python_sugared_value.cpp`. Explained in the chapter "JIT: scripting".
"""

import enum
import inspect
import types

from readtorch._jit_internal import is_ignored_fn, is_static_fn
from readtorch.c10.device import device as Device
from readtorch.c10.layout import strided
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.scalar_type import dtype
from readtorch.csrc.jit.frontend.error_report import ErrorReport
from readtorch.csrc.jit.frontend.schema_matching import NamedValue, match_schema
from readtorch.csrc.jit.frontend.sugared_value import (
    BuiltinFunction,
    ClassValue,
    EnumClassValue,
    ExceptionValue,
    FunctionValue,
    IterableTree,
    MethodValue,
    NamedTupleConstructor,
    SimpleValue,
    SpecialForm,
    SugaredTuple,
    SugaredValue,
)
from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.type import ClassType, EnumType, FunctionType, InterfaceType, NoneType, TensorType, TupleType

_CONSTANTS = (bool, int, float, complex, str, type(None), Device, dtype, type(strided), type(contiguous_format))


def to_sugared_value(object, emitter, range, is_constant=False):
    """What a Python object means in a program. is_constant: plain values may become constants."""
    if is_constant:
        constant = _constant(object, emitter, range)
        if constant is not None:
            return constant
    if isinstance(object, (types.ModuleType, types.SimpleNamespace)):
        return PythonModuleValue(object)
    if hasattr(object, "script_type") and not inspect.isclass(object):
        type = object.script_type()
        if isinstance(type, FunctionType):
            return FunctionValue(type.function)
    form = _special_form(object)
    if form is not None:
        return SpecialForm(form)
    from readtorch.jit._builtins import find_builtin  # the table of operators needs all of the library

    builtin = find_builtin(object)
    if builtin is not None:
        return BuiltinFunction(builtin)
    if inspect.isclass(object):
        return _class(object, range)
    if isinstance(object, enum.Enum):
        return SimpleValue(emitter.graph.insertConstant(object, None, range))
    if isinstance(object, types.BuiltinFunctionType):
        raise ErrorReport(range, f"Python builtin {object} is currently not supported in Torchscript")
    if inspect.isfunction(object) or inspect.ismethod(object):
        from readtorch._jit_internal import boolean_dispatched

        if object in boolean_dispatched:
            return BooleanDispatchValue(*boolean_dispatched[object])
        from readtorch.jit._script import try_compile_function  # compiling functions leads here

        compiled = try_compile_function(object)
        if compiled is not None:
            return compiled
    return PythonValue(object)


def _constant(object, emitter, range):
    """A Python value as a constant of the graph; a tuple is made of its parts."""
    if isinstance(object, _CONSTANTS):
        return SimpleValue(emitter.graph.insertConstant(object, None, range))
    if isinstance(object, tuple) and not hasattr(object, "_fields"):
        values = [to_sugared_value(each, emitter, range, True).as_value(range, emitter) for each in object]
        return SimpleValue(emitter.graph.insertNode(emitter.graph.createTuple(values)).output())
    return None


def _special_form(object):
    from readtorch import jit

    forms = {jit.annotate: "annotate", jit.isinstance: "isinstance", jit.fork: "fork", slice: "slice"}
    try:
        return forms.get(object)
    except TypeError:  # it has no hash
        return None


def _class(cls, range):
    from readtorch.jit._recursive import grad_mode_class
    from readtorch.jit.annotations import try_annotation_to_type

    if issubclass(cls, BaseException):
        prefix = "" if cls.__module__ == "__main__" else f"{cls.__module__}."
        return ExceptionValue(cls.__name__, prefix + cls.__qualname__)
    if hasattr(cls, "_backward_cls"):
        return AutogradFunction(cls)
    type = grad_mode_class(cls) or try_annotation_to_type(cls, range)
    if isinstance(type, TupleType) and type.fields is not None:
        return NamedTupleConstructor(type)
    if isinstance(type, EnumType):
        return EnumClassValue(type)
    return PythonClassValue(type, cls) if isinstance(type, ClassType) else PythonValue(cls)


class PythonClassValue(ClassValue):
    """A class that exists in Python, too: its static methods and constants are found there."""

    def attr(self, range, emitter, name):
        if name not in self.type.static_methods and name != "__new__" and hasattr(self.python_class, name):
            found = inspect.getattr_static(self.python_class, name)
            function = found.__func__ if isinstance(found, staticmethod) else found
            return to_sugared_value(function, emitter, range)
        return super().attr(range, emitter, name)

    def has_attr(self, range, emitter, name):
        return hasattr(self.python_class, name)


class PythonModuleValue(SugaredValue):
    """A Python module, such as `torch.nn.functional`: its attributes are constants."""

    kind = "python module"

    def __init__(self, module):
        self.module = module

    def attr(self, range, emitter, name):
        if not hasattr(self.module, name):
            raise ErrorReport(range, f"object has no attribute {name}")
        return to_sugared_value(getattr(self.module, name), emitter, range, is_constant=True)

    def has_attr(self, range, emitter, name):
        return hasattr(self.module, name)


class BooleanDispatchValue(SugaredValue):
    """One of two functions, as a constant argument says: `max_pool2d(x, 2, return_indices=True)`.

    arg_name, arg_index, default: of that argument. if_true, if_false: Python functions.
    """

    kind = "Python boolean dispatch"

    def __init__(self, arg_name, arg_index, default, if_true, if_false):
        self.arg_name = arg_name
        self.arg_index = arg_index
        self.default = default
        self.functions = if_false, if_true

    def call(self, range, emitter, args, kwargs):
        chosen = self.functions[self._flag(range, emitter, args, kwargs)]
        return to_sugared_value(chosen, emitter, range).call(range, emitter, args, kwargs)

    def _flag(self, range, emitter, args, kwargs):
        given = next((k for k in kwargs if k.name == self.arg_name), None)
        if given is not None:
            where = f"Keyword argument '{self.arg_name}' for boolean dispatch at position was not constant"
        elif self.arg_index < len(args):
            given = args[self.arg_index]
            where = f"Argument for boolean dispatch at position {self.arg_index} was not constant"
        else:
            return self.default
        value = given.value(emitter.graph)
        if not value.isConstant():
            raise ErrorReport(range, where)
        return value.toIValue()


class PythonValue(SugaredValue):
    """A Python object that TorchScript cannot see into; a function stays a call to Python.

    module: the Value of the module whose method it is.
    """

    def __init__(self, object, module=None):
        self.object = object
        self.module = module

    @property
    def kind(self):
        return f"python value of type '{type(self.object).__name__}'"

    def as_value(self, range, emitter):
        raise ErrorReport(
            range,
            f"{self.kind} cannot be used as a value. Perhaps it is a closed over global variable? If so, "
            "please consider passing it in as an argument or use a local variable instead.",
        )

    def call(self, range, emitter, args, kwargs):
        """A prim::PythonOp; of a function marked `unused`, an error when the program comes there."""
        from readtorch._jit_internal import should_drop

        if not callable(self.object) or inspect.isclass(self.object):
            raise ErrorReport(
                range,
                f"cannot call a {self.kind}"
                if not callable(self.object)
                else f"Cannot instantiate class '{self.object.__name__}' in a script function",
            )
        graph = emitter.graph
        if self.module is not None:
            args = [NamedValue(self.module), *args]
        matched = match_schema(self._schema(), range, graph, args, kwargs)
        if should_drop(self.object):
            message = "This Python function is annotated to be ignored and cannot be run"
            emitter.raise_exception(range, graph.insertConstant(message, None, range))
            return SimpleValue(graph.insertNode(graph.createUninitialized(matched.return_types[0])).output())
        node = insert_python_op(graph, range, self.object.__name__, self._callable(), matched.inputs)
        return SimpleValue(node.output().setType(matched.return_types[0]))

    def _callable(self):
        """A method gets its object as a Python module."""
        if self.module is None:
            return self.object
        from readtorch.jit._serialization import wrap_object

        return lambda object, *args: self.object(wrap_object(object), *args)

    def _schema(self):
        from readtorch.jit.annotations import annotation_to_type

        signature = inspect.signature(self.object)
        parameters = list(signature.parameters.values())
        arguments = []
        if self.module is not None:
            arguments.append(Argument(parameters.pop(0).name, self.module.type()))
        arguments += [Argument(p.name, annotation_to_type(p.annotation)) for p in parameters]
        returns = TensorType.get()
        if signature.return_annotation is not inspect.Signature.empty:
            returns = annotation_to_type(signature.return_annotation)
        return FunctionSchema(self.object.__name__, "", tuple(arguments), (Argument("0", returns),))


class AutogradFunction(PythonValue):
    """A `torch.autograd.Function`: `apply` stays a call to Python, with any arguments, that gives a tensor."""

    def attr(self, range, emitter, name):
        return self if name == "apply" else super().attr(range, emitter, name)

    def call(self, range, emitter, args, kwargs):
        values = [a.value(emitter.graph) for a in [*args, *kwargs]]
        node = insert_python_op(emitter.graph, range, self.object.__name__, self.object.apply, values)
        return SimpleValue(node.output().setType(TensorType.get()))


def insert_python_op(graph, range, name, function, values):
    """A node that calls a Python function."""
    node = graph.create("prim::PythonOp", values).setSourceRange(range)
    node.s_("name", name).ival_("function", function).ival_("scalar_args", [])
    return graph.insertNode(node)


# -------------------------------------------------------------------------------------------------------------- modules


class ModuleValue(SugaredValue):
    """value: the module in the graph; concrete: its ConcreteModuleType."""

    kind = "module"

    def __init__(self, value, concrete):
        self.value = value
        self.concrete = concrete

    def as_value(self, range, emitter):
        return self.value

    # ------------------------------------------------------------------------------------------ attributes

    def attr(self, range, emitter, name):
        found = self._find(range, emitter, name)
        if found is not None:
            return found
        type = self.value.type()
        if name in type.properties:
            return MethodValue(self.value, type.properties[name][0]).call(range, emitter, [], [])
        hint = self.concrete.failed.get(name, "")
        if name in self.concrete.ignored:
            hint = "attribute was ignored during compilation"
        raise ErrorReport(range, f"Module '{type.name()}' has no attribute '{name}' {hint}")

    def has_attr(self, range, emitter, name):
        return self._find(range, emitter, name) is not None

    def set_attr(self, range, emitter, name, value):
        SimpleValue(self.value).set_attr(range, emitter, name, value)

    def _find(self, range, emitter, name):
        type = self.value.type()
        if isinstance(type, InterfaceType):
            return SimpleValue(self.value).attr(range, emitter, name)
        if name in self.concrete.modules:
            return self._submodule(range, emitter, name)
        if type.hasAttribute(name) or type.findMethod(name) is not None:
            return SimpleValue(self.value).attr(range, emitter, name)
        if name in type.constants:
            return _module_constant(type.constants[name], emitter, range)
        for look in (self._container_method, self._function_attribute, self._python_method):
            found = look(range, emitter, name)
            if found is not None:
                return found
        return None

    def _submodule(self, range, emitter, name):
        node = emitter.graph.insertNode(emitter.graph.createGetAttr(self.value, name)).setSourceRange(range)
        return ModuleValue(node.output(), self.concrete.modules[name])

    def _container_method(self, range, emitter, name):
        if name in ("items", "keys", "values") and self.concrete.container == "dict":
            return self._contents(range, emitter).method(range, name)
        if name in ("named_modules", "modules", "children", "named_children"):
            return self._contents(range, emitter).method(range, name)
        if name == "named_buffers":
            return self._tensors(range, emitter, "buffer").method(range, "items")
        return None

    def _function_attribute(self, range, emitter, name):
        if name in self.concrete.functions:
            return FunctionValue(self.concrete.functions[name])
        if name in self.concrete.builtins:
            return BuiltinFunction(self.concrete.builtins[name])
        return None

    def _python_method(self, range, emitter, name):
        """A method of the Python class that has not been compiled yet."""
        cls = self.concrete.python_class
        function = None if cls is None else getattr(cls, name, None)
        if not inspect.isfunction(function):
            return None
        if is_static_fn(cls, name):
            return to_sugared_value(function, emitter, range)
        if is_ignored_fn(function):
            return PythonValue(function, self.value)
        self.concrete.compile_method(name)
        return MethodValue(self.value, name)

    # ------------------------------------------------------------------------------------------ containers

    def _contents(self, range, emitter):
        """The names and submodules, as two tuples of SugaredValues."""
        names = list(self.concrete.modules)
        keys = [SimpleValue(emitter.graph.insertConstant(n, None, range)) for n in names]
        return _Contents(self, SugaredTuple(keys), SugaredTuple([self._submodule(range, emitter, n) for n in names]))

    def _tensors(self, range, emitter, kind):
        names = [a.name for a in self.value.type().attributes if a.kind == kind]
        keys = [SimpleValue(emitter.graph.insertConstant(n, None, range)) for n in names]
        values = [SimpleValue(self.value).attr(range, emitter, n) for n in names]
        return _Contents(self, SugaredTuple(keys), SugaredTuple(values))

    def iter(self, range, emitter):
        kind = self.concrete.container
        if kind == "dict":
            return self._contents(range, emitter).keys
        if kind == "list":
            return self._contents(range, emitter).values
        if kind == "parameters":
            return self._tensors(range, emitter, "parameter").values
        raise ErrorReport(
            range, "Only constant Sequential, ModuleList, ModuleDict, or ParameterList can be used as an iterable"
        )

    def as_module_tuple(self, range, emitter):
        """A ModuleList or Sequential as a tuple, which can be sliced."""
        if self.concrete.container != "list":
            raise ErrorReport(range, "Only ModuleList or Sequential modules can be used as tuple")
        return self._contents(range, emitter).values

    def as_tuple(self, range, emitter, size=None):
        return self.iter(range, emitter).as_tuple(range, emitter, size)

    def item(self, range, emitter, index, type_hint=None):
        kind = self.concrete.container
        if kind == "list" and type_hint is None:
            return self._contents(range, emitter).values.item(range, emitter, index)
        if kind == "parameters":
            return self._tensors(range, emitter, "parameter").values.item(range, emitter, index)
        if kind in ("dict", "parameter dict") and index.isConstant():
            return self._entry(range, emitter, index.toIValue())
        if kind in ("list", "dict") and type_hint is not None:
            return self._chosen_at_run_time(range, emitter, index, type_hint)
        if kind == "dict":
            raise ErrorReport(
                range,
                "Unable to extract string literal index. ModuleDict indexing is only supported with string "
                "literals. For example, 'i = \"a\"; self.layers[i](x)' will fail because i is not a "
                "literal. Enumeration of ModuleDict is supported, e.g. 'for k, v in self.items(): ...'",
            )
        if self.value.type().findMethod("__getitem__") is not None:
            return SimpleValue(self.value).item(range, emitter, index)
        raise ErrorReport(
            range, "Only ModuleList, Sequential, ModuleDict, ParameterList, and ParameterDict Modules are subscriptable"
        )

    def _entry(self, range, emitter, key):
        if key in self.concrete.modules:
            return self._submodule(range, emitter, key)
        if self.value.type().hasAttribute(key):
            return SimpleValue(self.value).attr(range, emitter, key)
        raise ErrorReport(range, f"Key Error, {key}")

    def _chosen_at_run_time(self, range, emitter, index, type_hint):
        for name, concrete in self.concrete.modules.items():
            if not concrete.type.isSubtypeOf(type_hint):
                raise ErrorReport(range, f"Attribute {name} is not of annotated type {type_hint.annotation_str}: ")
        node = emitter.graph.create("prim::ModuleContainerIndex", [self.value, index]).setSourceRange(range)
        return SimpleValue(emitter.graph.insertNode(node).output().setType(type_hint))

    # ----------------------------------------------------------------------------------------------- calls

    def call(self, range, emitter, args, kwargs):
        """`self.layer(x)`: its forward, between its hooks."""
        type = self.value.type()
        if not getattr(type, "pre_hooks", None) and not getattr(type, "hooks", None):
            return self.attr(range, emitter, "forward").call(range, emitter, args, kwargs)
        return self._hooked_call(range, emitter, type, args, kwargs)

    def _hooked_call(self, range, emitter, type, args, kwargs):
        graph, this = emitter.graph, NamedValue(self.value)
        inputs = graph.insertNode(graph.createTuple([a.value(graph) for a in args])).output()
        for hook in type.pre_hooks:
            changed = FunctionValue(hook).call(range, emitter, [this, NamedValue(inputs)], []).as_value(range, emitter)
            if not isinstance(changed.type(), NoneType):
                is_tuple = isinstance(changed.type(), TupleType)
                inputs = changed if is_tuple else graph.insertNode(graph.createTuple([changed])).output()
        if type.pre_hooks and args:
            args = [NamedValue(v) for v in graph.insertNode(graph.createTupleUnpack(inputs)).outputs()]
        result = self.attr(range, emitter, "forward").call(range, emitter, args, kwargs).as_value(range, emitter)
        for hook in type.hooks:
            given = [this, NamedValue(inputs), NamedValue(result)]
            changed = FunctionValue(hook).call(range, emitter, given, []).as_value(range, emitter)
            result = result if isinstance(changed.type(), NoneType) else changed
        return SimpleValue(result)


class _Contents:
    """The entries of a container of modules."""

    def __init__(self, module, keys, values):
        self.module = module
        self.keys = keys
        self.values = values

    def method(self, range, name):
        """`keys`, `values` …, as something that can be called."""
        if name == "keys":
            return _Returns(self.keys)
        if name in ("values", "children"):
            return _Returns(self.values)
        if name in ("items", "named_children"):
            return _Returns(IterableTree(range, [self.keys, self.values]))
        return _AllModules(self.module, with_names=name == "named_modules")


class _Returns(SugaredValue):
    """A method without arguments whose result is known."""

    def __init__(self, result):
        self.result = result

    def call(self, range, emitter, args, kwargs):
        if args or kwargs:
            raise ErrorReport(range, "method takes no arguments")
        return self.result


class _AllModules(SugaredValue):
    """`modules()`, `named_modules()`: the module and all below it."""

    def __init__(self, module, with_names):
        self.module = module
        self.with_names = with_names

    def call(self, range, emitter, args, kwargs):
        found = []
        self._collect(range, emitter, self.module, "", found)
        values = SugaredTuple([module for _, module in found])
        if not self.with_names:
            return values
        names = [SimpleValue(emitter.graph.insertConstant(name, None, range)) for name, _ in found]
        return IterableTree(range, [SugaredTuple(names), values])

    def _collect(self, range, emitter, module, prefix, found):
        found.append((prefix, module))
        for name in module.concrete.modules:
            path = f"{prefix}.{name}" if prefix else name
            self._collect(range, emitter, module._submodule(range, emitter, name), path, found)


def _module_constant(value, emitter, range):
    """A module's constant; a tuple is made of its parts, so that each of them is a constant of its own."""
    if isinstance(value, tuple):
        values = [_module_constant(v, emitter, range).as_value(range, emitter) for v in value]
        return SimpleValue(emitter.graph.insertNode(emitter.graph.createTuple(values)).output())
    return SimpleValue(emitter.graph.insertConstant(value, None, range))
