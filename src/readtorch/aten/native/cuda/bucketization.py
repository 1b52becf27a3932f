"""searchsorted and bucketize: a binary search for each value.

    search(sequence, sorter, values, right, out)

Grid: blocks of 256 threads with a grid-stride loop, a thread for each value.

In PyTorch: `aten/src/ATen/native/cuda/Bucketization.cu`.
"""

import functools
import math

from numba import cuda

from readtorch.aten.native.bucketization import check_search
from readtorch.aten.native.tensor_iterator import result_type
from readtorch.aten.native.tensor_iterator import scalar_tensor as weak
from readtorch.c10.cuda.launch import blocks_of, launch

from .fill_kernel import filled
from .loops import THREADS
from .reduce_ops import LONG, converted
from .register_dispatch_key import cuda_kernel, empty, operator_named
from .repeat import INT
from .rows import contiguous


def search(sequence, sorter, values, right, out):
    """out[r, i]: the place of values[r, i] in the r-th sorted row, or in the only one there is. All contiguous
    matrices; sorter (int64): the order that sorts the rows, or None."""
    if out.size:
        launch(
            search_kernel(sorter is not None, right),
            blocks_of(out.size, THREADS),
            THREADS,
            sequence,
            sequence if sorter is None else sorter,
            values,
            out,
        )


@functools.cache
def search_kernel(has_sorter, right):
    def search(sequence, sorter, values, out):
        columns = values.shape[1]
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            r, v = i // columns, values[i // columns, i % columns]
            row = r if sequence.shape[0] > 1 else 0
            begin, end = 0, sequence.shape[1]
            while begin < end:
                middle = (begin + end) // 2
                e = sequence[row, sorter[row, middle] if has_sorter else middle]
                if e > v if right else e >= v:
                    end = middle
                else:
                    begin = middle + 1
            out[r, i % columns] = begin

    return search


@cuda_kernel(operator_named("searchsorted.Tensor"))
def searchsorted_cuda(sorted_sequence, self, out_int32, right, side, sorter):
    """The sorter's numbers stay unchecked: to look at them, the host would have to wait."""
    check_search(sorted_sequence._array, self._array, right, side, None)
    common = result_type(sorted_sequence, self).numpy
    result = empty(self._array.shape, INT if out_int32 else LONG)
    rows = math.prod(sorted_sequence._array.shape[:-1])
    if result._array.size:
        sequence, values, out = (
            contiguous(t._array).reshape(rows, -1)
            for t in (converted(sorted_sequence, common), converted(self, common), result)
        )
        order = None if sorter is None else contiguous(sorter._array).reshape(rows, -1)
        search(sequence, order, values, right or side == "right", out)
    return result


@cuda_kernel(operator_named("searchsorted.Scalar"))
def searchsorted_number_cuda(sorted_sequence, self, out_int32, right, side, sorter):
    value = on_device(self, result_type(sorted_sequence, weak(self)))
    return searchsorted_cuda(sorted_sequence, value, out_int32, right, side, sorter)


def on_device(number, dtype):
    return filled(empty((), dtype.numpy), number)


@cuda_kernel(operator_named("bucketize.Tensor"))
def bucketize_cuda(self, boundaries, out_int32, right):
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted_cuda(boundaries, self, out_int32, right, None, None)


@cuda_kernel(operator_named("bucketize.Scalar"))
def bucketize_number_cuda(self, boundaries, out_int32, right):
    value = on_device(self, result_type(boundaries, weak(self)))
    return bucketize_cuda(value, boundaries, out_int32, right)
