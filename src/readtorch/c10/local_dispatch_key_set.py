"""What a thread adds to the key sets of its calls, and what it takes away: modes, `no_grad()`, guards.

In PyTorch: `c10/core/impl/LocalDispatchKeySet.h`, and for grad mode `c10/core/AutogradState.h`. Explained in the chapter "One
operator call".
"""

import threading

from .dispatch_key import (
    ADINPLACEORVIEW,
    AUTOCAST,
    AUTOGRAD,
    BACKEND_SELECT,
    COPY_ON_WRITE,
    GRAD_FACTS,
    INFERENCE_MODE,
    INFERENCE_TENSOR,
    NO_STORAGE,
    SPARSE_CSR_CPU,
    TANGENT,
    THREAD,
    TORCH_FUNCTION,
    WRAPPED_NUMBER,
)

DEFAULT_INCLUDED = BACKEND_SELECT | ADINPLACEORVIEW
DEFAULT_EXCLUDED = AUTOCAST

# `tls.torch_function`: which `__torch_function__` are asked.
ALL_ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = range(3)

_EVERYTHING = NO_STORAGE * 2 - 1 | SPARSE_CSR_CPU | COPY_ON_WRITE


def mask_of(included, excluded, grad_mode, inference_mode, torch_function, watched, forward_mode=False):
    """What a thread in this state lets through of the sets that tensors carry.

    watched: whether something in the thread wants to see each call. forward_mode: whether tensors may have tangents.
    """
    mask = _EVERYTHING & ~excluded & ~(WRAPPED_NUMBER | INFERENCE_MODE | THREAD)
    if not grad_mode or excluded & AUTOGRAD:
        mask &= ~GRAD_FACTS
    if not forward_mode or excluded & AUTOGRAD:
        mask &= ~TANGENT
    if inference_mode:
        mask |= INFERENCE_MODE
    if not included & ~excluded & ADINPLACEORVIEW:
        mask &= ~INFERENCE_TENSOR
    if torch_function != ALL_ENABLED:
        mask &= ~TORCH_FUNCTION
    if watched or included & ~excluded & ~DEFAULT_INCLUDED:
        mask |= THREAD
    return mask


DEFAULT_MASK = mask_of(DEFAULT_INCLUDED, DEFAULT_EXCLUDED, True, False, ALL_ENABLED, False)


class LocalDispatchKeySet(threading.local):
    """The state of a thread. After a change `update_mask` must be called: what calls read is `mask` alone.

    Note [ Keys of a thread ]: a thread's included keys would have to be ORed into each call's set. Instead every tensor carries
    THREAD, which the mask lets through only if the thread includes more than usual, or has observers or modes of
    functions. The kernel of a set with THREAD adds the included keys and looks again: see operator_entry.py.
    """

    included = DEFAULT_INCLUDED
    excluded = DEFAULT_EXCLUDED
    grad_mode = True
    forward_grad_mode = True
    inference_mode = False
    torch_function = ALL_ENABLED
    observers = ()  # RecordFunction callbacks, see aten/record_function.py
    around = None  # what follows from them: what a call passes through
    is_unusual = False  # whether it includes other keys than usual, or has modes of functions
    function_modes = ()  # the TorchFunctionModes that were entered, innermost last
    skips_hop = False  # the next call is not handed to `__torch_function__`, see aten/torch_function.py
    mask = DEFAULT_MASK
    tracer = None  # the trace that is under way, see csrc/jit/frontend/tracer.py
    functorch = None  # the stack of function transforms that are under way, see aten/functorch/dynamic_layer.py


tls = LocalDispatchKeySet()

# The threads whose mask is not the default one. Note [ The mask of a call ]: nearly always there are none, and asking
# that costs half of what reading a thread-local does, so calls write `tls.mask if threads_with_modes else
# DEFAULT_MASK`. The price is that a mask may only be assigned through `set_mask`.
threads_with_modes = set()

_masks = {}  # state -> (mask, is_unusual)


def update_mask():
    """Make the mask what follows from this thread's state."""
    state = (
        tls.included,
        tls.excluded,
        tls.grad_mode,
        tls.inference_mode,
        tls.torch_function,
        bool(tls.observers),
        bool(tls.function_modes),
        bool(forward_levels),
    )
    found = _masks.get(state)
    if found is None:
        found = _masks[state] = masks_of(*state)
    mask, tls.is_unusual = found
    set_mask(mask)


def masks_of(included, excluded, grad_mode, inference_mode, torch_function, has_observers, has_modes, forward_mode):
    """(mask, is_unusual) of a thread in this state."""
    watched = has_observers or has_modes
    mask = mask_of(included, excluded, grad_mode, inference_mode, torch_function, watched, forward_mode)
    return mask, has_modes or included & ~excluded != DEFAULT_INCLUDED & ~DEFAULT_EXCLUDED


def let_through(fact, allowed):
    """The same where only this has changed: whether the mask lets one fact through."""
    set_mask(tls.mask | fact if allowed else tls.mask & ~fact)


def set_mask(mask):
    tls.mask = mask
    if mask == DEFAULT_MASK:
        threads_with_modes.discard(threading.get_ident())
    else:
        threads_with_modes.add(threading.get_ident())


# How many levels of forward mode the process has: while there is none, no tensor has a tangent.
forward_levels = 0


def set_forward_levels(count):
    """Say how many levels there are, see csrc/autograd/forward_grad.py. Threads that changed nothing of their own know it at once."""
    global forward_levels
    forward_levels = count
    LocalDispatchKeySet.mask = DEFAULT_MASK | (TANGENT if count else 0)
    update_mask()


def set_forward_grad_mode(enabled):
    """Switch forward mode on or off in this thread: off, no tensor has a tangent. Kernels ask for tangents still, so no mask changes."""
    tls.forward_grad_mode = enabled


def any_autocast_enabled():
    """Whether this thread lets a key of Autocast through: then a kernel that does the work of several operators must leave it to them."""
    return bool(threads_with_modes) and tls.excluded & AUTOCAST != AUTOCAST


def trace_under_way():
    """The trace that this thread is writing (a TracingState), or None."""
    return tls.tracer if threads_with_modes else None


def grad_mode_enabled():
    """Whether this thread records operations: what `no_grad()` switches off."""
    return tls.grad_mode


def set_grad_mode(enabled):
    """Switch recording on or off."""
    tls.grad_mode = enabled
    update_mask()


def thread_state():
    """What another thread, or this one later, is to start with: see `set_thread_state`.

    In PyTorch: `ThreadLocalState` in `aten/src/ATen/ThreadLocalState.h`.
    """
    return tls.included, tls.excluded, tls.grad_mode, tls.inference_mode, tls.forward_grad_mode, tls.functorch


def set_thread_state(state):
    """state: of `thread_state`, or without its last part, the transforms, which then stay as they are."""
    tls.included, tls.excluded, tls.grad_mode, tls.inference_mode, tls.forward_grad_mode, *transforms = state
    if transforms:
        tls.functorch = transforms[0]
    update_mask()


class KeyGuard:
    """`with KeyGuard(exclude=AUTOGRAD):` changes what this thread includes and excludes, and changes it back.

    In PyTorch: IncludeDispatchKeyGuard and ExcludeDispatchKeyGuard.
    """

    __slots__ = ("include", "exclude", "previous")

    def __init__(self, include=0, exclude=0):
        self.include = include
        self.exclude = exclude

    def __enter__(self):
        self.previous = tls.included, tls.excluded
        tls.included |= self.include
        tls.excluded |= self.exclude
        update_mask()
        return self

    def __exit__(self, *exception):
        tls.included, tls.excluded = self.previous
        update_mask()


class AutoGradMode:
    """`with AutoGradMode(False):` nothing inside is recorded. In PyTorch: `AutoGradMode` in `c10/core/GradMode.h`."""

    __slots__ = ("enabled", "previous")

    def __init__(self, enabled):
        self.enabled = enabled

    def __enter__(self):
        self.previous = tls.grad_mode
        set_grad_mode(self.enabled)
        return self

    def __exit__(self, *exception):
        set_grad_mode(self.previous)


class AutoFwGradMode:
    """`with AutoFwGradMode(False):` no tensor has a tangent inside. In PyTorch: `AutoFwGradMode` in `c10/core/GradMode.h`."""

    __slots__ = ("enabled", "previous")

    def __init__(self, enabled):
        self.enabled = enabled

    def __enter__(self):
        self.previous = tls.forward_grad_mode
        set_forward_grad_mode(self.enabled)
        return self

    def __exit__(self, *exception):
        set_forward_grad_mode(self.previous)
