"""Switches for whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`.

Each changes this thread's state, and with it the mask that its calls read: Note [ Keys of a thread ].
In PyTorch: `torch/autograd/grad_mode.py`. Explained in the chapter "Autograd".
"""

import functools
import inspect

from readtorch.c10.dispatch_key import ADINPLACEORVIEW, AUTOGRAD
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled, set_thread_state, thread_state, tls
from readtorch.csrc.autograd.init import _set_grad_enabled


def is_grad_enabled():
    """Whether this thread records operations."""
    return grad_mode_enabled()


def is_inference_mode_enabled():
    return tls.inference_mode


class _ModeContext:
    """A context manager that also decorates functions, generators included."""

    def __enter__(self):
        self.previous = tls.grad_mode
        _set_grad_enabled(self.mode)

    def __exit__(self, *exception):
        _set_grad_enabled(self.previous)

    def clone(self):
        """A fresh context manager of the same kind: a decorator enters one a call, so calls may nest."""
        return type(self)()

    def __call__(self, function):
        if inspect.isclass(function):
            raise TypeError(f"{type(self).__name__} cannot decorate a class: decorate its methods")
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def _wrap_generator(self, function):
        """The mode holds while the generator runs, not while its caller does."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            step, value = generator.send, None
            while True:
                try:
                    with self.clone():
                        item = step(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    step, value = generator.send, (yield item)
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:
                    step, value = generator.throw, error

        return wrapped


class no_grad(_ModeContext):
    """Operations inside are not recorded, whatever their operands require."""

    mode = False

    def __new__(cls, orig_func=None):
        self = object.__new__(cls)
        return self if orig_func is None else self(orig_func)


class enable_grad(_ModeContext):
    """Operations inside are recorded again, if a `no_grad` is around."""

    mode = True
    __new__ = no_grad.__new__


class set_grad_enabled(_ModeContext):
    """Switch recording on or off by a flag: at once, and until the end of a `with` block if used as one."""

    def __init__(self, mode):
        self.mode = mode
        self.previous = tls.grad_mode
        _set_grad_enabled(mode)

    def __call__(self, function):
        _set_grad_enabled(self.previous)  # as a decorator it changes nothing yet
        return super().__call__(function)

    def __enter__(self):
        _set_grad_enabled(self.mode)

    def clone(self):
        return type(self)(self.mode)

    def __repr__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


class inference_mode(_ModeContext):
    """Like no_grad; tensors made inside have no version counter and cannot become part of a graph."""

    def __new__(cls, mode=True):
        self = object.__new__(cls)
        if isinstance(mode, bool):
            return self
        self.mode = True
        return self(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def clone(self):
        return type(self)(self.mode)

    def __enter__(self):
        self.previous = thread_state()
        included, excluded = self.previous[:2]
        if self.mode:
            set_thread_state((included & ~ADINPLACEORVIEW, excluded | AUTOGRAD, False, True))
        else:
            set_thread_state((included | ADINPLACEORVIEW, excluded & ~AUTOGRAD, True, False))

    def __exit__(self, *exception):
        set_thread_state(self.previous)


class set_multithreading_enabled(_ModeContext):
    """Accepted for compatibility: readtorch's engine runs backward in the calling thread.

    In PyTorch: whether backward may use a thread for each device.
    """

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass

    def clone(self):
        return type(self)(self.mode)


class _unsafe_preserve_version_counter:
    """What is written to these tensors inside is not counted, so autograd does not notice it.

    tensors: one or a tuple. RuntimeError for inference tensors, which have no counter. It serves a tensor that is freed
    and filled again with the same numbers; anything else gives wrong gradients without a word.
    Explained in the chapter "The tensor as an object".
    """

    def __init__(self, tensors):
        self.tensors = tensors if isinstance(tensors, tuple) else (tensors,)
        self.previous = [t._version for t in self.tensors]

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        for t, version in zip(self.tensors, self.previous):
            t._counter[0] = version
