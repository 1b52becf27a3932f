"""A value that will be there later. In PyTorch: `c10::ivalue::Future` in `aten/src/ATen/core/ivalue_inl.h`, bound as
`torch._C.Future`.
"""

import contextlib
import threading


class Future:
    """A value, or an exception, that somebody sets once; who needs it waits or leaves a callback."""

    element_type = None  # the value's type in TorchScript, if it is known

    def __init__(self, *, devices=None):
        # in PyTorch: `devices` says whose streams wait together with the host
        self._changed = threading.Condition()
        self._callbacks = []
        self._finished = False
        self._value = None
        self._exception = None
        self._source = None  # function that waits for what this future waits for, and not for ever

    def done(self):
        """Whether there is a value or an exception."""
        return self._finished

    def wait(self):
        """Block until it is done; the value, or the exception raised."""
        if self._source is not None and not self._finished:
            with contextlib.suppress(Exception):  # it is the future's exception by then
                self._source()
        with self._changed:
            self._changed.wait_for(lambda: self._finished)
        return self.value()

    def value(self):
        """The value now; RuntimeError if there is none yet, the exception if that was set."""
        if not self._finished:
            raise RuntimeError("Future not complete.")
        if self._exception is not None:
            raise self._exception
        return self._value

    def set_result(self, result):
        """Complete it with a value; RuntimeError if it is complete already."""
        self._complete(result, None)

    def set_exception(self, result):
        """Complete it with an exception, which `wait` and `value` raise."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value, exception):
        with self._changed:
            if self._finished:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a "
                    "Future can only be marked completed once."
                )
            self._value, self._exception = value, exception
            self._finished = True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback):
        """Call `callback(future)` when it is done; at once if it is."""
        with self._changed:
            if not self._finished:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback):
        """A Future of what `callback(self)` returns when this one is done; it carries what callback raises."""
        following = Future()
        following._source = self.wait

        def run(_):
            try:
                following.set_result(callback(self))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(run)
        return following

    def script_type(self):
        from readtorch.csrc.jit.ir.type import FutureType, TensorType

        return FutureType(self.element_type or TensorType.get())


Future.__module__ = "readtorch"  # where everybody finds it
