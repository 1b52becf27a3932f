"""The dispatch modes that a thread has entered.

In PyTorch: `c10/core/impl/TorchDispatchModeTLS.h`. Explained in the chapter "One operator call".
"""

import enum
import threading

from .dispatch_key import PRE_DISPATCH, PYTHON, PYTHON_TLS_SNAPSHOT
from .local_dispatch_key_set import tls, update_mask

PYTHON_KEYS = PYTHON | PYTHON_TLS_SNAPSHOT


class _TorchDispatchModeKey(enum.Enum):
    """The modes of PyTorch's own machinery: a thread has at most one of each kind.

    They lie below all other modes, in this order: FAKE at the bottom, which is asked last.
    """

    FAKE = 0
    PROXY = 1
    FUNCTIONAL = 2

    def __str__(self):
        return f"_TorchDispatchModeKey.{self.name}"


_NAMES = {"FAKE": "FakeTensorMode", "PROXY": "ProxyTorchDispatchMode", "FUNCTIONAL": "FunctionalTensorMode"}


class _TorchDispatchModeTLS(threading.local):
    """The modes from the bottom to the top: those of a kind first, then in the order in which they were entered."""

    def __init__(self):
        self.modes = []
        self.pre_dispatch = None  # the mode that sees calls above all keys
        self.on_entry = None  # what the thread included and excluded when the call came that is being handled


mode_tls = _TorchDispatchModeTLS()


def push(mode):
    """Make `mode` the next to be asked. RuntimeError if it is of a kind of which the thread has one."""
    key = kind_of(mode)
    if key is not None:
        return set_mode(mode, key)
    mode_tls.modes.append(mode)
    include_python_keys()


def pop(key=None):
    """Take the mode of a kind off the stack, or the topmost one, and return it."""
    modes = mode_tls.modes
    if key is not None:
        mode = unset_mode(key)
        if mode is None:
            raise RuntimeError(f"Attempted to unset {_NAMES[key.name]}, but there wasn't one active.")
        return mode
    if not modes:
        raise RuntimeError("trying to pop from empty mode stack")
    mode = modes.pop()
    include_python_keys()
    return mode


def kind_of(mode):
    return getattr(mode, "_mode_key", None)


def get_mode(key):
    """The mode of a kind, or None."""
    return next((mode for mode in mode_tls.modes if kind_of(mode) == key), None)


def set_mode(mode, key):
    """Put the mode of a kind at its place. RuntimeError if there is one."""
    modes = mode_tls.modes
    if get_mode(key) is not None:
        raise RuntimeError(f"trying to set the current {_NAMES[key.name]}, but one already exists")
    place = sum(kind_of(other) is not None and kind_of(other).value < key.value for other in modes)
    modes.insert(place, mode)
    include_python_keys()


def unset_mode(key):
    """Take the mode of a kind off the stack. Returns it, or None if there is none."""
    mode = get_mode(key)
    if mode is not None:
        mode_tls.modes.remove(mode)
        include_python_keys()
    return mode


def set_mode_pre_dispatch(mode):
    """Let `mode` be the one that sees calls above all keys, or nobody if it is None. Returns the one that was.

    In PyTorch: `_set_mode_pre_dispatch` in `torch/_ops.py`, which knows one mode of each kind.
    """
    previous, mode_tls.pre_dispatch = mode_tls.pre_dispatch, mode
    tls.included = tls.included | PRE_DISPATCH if mode is not None else tls.included & ~PRE_DISPATCH
    update_mask()
    return previous


def stack_at(index):
    """The mode at a place, counted from the bottom. Raises RuntimeError."""
    if not 0 <= index < len(mode_tls.modes):
        raise RuntimeError("Tried to get stack at idx that's too big")
    return mode_tls.modes[index]


def include_python_keys():
    """While there are modes, every call of this thread has the key Python."""
    tls.included = tls.included | PYTHON_KEYS if mode_tls.modes else tls.included & ~PYTHON_KEYS
    update_mask()


def _disabled_torch_dispatch_impl(func, types, args=(), kwargs=None):
    """As the `__torch_dispatch__` of a class: its tensors are dispatched as plain tensors are."""
    raise NotImplementedError("__torch_dispatch__ is disabled for this class")


def has_torch_dispatch(cls):
    """Whether the tensors of a class carry the key Python."""
    handler = getattr(cls, "__torch_dispatch__", None)
    return handler is not None and handler is not _disabled_torch_dispatch_impl


class StashTorchDispatchModes:
    """`with StashTorchDispatchModes():` there are no modes."""

    __slots__ = ("kept",)

    def __enter__(self):
        self.kept = mode_tls.modes
        if self.kept:
            mode_tls.modes = []
            include_python_keys()

    def __exit__(self, *exception):
        if self.kept:
            mode_tls.modes = self.kept
            include_python_keys()


class _RestorePythonTLSSnapshot:
    """`with _RestorePythonTLSSnapshot():` in a `__torch_dispatch__`, the thread includes and excludes what it did when the call
    came: autograd records again.
    """

    __slots__ = ("previous",)

    def __enter__(self):
        if mode_tls.on_entry is None:
            raise RuntimeError("Accessing torch dispatch state outside of '__torch_dispatch__' is not allowed.")
        self.previous = tls.included, tls.excluded, mode_tls.on_entry
        tls.included, tls.excluded, _ = mode_tls.on_entry
        mode_tls.on_entry = None
        include_python_keys()

    def __exit__(self, *exception):
        tls.included, tls.excluded, mode_tls.on_entry = self.previous
        update_mask()


# ------------------------------------------------------------------------------------------------- as Python calls them


def _len_torch_dispatch_stack():
    return len(mode_tls.modes)


def _set_dispatch_mode(mode):
    key = kind_of(mode)
    if key is None:
        raise RuntimeError("set_dispatch_mode() called with a mode that does not contain a _mode_key attribute!")
    set_mode(mode, key)


_push_on_torch_dispatch_stack, _pop_torch_dispatch_stack, _get_dispatch_stack_at = push, pop, stack_at
_get_dispatch_mode, _unset_dispatch_mode = get_mode, unset_mode
