"""Several tensors become one: cat, stack and their relatives.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`.
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.functions import at
from readtorch.aten.native.copy import copy_in_format
from readtorch.aten.native.exact_out import keeps_apart
from readtorch.aten.native.tensor_iterator import result_type
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device, described_dtype
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import CPU, CUDA, META
from readtorch.c10.memory_format import contiguous_format, format_strides_of, suggested_format
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import detached, dtype_of, wrap
from readtorch.c10.wrap_dim import wrap_dim

cat = native_function("cat(Tensor[] tensors, int dim=0) -> Tensor", "function", out=True, direct=True)


def is_skipped(t):
    """An empty one-dimensional tensor may stand among tensors of any shape
    (`at::native::cat_should_skip_tensor`)."""
    return t._array.shape == (0,)


def check_cat(tensors, dim):
    """The tensors that count and the dimension, wrapped. Raises RuntimeError for shapes that do not fit."""
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, t in enumerate(tensors):
        if t._array.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    kept = [(i, t) for i, t in enumerate(tensors) if not is_skipped(t)]
    if not kept:
        return [], dim  # whatever it is
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
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size "
                f"{b} for tensor number {position} in the list."
            )


@cat.meta
def cat_meta(tensors, dim):
    kept, dim = check_cat(tensors, dim)
    common = result_type(*tensors)
    if not kept:
        return TensorMeta((0,), common)
    arrays = [t._array for t in kept]
    shape = list(arrays[0].shape)
    shape[dim] = sum([a.shape[dim] for a in arrays])
    return TensorMeta(tuple(shape), common, format_strides_of(shape, common_format(arrays)))


@cat.impl()
def cat_into(tensors, dim, out):
    arrays = [t._array for t in tensors if not is_skipped(t)]
    if arrays:
        np.concatenate(arrays, dim, out._array, casting="unsafe")


cat_structured = cat.kernels[CPU]


@cat.kernel
def cat_cpu(tensors, dim):
    arrays = [t._array for t in tensors]
    try:
        first = arrays[0].dtype if arrays else None
        if arrays and all([a.dtype is first for a in arrays]):  # the common case: NumPy's rules are PyTorch's
            return wrap(in_common_format(np.concatenate(arrays, dim), arrays))
    except ValueError:
        pass  # PyTorch lets an empty vector pass, and has its own words for the rest
    return cat_structured(tensors, dim)


def common_format(arrays):
    formats = {suggested_format(a) for a in arrays} if arrays[0].ndim in (4, 5) else set()
    return formats.pop() if len(formats) == 1 else contiguous_format


def in_common_format(result, arrays):
    """`result` in row-major order, or channels-last if all of `arrays` are."""
    wanted = common_format(arrays)
    if wanted is contiguous_format and result.flags.c_contiguous:
        return result
    return copy_in_format(result, wanted)


def joins(operator):
    """cat and its relatives word the refusal of an output in their own way; it may share no memory with a tensor."""
    operator.out_check = check_castable
    keeps_apart(operator)


def check_castable(i, out, result, inputs):
    """On Meta, where PyTorch's cat is written in Python, the usual check has the word."""
    if not out._keys & META and not scalar_type.can_cast(described_dtype(result), dtype_of(out)):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {SCALAR_TYPE_NAMES[dtype_of(out)]}"
        )


joins(cat)


@cat.backward
class CatBackward0:
    def tensors(grad, tensors_sizes, dim):
        return cat_backward(grad, tensors_sizes, dim)

    def result(tensors_t, dim):
        return at.cat(tensors_t, dim)


def cat_backward(grad, shapes, dim):
    """The part of `grad` that belongs to each tensor."""
    dim = wrap_dim(dim, grad._array.ndim)
    pieces, start = [], 0
    for shape in shapes:
        if shape == (0,):
            pieces.append(at.new_zeros(grad, (0,)))
        else:
            pieces.append(grad.narrow(dim, start, shape[dim]))
            start += shape[dim]
    return pieces


concat = native_function("concat(Tensor[] tensors, int dim=0) -> Tensor", "function", out=True)
concatenate = native_function("concatenate(Tensor[] tensors, int dim=0) -> Tensor", "function", out=True)
concat.compose(lambda tensors, dim: cat.call(tensors, dim))
concatenate.compose(lambda tensors, dim: cat.call(tensors, dim))


stack = native_function("stack(Tensor[] tensors, int dim=0) -> Tensor", "function", out=True, direct=True)


@stack.meta
def stack_meta(tensors, dim):
    first, dim = check_stack(tensors, dim)
    return TensorMeta((*first[:dim], len(tensors), *first[dim:]), result_type(*tensors))


def check_stack(tensors, dim):
    """The shape of all of them, and the dimension, wrapped. Raises RuntimeError for shapes that differ."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0]._array.shape
    dim = wrap_dim(dim, len(first) + 1)
    for i, t in enumerate(tensors):
        if t._array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(t._array.shape)} at entry {i}"
            )
    return first, dim


@stack.impl()
def stack_into(tensors, dim, out):
    np.stack([t._array for t in tensors], dim, out._array, casting="unsafe")


stack_structured = stack.kernels[CPU]


@stack.kernel
def stack_cpu(tensors, dim):
    arrays = [t._array for t in tensors]
    shape, dtype = (arrays[0].shape, arrays[0].dtype) if arrays else ((), None)
    if not arrays or not all([a.shape == shape and a.dtype is dtype for a in arrays]):
        return stack_structured(tensors, dim)
    if dim != 0 or not shape:
        return wrap(np.ascontiguousarray(np.stack(arrays, wrap_dim(dim, len(shape) + 1))))
    if len(arrays) == 1:  # the last state of a recurrent layer
        return wrap(arrays[0][None].copy())
    # samples of a batch: joining is faster; column-major ones are joined column by column: the copy puts their rows in order
    return wrap(np.ascontiguousarray(np.concatenate(arrays)).reshape(len(arrays), *shape))


joins(stack)
stack_out_structured = stack.out.kernels[CPU]


@stack.out.kernel
@any_device
def stack_out(tensors, dim, out):
    """Samples of a batch go where they belong at once: a worker of the DataLoader has them stacked in shared memory."""
    arrays, target = [t._array for t in tensors], out._array
    if dim != 0 or not arrays or out._keys & (CUDA | META) or not _are_rows(arrays, target):
        return stack_out_structured(tensors, dim, out)
    count, rows, *rest = target.shape
    np.concatenate(arrays, out=target.reshape(count * rows, *rest))  # -1 has no answer for what is empty
    return out


def _are_rows(arrays, target):
    """Whether each array has the shape and dtype of one row of `target`, and other memory."""
    rows, dtype = target.shape[1:], target.dtype
    return (
        len(target.shape) > 1
        and len(target) == len(arrays)
        and target.flags.c_contiguous
        and all([a.shape == rows and a.dtype is dtype for a in arrays])
        and not any([np.may_share_memory(a, target) for a in arrays])
    )


@stack.backward
class StackBackward0:
    def tensors(grad, dim):
        return list(grad.unbind(dim))

    def result(tensors_t, dim):
        return at.stack(tensors_t, dim)


# ------------------------------------------------------------------- along the first, second, third dimension

atleast_1d = native_function("atleast_1d(Tensor self) -> Tensor", "")
atleast_2d = native_function("atleast_2d(Tensor self) -> Tensor", "")
atleast_3d = native_function("atleast_3d(Tensor self) -> Tensor", "")


@atleast_1d.compose
def atleast_1d_composite(self):
    return self.reshape((1,)) if self._array.ndim == 0 else self


@atleast_2d.compose
def atleast_2d_composite(self):
    ndim = self._array.ndim
    return self.reshape((1, 1)) if ndim == 0 else self.unsqueeze(0) if ndim == 1 else self


@atleast_3d.compose
def atleast_3d_composite(self):
    ndim = self._array.ndim
    if ndim == 0:
        return self.reshape((1, 1, 1))
    if ndim == 1:
        return self.unsqueeze(0).unsqueeze(-1)
    return self.unsqueeze(-1) if ndim == 2 else self


def _stack_along(name, raise_dims, dim, alias=None):
    """hstack, vstack, dstack: tensors get at least so many dimensions, then they are joined along one of them."""

    def join(tensors):
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        raised = [raise_dims.call(t) for t in tensors]
        return cat.call(raised, 0 if name == "hstack" and raised[0]._array.ndim == 1 else dim)

    for spelling in filter(None, (name, alias)):
        operator = native_function(f"{spelling}(Tensor[] tensors) -> Tensor", "function", out=True)
        operator.compose(join)
        joins(operator)


_stack_along("hstack", atleast_1d, 1)
_stack_along("vstack", atleast_2d, 0, alias="row_stack")
_stack_along("dstack", atleast_3d, 2)

column_stack = native_function("column_stack(Tensor[] tensors) -> Tensor", "function", out=True)


@column_stack.compose
def column_stack_composite(tensors):
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return at.hstack([t if t._array.ndim > 1 else t.reshape((t._array.size, 1)) for t in tensors])


joins(column_stack)

# ----------------------------------------------------------------------------------------------- block_diag

block_diag = native_function("block_diag(Tensor[] tensors) -> Tensor", "")


@block_diag.kernel
@any_device
def block_diag_of_copies(tensors):
    """Matrices along the diagonal of a larger one."""
    for i, t in enumerate(tensors):
        if t._array.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                f"{t._array.ndim} dimensions"
            )
    if not tensors:
        return at.empty(1, 0)
    shapes = [(1, 1, *t._array.shape)[-2:] for t in tensors]
    size = [sum(lengths) for lengths in zip(*shapes)]
    row = column = 0
    with below_autograd():
        result = at.zeros(size, dtype=result_type(*tensors), device=tensors[0].device)
        for t, (rows, columns) in zip(tensors, shapes):
            result.narrow(0, row, rows).narrow(1, column, columns).copy_(t.reshape((rows, columns)))
            row, column = row + rows, column + columns
    return detached(result)


@block_diag.backward
class BlockDiagBackward0:
    def tensors(grad, tensors_sizes):
        row, column, pieces = 0, 0, []
        for shape in tensors_sizes:
            rows, columns = (1, 1, *shape)[-2:]
            block = grad.narrow(0, row, rows).narrow(1, column, columns)
            pieces.append(block.reshape(shape))
            row, column = row + rows, column + columns
        return pieces

    def result(tensors_t):
        return at.block_diag(tensors_t)


# ----------------------------------------------------------------------------------------------------- chunk_cat

_chunk_cat = native_function("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", out=True)


@_chunk_cat.kernel
@any_device
def chunk_cat_of_padded(tensors, dim, num_chunks):
    """Each tensor is cut into so many chunks along `dim`, padded with zeros; chunk i of all of them form row i."""
    dim = check_chunk_cat(tensors, dim, num_chunks)
    rows = []
    with below_autograd():
        for t in tensors:
            shape = t._array.shape
            padding = [0, 0] * (len(shape) - dim - 1) + [0, -shape[dim] % num_chunks]
            rows.append(at.constant_pad_nd(t, padding).reshape((*shape[:dim], num_chunks, -1)))
        return cat.call(rows, -1)


def check_chunk_cat(tensors, dim, num_chunks):
    """The dimension, wrapped. Raises RuntimeError."""
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if dim < 0:
        if len({t._array.ndim for t in tensors}) > 1:
            raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
        dim = wrap_dim(dim, tensors[0]._array.ndim)
    for t in tensors:
        if not t._array.size:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if dim >= t._array.ndim:
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if t._array.dtype != tensors[0]._array.dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if t._array.shape[:dim] != tensors[0]._array.shape[:dim]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return dim


joins(_chunk_cat)
_chunk_cat.backward(NOT_IMPLEMENTED)
