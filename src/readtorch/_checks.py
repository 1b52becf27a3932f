"""Conditions that a program states, for error messages and for `export`: `torch._check` and its relatives.

In PyTorch: `torch/__init__.py`. A condition about sizes that may change is a SymBool: `export` keeps it as a guard.
"""

import warnings

from ._tensor import Tensor
from .c10.scalar_type import bool as bool_
from .c10.sym_int import SymBool

_NO_MESSAGE = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)


def _check_with(error_type, cond, message):
    """Raise `error_type(message())` unless `cond`, a bool or a SymBool. TypeError for other conditions."""
    if not isinstance(cond, (bool, SymBool)):
        if isinstance(cond, Tensor):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert "
                "that all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if not issubclass(error_type, Exception) or issubclass(error_type, Warning):
        raise AssertionError(f"error_type must be a subclass of Exception but not Warning, got {error_type}")
    if message is None:
        raise error_type(_NO_MESSAGE)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond, message=None):
    """Raise RuntimeError unless `cond`. message: a function that gives the text, called when it is needed."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """Raise IndexError unless `cond`."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """Raise ValueError unless `cond`."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """Raise TypeError unless `cond`."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """Raise NotImplementedError unless `cond`."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    """Raise RuntimeError unless 0 <= i, and i <= max if there is one. Deprecated: `_check(i >= 0)`."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious. "
        "    Use _check(i >= 0) instead.",
        FutureWarning,
        stacklevel=2,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type, cond, message=None):
    """Raise `error_type(message())` unless all elements of `cond`, a tensor of bools, are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, cond._is_all_true().item(), message)


def _check_tensor_all(cond, message=None):
    """Raise RuntimeError unless all elements of `cond` are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


for _name in [name for name in globals() if name.startswith("_check")]:
    globals()[_name].__module__ = "readtorch"  # as graphs name them
