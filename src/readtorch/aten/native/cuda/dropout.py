"""dropout: a random mask of bools, by which the input is multiplied and scaled.

In PyTorch: `aten/src/ATen/native/cuda/Dropout.cu`.
"""

import functools

from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native.dropout import numbers_a_thread, order_in_memory
from readtorch.aten.native.tensor_advanced_indexing.index import BOOL
from readtorch.aten.native.tensor_iterator import WIDENED
from readtorch.c10.cuda.cuda_generator_impl import default_engines
from readtorch.c10.cuda.launch import launch
from readtorch.c10.device import current_device

from .copy import clone_cuda
from .distribution_kernels import most_blocks, state_for
from .distribution_templates import MOST_BLOCKS, THREADS, grid_of, u64, unit
from .fill_kernel import filled
from .loops import pointwise
from .philox_rng_engine import philox, philox_args, unpack
from .reduce_ops import converted
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named
from .rows import flat


def dropout(state, x, p, out, mask, most_blocks=MOST_BLOCKS, vector=1):
    """out = x · mask / (1 - p), where mask (bool) is 1 with probability 1 - p. All contiguous, 0 < p < 1.

    vector: how many neighbours a thread takes (`numbers_a_thread`).
    """
    if x.size:
        keep = x.dtype.type(1 - p)
        kernel = dropout_kernel if vector == 1 else dropout_vector_kernel(vector)
        launch(
            kernel,
            grid_of(x.size, most_blocks),
            THREADS,
            philox_args(state),
            flat(x),
            keep,
            x.dtype.type(1) / keep,
            out.reshape(-1),
            mask.reshape(-1),
        )


def dropout_backward(grad, mask, scale, out):
    """grad · mask · scale"""
    pointwise(masked_scale, [grad, mask], out, (grad.dtype.type(scale),))


def masked_scale(grad, kept, scalars):
    return grad * scalars[0] if kept else type(grad)(0)


@functools.cache
def dropout_vector_kernel(vector):
    """A thread takes neighbouring elements: four numbers for each four of them. Of two it takes two, and drops the others."""

    def dropout(state, x, keep, scale, out, mask):
        seed, offset = unpack(state)
        thread, step = cuda.grid(1), cuda.gridsize(1)
        count = u64(offset // u64(4))
        for first in range(thread * vector, x.size, step * vector):
            for four in range(first, first + vector, 4):
                numbers = philox(seed, u64(thread), count)
                count += u64(1)
                for k in range(min(vector, 4)):
                    kept = unit(numbers[k]) < keep
                    mask[four + k] = kept
                    out[four + k] = x[four + k] * scale if kept else type(scale)(0)

    return dropout


def dropout_kernel(state, x, keep, scale, out, mask):
    """Elements a grid apart, where they are not side by side or their number is odd."""
    seed, offset = unpack(state)
    thread, step = cuda.grid(1), cuda.gridsize(1)
    count = u64(offset // u64(4))
    for first in range(thread, x.size, 4 * step):
        numbers = philox(seed, u64(thread), count)
        count += u64(1)
        for k in range(4):
            i = first + k * step
            if i < x.size:
                kept = unit(numbers[k]) < keep
                mask[i] = kept
                out[i] = x[i] * scale if kept else type(scale)(0)


@cuda_kernel(operator_named("native_dropout"))
def native_dropout_cuda(input, p, train):
    """The result, and a mask of what was kept. One kernel draws, scales and writes both, in the order of memory."""
    order, back = order_in_memory(input._array)
    mask = at.permute(empty([input._array.shape[d] for d in order], BOOL), back)
    if train is False or p == 0 or p == 1 or not input._array.size:
        kept = train is False or p == 0
        return (clone_cuda(input, None) if kept else at.zeros_like(input)), filled(mask, kept)
    x = converted(at.permute(input, order), WIDENED.get(input._array.dtype, input._array.dtype))
    out = empty(x._array.shape, x._array.dtype)
    state, vector = state_for(default_engines[current_device.index], x._array.size, 4), numbers_a_thread(input)
    dropout(state, x._array, p, out._array, at.permute(mask, order)._array, most_blocks(), vector)
    return at.permute(converted(out, input._array.dtype), back), mask


@cuda_impl(operator_named("native_dropout_backward"))
def native_dropout_backward_cuda(grad_output, mask, scale, out):
    dropout_backward(grad_output._array, mask._array, scale, out._array)
