"""The compiler's public switches. In PyTorch: `torch/compiler/__init__.py`.

Explained in the chapter "Inductor: loops, fusion, code".
"""

import functools
import threading


class _Compiling(threading.local):
    """Whether `compile` captures a call of this thread; threads may compile at once. In PyTorch: one flag and a lock."""

    flag = False
    exporting = False


_compiling = _Compiling()

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "disable",
    "cudagraph_mark_step_begin",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]


def compile(*args, **kwargs):
    """See `readtorch.compile`."""
    import readtorch

    return readtorch.compile(*args, **kwargs)


def is_compiling():
    """Whether the call that asks is being captured by `compile`."""
    return _compiling.flag


is_dynamo_compiling = is_compiling


def is_exporting():
    """Whether the call that asks is being traced by `export`."""
    return _compiling.exporting


def cudagraph_mark_step_begin():
    """Begin an iteration, for CUDA graphs, which readtorch's `compile` does not make: nothing is to be done."""


def list_backends(exclude_tags=("debug", "experimental")):
    """The names that `compile(backend=…)` takes."""
    from readtorch import _dynamo

    return _dynamo.list_backends() if exclude_tags else sorted(_dynamo.backends.registry.BACKENDS)


def reset():
    """Forget every graph that was captured."""
    from readtorch import _dynamo

    _dynamo.reset()


def allow_in_graph(fn):
    """A call of `fn` becomes a node of the graph; its code is not looked at. Also for a list of functions.

    fn must only compute with what it is given.
    """
    from readtorch import _dynamo

    return _dynamo.allow_in_graph(fn)


def assume_constant_result(fn):
    """`fn` is called when the function around it is captured; what it returned then counts from then on."""
    from readtorch import _dynamo

    return _dynamo.assume_constant_result(fn)


def disable(fn=None, recursive=True, *, reason=None):
    """`fn` is never part of a graph: whose graph would call it breaks there.

    recursive: in PyTorch, False lets what `fn` calls be compiled. Here nothing of what it calls is. reason: for messages.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)

    @functools.wraps(fn)
    def disabled(*args, **kwargs):
        return fn(*args, **kwargs)

    disabled._torchdynamo_disable = True
    disabled._torchdynamo_disable_msg = reason
    return disabled
