"""Marks on functions that tell `jit.script` what to do with them.

In PyTorch: `torch/_jit_internal.py`. Explained in the chapter "JIT: scripting".
"""

import inspect
import warnings
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
