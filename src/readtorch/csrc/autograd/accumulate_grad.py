"""The node at the end of every path: adds the gradient to a leaf's `.grad`.

In PyTorch: `torch/csrc/autograd/functions/accumulate_grad.cpp`; the layout: `torch/csrc/autograd/utils/grad_layout_contract.h`.
Explained in the chapter "Autograd".
"""

import threading
from sys import getrefcount

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import BACKENDS, COPY_ON_WRITE, CPU, MATH_BITS, SPARSE, SPARSE_CSR_CPU
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.memory_format import contiguous_format, has_format, is_non_overlapping_and_dense
from readtorch.c10.tensor_impl import alias, keys_seen_by_python, strides_of, wrap

from .node import Node


class AccumulateGrad(Node):
    """Adds what flows in to `variable.grad`. Nothing flows out.

    A leaf needs one for every graph it takes part in, so `leaf_edge` fills it with little: what a gradient must be like is read from
    the leaf, or from an Expected.
    """

    __slots__ = ("variable", "like")

    __init__ = object.__init__
    namespace = "torch::autograd::"
    notes_device = True
    _next_edges = ()
    _shape = property(lambda self: self.like._array.shape)
    _dtype = property(lambda self: self.like._array.dtype)

    @property
    def _input_metadata(self):
        (metadata,) = super()._input_metadata
        if type(self.like) is Expected:
            metadata.dtype = scalar_type.by_numpy[self.like.of_leaf]
        return (metadata,)

    def apply(self, grad):
        variable = self.variable
        edge = variable._edge
        if edge is not None and edge[0] is not None:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        if grad is not None and edge is None:
            use_count = getrefcount(grad)
            with _locks[id(variable) % len(_locks)]:
                accumulate_grad(variable, grad, use_count)
        hooks = variable._autograd_meta.post_accumulate_grad_hooks  # outside the lock: a hook may wait for threads
        if hooks:
            call_post_accumulate_grad_hooks(variable, hooks)
        return ()


class Expected:
    """What a gradient must be like where the leaf does not say it: the leaf has changed since, or has a `grad_dtype`.

    dtype: NumPy's, or None for any. of_leaf: that of the leaf.
    """

    __slots__ = ("shape", "dtype", "of_leaf")

    _array = property(lambda self: self)  # it stands for a tensor

    def __init__(self, shape, dtype, of_leaf):
        self.shape = shape
        self.dtype = dtype
        self.of_leaf = of_leaf


def call_post_accumulate_grad_hooks(variable, hooks):
    for hook in list(hooks.values()):
        returned = hook(variable)
        if returned is not None and returned is not variable:
            if not hasattr(returned, "_array"):
                raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


# Two threads may run backward into the same leaf. A lock each leaf would cost more than the few that they share.
_locks = [threading.RLock() for _ in range(64)]


# Note [ Stealing gradients ]
# The first gradient of a leaf becomes its `.grad` without a copy if nobody else refers to the *tensor* that arrives, and it is
# laid out as the leaf is. Nothing asks for its memory: the gradients of `a` and `b` in `cat([a, b]).backward(g)` are views of
# `g` and stay so. CPython counts references to every object. Those to a gradient that only the engine knows are three: of
# the tuple of gradients that waited for this node, of `apply`'s argument, and of getrefcount's own. One more is somebody
# who will look at it again: a hook kept it, the caller of backward has it, or it waits for a second node, as both gradients
# of `a + b` are one tensor. Another version of Python may count otherwise, so the engine measures the number once.
NUM_EXPECTED_REFS = 0


def is_tensor_stealable(use_count):
    return use_count <= NUM_EXPECTED_REFS


# What NumPy cannot add: elements elsewhere, elements that are not what lies in memory, and memory that others may have.
NEEDS_OPERATORS = BACKENDS | MATH_BITS | COPY_ON_WRITE


def accumulate_grad(variable, new_grad, use_count):
    """`variable.grad = new_grad`, or `variable.grad += new_grad`. use_count: of `new_grad`, see Note [ Stealing gradients ]."""
    meta = variable._autograd_meta
    variable_grad = meta.grad
    in_python = keys_seen_by_python(variable._keys | new_grad._keys)
    if variable_grad is None:
        stealable = is_tensor_stealable(use_count) and not grad_mode_enabled()
        meta.grad = first_gradient(variable, new_grad, stealable, in_python)
    elif variable_grad._keys & SPARSE and not new_grad._keys & SPARSE:
        meta.grad = new_grad + variable_grad  # the sum is dense: nothing that could be written into the sparse tensor
    elif grad_mode_enabled():
        meta.grad = variable_grad + new_grad  # create_graph: the sum is itself part of a graph
    elif (variable_grad._keys | new_grad._keys) & NEEDS_OPERATORS != CPU or in_python:
        variable_grad.add_(new_grad)
    else:
        np.add(variable_grad._array, new_grad._array, out=variable_grad._array, casting="same_kind")
        variable_grad._counter[0] += 1


def first_gradient(variable, new_grad, stealable, in_python):
    if new_grad._keys & SPARSE:
        return detach_sparse(new_grad) if stealable else new_grad.clone()
    if stealable and obeys_layout_contract(new_grad, variable):
        if in_python:
            return new_grad.detach()
        return new_grad if new_grad._base is None else alias(new_grad, new_grad._array)
    return clone_obey_contract(new_grad, variable, in_python)


def detach_sparse(new_grad):
    """Another sparse tensor with the same indices and values, if these are contiguous, else a copy; so of a compressed layout."""
    if new_grad._keys & SPARSE_CSR_CPU:
        return new_grad.clone()
    indices, values = new_grad._indices(), new_grad._values()
    if not indices.is_contiguous() or not values.is_contiguous():
        return new_grad.clone()
    return at._sparse_coo_tensor_unsafe(indices, values, new_grad.shape, is_coalesced=new_grad.is_coalesced())


def obeys_layout_contract(grad, variable):
    """Whether the gradient has the strides of its leaf; if the leaf's elements lie apart, whether it is contiguous."""
    if variable._keys & SPARSE:
        return False
    array, like = grad._array, variable._array
    if like.flags.forc and array.strides == like.strides:
        return True
    if not is_dense(like):
        return has_format(array, contiguous_format)
    if 1 not in array.shape and array.dtype is like.dtype:
        return False
    strides = zip(array.shape, strides_of(grad), strides_of(variable))
    return all([step != 0 if size == 1 else step == wanted for size, step, wanted in strides])


def is_dense(array):
    return array.flags.forc or is_non_overlapping_and_dense(array)


def clone_obey_contract(new_grad, variable, in_python):
    """A copy of the gradient that has its leaf's strides. If operations are recorded, so is this."""
    if variable._keys & SPARSE or not is_dense(variable._array):
        return new_grad.clone(memory_format=contiguous_format)
    if in_python or grad_mode_enabled():
        options = {"dtype": new_grad.dtype, "layout": variable.layout, "device": variable.device}
        return new_grad.new_empty_strided(variable._array.shape, strides_of(variable), **options).copy_(new_grad)
    if new_grad._keys & NEEDS_OPERATORS != CPU or new_grad._array.shape != variable._array.shape:
        return at.empty_like(variable, dtype=new_grad.dtype).copy_(new_grad)
    copy = np.empty_like(variable._array, new_grad._array.dtype)
    copy[...] = new_grad._array
    return wrap(copy)
