"""searchsorted and bucketize: a binary search for each value.

    search(sequence, sorter, values, right, out)

Grid: blocks of 256 threads with a grid-stride loop, a thread for each value.

In PyTorch: `aten/src/ATen/native/cuda/Bucketization.cu`.
"""

import functools
import math

from numba import cuda

from readtorch.aten.native.tensor_iterator import result_type
from readtorch.aten.native.tensor_iterator import scalar_tensor as weak
from readtorch.c10.cuda.launch import blocks_of, launch

from .fill_kernel import filled
from .loops import THREADS
from .reduce_ops import converted
from .register_dispatch_key import cuda_impl, empty, operator_named
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


@cuda_impl(operator_named("searchsorted.Tensor"))
def searchsorted_cuda(sorted_sequence, self, out_int32, right, side, sorter, out):
    """The sorter's numbers stay unchecked: to look at them, the host would have to wait."""
    if not out._array.size:
        return
    common = result_type(sorted_sequence, self).numpy
    rows = math.prod(sorted_sequence._array.shape[:-1])
    sequence, values = (contiguous(converted(t, common)._array).reshape(rows, -1) for t in (sorted_sequence, self))
    order = None if sorter is None else contiguous(sorter._array).reshape(rows, -1)
    search(sequence, order, values, right or side == "right", out._array.reshape(rows, -1))


@cuda_impl(operator_named("searchsorted.Scalar"))
def searchsorted_number_cuda(sorted_sequence, self, out_int32, right, side, sorter, out):
    searchsorted_cuda(sorted_sequence, on_device(self, sorted_sequence), out_int32, right, side, sorter, out)


def on_device(number, beside):
    return filled(empty((), result_type(beside, weak(number)).numpy), number)


@cuda_impl(operator_named("bucketize.Tensor"))
def bucketize_cuda(self, boundaries, out_int32, right, out):
    searchsorted_cuda(boundaries, self, out_int32, right, None, None, out)


@cuda_impl(operator_named("bucketize.Scalar"))
def bucketize_number_cuda(self, boundaries, out_int32, right, out):
    bucketize_cuda(on_device(self, boundaries), boundaries, out_int32, right, out)
