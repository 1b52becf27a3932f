"""`ScriptFunction`: a function that was traced or scripted, as Python sees it.

In PyTorch: `torch/csrc/jit/python/script_init.cpp`. Explained in the chapters "JIT: tracing" and "JIT:
scripting".
"""
from ..passes.inliner import inlined


class Compiled:
    """What a function and a method tell of the graph behind them."""

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
        from ..serialization.python_print import code_of_function
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
        from ..serialization.export import save_function
        save_function(self._function, filename, **kwargs)

    def script_type(self):
        return self._function.script_type()

    def __repr__(self):
        return f"<torch.ScriptFunction object at {id(self):#x}>"
