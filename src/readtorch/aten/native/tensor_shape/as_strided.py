"""Views with strides of the caller's choice: as_strided, unfold, and their gradients.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`; `as_strided_backward` in
`torch/csrc/autograd/FunctionsManual.cpp`. Explained in the chapter "Tensor and Storage".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.copy import constant_beside
from readtorch.aten.native.resize import check_in_bounds
from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10.dispatch_key import META
from readtorch.c10.tensor_impl import storage_impl, storage_nbytes, storage_offset, strides_of, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .slice import of_input_sizes
from .view import becomes_view

as_strided = native_function(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)", BOTH
)


def check_strides(size, stride, offset):
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")


@as_strided.view_kernel
def as_strided_cpu(self, size, stride, offset):
    return restrided(self, size, stride, offset, may_pass_end=self._keys & META)


def restrided(self, size, stride, offset, may_pass_end=False):
    """The storage of `self` as an array; on Meta one may pass its end, unless `self` becomes it in place."""
    storage, dtype = storage_impl(self), self._array.dtype
    offset = storage_offset(self) if offset is None else offset
    check_strides(size, stride, offset)
    if not may_pass_end:
        check_in_bounds(storage, size, stride, offset, dtype.itemsize)
    return storage.as_strided(dtype, size, stride, offset)


@as_strided.backward
class AsStridedBackward0:
    def self(grad, self_geometry, size, stride, storage_offset):
        return as_strided_backward(grad, self_geometry, size, stride, storage_offset)

    result = "auto_linear"


becomes_view(
    as_strided,
    "as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)",
    "AsStridedBackward1",
    restrided,
)


def may_overlap(size, stride):
    """Whether two index tuples may name the same element. False only if it is sure that none do."""
    past = 0
    for s, n in sorted(zip(stride, size)):
        if n > 1:
            if s <= past:
                return True
            past += s * (n - 1)
    return False


def as_strided_backward(grad, base, size, stride, offset):
    """Note [ The gradient of as_strided ]

    `base` and the result are two views of one storage. So: make a storage of zeros, add `grad` to it through the
    result's strides, read it through the base's. Two things can overlap. If the *result* shows an element several times
    its gradient is the sum. If the *base* does (it was expanded), its copies of an element share the gradient, each an
    equal part, because what made the base will add the copies up again.
    """
    offset = base.offset if offset is None else offset
    if 0 in base.sizes:
        return at.new_zeros(grad, base.sizes)
    grad, size, stride = sum_over_expanded(grad, size, stride)
    shared = min(base.offset, offset)
    base_start, start = base.offset - shared, offset - shared
    length = max(storage_nbytes(base.sizes, base.strides, 1, base_start), storage_nbytes(size, stride, 1, start))
    storage = at.new_zeros(grad, (length,))
    if may_overlap(size, stride):
        places = constant_beside(grad, window_of(length, size, stride, start))
        storage = at.index_add(storage, 0, places, grad.reshape((-1,)))
    else:
        storage.as_strided(size, stride, start).copy_(grad)
    if may_overlap(base.sizes, base.strides):
        places = constant_beside(grad, window_of(length, base.sizes, base.strides, base_start))
        dtype = storage.dtype.to_real() if storage.dtype.is_complex else storage.dtype
        count = at.index_add(at.zeros_like(storage, dtype=dtype), 0, places, at.ones_like(places, dtype=dtype))
        # in PyTorch: elements outside of the view become 0 / 0, which are never read
        storage = storage / count.clamp(min=1)
    return storage.as_strided(base.sizes, base.strides, base_start)


def sum_over_expanded(grad, size, stride):
    """Dimensions of stride 0 show one element many times: sum over them and forget them."""
    expanded = [d for d, (n, s) in enumerate(zip(size, stride)) if s == 0 or n == 1]
    for d in reversed(expanded):
        grad = grad.squeeze(d) if size[d] == 1 else grad.sum(d)
    kept = [d for d in range(len(size)) if d not in expanded]
    return grad, [size[d] for d in kept], [stride[d] for d in kept]


def window_of(length, size, stride, start):
    """The elements of a storage that a view has, in order."""
    return np.lib.stride_tricks.as_strided(np.arange(length)[start:], size, [8 * s for s in stride]).reshape(-1)


# ---------------------------------------------------------------------------------------------------- unfold

unfold = native_function(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", "method", direct=True
)


@unfold.view_kernel
def unfold_cpu(self, dimension, size, step):
    """All slices of length `size`, `step` apart, along a dimension; they lie in a new last dimension."""
    array = self._array
    dim = wrap_dim(dimension, array.ndim)
    length = array.shape[dim] if array.ndim else 1
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    sizes, strides = [*array.shape, size], [*strides_of(self), 1]
    if array.ndim:
        strides[-1] = strides[dim]
        sizes[dim], strides[dim] = (length - size) // step + 1, strides[dim] * step
    return as_strided_cpu(self, sizes, strides, None)


@unfold.backward
class UnfoldBackward0:
    def self(grad, self_sym_sizes, dimension, size, step):
        return at.unfold_backward(grad, self_sym_sizes, dimension, size, step)

    result = "auto_linear"


unfold_backward = native_function(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor", "function"
)

unfold_backward.meta(of_input_sizes)


@unfold_backward.kernel
def unfold_backward_cpu(grad_in, input_sizes, dim, size, step):
    """Add each slice back where it was cut out: one addition for each index within a slice."""
    grad = grad_in._array
    result = np.zeros(input_sizes, grad.dtype)
    if not input_sizes:
        return wrap(result + grad.sum())
    into = np.moveaxis(result, dim, -1)
    slices = np.moveaxis(grad, wrap_dim(dim, len(input_sizes)), -2)
    count = slices.shape[-2]
    for i in range(size):
        into[..., i : i + count * step : step][..., :count] += slices[..., i]
    return wrap(result)


@unfold_backward.backward
class UnfoldBackwardBackward0:
    def grad_in(grad, dim, size, step):
        return grad.unfold(dim, size, step)

    result = "auto_linear"
