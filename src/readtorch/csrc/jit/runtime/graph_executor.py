"""Decides how a graph is run: which passes go over it before it becomes instructions.

In PyTorch: `torch/csrc/jit/runtime/graph_executor.cpp`, `profiling_graph_executor_impl.cpp`. There the first runs only watch
which types and shapes go through, and the graph is rewritten for these.
"""
import threading

from .code import Code
from .default_passes import DEFAULT_PASSES
from .interpreter import run

# Passes that run on every graph before it is executed, in this order: functions of a graph. The fuser adds its own.
pipeline = list(DEFAULT_PASSES)

_state = threading.local()


def optimized_execution():
    """Whether graphs are optimised before they run, in this thread."""
    return getattr(_state, "optimize", True)


def set_graph_executor_optimize(enabled):
    _state.optimize = enabled


class GraphExecutor:
    """Runs one graph. The optimised copy and its code are made at the first call."""

    def __init__(self, graph, name):
        self.graph = graph
        self.name = name
        self._plans = {}  # optimised? -> (graph, Code)
        self._lock = threading.RLock()

    def plan(self):
        """(graph that runs, its Code)"""
        key = optimized_execution()
        if key not in self._plans:
            with self._lock:
                graph = self.graph.copy()
                for rewrite in pipeline if key else ():
                    rewrite(graph)
                self._plans[key] = (graph, Code(graph, self.name))
        return self._plans[key]

    def code(self):
        return self.plan()[1]

    def run(self, arguments):
        """The list of the outputs' values."""
        return run(self.code(), arguments)

    def debug_flush(self):
        """Forget what was made, so that a changed graph or pipeline counts."""
        self._plans.clear()
