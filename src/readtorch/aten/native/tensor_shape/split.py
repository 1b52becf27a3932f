"""One tensor becomes several views: unbind, split, chunk and their relatives.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.register_dispatch_key import only_geometry
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.sym_int import SymInt
from readtorch.c10.tensor_impl import TensorImpl, alias, dtype_of, strided
from readtorch.c10.tensor_impl import view as view_of
from readtorch.c10.wrap_dim import wrap_dim

from .slice import empty_slice, slice_


def several_views(self, arrays):
    """A view of `self` for each array."""
    return tuple([view_of(self, a) for a in arrays])


def with_zeros(grads, shapes, dtype):
    """The gradients of several outputs, zeros where none arrived."""
    like = next(g for g in grads if g is not None)
    return [at.new_zeros(like, shape, dtype=dtype) if g is None else g for g, shape in zip(grads, shapes)]


# ---------------------------------------------------------------------------------------------------- unbind

unbind = native_function("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", BOTH, direct=True)


@unbind.kernel
def unbind_cpu(self, dim):
    array = self._array if self._array.size else strided(self)
    dim = wrap_dim(dim, array.ndim)
    if not array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    before = (slice(None),) * dim
    return several_views(self, [array[(*before, i, ...)] for i in range(array.shape[dim])])


@unbind.backward
class UnbindBackward0:
    def self(grads, self_sym_sizes, self_scalar_type, dim):
        dim = wrap_dim(dim, len(self_sym_sizes))
        shape = (*self_sym_sizes[:dim], *self_sym_sizes[dim + 1 :])
        return at.stack(with_zeros(grads, [shape] * len(grads), self_scalar_type), dim)

    result = "auto_linear"


# ----------------------------------------------------------------------------------------------------- split

split = native_function("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", BOTH)
split_sizes = native_function("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", BOTH)
split_with_sizes = native_function(
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", BOTH
)
unsafe_split = native_function("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", BOTH)
unsafe_split_with_sizes = native_function(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", BOTH
)


@python_binding("split", "method")
def split_method(self, split_size, dim=0):
    """Views of `self`: pieces of equal size, or of the sizes listed. In PyTorch: `Tensor.split` in `torch/_tensor.py`."""
    if isinstance(split_size, TensorImpl) and split_size._array.size == 1:
        split_size = int(split_size)
    return (_split if isinstance(split_size, (int, SymInt)) else _split_with_sizes)((self, split_size, dim), {})


_split, _split_with_sizes = (make_parser(packets["torch", name], False) for name in ("split", "split_with_sizes"))


def cuts(self, lengths, dim):
    """The parts of `self`'s array, of these lengths, along `dim`."""
    before, start, parts = (slice(None),) * dim, 0, []
    for length in lengths:
        part = slice(start, start + length)
        seen = self._array[(*before, part)]
        parts.append(seen if seen.size else empty_slice(self, dim, part))
        start += length
    return parts


def equal_lengths(size, split_size):
    """`size` cut into pieces of `split_size`, the last of which may be shorter. Raises RuntimeError."""
    if split_size == 0:
        if size:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
        return [0]
    count = int(max((size + split_size - 1) // split_size, 1))
    return [split_size] * (count - 1) + [size - split_size * (count - 1)]


def check_splittable(self, split_size, dim):
    if self._array.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    return wrap_dim(dim, self._array.ndim)


@split.kernel
def split_cpu(self, split_size, dim):
    dim = check_splittable(self, split_size, dim)
    return several_views(self, cuts(self, equal_lengths(self._array.shape[dim], split_size), dim))


@split_with_sizes.kernel
def split_with_sizes_cpu(self, split_sizes, dim):
    dim = check_split_sizes(self, split_sizes, dim)
    return several_views(self, cuts(self, split_sizes, dim))


def check_split_sizes(self, split_sizes, dim):
    """The dimension, wrapped. Raises RuntimeError unless the sizes add up to its size."""
    if self._array.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, self._array.ndim)
    size = self._array.shape[dim]
    if min(split_sizes, default=0) < 0:
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    return dim


@split_sizes.compose
def split_sizes_composite(self, sizes, dim):
    return split_with_sizes.call(self, sizes, dim)


@unsafe_split.kernel
@only_geometry
def unsafe_split_cpu(self, split_size, dim):
    """Like split, but the caller promises not to read `self` again: the parts are no views to autograd, and a
    write to one of them changes no other's version."""
    dim = check_splittable(self, split_size, dim)
    return unmarked_parts(self, equal_lengths(self._array.shape[dim], split_size), dim)


@unsafe_split_with_sizes.kernel
@only_geometry
def unsafe_split_with_sizes_cpu(self, split_sizes, dim):
    dim = check_split_sizes(self, split_sizes, dim)
    return unmarked_parts(self, split_sizes, dim)


def unmarked_parts(self, lengths, dim):
    parts = [alias(self, array) for array in cuts(self, lengths, dim)]
    for part in parts:
        part._counter = [part._counter[0]]
    return tuple(parts)


def split_backward(grads, lengths, dim, sizes, dtype):
    dim = wrap_dim(dim, len(sizes))
    shapes = [(*sizes[:dim], n, *sizes[dim + 1 :]) for n in lengths]
    return at.cat(with_zeros(grads, shapes, dtype), dim)


@split.backward
class SplitBackward0:
    def self(grads, self_sym_sizes, self_scalar_type, split_size, dim):
        lengths = equal_lengths(self_sym_sizes[dim], split_size)
        return split_backward(grads, lengths, dim, self_sym_sizes, self_scalar_type)

    result = "auto_linear"


@split_with_sizes.backward
class SplitWithSizesBackward0:
    def self(grads, self_sym_sizes, self_scalar_type, split_sizes, dim):
        return split_backward(grads, split_sizes, dim, self_sym_sizes, self_scalar_type)

    result = "auto_linear"


@unsafe_split_with_sizes.backward
class UnsafeSplitWithSizesBackward0:
    def self(grads, self_sym_sizes, self_scalar_type, split_sizes, dim):
        return split_backward(grads, split_sizes, dim, self_sym_sizes, self_scalar_type)

    result = "auto_linear"


@unsafe_split.backward
class UnsafeSplitBackward0:
    def self(grads, self_sym_sizes, self_scalar_type, split_size, dim):
        lengths = equal_lengths(self_sym_sizes[dim], split_size)
        return split_backward(grads, lengths, dim, self_sym_sizes, self_scalar_type)

    result = "auto_linear"


# ----------------------------------------------------------------------------------------------------- chunk

chunk = native_function("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", BOTH, direct=True)
unsafe_chunk = native_function("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", BOTH)


def chunk_length(self, chunks, dim):
    """How long each of `chunks` pieces is, and the size of the dimension."""
    if self._array.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self._array.shape[wrap_dim(dim, self._array.ndim)]
    return (size + chunks - 1) // chunks, size


@chunk.compose
def chunk_composite(self, chunks, dim):
    """At most `chunks` pieces of equal length; the last may be shorter."""
    length, size = chunk_length(self, chunks, dim)
    if length == 0 and size == 0:  # split with a length of 0 would not know how many pieces to give
        return split_with_sizes.call(self, [0] * chunks, dim)
    return split.call(self, length, dim)


@unsafe_chunk.compose
def unsafe_chunk_composite(self, chunks, dim):
    return unsafe_split.call(self, chunk_length(self, chunks, dim)[0], dim)


# --------------------------------------------------------------------------------------------- tensor_split

tensor_split_sections = native_function(
    "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]", BOTH
)
tensor_split = native_function(
    "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", BOTH
)
tensor_split_tensor = native_function(
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int "
    "dim=0) -> Tensor(a)[]",
    BOTH,
)


def check_tensor_split(self, dim):
    if self._array.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    return wrap_dim(dim, self._array.ndim)


def check_many(pieces):
    """Raises RuntimeError for more pieces than any memory has room for. In PyTorch: what the list of them says."""
    if pieces > 1 << 28:
        raise RuntimeError("std::bad_alloc")


@tensor_split_sections.compose
def tensor_split_sections_composite(self, sections, dim):
    """Exactly `sections` pieces; the first ones are longer by one where it does not come out even."""
    dim = check_tensor_split(self, dim)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    check_many(sections)
    short, longer = divmod(self._array.shape[dim], sections)
    pieces, start = [], 0
    for i in range(sections):
        length = short + (i < longer)
        pieces.append(slice_.call(self, dim, start, start + length, 1))
        start += length
    return tuple(pieces)


@tensor_split.compose
def tensor_split_composite(self, indices, dim):
    """Cut before each of `indices`."""
    dim = check_tensor_split(self, dim)
    starts, ends = [0, *indices], [*indices, self._array.shape[dim]]
    return tuple([slice_.call(self, dim, start, end, 1) for start, end in zip(starts, ends)])


@tensor_split_tensor.compose
def tensor_split_tensor_composite(self, tensor_indices_or_sections, dim):
    where = tensor_indices_or_sections
    if where.device.type != "cpu":
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {where.device}")
    if where._array.dtype != "int64":
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{SCALAR_TYPE_NAMES[dtype_of(where)]}"
        )
    if where._array.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
            f"one-dimensional tensor, but got a tensor with {where._array.ndim} dims"
        )
    return at.tensor_split(self, where.tolist(), dim)


def _split_along(name, dim, needed):
    """hsplit, vsplit, dsplit: tensor_split along a fixed dimension."""
    by_count = native_function(f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", BOTH)
    by_places = native_function(f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", BOTH)

    def place(self):
        ndim = self._array.ndim
        if ndim < needed:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {needed} dimension, but got "
                f"a tensor with {ndim} dimensions!"
            )
        return 0 if name == "hsplit" and ndim == 1 else dim

    @by_count.compose
    def split_by_count(self, sections):
        d = place(self)
        size = self._array.shape[d]
        if sections == 0 or size % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension "
                f"{size} is not divisible by the split_size {sections}!"
            )
        return tensor_split_sections.call(self, sections, d)

    @by_places.compose
    def split_at_places(self, indices):
        return tensor_split.call(self, indices, place(self))


_split_along("hsplit", 1, 1)
_split_along("vsplit", 0, 2)
_split_along("dsplit", 2, 3)
