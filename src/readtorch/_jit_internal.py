"""Marks on functions that tell `jit.script` what to do with them.

In PyTorch: `torch/_jit_internal.py`. Explained in the chapter "JIT: scripting".
"""

import inspect
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, get_origin

_MODIFIER = "_torchscript_modifier"
UNUSED = "unused (ignored and replaced with raising of an exception)"
IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
EXPORT = "export (compile this function even if nothing calls it)"
DEFAULT = "default (if called from a exported function / forward)"
COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"


def _mark(function, modifier):
    setattr(function, _MODIFIER, modifier)
    return function


def export(fn):
    """Decorator: compile this method although `forward` does not call it."""
    return _mark(fn, EXPORT)


def unused(fn):
    """Decorator: do not compile this method; a call of it in TorchScript raises."""
    if isinstance(fn, property):
        for accessor in (fn.fget, fn.fset):
            if accessor is not None:
                _mark(accessor, UNUSED)
        return fn
    return _mark(fn, UNUSED)


def ignore(drop=False, **kwargs):
    """Decorator: leave this function to Python. A graph that calls it cannot be saved; drop: the call raises
    instead.
    """
    if callable(drop):
        return _mark(drop, IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    if kwargs.pop("drop_on_export", False):
        warnings.warn(
            "ignore(drop_on_export=True) has been deprecated. TorchScript will now drop the function call on "
            "compilation. Use torch.jit.unused now. {}",
            category=FutureWarning,
            stacklevel=2,
        )
        drop = True
    return lambda fn: _mark(fn, UNUSED if drop else IGNORE)


def get_torchscript_modifier(fn):
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), _MODIFIER, DEFAULT)


def is_ignored_fn(fn):
    """Whether the compiler leaves it alone."""
    return get_torchscript_modifier(fn) in (UNUSED, IGNORE)


def should_drop(fn):
    return get_torchscript_modifier(fn) == UNUSED


def is_final(annotation):
    """Whether an annotation is `Final[…]`."""
    return (
        annotation is Final
        or get_origin(annotation) is Final
        or (isinstance(annotation, str) and annotation.split("[")[0].rpartition(".")[2] == "Final")
    )


def is_static_fn(cls, name):
    return isinstance(inspect.getattr_static(cls, name, None), staticmethod)


def is_scripting():
    """Whether this runs as TorchScript: always False in Python."""
    return False


class BroadcastingListCls:
    """`BroadcastingList2[int]`, the type of a parameter: two ints, or one that stands for both."""

    def __getitem__(self, kind):
        return kind | Sequence[kind]  # in PyTorch: None


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingListCls()
BroadcastingList3 = BroadcastingListCls()


_overloaded_fns = defaultdict(list)  # (module, name) -> the declarations, in the order in which they are tried


def _place(func):
    """Where a function was written: its `__module__` may name a package that shows it."""
    return func.__globals__["__name__"], func.__qualname__


def _overload(func):
    """Decorator of declarations, whose bodies are `...`: TorchScript compiles the function of this name that
    follows them once for each, with its types.
    """
    _overloaded_fns[_place(func)].append(func)
    return func


def _overload_method(func):
    """Decorator: a declaration of a method. Its class runs in Python as it is written; `jit.script` refuses the method."""
    return _overload(func)


def _get_fn_overloads(func):
    return _overloaded_fns.get(_place(func), [])


boolean_dispatched = {}  # function -> what `boolean_dispatch` was given


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that is `if_true` or `if_false`, as its argument `arg_name` (at `arg_index`) says.

    In TorchScript the two may return different types; the argument must be a constant.
    """

    def fn(*args, **kwargs):
        dispatch_flag = default
        if arg_name in kwargs:
            dispatch_flag = kwargs[arg_name]
        elif arg_index < len(args):
            dispatch_flag = args[arg_index]
        return if_true(*args, **kwargs) if dispatch_flag else if_false(*args, **kwargs)

    fn.__name__ = fn.__qualname__ = func_name
    fn.__module__ = module_name
    fn.__doc__ = if_false.__doc__
    fn.__signature__ = inspect.signature(if_false)  # in PyTorch: (*args, **kwargs)
    boolean_dispatched[fn] = (arg_name, arg_index, default, if_true, if_false)
    return fn
