"""Elements chosen by a mask: nonzero, masked_fill, masked_select, masked_scatter.

In PyTorch: `aten/src/ATen/native/TensorAdvancedIndexing.cpp`.
"""

from math import prod

import numpy as np

from readtorch.aten.empty_tensor import empty_meta
from readtorch.aten.expand_utils import broadcast_error, broadcast_shape, inplace_shape_error
from readtorch.aten.functions import at
from readtorch.aten.memory_overlap import check_no_partial_overlap, warn_of_overlap
from readtorch.aten.native.copy import check_broadcast
from readtorch.aten.native.exact_out import exact_out, keeps_apart
from readtorch.aten.native.fill import number_for
from readtorch.aten.native_function import BOTH, native_function, python_binding
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import META
from readtorch.c10.scalar_type import C_TYPE_NAMES, int64
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap

from .index import writes_elements

# ------------------------------------------------------------------------------------------------- nonzero

nonzero = native_function(
    "nonzero(Tensor self) -> Tensor",
    BOTH,
    out=exact_out(
        lambda out, *_: f"nonzero: Expected out tensor to have scalar type Long but got scalar type{type_name(out)}"
    ),
)
nonzero_static = native_function(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", BOTH, out=True
)
argwhere = native_function("argwhere(Tensor self) -> Tensor", BOTH, direct=True)
nonzero_numpy = native_function("nonzero_numpy(Tensor self) -> Tensor[]", "")


@nonzero.kernel
def nonzero_cpu(self):
    """The indices of all elements that are not 0, one row each."""
    array = self._array
    return wrap(np.argwhere(array) if array.ndim else np.empty((int(bool(array)), 0), np.int64))


def nonzero_meta(self):
    raise NotImplementedError(
        "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct data-independent "
        "implementation does not exist."
    )


nonzero.kernel(nonzero_meta, META)


@nonzero_static.meta
def nonzero_static_meta(self, size, fill_value):
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return TensorMeta((size, self._array.ndim), int64)


@nonzero_static.impl()
def nonzero_static_cpu(self, size, fill_value, out):
    """The first `size` rows of nonzero; `fill_value` where there are not so many."""
    found = nonzero_cpu(self)._array[:size]
    out._array[: len(found)], out._array[len(found) :] = found, fill_value


@argwhere.compose
def argwhere_composite(self):
    return nonzero.call(self)


@nonzero_numpy.compose
def nonzero_numpy_composite(self):
    """The same, as one tensor a dimension."""
    if self._array.ndim == 0:
        return nonzero.call(self.unsqueeze(0)).unbind(1)
    return nonzero.call(self).unbind(1)


@python_binding("nonzero")
def nonzero_binding(input, *, as_tuple=False, out=None):
    """Indices of the elements that are not 0: an (n, dims) tensor, or with `as_tuple` one vector a dimension."""
    if as_tuple:
        if isinstance(out, (tuple, list)):
            raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return tuple(nonzero_numpy.call(input))
    return nonzero.call(input) if out is None else nonzero.out.call(input, out)


# -------------------------------------------------------------------------------------------------- masked_…

masked_fill_tensor = native_function(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", BOTH, inplace=True
)
masked_fill = native_function(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", BOTH, inplace=True
)


@masked_fill.meta
def masked_fill_meta(self, mask, value):
    if mask._array.dtype != bool:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {C_TYPE_NAMES[dtype_of(mask)]}"
        )
    return TensorMeta(broadcast_shape(mask._array.shape, self._array.shape), dtype_of(self))


@masked_fill_tensor.meta
def masked_fill_tensor_meta(self, mask, value):
    if value._array.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._array.ndim} dimension(s)."
        )
    return masked_fill_meta(self, mask, value)


def in_place(describe):
    """The shape rule of the form in place, which writes to expanded tensors as well, with a warning."""

    def inplace_meta(self, mask, value):
        check_broadcast(self._array.shape, mask._array.shape)
        describe(self, mask, value)

    return inplace_meta


masked_fill.inplace.meta(in_place(masked_fill_meta))
masked_fill_tensor.inplace.meta(in_place(masked_fill_tensor_meta))


def fill_where(self, mask, value):
    """A new array: `value` where the mask is true, `self` elsewhere."""
    if mask._array.dtype != bool:
        masked_fill_meta(self, mask, value)
    try:
        result = np.where(mask._array, value, self._array)
    except ValueError:
        raise broadcast_error(mask._array.shape, self._array.shape) from None
    return wrap(result if result.flags.c_contiguous else result.copy())


def fill_where_(self, mask, value):
    if mask._array.dtype != bool:
        masked_fill_meta(self, mask, value)
    warn_of_overlap(self, "masked_fill_", "tensor[mask] = scalar")
    check_no_partial_overlap(self, mask)
    try:
        np.copyto(self._array, value, where=mask._array)
    except ValueError:
        raise inplace_shape_error(self._array.shape, mask._array.shape) from None
    return self


def expand_error(self, mask):
    """What `mask.expand_as(self)` raises."""
    try:
        return mask.expand(self._array.shape) and RuntimeError("mask does not fit")
    except RuntimeError as error:
        return error


def as_element_of(self, mask, value):
    if value._array.ndim:
        masked_fill_tensor_meta(self, mask, value)
    return number_for(self, value.item())


masked_fill.kernel(lambda self, mask, value: fill_where(self, mask, number_for(self, value)))
masked_fill.inplace.kernel(lambda self, mask, value: fill_where_(self, mask, number_for(self, value)))
masked_fill_tensor.kernel(lambda self, mask, value: fill_where(self, mask, as_element_of(self, mask, value)))
masked_fill_tensor.inplace.kernel(lambda self, mask, value: fill_where_(self, mask, as_element_of(self, mask, value)))


@python_binding("masked_fill", "function, method")
def masked_fill_binding(input, mask, value):
    """`input` with `value`, a number or a tensor without dimensions, where the mask is true."""
    return (masked_fill_tensor if hasattr(value, "_array") else masked_fill).call(input, mask, value)


@masked_fill.backward
class MaskedFillBackward0:
    def self(grad, mask):
        return grad.masked_fill(mask, 0)

    def result(self_t, mask):
        return self_t.masked_fill(mask, 0)


@masked_fill_tensor.backward
class MaskedFillBackward1:
    def self(grad, mask):
        return grad.masked_fill(mask, 0)

    def value(grad, mask):
        return at.where(mask, grad, 0).sum()

    def result(self_t, mask, value_t):
        return self_t.masked_fill(mask, value_t)


masked_select = native_function(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    BOTH,
    out=exact_out(lambda *_: "masked_select(): self and result must have the same scalar type"),
    direct=True,
)
masked_scatter = native_function(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", BOTH, inplace=True
)


keeps_apart(masked_select)


def check_mask_type(mask):
    if mask._array.dtype != bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")


@masked_select.kernel
def masked_select_cpu(self, mask):
    """The elements where the mask is true, in order, in one dimension."""
    check_mask_type(mask)
    try:
        array, chosen = np.broadcast_arrays(self._array, mask._array)
    except ValueError:
        raise broadcast_error(self._array.shape, mask._array.shape) from None
    return wrap(array[chosen].reshape(-1))


@masked_select.backward
class MaskedSelectBackward0:
    def self(grad, self_sym_sizes, mask):
        shape = broadcast_shape(self_sym_sizes, mask._array.shape)
        return at.new_zeros(grad, shape).masked_scatter(mask, grad)

    result = "auto_linear"


@masked_scatter.meta
def masked_scatter_meta(self, mask, source):
    """Not in place the mask may also be the larger one."""
    if self._array.dtype != source._array.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {type_name(self)} "
            f"and {type_name(source)}"
        )
    if mask._array.dtype != bool:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype " + type_name(mask))
    return TensorMeta(broadcast_shape(self._array.shape, mask._array.shape), dtype_of(self))


@writes_elements(masked_scatter, apart=lambda mask, source: ())
def masked_scatter_cpu(self, mask, source):
    """The elements where the mask is true become those of `source`, in order."""
    try:
        chosen = np.broadcast_to(mask._array, self._array.shape)
    except ValueError:
        raise expand_error(self, mask) from None
    count = int(np.count_nonzero(chosen))
    if count > source._array.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    self._array[chosen] = source._array.reshape(-1)[:count]


@masked_scatter.backward
class MaskedScatterBackward0:
    def self(grad, mask):
        return grad.masked_fill(mask, 0)

    def source(grad, mask, source_sym_sizes):
        return masked_scatter_backward.call(grad, mask, source_sym_sizes)

    def result(self_t, mask, source_t):
        return self_t.masked_scatter(mask, source_t)


masked_scatter_backward = native_function(
    "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor", ""
)


@masked_scatter_backward.compose
def masked_scatter_backward_composite(grad_output, mask, sizes):
    chosen = grad_output.masked_select(mask)
    missing = prod(sizes) - chosen._array.size
    if missing > 0:  # source may have had more elements than were needed
        chosen = at.cat([chosen, at.new_zeros(grad_output, (missing,))])
    return chosen.view(sizes)


def masked_scatter_backward_meta(grad_output, mask, sizes):
    return empty_meta(TensorMeta(tuple(sizes), dtype_of(grad_output)))


masked_scatter_backward.kernel(masked_scatter_backward_meta, META)
