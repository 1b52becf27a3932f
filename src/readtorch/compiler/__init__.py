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

__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "list_backends", "reset"]


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
