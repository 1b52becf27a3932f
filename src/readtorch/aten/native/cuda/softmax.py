"""softmax and log_softmax over one dimension, forward and backward.

    softmax(x, dim, out, log=False)      softmax_backward(grad, y, dim, out, log=False)

A row of up to 16384 elements that lie side by side stays in registers: Note [ A row in registers ] in persistent_softmax.py.
Longer ones are walked along twice, in slices (Note [ A row in slices ] there), and so are those whose elements lie apart, one
element after the other.

Note [ Softmax in one pass ]
The maximum and the sum of exponentials are found together. While x₀, x₁, … are met, m is the greatest so far and s the sum of
exp(xᵢ - m); a greater m' multiplies s by exp(m - m'). Two such pairs combine in the same way, whoever found them. m begins at
the lowest finite number, so that no difference of two infinities arises: where all are -inf, s stays 0; the result is nan, as
it is where one is nan or +inf.

A row along the last dimension is a block's, whose threads combine their pairs. Rows along another one lie side by side:
each is a thread's, so that neighbours read neighbours (`down`); where there are few of them, they are the blocks' as well.
Sums are float32.

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

from .block_reduce import WARP, block_max, block_sum, greater, plus, whole_warps
from .memory_access import load, store
from .offset_calculator import laid_out
from .persistent_softmax import bounded, launch_rows, launch_slices, of_block, row_functions, share_of, slices_of
from .reduce_ops import converted
from .reduce_ops import store as store_in
from .register_dispatch_key import cuda_impl, cuda_kernel, operator_named
from .rows import as_rows, flat


def softmax(x, dim, out, log=False):
    """x, out: one shape, any strides, float32 or float64."""
    if out.size:
        kernels = forward_in_registers, forward_in_slices, forward_kernel
        over_rows(kernels, log, [as_rows(x, dim), as_rows(out, dim)])


def softmax_backward(grad, y, dim, out, log=False):
    """grad: of the result y."""
    if out.size:
        kernels = backward_in_registers, backward_in_slices, backward_kernel
        over_rows(kernels, log, [as_rows(a, dim) for a in (grad, y, out)])


def over_rows(kernels, log, arrays):
    """arrays: (outer, n, inner), rows along the second dimension."""
    outer, n, inner = arrays[0].shape
    if inner == 1 and (n == 1 or all(a.strides[1] == a.itemsize for a in arrays)):
        over_close_rows(*kernels[:2], log, [a[:, :, 0] for a in arrays])
    else:
        flat_arrays, steps = zip(*map(laid_out, arrays))
        down = inner >= WARP
        grid, threads = (-(-inner // DOWN_THREADS), DOWN_THREADS) if down else (inner, whole_warps(n, 512))
        made = kernels[2](log, arrays[0].dtype.type, down)
        launch(made, (grid, min(outer, 65535)), threads, *flat_arrays, arrays[0].shape, steps)


def over_close_rows(in_registers, in_slices, log, arrays):
    """arrays: (rows, n), the elements of a row side by side."""
    rows, n = arrays[0].shape
    dtype, share = arrays[0].dtype.type, share_of(n, *arrays)
    flat_arrays, steps = zip(*map(laid_out, arrays))
    arguments = *flat_arrays, rows, n, tuple(step[0] for step in steps)
    if share is None:
        launch_slices(in_slices(log, dtype, slices_of(n, *arrays)), rows, *arguments)
    else:
        launch_rows(in_registers(log, dtype, share), share, rows, n, *arguments)


# ----------------------------------------------------------------------------------------------- rows in registers


@functools.cache
def forward_in_registers(log, dtype, share):
    row, own, lowest = row_functions(share), share.elements, dtype(-np.inf)
    result, first_row, rows_apart, load_share, store_share = shifted if log else exponential, *row[:2], *row[3:5]
    max_of_row, sum_of_row = row.across(greater), row.across(plus)

    def forward(x, out, rows, n, steps):
        shared = cuda.shared.array(32, dtype)
        v = cuda.local.array(own, dtype)
        for r in range(first_row(), rows, rows_apart()):
            load_share(x, r * steps[0], n, v, lowest)
            largest, total = lowest, dtype(0)
            for e in range(own):
                largest = greater(v[e], largest)
            largest = max_of_row(largest, shared, lowest)
            for e in range(own):
                power = math.exp(v[e] - largest)
                total += power
                v[e] = result(v[e] - largest, power)
            factor = scale(log, sum_of_row(total, shared, dtype(0)))
            for e in range(own):
                v[e] = v[e] - factor if log else v[e] * factor
            store_share(out, r * steps[1], n, v)

    return bounded(forward, share)


def shifted(difference, power):
    return difference


def exponential(difference, power):
    return power


def scale(log, total):
    """What a row is divided by, or for logarithms, what is taken from it."""
    return math.log(total) if log else type(total)(1) / total


@functools.cache
def backward_in_registers(log, dtype, share):
    row, own = row_functions(share), share.elements
    weight, gradient = (one, log_gradient) if log else (itself, plain_gradient)
    first_row, rows_apart, load_share, store_share = *row[:2], *row[3:5]
    sum_of_row = row.across(plus)

    def backward(grad, y, out, rows, n, steps):
        shared = cuda.shared.array(32, dtype)
        g, v = cuda.local.array(own, dtype), cuda.local.array(own, dtype)
        for r in range(first_row(), rows, rows_apart()):
            load_share(grad, r * steps[0], n, g, dtype(0))
            load_share(y, r * steps[1], n, v, dtype(0))
            total = dtype(0)
            for e in range(own):
                total += g[e] * weight(v[e])
            total = sum_of_row(total, shared, dtype(0))
            for e in range(own):
                g[e] = gradient(g[e], v[e], total)
            store_share(out, r * steps[2], n, g)

    return bounded(backward, share)


# ------------------------------------------------------------------------------------------------------- long rows


def lowest_finite(dtype):
    return dtype(np.finfo(dtype).min)


@functools.cache
def across_block(dtype):
    """(largest, total) of a block out of its threads' pairs."""
    lowest = lowest_finite(dtype)

    def join(largest, total, shared):
        most = block_max(largest, shared, lowest)
        return most, block_sum(total * math.exp(largest - most), shared, dtype(0))

    return join


@functools.cache
def forward_in_slices(log, dtype, share):
    row, own, join = row_functions(share), share.elements, across_block(dtype)
    first_row, rows_apart, load_share, store_share, slice_ = *row[:2], *row[3:5], row.slice
    lowest, infinite = lowest_finite(dtype), dtype(np.inf)

    def forward(x, out, rows, n, steps):
        shared = cuda.shared.array(32, dtype)
        v = cuda.local.array(own, dtype)
        for r in range(first_row(), rows, rows_apart()):
            largest, total, k = lowest, dtype(0), 0
            while k < n:
                load_share(x, r * steps[0] + k, n - k, v, -infinite)
                most = largest
                for e in range(own):
                    most = greater(v[e], most)
                total *= math.exp(largest - most)
                largest = most
                for e in range(own):
                    total += math.exp(v[e] - largest)
                k += slice_()
            largest, total = join(largest, total, shared)
            factor, k = scale(log, total if largest < infinite else dtype(np.nan)), 0
            while k < n:
                load_share(x, r * steps[0] + k, n - k, v, -infinite)
                for e in range(own):
                    v[e] = v[e] - largest - factor if log else math.exp(v[e] - largest) * factor
                store_share(out, r * steps[1] + k, n - k, v)
                k += slice_()

    return forward


@functools.cache
def backward_in_slices(log, dtype, share):
    row, own = row_functions(share), share.elements
    weight, gradient = (one, log_gradient) if log else (itself, plain_gradient)
    first_row, rows_apart, load_share, store_share, slice_ = *row[:2], *row[3:5], row.slice

    def backward(grad, y, out, rows, n, steps):
        shared = cuda.shared.array(32, dtype)
        g, v = cuda.local.array(own, dtype), cuda.local.array(own, dtype)
        for r in range(first_row(), rows, rows_apart()):
            total, k = dtype(0), 0
            while k < n:
                load_share(grad, r * steps[0] + k, n - k, g, dtype(0))
                load_share(y, r * steps[1] + k, n - k, v, dtype(0))
                for e in range(own):
                    total += g[e] * weight(v[e])
                k += slice_()
            total, k = block_sum(total, shared, dtype(0)), 0
            while k < n:
                load_share(grad, r * steps[0] + k, n - k, g, dtype(0))
                load_share(y, r * steps[1] + k, n - k, v, dtype(0))
                for e in range(own):
                    g[e] = gradient(g[e], v[e], total)
                store_share(out, r * steps[2] + k, n - k, g)
                k += slice_()

    return backward


# ------------------------------------------------------------------------------------------------------ rows elsewhere

DOWN_THREADS = 128


def met(largest, total, v):
    """The pair of Note [ Softmax in one pass ] after another element."""
    if v > largest:
        return v, total * math.exp(largest - v) + type(v)(1)
    return largest, total + math.exp(v - largest)


def alone(dtype):
    """`across_block` where a thread has the whole row."""
    return lambda largest, total, shared: (largest, total)


@functools.cache
def forward_kernel(log, dtype, down):
    """Arrays (outer, n, inner), with their strides: the rows lie along the second dimension. down: each is a thread's."""
    lowest, infinite = lowest_finite(dtype), dtype(np.inf)
    join = alone(dtype) if down else across_block(dtype)
    column, first, step = walk(down)

    def forward(x, out, shape, steps):
        shared = cuda.shared.array(32, dtype)
        j = column()
        for i in range(cuda.blockIdx.y, shape[0], cuda.gridDim.y):
            if j < shape[2]:
                source = i * steps[0][0] + j * steps[0][2]
                target = i * steps[1][0] + j * steps[1][2]
                largest, total = lowest, dtype(0)
                k = first()
                while k < shape[1]:
                    largest, total = met(largest, total, load(x, source + k * steps[0][1]))
                    k += step()
                largest, total = join(largest, total, shared)
                factor = scale(log, total if largest < infinite else dtype(np.nan))
                k = first()
                while k < shape[1]:
                    difference = load(x, source + k * steps[0][1]) - largest
                    y = difference - factor if log else math.exp(difference) * factor
                    store(out, target + k * steps[1][1], y)
                    k += step()

    return forward


def walk(down):
    """(the row's column, its first element for this thread, how far it is to the next one), as functions."""
    if down:
        return row_of_thread, zero, unity
    first_row, _, member, members = of_block()
    return first_row, member, members


def row_of_thread():
    return cuda.grid(1)


def zero():
    return 0


def unity():
    return 1


@functools.cache
def backward_kernel(log, dtype, down):
    """y (grad - Σ grad y), or grad - exp(y) Σ grad for the logarithm."""
    weight, gradient = (one, log_gradient) if log else (itself, plain_gradient)
    sum_of_row = own_value if down else block_sum
    column, first, step = walk(down)

    def backward(grad, y, out, shape, steps):
        shared = cuda.shared.array(32, dtype)
        j = column()
        for i in range(cuda.blockIdx.y, shape[0], cuda.gridDim.y):
            if j < shape[2]:
                at_grad, at_y = i * steps[0][0] + j * steps[0][2], i * steps[1][0] + j * steps[1][2]
                target = i * steps[2][0] + j * steps[2][2]
                total = dtype(0)
                k = first()
                while k < shape[1]:
                    total += load(grad, at_grad + k * steps[0][1]) * weight(load(y, at_y + k * steps[1][1]))
                    k += step()
                total = sum_of_row(total, shared, dtype(0))
                k = first()
                while k < shape[1]:
                    g, v = load(grad, at_grad + k * steps[0][1]), load(y, at_y + k * steps[1][1])
                    store(out, target + k * steps[2][1], gradient(g, v, total))
                    k += step()

    return backward


def own_value(value, shared, identity):
    return value


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
        store_in(lambda array: softmax(x, dim, array, log), out, x.dtype)

    @cuda_impl(operator_named(f"_{name}_backward_data"))
    def backward(grad_output, output, dim, input_dtype, out):
        grad, y = wide(grad_output)._array, wide(output)._array
        store_in(lambda array: softmax_backward(grad, y, dim, array, log), out, y.dtype)


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
