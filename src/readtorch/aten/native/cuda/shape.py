"""cat, stack, block_diag and chunk_cat: tensors beside each other in one.

In PyTorch: `aten/src/ATen/native/cuda/Shape.cu`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import result_type
from readtorch.aten.native.tensor_shape.cat import (
    cat,
    check_cat,
    check_chunk_cat,
    check_equal_sizes,
    common_format,
    stack,
)
from readtorch.c10.memory_format import strides_in_format
from readtorch.c10.scalar_type import get_default_dtype
from readtorch.c10.wrap_dim import wrap_dim

from .copy import copy_elements
from .fill_kernel import filled
from .loops import pointwise
from .register_dispatch_key import cuda_kernel, empty, operator_named


def copy_parts(arrays, dim, out):
    """One after another along a dimension: each is copied to its part of `out`."""
    begin = 0
    for x in arrays:
        end = begin + x.shape[dim]
        pointwise(f.copy, [x], out[(slice(None),) * (dim % out.ndim) + (slice(begin, end),)])
        begin = end


@cuda_kernel(cat)
def cat_cuda(tensors, dim):
    parts, dim = check_cat(tensors, dim)
    dtype = result_type(*tensors).numpy
    if not parts:
        return empty((0,), dtype)
    shape = list(parts[0]._array.shape)
    shape[dim] = sum(t._array.shape[dim] for t in parts)
    like = np.broadcast_to(np.empty((), np.int8), shape)
    result = empty(shape, dtype, strides_in_format(like, common_format([t._array for t in parts])))
    copy_parts([t._array for t in parts if t._array.size], dim, result._array)
    return result


@cuda_kernel(stack)
def stack_cuda(tensors, dim):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    check_equal_sizes([t._array for t in tensors], tensors[0]._array.shape)
    dtype, dim = result_type(*tensors), wrap_dim(dim, tensors[0]._array.ndim + 1)
    shape = [*tensors[0]._array.shape[:dim], len(tensors), *tensors[0]._array.shape[dim:]]
    result = empty(shape, dtype.numpy)
    copy_parts([np.expand_dims(t._array, dim) for t in tensors], dim, result._array)
    return result


@cuda_kernel(operator_named("block_diag"))
def block_diag_cuda(tensors):
    for i, t in enumerate(tensors):
        if t._array.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{i} has {t._array.ndim} dimensions"
            )
    if not tensors:
        return empty((1, 0), get_default_dtype().numpy)
    blocks = [t.reshape((1, 1, *t._array.shape)[-2:]) for t in tensors]
    rows, columns = (sum(b._array.shape[d] for b in blocks) for d in (0, 1))
    result = filled(empty((rows, columns), result_type(*tensors).numpy), 0)
    row = column = 0
    for b in blocks:
        height, width = b._array.shape
        copy_elements(b, result.narrow(0, row, height).narrow(1, column, width))
        row, column = row + height, column + width
    return result


@cuda_kernel(operator_named("_chunk_cat"))
def chunk_cat_cuda(tensors, dim, num_chunks):
    """Each tensor is cut into so many chunks along `dim`, padded with zeros; chunk i of all of them form row
    i."""
    dim = check_chunk_cat(tensors, dim, num_chunks)
    rows = []
    for t in tensors:
        shape = t._array.shape
        padding = [0, 0] * (len(shape) - dim - 1) + [0, -shape[dim] % num_chunks]
        rows.append(at.constant_pad_nd(t, padding).reshape((*shape[:dim], num_chunks, -1)))
    return at.cat(rows, -1)
