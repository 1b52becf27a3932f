"""Dispatch modes, and what is asked of tensors that wrap other tensors.

In PyTorch: `torch/utils/_python_dispatch.py`. Explained in the chapter "One operator call".
"""

import contextlib
import functools
import warnings
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from readtorch._tensor import Tensor
from readtorch.aten.operator_entry import highest_backend
from readtorch.c10.dispatch_key import CPU, META
from readtorch.c10.local_dispatch_key_set import KeyGuard
from readtorch.c10.tensor_impl import key_set
from readtorch.c10.torch_dispatch_mode_tls import (
    _TorchDispatchModeKey,
    get_mode,
    mode_tls,
    pop,
    push,
    stack_at,
    unset_mode,
)
from readtorch.csrc.autograd.wrapper_subclass import _functionalize_unsafe_set

_is_in_torch_dispatch_mode = False
_is_in_non_infra_torch_dispatch_mode = False
_is_in_any_mode_without_ignore_compile_internals = False


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode was entered; without `include_infra_modes` one that is not part of PyTorch's own machinery."""
    return _is_in_torch_dispatch_mode if include_infra_modes else _is_in_non_infra_torch_dispatch_mode


def is_in_any_mode_without_ignore_compile_internals():
    return _is_in_any_mode_without_ignore_compile_internals


def any_torch_dispatch_mode_on_stack():
    """Whether this thread has a mode that wants to see what compiled code does."""
    return any(not mode.is_infra_mode() and not mode.ignore_compile_internals() for mode in mode_tls.modes)


class TorchDispatchMode:
    """`with MyMode():` every operator call inside comes to `MyMode.__torch_dispatch__(self, func, types, args, kwargs)`.

    Modes sit at the key Python, below Autograd: compositions have become their parts there, and what a mode calls is
    not recorded again. While it runs it is off the stack, so `func(*args, **kwargs)` goes to the mode below, at last
    to the kernel. types: the classes among the arguments that have a `__torch_dispatch__` of their own.
    Returning NotImplemented leaves the call to these.
    """

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key=None):
        if _dispatch_key is not None:
            self.__dict__["_dispatch_key"] = _dispatch_key
        self._lazy_init_old_dispatch_mode_flags()

    def _lazy_init_old_dispatch_mode_flags(self):
        """What a subclass whose `__init__` does not call this one's must have, too."""
        for name in _FLAGS.values():
            if not hasattr(self, name):
                setattr(self, name, deque())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        self._lazy_init_old_dispatch_mode_flags()
        counts = True, not self.is_infra_mode(), not self.ignore_compile_internals()
        for (flag, before), holds in zip(_FLAGS.items(), counts):
            getattr(self, before).append(globals()[flag])
            globals()[flag] = globals()[flag] or holds
        _push_mode(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        key = self.__dict__.get("_dispatch_key") or self.__dict__.get("_mode_key")
        for flag, before in _FLAGS.items():
            globals()[flag] = getattr(self, before).pop()
        _pop_mode(key)

    @classmethod
    def push(cls, *args, **kwargs):
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        """Whether the mode is part of PyTorch's own machinery, as FakeTensorMode is."""
        return False

    @classmethod
    def _should_skip_dynamo(cls):
        return True

    @classmethod
    def ignore_compile_internals(cls):
        """Whether the mode does not look into functions that `torch.compile` has made."""
        return cls.is_infra_mode()


# The three flags above, and where a mode keeps what they were when it was entered.
_FLAGS = {
    "_is_in_torch_dispatch_mode": "old_dispatch_mode_flags",
    "_is_in_non_infra_torch_dispatch_mode": "old_non_infra_dispatch_mode_flags",
    "_is_in_any_mode_without_ignore_compile_internals": "old_without_ignore_compile_internals_dispatch_mode_flags",
}


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **({} if kwargs is None else kwargs))


# ----------------------------------------------------------------------------------------------- the thread's stack


def _get_current_dispatch_mode():
    """The mode that is asked next, or None."""
    return mode_tls.modes[-1] if mode_tls.modes else None


def _get_current_dispatch_mode_stack():
    """This thread's modes, the one that is asked first at the end."""
    return [stack_at(i) for i in range(len(mode_tls.modes))]


def _push_mode(mode):
    push(mode)


def _pop_mode(k=None):
    return pop(k)


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    """`with _pop_mode_temporarily() as mode:` the topmost mode is off the stack."""
    old = _pop_mode(k)
    try:
        yield old
    finally:
        _push_mode(old)


@contextlib.contextmanager
def _disable_current_modes():
    """`with _disable_current_modes() as modes:` all modes are off the stack."""
    old_modes = [_pop_mode() for _ in range(len(mode_tls.modes))]
    try:
        yield old_modes
    finally:
        for mode in reversed(old_modes):
            _push_mode(mode)


def _detect_infra_mode(key):
    """The mode of a kind, FUNCTIONAL or PROXY, or None."""
    _check_infra(key)
    return get_mode(key)


def _unset_infra_mode(key):
    return unset_mode(key)


def _disable_infra_mode(key):
    _check_infra(key)
    mode_unset = _unset_infra_mode(key)
    try:
        yield mode_unset
    finally:
        if mode_unset is not None:
            _push_mode(mode_unset)


def _check_infra(key):
    kinds = _TorchDispatchModeKey
    if key not in (kinds.FUNCTIONAL, kinds.PROXY):
        raise AssertionError(
            f"key must be either FUNCTIONAL ({kinds.FUNCTIONAL}) or PROXY ({kinds.PROXY}) _TorchDispatchModeKey, got {key}"
        )


# ------------------------------------------------------------------------------------------------- wrapper subclasses


class TraceableWrapperSubclass(Protocol):
    """A tensor that can say what it is made of: `__tensor_flatten__()` returns the names of its inner tensors and whatever
    else `__tensor_unflatten__(inner_tensors, metadata, outer_size, outer_stride)` needs to make an equal one.
    """

    def __tensor_flatten__(self): ...

    @staticmethod
    def __tensor_unflatten__(inner_tensors, metadata, outer_size, outer_stride): ...


TensorWithFlatten = TraceableWrapperSubclass


def _has_traceable_wrapper_subclass_protocol(t):
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass(t):
    """Whether `t` is a tensor of a subclass that can say what it is made of."""
    return isinstance(t, Tensor) and type(t) is not Tensor and _has_traceable_wrapper_subclass_protocol(t)


def is_traceable_wrapper_subclass_type(t):
    """Whether the tensors of a class are."""
    return issubclass(t, Tensor) and t is not Tensor and _has_traceable_wrapper_subclass_protocol(t)


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """A tensor like `t` around `callback(name, inner)` for each inner tensor; the sizes of the outside are those of `t`."""
    outer_size = outer_size if outer_size is not None else t.size()
    outer_stride = outer_stride if outer_stride is not None else t.stride()
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    sub = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if sub.shape != outer_size:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have "
            f"shape equal to {outer_size}, but got: {sub.shape}"
        )
    if sub.stride() != outer_stride:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have "
            f"stride equal to {outer_stride}, but got: {sub.stride()}"
        )
    return sub


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a `__torch_dispatch__` that has computed `out` out of place may return for `func`.

    A view shares storage with the wrapper that it is a view of; an operator that writes returns the very argument that
    it has written to; one that changes an argument's sizes has changed those of the wrapper.
    """
    info = get_alias_info(func)
    _correct_storage_aliasing(func, info, args, out if isinstance(out, tuple) else (out,))
    if info.is_inplace_view_op:
        _change_geometry(func, info, args, kwargs)
    if info.outs_write_aliases is None:
        return out
    written = [_argument_of_alias(func, info, alias, args, kwargs) for alias in info.outs_write_aliases]
    return written[0] if len(written) == 1 else type(out)(written)


@dataclass
class AliasInfo:
    alias_set: set
    is_write: bool
    name: str | None


@dataclass
class SchemaInfo:
    args: list
    outs: list
    is_inplace_view_op: bool
    outs_write_aliases: list | None  # of each result: the letter of the argument that it is; None if it is a new one
    read_only_alias_match_indexes: list  # (argument, result) where the result is a view of the argument


@functools.cache
def get_alias_info(func):
    """What the schema of an operator says about memory."""
    schema = func._operator.schema
    args = [AliasInfo(_letters(a.type), a.type.writes, a.name) for a in schema.arguments]
    outs = [AliasInfo(_letters(r.type), r.type.writes, r.name) for r in schema.returns]
    views = [
        (i, j)
        for i, a in enumerate(args)
        for j, out in enumerate(outs)
        if a.alias_set & out.alias_set and not a.is_write
    ]
    writes = [_get_write_alias(out) for out in outs]
    if not any(writes):
        writes = None
    elif None in writes:
        raise RuntimeError("Unsupported schema: " + str(func._schema))
    return SchemaInfo(args, outs, is_inplace_view(func), writes, views)


def _letters(kind):
    return {kind.alias} if kind.alias else set()


def is_inplace_view(func):
    """Whether an operator changes the sizes or strides of the tensor that it is given (Tag.inplace_view)."""
    return any(getattr(tag, "name", tag) == "inplace_view" for tag in func.tags)


def _get_write_alias(x):
    return next(iter(x.alias_set)) if x.alias_set and x.is_write else None


def _correct_storage_aliasing(func, info, args, outs):
    """Give the results of a view operator the storage of the argument that they are views of."""
    for position, number in info.read_only_alias_match_indexes:
        arg, ret = args[position], outs[number]
        results = ret if isinstance(ret, list) else [ret]
        if is_traceable_wrapper_subclass_type(type(arg)) or is_traceable_wrapper_subclass_type(type(results[0])):
            for r in results:
                if type(arg) is not type(r):
                    raise AssertionError(
                        f"Called {str(func)} with input of type {type(arg)}\n"
                        f"and output of type {type(ret)}. But expected types to match."
                    )
        for r in results:
            _functionalize_unsafe_set(r, arg)


def _change_geometry(func, info, args, kwargs):
    """Run an operator such as `transpose_` on the wrapper itself, by the kernel that touches no memory."""
    mutated = [x for x, a in zip(args, info.args) if _get_write_alias(a) is not None]
    if len(mutated) != 1:
        raise AssertionError("expected exactly one mutated arg for inplace_view ops")
    from readtorch.utils._mode_utils import no_dispatch

    with no_dispatch(), KeyGuard(include=META):
        func(*args, **kwargs)


def _argument_of_alias(func, info, alias, args, kwargs):
    """The argument that a schema marks with this letter."""
    [position] = [i for i, a in enumerate(info.args) if alias in a.alias_set]
    name = info.args[position].name
    return kwargs[name] if name in (kwargs or {}) else args[position]


def autograd_would_have_decomposed(func, flat_args):
    """Whether the key Autograd would have replaced an operator by its composition: unless the backend has a kernel."""
    for a in flat_args:
        if isinstance(a, Tensor):
            return (highest_backend(key_set(a)) or CPU) not in func._operator.kernels
    return True
