"""Tangents: the derivatives that forward mode carries along with values, and the levels at whose end they are gone.

A tensor that has a tangent is called dual. Base and view share a tangent as they share memory: Note [ Tangents of views ].

In PyTorch: `torch/csrc/autograd/forward_grad.cpp` and `torch/csrc/autograd/autograd_meta.cpp`. Explained in the chapter "Forward
mode, vmap and torch.func".
"""

import weakref

from readtorch.aten.functions import at
from readtorch.c10.dispatch_key import CONJUGATE, NEGATIVE, TANGENT, WRAPPED_NUMBER
from readtorch.c10.local_dispatch_key_set import set_forward_levels, tls
from readtorch.c10.tensor_geometry import TensorGeometry
from readtorch.c10.tensor_impl import AutogradMetaFactory, storage_offset, strides_of

from .variable import autograd_meta, flipped_view, refresh_to_write, replayed

_BASE = "the base"  # of a view: its forward base is the base that backward knows, too


class ForwardADLevel:
    """One run of forward mode: what has a tangent at this level. Levels belong to the process, not to a thread."""

    levels = []

    def __init__(self):
        self.grads = weakref.WeakSet()

    @classmethod
    def enter(cls):
        """Begin a level, and return its number."""
        if cls.levels:
            raise RuntimeError("Nested forward mode AD is not supported at the moment")
        cls.levels.append(cls())
        set_forward_levels(len(cls.levels))
        return len(cls.levels) - 1

    @classmethod
    def exit(cls, number):
        """End a level, which must be the last one: its tangents are forgotten."""
        if number != len(cls.levels) - 1 or not cls.levels:
            raise RuntimeError(
                "Exiting a forward AD level that is not the last that was created is not support. Ensure they are released in the "
                "reverse order they were created."
            )
        for grad in list(cls.levels.pop().grads):
            del grad.content[number]
        set_forward_levels(len(cls.levels))

    @classmethod
    def numbered(cls, number):
        if not 0 <= number < len(cls.levels):
            raise RuntimeError(
                "Trying to access a forward AD level with an invalid index. This index was either not created or is already deleted."
            )
        return cls.levels[number]


class ForwardGrad:
    """The tangents of one tensor: level -> tangent. And for a view, the tensor with which it shares them."""

    __slots__ = ("content", "base", "__weakref__")

    def __init__(self):
        self.content = {}
        self.base = _BASE

    def set_value(self, tangent, level):
        ForwardADLevel.numbered(level).grads.add(self)
        self.content[level] = tangent


def forward_grad(t):
    """The tensor's ForwardGrad, made when first asked for."""
    meta = autograd_meta(t)
    if meta.forward_grad is None:
        meta.forward_grad = ForwardGrad()
    return meta.forward_grad


# Note [ Tangents of views ]
# A tensor and its tangent have the same sizes, strides and offset, and the tangent of a view is the view of its base's tangent. So an
# in-place write, which writes its part of the tangent in place, too, is seen through base and views alike. Two cases remain. A write
# to a view of a base without tangent gives the base one, of zeros (`set_tangent`). A write to the base of a view that has none: the
# view takes its part of the base's when it is next asked (`tangent`).
# `make_dual` and `unpack_dual` return views for backward that share nothing in forward mode: their tangents differ from their base's.


def forward_base(t):
    """The tensor with which the view `t` shares its tangent; None if it shares it with nobody."""
    if t._base is None:
        return None
    grads = t._autograd_meta and t._autograd_meta.forward_grad
    return t._base if grads is None or grads.base is _BASE else grads.base


def share_nothing(view):
    """Say that the tangent of `view` is its own."""
    forward_grad(view).base = None
    return view


def inherit_forward_base(view, source):
    """`view` was made of `source`: in forward mode its base is what that of `source` is, or `source`."""
    grads = source._autograd_meta and source._autograd_meta.forward_grad
    if grads is not None and grads.base is not _BASE and view._base is not None:
        forward_grad(view).base = grads.base if grads.base is not None else source


def tangent(t, level=0):
    """The tangent of `t`, or None if it has none, is None itself, or forward mode is switched off."""
    if t is None or not t._keys & TANGENT or not tls.forward_grad_mode:
        return None
    grads = t._autograd_meta and t._autograd_meta.forward_grad
    if grads is not None and level in grads.content:
        return grads.content[level]
    base = forward_base(t)
    of_base = None if base is None else tangent(base, level)
    if of_base is None:
        return None
    forward_grad(t).set_value(as_view_of(of_base, base, t), level)
    return t._autograd_meta.forward_grad.content[level]


AutogradMetaFactory.fw_grad = tangent


def as_view_of(of_base, base, view):
    """What `view` is of `base`, of a tensor with the layout of `base`."""
    return replayed(of_base, TensorGeometry(base), TensorGeometry(view))


def set_tangent(t, new, level=0, inplace=False):
    """Give `t` the tangent `new`. inplace: an in-place write did, so its base gets one, too.

    Integers have none (in PyTorch: an assertion fails), nor has an output that was not asked for. Raises RuntimeError if the sizes differ, or if `new` has a tangent itself.
    """
    if t is None or t._array.dtype.kind in "biu":
        return
    if tangent(new, level) is not None:
        raise RuntimeError(
            f"Setting a forward grad that itself has a forward gradient at the same level{level} is not supported."
        )
    grads = forward_grad(t)
    if level in grads.content:
        if grads.content[level] is not new:
            raise RuntimeError(
                "Cannot set a value of a forward grad if it already exists. Inplace operations should modify it inplace."
            )
        return
    if t._array.shape != new._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
            f"Tensor is of size {list(t._array.shape)} while the given forward gradient is of size {list(new._array.shape)}."
        )
    if inplace and t._base is not None:
        new = _with_base(t, new, level)
    if not has_same_meta(new, t):
        new = laid_out_as(new, t)
    grads.set_value(new, level)
    t._keys |= TANGENT


def _with_base(view, new, level):
    """The tangent that a write gave to `view`, as a part of its base's, which gets one if it has none."""
    base = forward_base(view)
    if base is None or tangent(base, level) is not None:
        return new
    if has_same_meta(new, base) and has_same_meta(new, view):
        set_tangent(base, new, level)
        return new
    of_base = at._new_zeros_with_same_feature_meta(new, base)
    part = as_view_of(of_base, base, view)
    part.copy_(new)
    set_tangent(base, of_base, level)
    return part


def has_same_meta(a, b):
    """Whether two tensors see storages of the same size in the same way; strides of dimensions of size 1 do not count."""
    if (a._keys ^ b._keys) & (CONJUGATE | NEGATIVE) or a._array.shape != b._array.shape:
        return False
    if not at._has_same_storage_numel(a, b) or a._array.size and storage_offset(a) != storage_offset(b):
        return False
    return all([s == r or n <= 1 for n, s, r in zip(a._array.shape, strides_of(a), strides_of(b))])


def laid_out_as(new, t):
    """A copy of the tangent `new` with the layout of `t`."""
    zeros = at._new_zeros_with_same_feature_meta(new, t)
    return flipped_view(zeros, t._keys & (CONJUGATE | NEGATIVE)).copy_(new)


# ------------------------------------------------------------------------------------ what generated kernels call


def tangents(tensors):
    """The tangent of each tensor of a list, None where there is none."""
    return [tangent(t) for t in tensors or ()]


def primal(t):
    """`t` without its tangent, for a formula."""
    return t if tangent(t) is None else at._fw_primal(t, 0)


def primals(tensors):
    return [primal(t) for t in tensors or ()]


def zero_tangent(t):
    """The tangent of a tensor that has none. No memory holds it: see aten/zero_tensor_fallback.py."""
    if t is None:
        return None
    zero = at._efficientzerotensor(t._array.shape, dtype=t.dtype, device=t.device)
    if t._keys & WRAPPED_NUMBER:
        zero._keys |= WRAPPED_NUMBER
        zero._creation = type(t._creation)(0)
    return zero


def tangents_or_zeros(found, tensors):
    """Of each tensor of a list the tangent that was found, or one of zeros."""
    return [zero_tangent(t) if f is None else f for f, t in zip(found, tensors or ())]


def zeros_to_write(t, written=None):
    """The tangent of a tensor that has none and is written to in place. written: the tangent of what comes in, which may be batched."""
    if written is None:
        return at.zeros(t._array.shape, dtype=t.dtype, device=t.device)
    return at._new_zeros_with_same_feature_meta(written, t)


def check_stale(view):
    """What the kernel below asks of a view that it writes to is asked first, for the formulas look at the view: see `refresh_to_write`."""
    if tls.grad_mode:
        refresh_to_write(view)


def kept_tangent(t, found):
    """The tangent of a tensor before an in-place write, for a formula. A graph may save it, so it must not be written to."""
    if found is None:
        return zeros_to_write(t)
    return found.clone() if tls.grad_mode else found


def write_tangent(t, found, new):
    """Give `t`, which was written to in place, the tangent `new`: written into the one that it had, if it had one."""
    if found is None:
        set_tangent(t, new, inplace=True)
    elif new is not found:
        found.copy_(new)


def set_tangents(outputs, news):
    """Give each of several outputs its tangent; None: it has none."""
    for t, new in zip(outputs, news):
        if t is not None and new is not None:
            set_tangent(t, new)


def save_tangent(output, name):
    """What the node of `output` has saved of it gets the tangent that `output` was given since."""
    node = (output._base if output._base is not None and output._base._edge else output)._edge
    node = node and node[0]
    saved = getattr(getattr(node, "fn", node), name, None)
    if saved is not None and type(saved.kept) is tuple and len(saved.kept) == 4 and saved.unpack_hook is None:
        saved.kept += (output._autograd_meta.forward_grad,)
