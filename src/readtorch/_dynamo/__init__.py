"""The implementation of `readtorch.compile`. Explained in the chapter "Dynamo".

A function's bytecode is interpreted, and what it does with tensors becomes a graph:

    eval_frame.py         a call looks for a capture that fits
    convert_frame.py      one capture, from arguments to a generated function
    variables/            what is known of values; builder.py makes them
    source.py, guards.py  where a value came from, and what must still be so
    output_graph.py       the graph; side_effects.py: what else is done
    codegen.py            all of it as text; resume_execution.py: what follows a graph break
    backends/             a graph becomes something that runs

In PyTorch: `torch/_dynamo/__init__.py`.
"""

from readtorch._dynamo import config, exc
from readtorch._dynamo.backends.registry import check_mode, list_backends
from readtorch._dynamo.decorators import (
    allow_in_graph,
    assume_constant_result,
    disallow_in_graph,
    graph_break,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
)
from readtorch._dynamo.eval_frame import OptimizedModule, explain, optimize, report, reset
from readtorch._dynamo.external_utils import is_compiling

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "check_mode",
    "config",
    "disallow_in_graph",
    "exc",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "report",
    "reset",
]
