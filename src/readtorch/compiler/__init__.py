"""The compiler's public switches. In PyTorch: `torch/compiler/__init__.py`.

Explained in the chapter "The fuser, and from TorchScript to torch.compile".
"""

import functools
import threading

from readtorch.c10.local_dispatch_key_set import trace_under_way


class _Compiling(threading.local):
    """Whether `compile` captures a call of this thread; threads may compile at once. In PyTorch: one flag and a lock."""

    flag = False


_compiling = _Compiling()

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
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


def list_backends(exclude_tags=("debug", "experimental")):
    """The names that `compile(backend=…)` takes."""
    from readtorch import _dynamo

    return _dynamo.list_backends() if exclude_tags else sorted(_dynamo.backends.BACKENDS)


def reset():
    """Forget every graph that was captured."""
    from readtorch import _dynamo

    _dynamo.reset()


def allow_in_graph(fn):
    """A call of `fn` becomes a node of the graph; its code is not looked at. Also for a list of functions.

    For captures by bytecode (`_dynamo.config.capture`). fn must only compute with what it is given.
    """
    from readtorch import _dynamo

    return _dynamo.allow_in_graph(fn)


def assume_constant_result(fn):
    """`fn` is called when the function around it is captured; what it returned then counts from then on.

    For captures by bytecode (`_dynamo.config.capture`).
    """
    from readtorch import _dynamo

    return _dynamo.assume_constant_result(fn)


def disable(fn=None, recursive=True, *, reason=None):
    """`fn` is never part of a graph: who calls it runs as written.

    recursive: in PyTorch, False lets what `fn` calls be compiled. Here a function is captured as a whole or
    not at all.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)

    @functools.wraps(fn)
    def disabled(*args, **kwargs):
        trace = trace_under_way()
        if trace is not None and hasattr(trace, "give_up"):
            trace.give_up(
                f"it calls {fn.__name__}, which torch.compiler.disable excludes" + (f": {reason}" if reason else "")
            )
        return fn(*args, **kwargs)

    disabled._torchdynamo_disable = True
    disabled._reason = f": {reason}" if reason else ""
    return disabled
