"""Switches of the executor.

In PyTorch: `torch/jit/_fuser.py`. Explained in the chapter "Inductor: loops, fusion, code".
"""

import contextlib
import warnings

from readtorch._jit_internal import is_scripting
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


class strict_fusion:
    """In a script: raise if operators inside stay unfused. In Python, where nothing is fused, it warns of that."""

    def __init__(self):
        if not is_scripting():
            warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self):
        pass

    def __exit__(self, type, value, tb):
        pass
