"""`fork` and `wait`: functions that run while the caller goes on.

In PyTorch: `torch/jit/_async.py`. Explained in the chapter "JIT: scripting".
"""

from readtorch.c10.local_dispatch_key_set import trace_under_way
from readtorch.futures import Future

__all__ = ["Future", "fork", "wait"]


def fork(func, *args, **kwargs):
    """Start `func(*args, **kwargs)` and return its Future. In Python it runs at once; in TorchScript in a
    task of its own.
    """
    trace = trace_under_way()
    if trace is not None:
        return trace.fork(lambda: func(*args, **kwargs))
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """The value of a Future, as soon as it is there."""
    trace = trace_under_way()
    return future.wait() if trace is None else trace.wait(future)
