"""The node at the end of every path: adds the gradient to a leaf's `.grad`.

In PyTorch: `torch/csrc/autograd/functions/accumulate_grad.cpp`. Explained in the chapter "Autograd".
"""

import threading
from sys import getrefcount

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.dispatch_key import BACKENDS, CPU, MATH_BITS, SPARSE_CPU
from readtorch.c10.layout import strided
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.memory_format import contiguous_format, is_non_overlapping_and_dense
from readtorch.c10.tensor_impl import alias, seen_by_python, strides_of, wrap

from .node import FIRST, Node


class AccumulateGrad(Node):
    """Adds what flows in to `variable.grad`. Nothing flows out."""

    __slots__ = ("variable",)

    # The same for all of them, so a new one costs little: a leaf needs one for every graph it takes part in.
    __init__ = object.__init__
    namespace = "torch::autograd::"
    _seq_nr = FIRST  # a gradient that is complete is delivered before anything else runs
    _next_edges = ()
    _shape = property(lambda self: self.variable._array.shape)
    _dtype = property(lambda self: self.variable._array.dtype)

    def apply(self, grad):
        if grad is None:
            return ()
        may_steal = getrefcount(grad) <= SOLE_OWNER
        variable = self.variable
        with _locks[id(variable) % len(_locks)]:
            accumulate(variable, grad, may_steal)
        hooks = variable._meta.post_accumulate_hooks  # outside the lock: a hook may wait for another rank's thread
        if hooks:
            for hook in list(hooks.values()):
                hook(variable)
        return ()


# Two threads may run backward into the same leaf. A lock each leaf would cost more than the few that they share.
_locks = [threading.RLock() for _ in range(64)]

# References to a gradient that nobody but the engine knows: its buffer, its call of `apply`, getrefcount's own argument.
# One more means that somebody will look at it again. How many a call holds depends on the version of Python, so the
# engine measures it once: see `measure_sole_owner` there.
SOLE_OWNER = 0


# What NumPy cannot add: elements elsewhere, and elements that are not what lies in memory.
NEEDS_OPERATORS = BACKENDS | MATH_BITS


def accumulate(variable, grad, may_steal):
    """Note [ Stealing gradients ]

    The first gradient of a leaf becomes its `.grad` without a copy when the engine holds the only reference, it is laid out
    as the leaf is, and no other array shares its memory: a later `x.grad.zero_()` must not change what others read.
    In PyTorch: `accumulateGrad` asks for use_count and layout, not for the memory, so a view that only it holds is stolen too.
    """
    meta = variable._meta
    old = meta.grad
    in_python = seen_by_python(variable) or seen_by_python(grad)
    if old is None and in_python:
        meta.grad = _first_gradient_in_python(variable, grad, may_steal)
    elif old is None:
        meta.grad = _first_gradient(variable, grad, may_steal)
    elif old._keys & SPARSE_CPU and not grad._keys & SPARSE_CPU:
        meta.grad = grad + old  # the sum is dense: nothing that could be written into the sparse tensor
    elif grad_mode_enabled():
        meta.grad = old + grad  # create_graph: the sum is itself part of a graph
    elif (old._keys | grad._keys) & NEEDS_OPERATORS != CPU or in_python:
        old.add_(grad)
    else:
        np.add(old._array, grad._array, out=old._array, casting="same_kind")
        old._counter[0] += 1


def _first_gradient(variable, grad, may_steal):
    array = grad._array
    if grad_mode_enabled() or (grad._keys | variable._keys) & SPARSE_CPU:
        # in PyTorch: indices and values that nobody else sees are not copied
        return grad.clone()
    if may_steal and array.strides == variable._array.strides and sees_memory_alone(grad):
        return grad if array.base is None and grad._base is None else alias(grad, array)
    if grad._keys & NEEDS_OPERATORS != CPU:
        return at.empty_like(variable).copy_(grad)
    copy = np.empty_like(variable._array, array.dtype)
    copy[...] = array
    return wrap(copy)


def _first_gradient_in_python(variable, grad, may_steal):
    """The same by operators alone, which dispatch modes and wrappers see."""
    strides = strides_of(variable)
    is_dense = is_non_overlapping_and_dense(variable._array)
    if may_steal and not grad_mode_enabled() and (not is_dense or strides_of(grad) == strides):
        return grad.detach()
    if not is_dense:
        return grad.clone(memory_format=contiguous_format)
    options = {"dtype": variable.dtype, "layout": strided, "device": variable.device}
    return grad.new_empty_strided(variable._array.shape, strides, **options).copy_(grad)


def sees_memory_alone(t):
    """Whether no other tensor looks at the memory of `t`: it owns it, or it is the last view left of what it looks at.

    The memory of a last view is known to the view, to its base (which only the view still holds), to their storage if they
    have one, and here to a local name and to getrefcount.
    """
    owner, storage = t._array.base, t._storage_impl
    if owner is None:
        return True
    known_to_base = 0 if t._base is None else 1
    if t._base is not None and getrefcount(t._base) > 2:
        return False
    if storage is None:
        return getrefcount(owner) == 3 + known_to_base
    if owner is not storage.buffer and owner is not storage.buffer.base:
        return False
    return getrefcount(storage) == 3 + known_to_base and getrefcount(owner) == 4 + known_to_base
