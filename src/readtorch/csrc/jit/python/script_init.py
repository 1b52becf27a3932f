"""Compiled functions as Python sees them, and Python's names as the compiler sees them.

In PyTorch: `torch/csrc/jit/python/script_init.cpp` (`StrongFunctionPtr`, `PythonResolver`); `lookup_of_closure` and
`lookup_in_frame` are `createResolutionCallbackFromClosure`, `createResolutionCallbackFromFrame` in
`torch/_jit_internal.py`. Explained in the chapters "JIT: tracing" and "JIT: scripting".
"""

import builtins
import inspect

from readtorch.csrc.jit.frontend.resolver import Resolver
from readtorch.csrc.jit.passes.inliner import inlined

from .python_sugared_value import to_sugared_value


class Compiled:
    """What functions and methods show of their graph."""

    def __init__(self, function):
        self._function = function
        self.__name__ = function.name

    @property
    def graph(self):
        return self._function.graph

    @property
    def inlined_graph(self):
        return inlined(self._function.graph)

    @property
    def schema(self):
        return self._function.schema

    @property
    def name(self):
        return self._function.name

    @property
    def code(self):
        """The graph as TorchScript text."""
        return self.code_with_constants[0]

    @property
    def code_with_constants(self):
        """(text, the constants that it names)"""
        from readtorch.csrc.jit.serialization.python_print import code_of_function

        return code_of_function(self._function)


class ScriptFunction(Compiled):
    """Callable like the Python function it was made from. graph: what it does; code: the same as Python
    text.
    """

    def __call__(self, *args, **kwargs):
        function = self._function
        return (function._entry or function._make_entry())(args, kwargs)

    @property
    def qualified_name(self):
        return self._function.qualified_name

    def graph_for(self, *args, **kwargs):
        """The graph that really runs, after optimisation."""
        if args or kwargs:
            self(*args, **kwargs)
        return self._function.executor().plan()[0]

    def get_debug_state(self):
        """The executor: `plan()` is (optimised graph, code)."""
        return self._function.executor()

    def _debug_flush_compilation_cache(self):
        self._function.executor().debug_flush()

    def save(self, filename, **kwargs):
        """Write it to a file."""
        from readtorch.csrc.jit.serialization.export_module import save_function

        save_function(self._function, filename, **kwargs)

    def script_type(self):
        return self._function.script_type()

    def __repr__(self):
        return f"<torch.ScriptFunction object at {id(self):#x}>"


class PythonResolver(Resolver):
    """Looks names up as Python would: lookup(name) gives the object, or raises LookupError.

    own: the name of the class whose methods are compiled, which they know before Python does, and its type.
    """

    def __init__(self, lookup, own=(None, None)):
        self.lookup = lookup
        self.own = own

    def resolve_value(self, name, emitter, range):
        try:
            found = self.lookup(name)
        except LookupError:
            return None
        return to_sugared_value(found, emitter, range)

    def resolve_type(self, name, range):
        from readtorch.jit.annotations import try_annotation_to_type

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

    def resolve_generic(self, name):
        try:
            return getattr(self.lookup(name), "_name", None) or name
        except LookupError:
            return name


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
