"""reshape, flatten, movedim, the transposes of matrices, broadcasting and narrow: what is built from views.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`. Explained in the chapter "Tensor and Storage".
"""

from math import prod

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.register_dispatch_key import only_geometry
from readtorch.c10.cow import mutable_array
from readtorch.c10.exception import warn_once
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.tensor_impl import seen_by_python, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .slice import slice_
from .view import (
    alias_,
    compute_strides,
    expand,
    infer_size,
    permute,
    restrided,
    sizes_binding,
    transpose,
    transpose_,
    view,
)

# -------------------------------------------------------------------------------------------------- reshape

reshape = native_function("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", BOTH)


@reshape.compose
def reshape_composite(self, shape):
    """A view when the strides allow one, else a copy (`reshape` has no derivative of its own:
    ViewBackward0 or
    UnsafeViewBackward0 shows which it was)."""
    array = self._array
    if array.flags.c_contiguous:
        return view.call(self, shape)
    sizes = infer_size(shape, array.size)
    strides = compute_strides(array.shape, array.strides, sizes, array.itemsize)
    if strides is not None and seen_by_python(self):
        return view.call(self, sizes)  # in PyTorch: `isTensorSubclassLike`
    if strides is not None:
        return _reshape_alias.call(self, sizes, [s // array.itemsize for s in strides])
    return at._unsafe_view(at.clone(self, memory_format=contiguous_format), sizes)


sizes_binding("reshape", reshape, BOTH)

_reshape_alias = native_function(
    "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", "function"
)


@_reshape_alias.view_kernel
def reshape_alias_cpu(self, size, stride):
    """view, with strides that are known already."""
    item = self._array.itemsize
    return restrided(self, size, [s * item for s in stride])


@_reshape_alias.backward
class ReshapeAliasBackward0:
    def self(grad, self_sym_sizes):
        return grad.reshape(self_sym_sizes)

    result = "auto_linear"


_unsafe_view = native_function("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", "function")


@_unsafe_view.kernel
@only_geometry
def unsafe_view_cpu(self, size):
    """Like view, but autograd need not know that memory is shared: the caller gives up the original."""
    return wrap(mutable_array(self).reshape(infer_size(size, self._array.size)))


@_unsafe_view.backward
class UnsafeViewBackward0:
    def self(grad, self_sym_sizes):
        return grad.reshape(self_sym_sizes)

    result = "auto_linear"


view_as = native_function("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", "method", direct=True)
reshape_as = native_function("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", "method", direct=True)


@view_as.compose
def view_as_composite(self, other):
    return view.call(self, other._array.shape)


@reshape_as.compose
def reshape_as_composite(self, other):
    return reshape.call(self, other._array.shape)


flatten = native_function(
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", BOTH, direct=True
)
ravel = native_function("ravel(Tensor(a) self) -> Tensor(a)", BOTH, direct=True)
unflatten = native_function("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", BOTH)


@flatten.compose
def flatten_composite(self, start_dim, end_dim):
    """Dimensions `start_dim` to `end_dim` become one."""
    shape = self._array.shape
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape.call(self, (1,))
    if start == end:
        return self
    return reshape.call(self, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@ravel.compose
def ravel_composite(self):
    return view.call(self.contiguous(), (-1,))


@unflatten.compose
def unflatten_composite(self, dim, sizes):
    """Dimension `dim` becomes several; one of `sizes` may be -1."""
    shape = self._array.shape
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    place = wrap_dim(dim, len(shape))
    if not shape:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {place} but tensor has no dimensions"
        )
    try:
        inferred = infer_size(sizes, shape[place])
    except RuntimeError as error:
        if "only one dimension" in str(error) or "invalid shape" in str(error):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {place} "
            f"({shape[place]}) in the input tensor"
        ) from None
    return view.call(self, (*shape[:place], *inferred, *shape[place + 1 :]))


# ---------------------------------------------------------------------------------------- order of dimensions

swapaxes = native_function("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", BOTH, direct=True)
swapdims = native_function("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", BOTH, direct=True)
swapaxes_ = native_function("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", "method")
swapdims_ = native_function("swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "method")
swapaxes_.compose(lambda self, axis0, axis1: transpose_.call(self, axis0, axis1))
swapdims_.compose(lambda self, dim0, dim1: transpose_.call(self, dim0, dim1))
swapaxes.compose(lambda self, axis0, axis1: transpose.call(self, axis0, axis1))
swapdims.compose(lambda self, dim0, dim1: transpose.call(self, dim0, dim1))

movedim_int = native_function("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", BOTH)
movedim = native_function("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", BOTH)
moveaxis_int = native_function("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", BOTH)
moveaxis = native_function("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", BOTH)


@movedim.compose
def movedim_composite(self, source, destination):
    """Each dimension in `source` goes to its position in `destination`; the others keep their order."""
    ndim = self._array.ndim
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain "
            f"the same number of dims as destination ({list(destination)} dims)"
        )
    sources, targets = [wrap_dim(d, ndim) for d in source], [wrap_dim(d, ndim) for d in destination]
    for name, wrapped, given in (("source", sources, source), ("destination", targets, destination)):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if ndim == 0:
        return alias_.call(self)
    order, rest = [None] * ndim, iter([d for d in range(ndim) if d not in sources])
    for s, d in zip(sources, targets):
        order[d] = s
    return permute.call(self, [next(rest) if d is None else d for d in order])


movedim_int.compose(lambda self, source, destination: movedim.call(self, (source,), (destination,)))
moveaxis.compose(movedim_composite)
moveaxis_int.compose(lambda self, source, destination: movedim.call(self, (source,), (destination,)))

numpy_T = native_function("numpy_T(Tensor(a) self) -> Tensor(a)", "")
mT = native_function("mT(Tensor(a) self) -> Tensor(a)", "")
mH = native_function("mH(Tensor(a) self) -> Tensor(a)", "")
matrix_H = native_function("matrix_H(Tensor(a) self) -> Tensor(a)", "")
adjoint = native_function("adjoint(Tensor(a) self) -> Tensor(a)", BOTH, direct=True)


def warn_of_scalar(name, advice="This function is the identity in these cases."):
    warn_once(f"{name} is deprecated on 0-D tensors. {advice}", stacklevel=4)


@numpy_T.compose
def numpy_T_composite(self):
    """`x.T`: all dimensions in reverse order."""
    ndim = self._array.ndim
    if ndim == 2:
        return permute.call(self, (1, 0))
    if ndim == 0:
        warn_of_scalar("Tensor.T")
    else:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and "
            "it will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a "
            "tensor.",
            stacklevel=3,
        )
    return permute.call(self, tuple(reversed(range(ndim))))


@mT.compose
def mT_composite(self):
    if self._array.ndim == 0:
        warn_of_scalar("Tensor.mT")
        return self
    check_batch_of_matrices(self, "tensor.mT")
    return transpose.call(self, -2, -1)


@matrix_H.compose
def matrix_H_composite(self):
    ndim = self._array.ndim
    if ndim == 0:
        warn_of_scalar("Tensor.H", "Consider using x.conj().")
        return at.conj(self)
    if ndim != 2:
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
        )
    return transpose_conj(self)


@mH.compose
def mH_composite(self):
    return conjugate_transpose(self, "Tensor.mH", "tensor.mH")


@adjoint.compose
def adjoint_composite(self):
    return conjugate_transpose(self, "adjoint()", "tensor.adjoint()")


def conjugate_transpose(self, scalar_name, name):
    if self._array.ndim == 0:
        warn_of_scalar(scalar_name, "Consider using x.conj().")
        return at.conj(self)
    check_batch_of_matrices(self, name)
    return transpose_conj(self)


def check_batch_of_matrices(self, name):
    if self._array.ndim < 2:
        raise RuntimeError(
            f"{name} is only supported on matrices or batches of matrices. Got {self._array.ndim}-D tensor."
        )


def transpose_conj(self):
    return at.conj(transpose.call(self, -2, -1))


# ----------------------------------------------------------------------------------------------- broadcasting

broadcast_to = native_function("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", BOTH)
expand_as = native_function("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", "method", direct=True)
broadcast_to.compose(lambda self, size: expand.call(self, size, False))
expand_as.compose(lambda self, other: expand.call(self, other._array.shape, False))

broadcast_tensors = native_function("broadcast_tensors(Tensor[] tensors) -> Tensor[]", "function")


@broadcast_tensors.compose
def broadcast_tensors_composite(tensors):
    shape = broadcast_shape(*[t._array.shape for t in tensors])
    return tuple([t if t._array.shape == shape else expand.call(t, shape, False) for t in tensors])


narrow = native_function("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", BOTH)


narrow_tensor = native_function(
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", BOTH
)


@narrow_tensor.compose
def narrow_tensor_composite(self, dim, start, length):
    if start._array.ndim or start._array.dtype.kind not in "iu":
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return narrow.call(self, dim, start.item(), length)


@narrow.compose
def narrow_composite(self, dim, start, length):
    shape = self._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = shape[wrap_dim(dim, len(shape))]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_.call(self, dim, start, start + length, 1)


def view_on_grid(tensors):
    """Each of n one-dimensional tensors along its own dimension of an n-dimensional grid (`meshgrid`)."""
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t._array.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
        if t._array.dtype != tensors[0]._array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    sizes = [t._array.size for t in tensors]
    ones = [1] * len(sizes)
    return [expand.call(view.call(t, (*ones[:i], -1, *ones[i + 1 :])), sizes, False) for i, t in enumerate(tensors)]
