"""Elements in another order, or several times: flip, roll, rot90, repeat, tile, repeat_interleave.

In PyTorch: `aten/src/ATen/native/TensorTransformations.cpp`; repeat and tile in
`aten/src/ATen/native/TensorShape.cpp`, repeat_interleave in `aten/src/ATen/native/Repeat.cpp`.
"""

import numpy as np

from readtorch.aten.empty_tensor import empty_meta
from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta, in_format_of, like
from readtorch.c10.dispatch_key import META
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.scalar_type import int32, int64
from readtorch.c10.tensor_impl import contiguous_strides, dtype_of, wrap
from readtorch.c10.wrap_dim import wrap_dim, wrap_dim_of_some, wrap_dims

from .tensor_factories import check_size
from .tensor_iterator import not_implemented
from .tensor_shape.view import sizes_binding

# ---------------------------------------------------------------------------------------------- flip and roll

flip = native_function("flip(Tensor self, int[] dims) -> Tensor", BOTH)


@flip.meta
def flip_meta(self, dims):
    wrap_dims(dims, self._array.ndim)
    return like(self)


@flip.impl()
def flip_cpu(self, dims, out):
    out._array[...] = flipped(self._array, dims)


def flipped(array, dims):
    """The order of elements along `dims` reversed, as a view: only kernels see negative strides, a tensor has none."""
    axes = [d % array.ndim for d in dims] if array.ndim else ()
    return array[(*[slice(None, None, -1 if d in axes else None) for d in range(array.ndim)], ...)]


@flip.backward
class FlipBackward0:
    def self(grad, dims):
        return grad.flip(dims)

    result = "auto_linear"


fliplr = native_function("fliplr(Tensor self) -> Tensor", BOTH)
flipud = native_function("flipud(Tensor self) -> Tensor", BOTH)


@fliplr.compose
def fliplr_composite(self):
    if self._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return at.flip(self, (1,))


@flipud.compose
def flipud_composite(self):
    if self._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return at.flip(self, (0,))


roll = native_function("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", BOTH)


@roll.meta
def roll_meta(self, shifts, dims):
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    for d in dims:
        wrap_dim_of_some(d, self._array.ndim)
    shape = self._array.shape
    return in_format_of(self, shape) if dims else TensorMeta(shape, dtype_of(self))


@roll.impl()
def roll_cpu(self, shifts, dims, out):
    """Elements moved along `dims`, those pushed out at one end come in at the other."""
    array = self._array if dims else self._array.reshape(-1)
    for shift, dim in zip(shifts, dims or (0,)):
        rows = array.swapaxes(0, dim)
        cut = -shift % (len(rows) or 1)
        array = np.concatenate([rows[cut:], rows[:cut]]).swapaxes(0, dim)
    out._array[...] = array.reshape(out._array.shape)


@roll.backward
class RollBackward0:
    def self(grad, shifts, dims):
        return grad.roll([-n for n in reversed(shifts)], list(reversed(dims)))

    result = "auto_linear"


rot90 = native_function("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", BOTH)


@rot90.meta
def rot90_meta(self, k, dims):
    ndim = self._array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    a, b = wrap_dim(dims[0], ndim), wrap_dim(dims[1], ndim)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    if k % 4 == 0:
        return TensorMeta(self._array.shape, dtype_of(self))
    if k % 4 == 2:
        return like(self)
    shape, strides = list(self._array.shape), list(like(self).strides or contiguous_strides(self._array.shape))
    for numbers in (shape, strides):
        numbers[a], numbers[b] = numbers[b], numbers[a]
    return TensorMeta(tuple(shape), dtype_of(self), tuple(strides))


@rot90.impl()
def rot90_cpu(self, k, dims, out):
    out._array[...] = turned(self._array, k, dims)


def turned(array, k, dims):
    """`k` quarter turns in the plane of two dimensions: a quarter is a flip and a transposition."""
    if k % 2 == 0:
        return array if k % 4 == 0 else flipped(array, dims)
    return flipped(array, dims[1:] if k % 4 == 1 else dims[:1]).swapaxes(*dims)


@rot90.backward
class Rot90Backward0:
    def self(grad, k, dims):
        return grad.rot90(-k, dims)

    result = "auto_linear"


# ------------------------------------------------------------------------------------------------- repetition

repeat = native_function("repeat(Tensor self, SymInt[] repeats) -> Tensor", "method")


@repeat.meta
def repeat_meta(self, repeats):
    added = len(repeats) - self._array.ndim
    if added < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = tuple([n * size for n, size in zip(repeats, (*[1] * added, *self._array.shape))])
    check_size(shape)
    return TensorMeta(shape, dtype_of(self))


@repeat.impl()
def repeat_cpu(self, repeats, out):
    """The whole tensor side by side with itself, `repeats[d]` times along dimension d."""
    copies, source = side_by_side(self._array, repeats, out._array)
    copies[...] = source


def side_by_side(array, repeats, out):
    """The output with each dimension seen as (copies, size), and the array, which is broadcast to that."""
    sizes = (1,) * (len(repeats) - array.ndim) + array.shape
    copies = out.reshape([n for pair in zip(repeats, sizes) for n in pair])
    return copies, array.reshape([n for size in sizes for n in (1, size)])


@repeat.backward
class RepeatBackward0:
    def self(grad, self_sym_sizes, repeats):
        return repeat_backward(grad, repeats, self_sym_sizes)

    result = "auto_linear"


def repeat_backward(grad, repeats, sizes):
    """Cut every dimension into (copies, size) and add up the copies."""
    if 0 in repeats:
        return at.new_zeros(grad, sizes)
    added = len(repeats) - len(sizes)
    shape, copies = [], []
    for n, size in zip(repeats, (*[1] * added, *sizes)):
        copies.append(len(shape))
        shape += [n, size]
    total = grad.reshape(shape).sum(copies) if copies else grad
    return total.reshape(sizes) if added else total


sizes_binding("repeat", repeat)

tile = native_function("tile(Tensor self, SymInt[] dims) -> Tensor", BOTH)


@tile.compose
def tile_composite(self, dims):
    """repeat, for which missing leading numbers count as 1."""
    return at.repeat(self, (*[1] * (self._array.ndim - len(dims)), *dims))


repeat_interleave_indices = native_function(
    "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", "function"
)
repeat_interleave = native_function(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
    BOTH,
)
repeat_interleave_int = native_function(
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
    BOTH,
)


def indices_meta(repeats, output_size):
    """On the Meta device nothing but the caller knows how many there are."""
    if output_size is None:
        raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
    return empty_meta(TensorMeta((output_size,), dtype_of(repeats)))


repeat_interleave_indices.kernel(indices_meta, META)


def check_counts(repeats, kernel_name):
    if repeats._array.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if dtype_of(repeats) not in (int64, int32):
        raise not_implemented(kernel_name)(dtype_of(repeats))


@repeat_interleave_indices.kernel
def repeat_interleave_indices_cpu(repeats, output_size):
    """0 `repeats[0]` times, 1 `repeats[1]` times …"""
    check_counts(repeats, "repeat_interleave_cpu")
    counts = repeats._array
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != counts.sum():
        raise RuntimeError("allocated size does not match required size")
    return wrap(np.repeat(np.arange(counts.size, dtype=counts.dtype), counts))


@repeat_interleave.compose
def repeat_interleave_composite(self, repeats, dim, output_size):
    """Each element along `dim` several times in a row."""
    if dim is None:
        self, dim = at.flatten(self), 0
    counts = repeats._array
    size = self._array.shape[wrap_dim(dim, self._array.ndim)] if self._array.ndim else 1
    if counts.ndim == 0 or counts.shape == (1,):
        repeats = repeats.reshape((1,)).expand((size,))
    elif counts.ndim != 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    elif counts.shape[0] != size:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.shape[0]} and input.size({dim}) = {size}"
        )
    return at.index_select(self, dim, at.repeat_interleave(repeats, output_size=output_size))


@repeat_interleave_int.compose
def repeat_interleave_int_composite(self, repeats, dim, output_size):
    """Each element along `dim` `repeats` times in a row: expand a new dimension beside it, then merge the two."""
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if dim is None:
        self, dim = at.flatten(self), 0
    dim = wrap_dim(dim, self._array.ndim)
    if not self._array.ndim:
        self = self.reshape((1,))
    shape = self._array.shape
    if output_size is not None and output_size != shape[dim] * repeats:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {shape[dim] * repeats} but got {output_size}"
        )
    expanded = self.unsqueeze(dim + 1).expand((*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    return expanded.clone(memory_format=contiguous_format).flatten(dim, dim + 1)
