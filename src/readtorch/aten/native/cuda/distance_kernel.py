"""Distances between the rows of matrices: cdist, pdist, and their gradients.

    cdist(x, y, p, out)                        x (batch, P, M), y (batch, R, M), out (batch, P, R)
    cdist_backward(grad, x, y, p, distances, out)
    pdist(x, p, out)                           x (N, M), out: row 0 - row 1, row 0 - row 2 … row 1 - row 2 …
    pdist_backward(grad, x, p, distances, out)

Grid: blocks of 256 threads with a grid-stride loop: forward a thread for each distance, backward one for
each element of x, which gathers what the distances of its row pull at it. The norm is one of five, each with
functions of its own: p = 0 (how many elements differ), 1, 2, inf, and any other.

In PyTorch: `aten/src/ATen/native/cuda/DistanceKernel.cu`.
"""

import functools
import math

from numba import cuda

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.native import distance as ops
from readtorch.aten.native.distance import check_cdist_types
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.tensor_impl import dtype_of

from .fill_kernel import fill
from .loops import THREADS
from .register_dispatch_key import cuda_impl
from .rows import contiguous


def cdist(x, y, p, out):
    run(cdist_kernel(kind_of(p)), out, contiguous(x), contiguous(y), out.dtype.type(p), out)


def cdist_backward(grad, x, y, p, distances, out):
    run(
        cdist_backward_kernel(kind_of(p)),
        out,
        contiguous(grad),
        contiguous(x),
        contiguous(y),
        out.dtype.type(p),
        contiguous(distances),
        out,
    )


def pdist(x, p, out):
    run(pdist_kernel(kind_of(p)), out, contiguous(x), out.dtype.type(p), out)


def pdist_backward(grad, x, p, distances, out):
    run(
        pdist_backward_kernel(kind_of(p)),
        out,
        contiguous(grad),
        contiguous(x),
        out.dtype.type(p),
        contiguous(distances),
        out,
    )


def run(kernel, result, *arguments):
    if result.size:
        launch(kernel, blocks_of(result.size, THREADS), THREADS, *arguments)


OTHER = -1.0  # in place of a p that has no functions of its own


def kind_of(p):
    return float(p) if p in (0, 1, 2, math.inf) else OTHER


@functools.cache
def norm(kind):
    """(add(total, |difference|, p), finish(total, p), slope(difference, length, p)) of a norm."""

    def add(total, size, p):
        if kind == 0:
            return total + type(size)(1) if size != type(size)(0) else total
        if kind == 1:
            return total + size
        if kind == 2:
            return total + size * size
        if kind == math.inf:
            return size if size > total or size != size else total
        return total + size**p

    def finish(total, p):
        if kind == 2:
            return math.sqrt(total)
        return total ** (type(p)(1) / p) if kind == OTHER else total

    def slope(difference, length, p):
        """The norm's derivative by one difference; 0 where that is 0, and where the rows are equal."""
        number = type(difference)
        sign = number(1) if difference > number(0) else number(-1) if difference < number(0) else number(0)
        if kind == 1:
            return sign
        if kind == math.inf:
            return sign if abs(difference) == length else number(0)
        if kind == 0 or length == number(0) or sign == number(0):
            return number(0)
        if kind == 2:
            return difference / length
        return sign * (abs(difference) / length) ** (p - number(1))

    return add, finish, slope


def place_in_triangle(i, j, n):
    """Where the distance of the rows i < j stands."""
    return i * n - i * (i + 1) // 2 + j - i - 1


@functools.cache
def cdist_kernel(kind):
    add, finish, _ = norm(kind)

    def distances(x, y, p, out):
        rows, columns = out.shape[1], out.shape[2]
        for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            b, i, j, total = e // (rows * columns), e // columns % rows, e % columns, type(p)(0)
            for k in range(x.shape[2]):
                total = add(total, abs(x[b, i, k] - y[b, j, k]), p)
            out[b, i, j] = finish(total, p)

    return distances


@functools.cache
def cdist_backward_kernel(kind):
    slope = norm(kind)[2]

    def backward(grad, x, y, p, distances, out):
        rows, width = out.shape[1], out.shape[2]
        for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            b, i, k, total = e // (rows * width), e // width % rows, e % width, type(p)(0)
            for j in range(y.shape[1]):
                total += grad[b, i, j] * slope(x[b, i, k] - y[b, j, k], distances[b, i, j], p)
            out[b, i, k] = total

    return backward


@functools.cache
def pdist_kernel(kind):
    add, finish, _ = norm(kind)

    def distances(x, p, out):
        n = x.shape[0]
        for pair in range(cuda.grid(1), n * n, cuda.gridsize(1)):
            i, j, total = pair // n, pair % n, type(p)(0)
            if i < j:
                for k in range(x.shape[1]):
                    total = add(total, abs(x[i, k] - x[j, k]), p)
                out[place_in_triangle(i, j, n)] = finish(total, p)

    return distances


@functools.cache
def pdist_backward_kernel(kind):
    slope = norm(kind)[2]

    def backward(grad, x, p, distances, out):
        n, width = x.shape
        for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            i, k, total = e // width, e % width, type(p)(0)
            for j in range(n):
                if j != i:
                    place = place_in_triangle(min(i, j), max(i, j), n)
                    total += grad[place] * slope(x[i, k] - x[j, k], distances[place], p)
            out[i, k] = total

    return backward


def batches(x1, x2):
    """Both as (batch, rows, columns), and the sizes of the batch dimensions."""
    batch = broadcast_shape(x1._array.shape[:-2], x2._array.shape[:-2])
    count = math.prod(batch)
    arrays = [contiguous(x.expand((*batch, *x._array.shape[-2:]))._array) for x in (x1, x2)]
    return [a.reshape(count, *a.shape[-2:]) for a in arrays], batch


@cuda_impl(ops._cdist_forward)
def cdist_cuda(x1, x2, p, compute_mode, out):
    check_cdist_types(x1, x2, "cdist_cuda")
    (a, b), _ = batches(x1, x2)
    fill(out._array, out._array.dtype.type(0))
    if a.shape[2]:
        cdist(a, b, p, out._array.reshape(len(a), a.shape[1], b.shape[1]))


@cuda_impl(ops._cdist_backward)
def cdist_backward_cuda(grad, x1, x2, p, cdist, out):
    (a, b), _ = batches(x1, x2)
    fill(out._array, out._array.dtype.type(0))
    if p != 0 and a.size and b.size:
        g, lengths = (contiguous(t._array).reshape(len(a), a.shape[1], b.shape[1]) for t in (grad, cdist))
        cdist_backward(g, a, b, p, lengths, out._array.reshape(a.shape))


@cuda_impl(ops._pdist_forward)
def pdist_cuda(self, p, out):
    if self._array.dtype.name not in ("float32", "float64"):
        raise not_implemented("pdist_cuda")(dtype_of(self))
    fill(out._array, out._array.dtype.type(0))
    if self._array.size:
        pdist(self._array, p, out._array)


@cuda_impl(ops._pdist_backward)
def pdist_backward_cuda(grad, self, p, pdist, out):
    fill(out._array, out._array.dtype.type(0))
    if p != 0:
        pdist_backward(grad._array, self._array, p, pdist._array, out._array)
