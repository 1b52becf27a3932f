"""`__torch_function__` for functions that are written in Python, and modes of functions.

In PyTorch: `torch/overrides.py`. Explained in the chapter "One operator call".
"""

import contextlib
import functools
import types
import warnings

import readtorch

from . import _C
from ._C import (
    _get_function_stack_at,
    _len_torch_function_stack,
    _pop_torch_function_stack,
    _push_on_torch_function_stack,
)
from ._C import _has_torch_function as has_torch_function
from ._C import _has_torch_function_unary as has_torch_function_unary
from ._C import _has_torch_function_variadic as has_torch_function_variadic
from ._overrides_parameters import IGNORED, PARAMETERS
from ._tensor import get_default_nowrap_functions  # noqa: F401
from .aten.torch_function import popped_mode
from .c10 import tensor_impl
from .csrc.utils.disable_torch_function import _get_overloaded_args, handle_torch_function, is_tensor_like  # noqa: F401

__all__ = [
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "resolve_name",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
    "enable_reentrant_dispatch",
    "redispatch_function",
]


# ---------------------------------------------------------------------------------- functions written in Python


def wrap_torch_function(dispatcher):
    """Decorator: calls of the function are handed to whoever overrides them. `dispatcher`, called with its arguments, says
    whose classes are asked."""

    def inner(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def redispatch_function(func, types, args, kwargs):
    """`func(*args, **kwargs)` without handing this call on; what `func` calls is handed on again."""
    return _C._skip_one_hop_torch_function(func, types, args, kwargs)


# ------------------------------------------------------------------------------------------- what is overridable


def find_public(path):
    """What is called `path` below readtorch, or None: `Tensor.add`, `fft.fft`; of a property its `__get__`."""
    value = readtorch
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


@functools.cache
def get_ignored_functions():
    """The public functions that cannot be overridden, mostly because they take no tensors."""
    functions = {function for function in map(find_public, IGNORED.split()) if function is not None}
    return functions | {
        has_torch_function,
        has_torch_function_unary,
        has_torch_function_variadic,
        handle_torch_function,
    }


@functools.cache
def get_testing_overrides():
    """Function -> a function of the same parameters that returns -1, for all that can be overridden."""
    of_functions, of_methods = {}, []
    for parameters, paths in _parameters():
        dummy = eval(f"lambda {parameters}: -1", {**vars(readtorch), "torch": readtorch})
        for path in paths:
            function = find_public(path)
            if function is not None:
                of_functions[function] = dummy
                if path.startswith("distributed."):
                    continue
                of_methods += [(order, name, dummy) for order, name in _methods_of(path, function.__name__)]
    derived = {}
    for _, name, dummy in sorted(of_methods, key=lambda method: method[0]):  # what comes last holds
        method = getattr(readtorch.Tensor, name, None)
        if callable(method) and method not in of_functions and method not in get_ignored_functions():
            derived[method] = dummy
    return of_functions | derived


def _parameters():
    """(parameters, names) for each line of PARAMETERS."""
    for line in PARAMETERS.replace("\n    ", " ").splitlines():
        parameters, _, paths = line.removeprefix("(").partition(") ")
        yield parameters, paths.split()


def _methods_of(path, name):
    """(order, name) of the methods that are called as a function is: of `add` also `add_`, `__add__`, `__iadd__`, `__radd__`."""
    names = [name, f"{name}_", f"__{name}__", f"__i{name}__", f"__r{name}__"]
    if name.startswith("bitwise_"):
        short = name.removeprefix("bitwise_")
        names += [f"__{short}__", f"__i{short}__", f"__r{short}__"]
    return [((not path.startswith("nn."), place), name) for place, name in enumerate(names)]


@functools.cache
def _get_overridable_functions():
    """Namespace -> its functions that can be overridden, and function -> its name."""
    found, names, Tensor = {}, {}, tensor_impl.tensor_class
    for label, namespace, members in _namespaces():
        for member in members:
            function = getattr(namespace, member)
            is_public = namespace is Tensor or member[0].islower() and not member.endswith("_")
            if namespace is Tensor and getattr(object, member, None) == function or _is_no_function(function):
                continue
            if not callable(function):
                names[function.__get__] = f"{label}.{member}.__get__"
                names[function.__set__] = f"{label}.{member}.__set__"
                if is_public and function.__get__ not in get_ignored_functions():
                    found[function] = [function.__get__]
                continue
            if names.get(function) != "torch.Tensor.__bool__":  # __nonzero__ is another name of it
                names[function] = f"{label}.{member}"
            if is_public and function not in get_ignored_functions():
                found.setdefault(namespace, []).append(function)
    return found, names


def _namespaces():
    """(name, module or class, its members)"""
    from readtorch import fft, functional, linalg, nn, special

    yield "torch", readtorch, readtorch.__all__
    yield "torch.functional", functional, [name for name in dir(functional) if not name.startswith("_")]
    for label, module in (("torch.nn.functional", nn.functional), ("torch.nn.init", nn.init)):
        yield label, module, [name for name in dir(module) if not name.startswith("__")]
    yield "torch.Tensor", readtorch.Tensor, [name for name in dir(readtorch.Tensor) if name != "__weakref__"]
    for label, module in (("torch.linalg", linalg), ("torch.fft", fft), ("torch.special", special)):
        yield label, module, [name for name in dir(module) if not name.startswith("__")]


def _is_no_function(value):
    return isinstance(value, types.ModuleType) or not callable(value) and not hasattr(value, "__set__")


def get_overridable_functions():
    """Namespace -> the functions in it that can be overridden; of a property, property -> [its `__get__`]."""
    return _get_overridable_functions()[0]


def resolve_name(f):
    """The name of a function that `__torch_function__` was told of: "torch.Tensor.add". None if it is not known."""
    from . import _ops

    if isinstance(f, (_ops.OpOverload, _ops.OpOverloadPacket)):
        return str(f)
    return _get_overridable_functions()[1].get(f)


@functools.cache
def _get_tensor_methods():
    return set(get_overridable_functions()[tensor_impl.tensor_class])


def is_tensor_method_or_property(func):
    """Whether it is a method of Tensor, or the `__get__` of one of its properties."""
    return func in _get_tensor_methods() or func.__name__ == "__get__"


# ---------------------------------------------------------------------------------------------------------- modes


class TorchFunctionMode:
    """`with Mode():` hands calls of PyTorch's functions to `Mode.__torch_function__`, whatever their arguments are.

    The innermost mode is asked first. While it answers it is off: its own calls go to the next one.
    """

    inner: "TorchFunctionMode"

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _push_mode(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call be made."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    depth = _len_torch_function_stack()
    return _get_function_stack_at(depth - 1) if depth else None


def _get_current_function_mode_stack():
    return [_get_function_stack_at(i) for i in range(_len_torch_function_stack())]


def _push_mode(mode):
    _push_on_torch_function_stack(mode)


def _pop_mode():
    return _pop_torch_function_stack()


_pop_mode_temporarily = popped_mode


@contextlib.contextmanager
def _enable_torch_function():
    previous = _C._get_torch_function_state()
    try:
        _C._set_torch_function_state(_C._TorchFunctionState.ENABLED)
        yield
    finally:
        _C._set_torch_function_state(previous)


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """Inside a kernel of `__torch_dispatch__`: calls pass autograd, and all that is above, once more."""
    with _C._RestorePythonTLSSnapshot():
        yield
