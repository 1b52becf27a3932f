"""softmax and log_softmax over one dimension, forward and backward.

    softmax(x, dim, out, log=False)      softmax_backward(grad, y, dim, out, log=False)

Grid: one block for each row (a grid-stride loop where there are more than 65535); block: whole warps, up to
256 threads, or one warp for rows of at most 32. A row is read three times: its maximum, the sum of its
exponentials, the result; the second and third time it is in the cache. A dimension that is not the last one
is read with the stride that it has. Sums are float32.

In PyTorch: `aten/src/ATen/native/cuda/SoftMax.cu`, `aten/src/ATen/native/cuda/PersistentSoftmax.cuh`.
"""

import functools
import math

import numpy as np
from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native.tensor_iterator import WIDENED, not_implemented
from readtorch.aten.native.transformers import transformer as layers
from readtorch.c10.cuda.launch import launch
from readtorch.c10.tensor_impl import dtype_of

from .block_reduce import block_max, block_sum, whole_warps
from .reduce_ops import converted, store
from .register_dispatch_key import cuda_impl, cuda_kernel, operator_named
from .rows import as_rows, flat


def softmax(x, dim, out, log=False):
    """x, out: one shape, any strides, float32 or float64."""
    if out.size == 0:
        return
    x, out = as_rows(x, dim), as_rows(out, dim)
    grid, block = min(x.shape[0] * x.shape[2], 65535), whole_warps(x.shape[1])
    launch(forward_kernel(log, x.dtype.type), grid, block, x, out)


def softmax_backward(grad, y, dim, out, log=False):
    """grad: of the result y."""
    if out.size == 0:
        return
    grad, y, out = as_rows(grad, dim), as_rows(y, dim), as_rows(out, dim)
    grid, block = min(y.shape[0] * y.shape[2], 65535), whole_warps(y.shape[1])
    launch(backward_kernel(log, y.dtype.type), grid, block, grad, y, out)


@functools.cache
def forward_kernel(log, dtype):
    """Arrays (outer, n, inner): the rows lie along the second dimension."""
    result = logarithm if log else quotient
    lowest = dtype(-np.inf)

    def forward(x, out):
        shared = cuda.shared.array(32, dtype)
        n, inner = x.shape[1], x.shape[2]
        for r in range(cuda.blockIdx.x, x.shape[0] * inner, cuda.gridDim.x):
            i, j = r // inner, r % inner
            largest, total = lowest, dtype(0)
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                v = x[i, k, j]
                largest = v if v > largest or v != v else largest
            largest = block_max(largest, shared, lowest)
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                total += math.exp(x[i, k, j] - largest)
            total = block_sum(total, shared, dtype(0))
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                out[i, k, j] = result(x[i, k, j] - largest, total)

    return forward


def quotient(shifted, total):
    return math.exp(shifted) / total


def logarithm(shifted, total):
    return shifted - math.log(total)


@functools.cache
def backward_kernel(log, dtype):
    """y (grad - Σ grad y), or grad - exp(y) Σ grad for the logarithm."""
    weight, gradient = (one, log_gradient) if log else (itself, plain_gradient)

    def backward(grad, y, out):
        shared = cuda.shared.array(32, dtype)
        n, inner = y.shape[1], y.shape[2]
        for r in range(cuda.blockIdx.x, y.shape[0] * inner, cuda.gridDim.x):
            i, j = r // inner, r % inner
            total = dtype(0)
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                total += grad[i, k, j] * weight(y[i, k, j])
            total = block_sum(total, shared, dtype(0))
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                out[i, k, j] = gradient(grad[i, k, j], y[i, k, j], total)

    return backward


def itself(y):
    return y


def one(y):
    return type(y)(1)


def plain_gradient(grad, y, total):
    return y * (grad - total)


def log_gradient(grad, y, total):
    return grad - math.exp(y) * total


def wide(t):
    """The tensor in the dtype to compute in: float32 for 16-bit floats."""
    return None if t is None else converted(t, WIDENED.get(t._array.dtype, t._array.dtype))


def row(t):
    """A parameter as one contiguous row, or None."""
    return None if t is None else flat(wide(t)._array)


def softmax_of(name, log):
    @cuda_impl(operator_named(f"_{name}"))
    def forward(self, dim, half_to_float, out):
        if not dtype_of(self).is_floating_point:
            raise not_implemented(f"{name}_cuda")(dtype_of(self))
        x = wide(self)._array
        store(lambda array: softmax(x, dim, array, log), out, x.dtype)

    @cuda_impl(operator_named(f"_{name}_backward_data"))
    def backward(grad_output, output, dim, input_dtype, out):
        grad, y = wide(grad_output)._array, wide(output)._array
        store(lambda array: softmax_backward(grad, y, dim, array, log), out, y.dtype)


softmax_of("softmax", log=False)
softmax_of("log_softmax", log=True)


@cuda_kernel(operator_named("_masked_softmax"))
def masked_softmax_cuda(self, mask, dim, mask_type):
    """softmax over what the mask does not hide. A row that is hidden as a whole gives nan."""
    mask = layers.mask_of_scores(self, mask, mask_type)
    if not dtype_of(self).is_floating_point:
        raise not_implemented("masked_softmax")(dtype_of(self))
    return at.softmax(self.masked_fill(mask, -math.inf), -1 if dim is None else dim)


@cuda_kernel(operator_named("_masked_softmax_backward"))
def masked_softmax_backward_cuda(grad_output, output, mask, dim):
    layers.masked_softmax_backward_meta(grad_output, output, mask, dim)
    grad = at._softmax_backward_data(grad_output, output, -1 if dim is None else dim, output.dtype)
    return grad.masked_fill(mask, 0)
