"""What `torch._C` has for `__torch_function__`: is there an override, which state is this thread in, which modes are on.

In PyTorch: `torch/csrc/utils/disable_torch_function.cpp`, `torch/overrides.py` (`handle_torch_function`), and in `torch/csrc/autograd/init.cpp` the stack of modes.
Explained in the chapter "One operator call".
"""

import warnings
from enum import IntEnum

from readtorch.aten.torch_function import (  # noqa: F401  (`_C` has all of them from here)
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    has_handler,
    has_override,
    is_overridden,
    mode_enabled,
    one_of_each_class,
    overriders,
    pop_mode,
    popped_mode,
    push_mode,
    set_torch_function_state,
    skip_one_hop,
    skips_hop,
)
from readtorch.c10 import tensor_impl
from readtorch.c10.local_dispatch_key_set import ALL_DISABLED, ALL_ENABLED, SUBCLASSES_DISABLED, tls


def _has_torch_function_unary(obj):
    """Whether a mode is on or the class of `obj` overrides: then the call is handed on."""
    if type(obj) is tensor_impl.tensor_class and not overriders:
        return False
    return (mode_enabled() or has_override(obj)) and not skips_hop()


def _has_torch_function_variadic(*args):
    """The same for several arguments."""
    if not overriders and {tensor_impl.tensor_class}.issuperset(map(type, args)):
        return False
    return is_overridden(args)


def _has_torch_function(relevant_args):
    """The same for the arguments in a sequence. TypeError for anything else."""
    try:
        arguments = tuple(relevant_args)
    except TypeError:
        raise TypeError("expected a sequence") from None
    return _has_torch_function_variadic(*arguments)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """The answer of the innermost mode, else of the first class among `relevant_args` that gives one, to a call of
    `public_api` with args and kwargs.

    A function that is written in Python begins with it: `if has_torch_function((a, b)): return handle_torch_function(f, (a, b),
    a, b)`. Raises TypeError if all answer NotImplemented.
    """
    overloaded = _get_overloaded_args(relevant_args)
    types = tuple(map(type, overloaded))
    if mode_enabled():
        with popped_mode() as mode:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for argument in overloaded:
        handler = argument.__torch_function__
        if getattr(handler, "__self__", None) is argument and handler is not _disabled_torch_function_impl:
            warnings.warn(
                "Defining your `__torch_function__ as a plain method is deprecated and "
                "will be an error in future, please define it as a classmethod.",
                DeprecationWarning,
                stacklevel=2,
            )
        result = handler(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    message = (
        f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types that implement "
        f"__torch_function__: {list(types)}"
    )
    if mode_enabled():
        message += f" nor in mode {tls.function_modes[-1]}"
    raise TypeError(message)


def _get_overloaded_args(relevant_args, get_type_fn=type):
    """One argument of each class that has `__torch_function__`, Tensor among them: in order, but a subclass before the
    classes that it is of."""
    if not _is_torch_function_enabled():
        return []
    return one_of_each_class([a for a in relevant_args if has_handler(a, get_type_fn)], get_type_fn)


def is_tensor_like(inp):
    """Whether it is a Tensor, or an object whose class has `__torch_function__`."""
    return type(inp) is tensor_impl.tensor_class or hasattr(inp, "__torch_function__")


def hand_on(function, relevant_args, arguments, written_as=None):
    """`handle_torch_function` for a function of nn.functional, which hands on its arguments (its `locals()`) as PyTorch's do:
    one without a default by position, the others by keyword. written_as: the function with these parameters, if another."""
    written_as = written_as or function
    code, defaults = written_as.__code__, len(written_as.__defaults__ or ())
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    required = code.co_argcount - defaults
    by_keyword = {name: arguments[name] for name in names[required:]}
    return handle_torch_function(function, relevant_args, *[arguments[name] for name in names[:required]], **by_keyword)


class _TorchFunctionState(IntEnum):
    """Who is asked."""

    ENABLED = ALL_ENABLED
    SUBCLASSES_DISABLED = SUBCLASSES_DISABLED
    ALL_DISABLED = ALL_DISABLED

    def __repr__(self):
        return f"<_TorchFunctionState.{self.name}: {self.value}>"

    def __str__(self):
        return f"_TorchFunctionState.{self.name}"


def _get_torch_function_state():
    return _TorchFunctionState(tls.torch_function)


def _set_torch_function_state(state):
    set_torch_function_state(int(state))


def _is_torch_function_enabled():
    return tls.torch_function == ALL_ENABLED


def _is_torch_function_all_disabled():
    return tls.torch_function == ALL_DISABLED


def _is_torch_function_mode_enabled():
    return mode_enabled()


def _len_torch_function_stack():
    return len(tls.function_modes)


def _get_function_stack_at(i):
    """The mode at depth `i`, 0 being the outermost. Raises RuntimeError if there is none."""
    if not 0 <= i < len(tls.function_modes):
        raise RuntimeError("Tried to get stack at idx that's too big")
    return tls.function_modes[i]


_push_on_torch_function_stack = push_mode
_pop_torch_function_stack = pop_mode
_skip_one_hop_torch_function = skip_one_hop

# By these names users know them.
has_torch_function = _has_torch_function
has_torch_function_unary = _has_torch_function_unary
has_torch_function_variadic = _has_torch_function_variadic
for _function in (handle_torch_function, _get_overloaded_args, is_tensor_like):
    _function.__module__ = "readtorch.overrides"
for _function in (_has_torch_function, _has_torch_function_unary, _has_torch_function_variadic):
    _function.__module__ = "readtorch._C"
