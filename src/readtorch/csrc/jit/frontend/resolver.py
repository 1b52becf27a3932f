"""What names mean that are no variables of the program.

In PyTorch: `torch/csrc/jit/frontend/resolver.h`, `PythonResolver` in `torch/csrc/jit/python/script_init.cpp`.
Explained in the chapter "JIT: scripting".
"""

import builtins
import inspect

from .callables import BuiltinFunction
from .sugared_value import SugaredValue


class Resolver:
    """Knows nothing. allows_closures: whether functions may stand inside of functions."""

    allows_closures = False

    def resolve_value(self, name, emitter, range):
        """The SugaredValue that a name stands for, or None."""
        return None

    def resolve_type(self, name, range):
        """The type that a (dotted) name stands for, or None."""
        return None


class BuiltinModule(SugaredValue):
    """`torch`: its attributes are operators."""

    kind = "builtin module"

    def __init__(self, namespace):
        self.namespace = namespace

    def attr(self, range, emitter, name):
        if self.namespace == "aten" and name == "autograd":
            return BuiltinModule("aten")
        return BuiltinFunction(f"{self.namespace}::{name}")


class NativeResolver(Resolver):
    """Of programs that stand in no Python module: `torch` is all they know."""

    def resolve_value(self, name, emitter, range):
        return BuiltinModule("aten") if name == "torch" else None


class PythonResolver(Resolver):
    """Looks names up as Python would: lookup(name) gives the object, or raises LookupError.

    own: the name of the class whose methods are compiled, which they know before Python does, and its type.
    """

    def __init__(self, lookup, own=(None, None)):
        self.lookup = lookup
        self.own = own

    def resolve_value(self, name, emitter, range):
        from ..python.python_sugared_value import to_sugared_value  # it compiles what it finds

        try:
            found = self.lookup(name)
        except LookupError:
            return None
        return to_sugared_value(found, emitter, range)

    def resolve_type(self, name, range):
        from ....jit.annotations import try_annotation_to_type

        if name == self.own[0]:
            return self.own[1]
        first, *rest = name.split(".")
        try:
            found = self.lookup(first)
            for part in rest:
                found = getattr(found, part)
        except (LookupError, AttributeError):
            return None
        return try_annotation_to_type(found, range)


def lookup_of_closure(function):
    """The names that a function can see: what it closed over, its module's globals, Python's built-ins."""
    function = inspect.unwrap(function)
    closed = dict(inspect.getclosurevars(function).nonlocals) if function.__closure__ else {}

    def lookup(name):
        if name in closed:
            return closed[name]
        if name in function.__globals__:
            return function.__globals__[name]
        return vars(builtins)[name]

    return lookup


def lookup_in_frame(depth):
    """The names that the caller `depth` frames up can see: for classes, whose source closes over nothing."""
    frame = inspect.currentframe()
    for _ in range(depth + 1):
        frame = frame.f_back

    def lookup(name):
        scope = frame
        while scope is not None:
            for names in (scope.f_locals, scope.f_globals):
                if name in names:
                    return names[name]
            scope = scope.f_back
        return vars(builtins)[name]

    return lookup
