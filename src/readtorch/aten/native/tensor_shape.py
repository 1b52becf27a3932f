"""Shapes, joined and cut: what is built from the views of `views.py`, and cat.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`. Explained in the chapter "Tensor and Storage".
"""
import numpy as np

from ...c10.layout import contiguous_format
from ...c10.tensor_impl import Creation, view as view_of, wrap
from ...c10.wrap_dim import wrap_dim
from ..functions import at
from ..native_function import native_function, python_face
from .tensor_iterator import result_type
from .views import compute_strides, infer_size, slice_, view

BOTH = "function, method"

# -------------------------------------------------------------------------------------------------- reshape

reshape = native_function("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", BOTH)


@reshape.compose
def reshape_composite(self, shape):
    """A view when the strides allow one, else a copy (`reshape` has no derivative of its own: ViewBackward0 or
    UnsafeViewBackward0 shows which it was)."""
    array = self._array
    sizes = infer_size(shape, array.size)
    if compute_strides(array.shape, array.strides, sizes, array.itemsize) is not None:
        return view.call(self, sizes)
    return at._unsafe_view(at.clone(self, memory_format=contiguous_format), sizes)


_unsafe_view = native_function("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", "function")


@_unsafe_view.kernel
def unsafe_view_cpu(self, size):
    """Like view, but autograd need not know that memory is shared: the caller gives the original away."""
    return wrap(self._array.reshape(infer_size(size, self._array.size)))


@_unsafe_view.backward
class UnsafeViewBackward0:
    def self(grad, self_sym_sizes):
        return grad.reshape(self_sym_sizes)


# ------------------------------------------------------------------------------------------------ cat and stack

cat = native_function("cat(Tensor[] tensors, int dim=0) -> Tensor", "function", out=True)


def is_skipped(t):
    """An empty one-dimensional tensor may stand among tensors of any shape (`at::native::cat_should_skip_tensor`)."""
    return t._array.shape == (0,)


def check_cat(tensors, dim):
    """The tensors that count and the dimension, wrapped. Raises RuntimeError for shapes that do not fit."""
    if not tensors:
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors")
    for i, t in enumerate(tensors):
        if t._array.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    kept = [(i, t) for i, t in enumerate(tensors) if not is_skipped(t)]
    if not kept:
        return [], wrap_dim(dim, 1)
    first = kept[0][1]._array.shape
    dim = wrap_dim(dim, len(first))
    for i, t in kept:
        check_cat_shape(first, t._array.shape, dim, i)
    return [t for _, t in kept], dim


def check_cat_shape(first, shape, dim, position):
    if len(shape) != len(first):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
    for d, (a, b) in enumerate(zip(first, shape)):
        if d != dim and a != b:
            raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size {b} for "
                               f"tensor number {position} in the list.")


@cat.kernel
def cat_cpu(tensors, dim):
    kept, dim = check_cat(tensors, dim)
    common = result_type(*tensors).numpy
    if not kept:
        return wrap(np.empty((0,), common))
    return wrap(np.concatenate([t._array for t in kept], dim, dtype=common, casting="unsafe"))


@cat.backward
class CatBackward0:
    def tensors(grad, tensors, dim):
        return cat_backward(grad, [t._array.shape for t in tensors], dim)


def cat_backward(grad, shapes, dim):
    dim = wrap_dim(dim, grad._array.ndim)
    pieces, start = [], 0
    for shape in shapes:
        length = 0 if shape == (0,) else shape[dim]
        pieces.append(grad.narrow(dim, start, length) if shape != (0,) else at.zeros_like(grad).resize_(0))
        start += length
    return pieces


stack = native_function("stack(Tensor[] tensors, int dim=0) -> Tensor", "function", out=True)


@stack.kernel
def stack_cpu(tensors, dim):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0]._array.shape
    dim = wrap_dim(dim, len(first) + 1)
    for i, t in enumerate(tensors):
        if t._array.shape != first:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                               f"{list(t._array.shape)} at entry {i}")
    return wrap(np.stack([t._array for t in tensors], dim, dtype=result_type(*tensors).numpy, casting="unsafe"))


@stack.backward
class StackBackward0:
    def tensors(grad, dim, tensors):
        return list(grad.unbind(dim))


# ------------------------------------------------------------------------------------- several views at once

narrow = native_function("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", BOTH)


@narrow.compose
def narrow_composite(self, dim, start, length):
    shape = self._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = shape[wrap_dim(dim, len(shape))]
    if not -size <= start <= size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_.call(self, dim, start, start + length, 1)


def several_views(self, arrays):
    """A view of `self` for each array. None of them may be written to in place while autograd follows it."""
    views = [view_of(self, a) for a in arrays]
    for v in views:
        if v._view_info.creation == Creation.DEFAULT:
            v._view_info.creation = Creation.MULTI_OUTPUT_NODE
    return tuple(views)


unbind = native_function("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", BOTH)


@unbind.kernel
def unbind_cpu(self, dim):
    array = self._array
    dim = wrap_dim(dim, array.ndim)
    if array.ndim == 0:
        raise RuntimeError("unbind() cannot be applied to a 0-dim tensor")
    before = (slice(None),) * dim
    return several_views(self, [array[(*before, i, ...)] for i in range(array.shape[dim])])


@unbind.backward
class UnbindBackward0:
    def self(grads, self_sym_sizes, self_scalar_type, dim):
        return at.stack(with_zeros(grads, self_scalar_type), dim)


def with_zeros(grads, dtype):
    """The gradients of several outputs, zeros where none arrived."""
    like = next(g for g in grads if g is not None)
    return [at.zeros_like(like, dtype=dtype) if g is None else g for g in grads]
