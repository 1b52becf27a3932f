"""Forward mode: values that carry a tangent, and the levels inside which they do.

In PyTorch: `torch/autograd/forward_ad.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from typing import NamedTuple

from readtorch.aten.functions import at
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.autograd.init import _enter_dual_level, _exit_dual_level, _is_fwd_grad_enabled
from readtorch.csrc.autograd.init import _set_fwd_grad_enabled as _switch

from .grad_mode import _ModeContext

__all__ = ["UnpackedDualTensor", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual", "dual_level"]

_current_level = -1  # the level that the functions below mean if none is given


def enter_dual_level():
    """Begin a level, and return its number: inside, tensors can be given tangents. RuntimeError inside another one."""
    global _current_level
    level = _enter_dual_level()
    if level != _current_level + 1:
        raise RuntimeError(
            "Entering a new forward AD level but the current level is not valid. Make sure you did not modify it directly."
        )
    _current_level = level
    return level


def exit_dual_level(*, level=None):
    """End the last level (its number may be said): all tangents of it are forgotten."""
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _exit_dual_level(level=level)
    _current_level = level - 1


def make_dual(tensor, tangent, *, level=None):
    """A view of `tensor` with this tangent, of the same size: itself if it is laid out as `tensor`, else a copy.

    Gradients go through it to `tensor`. ValueError for integers, RuntimeError outside a level.
    """
    level = _current_level if level is None else level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for role, t in ("primal", tensor), ("tangent", tangent):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {role} to be floating point or complex, but got: {t.dtype}")
    return at._make_dual(tensor, tangent, level)


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: TensorImpl
    tangent: TensorImpl | None


def unpack_dual(tensor, *, level=None):
    """The value of a dual as a view without a tangent, and its tangent; None if it has none. Gradients go through both."""
    level = _current_level if level is None else level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*at._unpack_dual(tensor, level))


class dual_level(_ModeContext):
    """`with dual_level():` begins a level and ends it. Levels do not nest; `torch.func.jvp` does."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exception):
        exit_dual_level()


class _set_fwd_grad_enabled(_ModeContext):
    """Switch forward mode on or off, at once; until the end of a `with` block if used as one."""

    def __init__(self, mode):
        self.prev = _is_fwd_grad_enabled()
        self.mode = mode
        _switch(mode)

    def clone(self):
        return type(self)(self.mode)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _switch(self.prev)
