"""`fork`: a value that another thread is still computing.

In PyTorch: `prim::fork` in `torch/csrc/jit/runtime/interpreter.cpp`.
"""
import threading

from ....c10.dispatch_key import set_mask, tls
from ...distributed.future import Future


def fork(function, arguments, element_type=None):
    """Start `function(*arguments)` in a thread of its own, under the caller's dispatch mask; returns its
    Future.

    In PyTorch: a task of the inter-op thread pool, and a task that waits gives its thread back.
    """
    future = Future()
    future.element_type = element_type
    mask = tls.mask

    def run():
        set_mask(mask)
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
    threading.Thread(target=run, name="fork", daemon=True).start()
    return future
