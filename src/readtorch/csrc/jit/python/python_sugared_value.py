"""Python objects that a program names: functions, modules, classes, constants.

In PyTorch: `torch/csrc/jit/python/python_sugared_value.cpp`. Explained in the chapter "JIT: scripting".
"""

import enum
import inspect
import types

from ....c10.device import device as Device
from ....c10.layout import strided
from ....c10.memory_format import contiguous_format
from ....c10.scalar_type import dtype
from ..frontend.error_report import ErrorReport
from ..frontend.schema_matching import NamedValue, match_schema
from ..frontend.callables import (
    BuiltinFunction,
    ClassValue,
    EnumClassValue,
    ExceptionValue,
    FunctionValue,
    NamedTupleConstructor,
    SpecialForm,
)
from ..frontend.sugared_value import SimpleValue, SugaredValue
from ..ir.function_schema import Argument, FunctionSchema
from ..ir.type import ClassType, EnumType, FunctionType, TensorType, TupleType

_CONSTANTS = (
    bool,
    int,
    float,
    complex,
    str,
    type(None),
    Device,
    dtype,
    type(strided),
    type(contiguous_format),
)


def to_sugared_value(object, emitter, range, is_constant=False):
    """What a Python object means in a program. is_constant: plain values may be used: nobody changes them."""
    if is_constant:
        constant = _constant(object, emitter, range)
        if constant is not None:
            return constant
    if hasattr(object, "script_type") and not inspect.isclass(object):
        type = object.script_type()
        if isinstance(type, FunctionType):
            return FunctionValue(type.function)
    if isinstance(object, (types.ModuleType, types.SimpleNamespace)):
        return PythonModuleValue(object)
    form = _special_form(object)
    if form is not None:
        return SpecialForm(form)
    from ....jit._builtins import find_builtin  # the table of operators needs all of the library

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
        from ....jit._script import try_compile_function  # compiling functions leads here

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
    from .... import jit

    forms = {jit.annotate: "annotate", jit.isinstance: "isinstance", jit.fork: "fork", slice: "slice"}
    try:
        return forms.get(object)
    except TypeError:  # it has no hash
        return None


def _class(cls, range):
    from ....jit._nn_stubs import library_class
    from ....jit.annotations import try_annotation_to_type

    if issubclass(cls, BaseException):
        prefix = "" if cls.__module__ == "__main__" else f"{cls.__module__}."
        return ExceptionValue(cls.__name__, prefix + cls.__qualname__)
    if hasattr(cls, "_backward_cls"):
        return AutogradFunction(cls)
    type = library_class(cls) or try_annotation_to_type(cls, range)
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
    """A Python module, such as `torch.nn.functional`: what stands in it is constant."""

    kind = "python module"

    def __init__(self, module):
        self.module = module

    def attr(self, range, emitter, name):
        if not hasattr(self.module, name):
            raise ErrorReport(range, f"object has no attribute {name}")
        return to_sugared_value(getattr(self.module, name), emitter, range, is_constant=True)

    def has_attr(self, range, emitter, name):
        return hasattr(self.module, name)


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
        from ...._jit_internal import should_drop

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
        from ....jit._serialization import wrap_object

        return lambda object, *args: self.object(wrap_object(object), *args)

    def _schema(self):
        from ....jit.annotations import annotation_to_type

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
