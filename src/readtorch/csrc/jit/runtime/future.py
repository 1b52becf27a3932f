"""A value that another thread is still computing.

In PyTorch: `c10::ivalue::Future` in `aten/src/ATen/core/ivalue_inl.h`; `torch.jit.Future` in Python.
"""
import threading

from ....c10.dispatch_key import set_mask, tls


class Future:
    """`wait()` gives the value, or raises what the computation raised. element_type: the value's type."""

    def __init__(self, element_type=None):
        self.element_type = element_type
        self._done = threading.Event()
        self._value = self._error = None
        self._callbacks = []
        self._lock = threading.Lock()

    def done(self):
        return self._done.is_set()

    def wait(self):
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value

    value = wait

    def set_result(self, value):
        self._finish(value, None)

    def set_exception(self, error):
        self._finish(None, error)

    def _finish(self, value, error):
        with self._lock:
            self._value, self._error = value, error
            self._done.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback):
        """Call `callback(future)` once it is done."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback):
        """A Future of `callback(this one)`."""
        following = Future()

        def run(future):
            try:
                following.set_result(callback(future))
            except Exception as error:
                following.set_exception(error)
        self.add_done_callback(run)
        return following

    def script_type(self):
        from ..ir.type import FutureType, TensorType
        return FutureType(self.element_type or TensorType.get())


def fork(function, arguments, element_type=None):
    """Start `function(*arguments)` in a thread of its own, under the caller's dispatch mask; returns its
    Future.

    In PyTorch: a task of the inter-op thread pool, and a task that waits gives its thread back.
    """
    future = Future(element_type)
    mask = tls.mask

    def run():
        set_mask(mask)
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
    threading.Thread(target=run, name="fork", daemon=True).start()
    return future
