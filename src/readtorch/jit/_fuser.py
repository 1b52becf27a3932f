"""Switches of the executor.

In PyTorch: `torch/jit/_fuser.py`. Explained in the chapter "Inductor: loops, fusion, code".
"""

import contextlib

from readtorch.csrc.jit.runtime import graph_executor


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """`with optimized_execution(False):` graphs run inside as they were written, no pass goes over them."""
    stored = graph_executor.optimized_execution()
    graph_executor.set_graph_executor_optimize(should_optimize)
    try:
        yield
    finally:
        graph_executor.set_graph_executor_optimize(stored)
