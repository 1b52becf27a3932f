"""The implementation of `readtorch.compile`. Explained in the chapter "The fuser, and from TorchScript to
torch.compile".

There are two ways to capture a function, and `config.capture` says which one is used:

    recorded/             a call runs as usual, and its operators are recorded ("recorded")
    symbolic_convert.py   the function's bytecode is interpreted ("bytecode"):

    eval_frame.py         a call looks for a capture that fits
    convert_frame.py      one capture, from arguments to a generated function
    variables/            what is known of values; builder.py makes them
    source.py, guards.py  where a value came from, and what must still be so
    output_graph.py       the graph; side_effects.py: what else is done
    codegen.py            all of it as text; resume_execution.py: what follows a graph break
    backends.py           a graph becomes something that runs

In PyTorch: `torch/_dynamo/__init__.py`, and for the backend `torch/_functorch/aot_autograd.py` and `torch/_inductor`.
"""

from readtorch._dynamo import config, exc
from readtorch._dynamo.backends import check_mode, list_backends
from readtorch._dynamo.decorators import (
    allow_in_graph,
    assume_constant_result,
    disallow_in_graph,
    graph_break,
    maybe_mark_dynamic,
)
from readtorch._dynamo.recorded import eval_frame as recorded
from readtorch._dynamo.recorded.eval_frame import OptimizedModule
from readtorch.nn.modules.module import Module

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
    "list_backends",
    "maybe_mark_dynamic",
    "optimize",
    "report",
    "reset",
]


def _frontend():
    """The module that captures, as `config.capture` has it."""
    if config.capture == "recorded":
        return recorded
    if config.capture != "bytecode":
        raise ValueError(f"config.capture is 'recorded' or 'bytecode', not {config.capture!r}")
    from readtorch._dynamo import eval_frame

    return eval_frame


def optimize(model, **options):
    """What `readtorch.compile` returns for a function, a method or a module."""
    frontend = _frontend()
    wrap = frontend.OptimizedModule if isinstance(model, Module) else frontend.optimize
    return wrap(model, **options)


def explain(function):
    """`explain(f)(*args)`: what `compile` makes of this call."""
    return _frontend().explain(function)


def report(compiled):
    """What a compiled function has made so far."""
    if hasattr(compiled, "_compiled_function"):
        return recorded.report(compiled)
    from readtorch._dynamo import eval_frame

    return eval_frame.report(compiled)


def reset():
    """Forget all captures."""
    recorded.reset()
    if config.capture == "bytecode":
        _frontend().reset()
