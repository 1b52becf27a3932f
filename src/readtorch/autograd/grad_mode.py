"""Switches for whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`.

Each changes this thread's state, and with it the mask that its calls read: Note [ Keys of a thread ].
In PyTorch: `torch/autograd/grad_mode.py`. Explained in the chapter "Autograd".
"""

import functools
import inspect
import warnings

from readtorch.c10.autograd_state import autograd_state
from readtorch.c10.dispatch_key import ADINPLACEORVIEW, AUTOGRAD
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled, set_thread_state, thread_state, tls
from readtorch.csrc.autograd.init import _set_grad_enabled, _unsafe_set_version_counter

__all__ = [
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "set_multithreading_enabled",
    "enforce_grad_layout_policy",
]


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
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions "
                "or methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` "
                "method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            make = function
            return self(lambda *args, **kwargs: make(*args, **kwargs))
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
            set_thread_state((included & ~ADINPLACEORVIEW, excluded | AUTOGRAD, False, True, False))
        else:
            set_thread_state((included | ADINPLACEORVIEW, excluded & ~AUTOGRAD, True, False, True))

    def __exit__(self, *exception):
        set_thread_state(self.previous)


def _enter_inference_mode(mode):
    """Inference mode, entered; `_exit_inference_mode` ends what is returned."""
    context = inference_mode(mode)
    context.__enter__()
    return context


def _exit_inference_mode(mode):
    mode.__exit__(None, None, None)


class _StateSwitch(_ModeContext):
    """Sets one value of the thread's autograd state: at once, and until the end of a `with` block if used as one."""

    name = None

    def __init__(self, mode):
        self.mode = mode
        self.previous = getattr(autograd_state, self.name)
        setattr(autograd_state, self.name, mode)

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        setattr(autograd_state, self.name, self.previous)

    def clone(self):
        return type(self)(self.mode)


class _StateDecorator(_StateSwitch):
    """The same, and decorating a function changes nothing yet."""

    def __call__(self, function):
        setattr(autograd_state, self.name, self.previous)
        return super().__call__(function)


class set_multithreading_enabled(_StateSwitch):
    """Whether backward may use a thread for each device (True at first); without, all runs in the calling thread."""

    name = "multithreading_enabled"


class enforce_grad_layout_policy(_StateDecorator):
    """Whether a leaf's first gradient must have the leaf's strides (True at first), or may be taken as it comes."""

    name = "grad_layout_enforcement_enabled"

    def __init__(self, enable=True):
        super().__init__(enable)


class _force_original_view_tracking(_StateDecorator):
    """Whether a view whose base was written to is always made again by the operators that made it."""

    name = "view_replay_enabled"

    def __enter__(self):
        setattr(autograd_state, self.name, self.mode)


def is_multithreading_enabled():
    return autograd_state.multithreading_enabled


def is_view_replay_enabled():
    return autograd_state.view_replay_enabled


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

    def __exit__(self, exc_type, exc_value, traceback):
        _unsafe_set_version_counter(self.tensors, self.previous)
