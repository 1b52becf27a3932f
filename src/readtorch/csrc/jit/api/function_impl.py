"""A function in TorchScript: a name, a graph, and what runs it.

In PyTorch: `torch/csrc/jit/api/function_impl.h` (GraphFunction). Explained in the chapter "JIT: scripting".
"""

import threading

from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.type import FunctionType
from readtorch.csrc.jit.passes.shape_analysis import unshaped


class RecursiveMethodCallError(RuntimeError):
    """A function is called by what it calls, so that its graph cannot be made."""


def _called_recursively(function):
    raise RecursiveMethodCallError


class GraphFunction:
    """qualified_name: such as `__torch__.model.f`. The graph may be made when it is first asked for: `creator(function)`
    then fills `function.graph`, which is how functions that call each other can be compiled.

    defaults: parameter name -> default value, for the schema.
    """

    def __init__(self, qualified_name, graph, creator=None, defaults=None):
        self.qualified_name = qualified_name
        self._graph = graph
        self._creator = creator
        self._schema = None
        self.defaults = defaults or {}
        self.argument_names = None  # where the graph's inputs have lost theirs
        self._lock = threading.RLock()
        self._executor = None
        self._entry = None  # function of (args, kwargs), made at the first call

    @property
    def name(self):
        """The last part of the qualified name."""
        return self.qualified_name.rpartition(".")[2]

    def ensure_defined(self):
        """Make the graph now, if it has not been made. Raises RecursiveMethodCallError while it is being made."""
        if self._creator is not None:
            creator, self._creator = self._creator, _called_recursively
            try:
                creator(self)
            finally:
                self._creator = None if self._graph is not None else creator

    @property
    def graph(self):
        self.ensure_defined()
        return self._graph

    @graph.setter
    def graph(self, graph):
        self._graph = graph
        self._executor = self._entry = None

    @property
    def schema(self):
        """The signature: names and types of the graph's inputs, type of its output."""
        if self._schema is None:
            self.ensure_defined()
        if self._schema is None:
            self._schema = default_schema(self)
        return self._schema

    def setSchema(self, schema):
        self._schema = schema
        self._entry = None
        return self

    def executor(self):
        """What runs the graph; made at the first call."""
        if self._executor is None:
            with self._lock:
                from readtorch.csrc.jit.runtime.graph_executor import (
                    GraphExecutor,  # it runs graphs, which call functions
                )

                self._executor = self._executor or GraphExecutor(self.graph, self.name)
        return self._executor

    def __call__(self, *args, **kwargs):
        """Call it from Python: arguments are checked against the schema and brought to its types."""
        return (self._entry or self._make_entry())(args, kwargs)

    def _make_entry(self):
        from readtorch.csrc.jit.python.pybind_utils import (
            make_entry,  # it makes values of arguments, which functions are, too
        )

        self._entry = make_entry(self)
        return self._entry

    def script_type(self):
        return FunctionType(self)

    def __repr__(self):
        return f"<Function {self.qualified_name}>"


def default_schema(function):
    """The signature that follows from a function's graph."""
    graph = function.graph
    names = function.argument_names or [
        v.debugNameBase() if v.hasDebugName() else f"argument_{i}" for i, v in enumerate(graph.inputs())
    ]
    arguments = [
        Argument(
            name,
            unshaped(value.type()),
            default_value=function.defaults.get(name),
            has_default=name in function.defaults,
        )
        for name, value in zip(names, graph.inputs())
    ]
    returns = tuple(Argument("", unshaped(v.type())) for v in graph.outputs())
    return FunctionSchema(function.name, "", tuple(arguments), returns)
