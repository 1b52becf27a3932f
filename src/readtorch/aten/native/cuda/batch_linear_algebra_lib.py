"""Factors of matrices, one block for each: Cholesky, LU, QR, and eigenvalues and singular values by Jacobi's
rotations.

    cholesky(a, info)                    a becomes L below and on its diagonal
    lu(a, pivots, info)                  a becomes L (below, without its ones) and U; rows are exchanged
    exchange(pivots, b, backwards)       the same exchanges for the rows of b
    solve_triangular(a, b, upper, unit)  b becomes X with A X = B
    qr(a, taus), orthogonal(a, taus, q)  a becomes R and the reflections below it; q becomes Q
    eigh(a, v)                           a becomes diagonal, v (a unit matrix) its eigenvectors: columns
    svd(a, v)                            the columns of a become orthogonal: A V

Arrays are (matrices, rows, columns) of float32 or float64, with any strides. info (int32): 0, or the number, counted
from 1, of the first pivot that was not positive (Cholesky) or was zero (LU).

Note [ One block for a matrix ]
All steps of these algorithms but the innermost depend on one another: column after column is finished, and what is
right of it brought up to date. So a block takes a matrix of the stack, its threads share a step's work, and a barrier
ends the step. That fills a chip if there are many matrices. A large one needs the tiled forms, in which most of the
work is matrix products.

Note [ Rotations side by side ]
A rotation of two rows and columns makes one element outside the diagonal zero; the next ones spoil it a little, but
after a few sweeps over all pairs nothing is left. Rotations of disjoint pairs are independent: n / 2 of them are done
at a time, each by its own thread. The pairs of a round are those of a tournament: one player stays, the others move on
by one seat, and after n - 1 rounds everybody has met everybody.

In PyTorch: `aten/src/ATen/native/cuda/linalg/BatchLinearAlgebraLib.cpp`, which calls cuSOLVER and cuBLAS.
"""

import functools
import math

import numpy as np
from numba import cuda

from readtorch.c10.cuda.launch import launch

from .block_reduce import block_max, block_sum

THREADS = 64


def cholesky(a, info):
    each_matrix(cholesky_kernel, a, info)


def lu(a, pivots, info):
    """pivots (matrices, steps), int32, counted from 1: the row that each step's row was exchanged with."""
    each_matrix(lu_kernel(a.dtype.type), a, pivots, info)


def exchange(pivots, b, backwards=False):
    each_matrix(exchange_kernel, b, pivots, int(backwards))


def solve_triangular(a, b, upper, unit=False):
    each_matrix(triangular_kernel(upper, unit), b, a)


def qr(a, taus):
    each_matrix(reflect_kernel(a.dtype.type), a, taus)


def orthogonal(a, taus, q):
    """q begins as the columns of a unit matrix."""
    each_matrix(orthogonal_kernel, q, a, taus)


def each_matrix(kernel, a, *arguments):
    if a.size:
        launch(kernel, min(a.shape[0], 65535), THREADS, a, *arguments)


def cholesky_kernel(a, info):
    t, step, n = cuda.threadIdx.x, cuda.blockDim.x, a.shape[1]
    for z in range(cuda.blockIdx.x, a.shape[0], cuda.gridDim.x):
        for k in range(n):
            if t == 0:
                if not a[z, k, k] > 0 and info[z] == 0:
                    info[z] = k + 1
                a[z, k, k] = math.sqrt(a[z, k, k])
            cuda.syncthreads()
            for i in range(k + 1 + t, n, step):
                a[z, i, k] /= a[z, k, k]
            cuda.syncthreads()
            rest = n - k - 1
            for e in range(t, rest * rest, step):
                i, j = k + 1 + e // rest, k + 1 + e % rest
                if j <= i:
                    a[z, i, j] -= a[z, i, k] * a[z, j, k]
            cuda.syncthreads()


@functools.cache
def lu_kernel(dtype):
    def lu(a, pivots, info):
        shared, place = cuda.shared.array(32, dtype), cuda.shared.array(1, np.int32)
        t, step, rows, columns = cuda.threadIdx.x, cuda.blockDim.x, a.shape[1], a.shape[2]
        for z in range(cuda.blockIdx.x, a.shape[0], cuda.gridDim.x):
            for k in range(min(rows, columns)):
                own = dtype(-1)
                for i in range(k + t, rows, step):
                    own = max(own, abs(a[z, i, k]))
                if t == 0:
                    place[0] = rows
                largest = block_max(own, shared, dtype(-1))
                for i in range(k + t, rows, step):
                    if abs(a[z, i, k]) == largest:
                        cuda.atomic.min(place, 0, i)
                cuda.syncthreads()
                p = min(place[0], rows - 1) if place[0] < rows else k
                if t == 0:
                    pivots[z, k] = p + 1
                    if largest == dtype(0) and info[z] == 0:
                        info[z] = k + 1
                if p != k:
                    for j in range(t, columns, step):
                        a[z, k, j], a[z, p, j] = a[z, p, j], a[z, k, j]
                cuda.syncthreads()
                if largest != dtype(0):
                    for i in range(k + 1 + t, rows, step):
                        a[z, i, k] /= a[z, k, k]
                cuda.syncthreads()
                across = columns - k - 1
                for e in range(t, (rows - k - 1) * across, step):
                    i, j = k + 1 + e // across, k + 1 + e % across
                    a[z, i, j] -= a[z, i, k] * a[z, k, j]
                cuda.syncthreads()

    return lu


def exchange_kernel(b, pivots, backwards):
    """A thread has whole columns to itself: no barrier. A pivot that names no row is passed over."""
    steps = pivots.shape[1]
    for z in range(cuda.blockIdx.x, b.shape[0], cuda.gridDim.x):
        for j in range(cuda.threadIdx.x, b.shape[2], cuda.blockDim.x):
            for s in range(steps):
                k = steps - 1 - s if backwards != 0 else s
                p = pivots[z, k] - 1
                if p != k and 0 <= p < b.shape[1]:
                    b[z, k, j], b[z, p, j] = b[z, p, j], b[z, k, j]


@functools.cache
def triangular_kernel(upper, unit):
    """Row after row of X is known, and taken out of the rows that are not."""

    def solve(b, a):
        t, step, n, columns = cuda.threadIdx.x, cuda.blockDim.x, a.shape[1], b.shape[2]
        for z in range(cuda.blockIdx.x, b.shape[0], cuda.gridDim.x):
            for s in range(n):
                k = n - 1 - s if upper else s
                if not unit:
                    for j in range(t, columns, step):
                        b[z, k, j] /= a[z, k, k]
                cuda.syncthreads()
                first = 0 if upper else k + 1
                for e in range(t, (n - s - 1) * columns, step):
                    i, j = first + e // columns, e % columns
                    b[z, i, j] -= a[z, i, k] * b[z, k, j]
                cuda.syncthreads()

    return solve


@functools.cache
def reflect_kernel(dtype):
    """Householder: column k is reflected onto a multiple of the k-th unit vector. The reflection is
    I - tau v vᵀ; v begins with 1, which is left out, and its rest stays where zeros would be."""

    def reflect(a, taus):
        shared = cuda.shared.array(32, dtype)
        t, step, rows, columns = cuda.threadIdx.x, cuda.blockDim.x, a.shape[1], a.shape[2]
        for z in range(cuda.blockIdx.x, a.shape[0], cuda.gridDim.x):
            for k in range(min(rows, columns)):
                own = dtype(0)
                for i in range(k + 1 + t, rows, step):
                    own += a[z, i, k] * a[z, i, k]
                below, head = block_sum(own, shared, dtype(0)), a[z, k, k]
                length = math.sqrt(head * head + below)
                beta = -length if head > dtype(0) else length
                tau = (beta - head) / beta if below > dtype(0) else dtype(0)
                cuda.syncthreads()
                if tau != dtype(0):
                    for i in range(k + 1 + t, rows, step):
                        a[z, i, k] /= head - beta
                if t == 0:
                    taus[z, k] = tau
                    if tau != dtype(0):
                        a[z, k, k] = beta
                cuda.syncthreads()
                for j in range(k + 1 + t, columns, step):
                    reflect_column(a, z, k, tau, a, j)
                cuda.syncthreads()

    return reflect


def reflect_column(a, z, k, tau, b, j):
    """The k-th reflection of column j of b."""
    total = b[z, k, j]
    for i in range(k + 1, a.shape[1]):
        total += a[z, i, k] * b[z, i, j]
    total *= tau
    b[z, k, j] -= total
    for i in range(k + 1, a.shape[1]):
        b[z, i, j] -= a[z, i, k] * total


def orthogonal_kernel(q, a, taus):
    """Q e_j: the reflections of a unit vector, the last one first. A thread has whole columns to itself."""
    for z in range(cuda.blockIdx.x, q.shape[0], cuda.gridDim.x):
        for j in range(cuda.threadIdx.x, q.shape[2], cuda.blockDim.x):
            for k in range(taus.shape[1] - 1, -1, -1):
                reflect_column(a, z, k, taus[z, k], q, j)


SWEEPS = 16


def eigh(a, v):
    each_matrix(eigh_kernel(a.dtype.type), a, v)


def svd(a, v):
    each_matrix(svd_kernel(a.dtype.type), a, v)


def player(seat, round_, players):
    """Who sits there: seat 0 never changes."""
    return 0 if seat == 0 else 1 + (seat - 1 + round_) % (players - 1)


def pair_of(i, round_, players):
    """The i-th pair of a round, the smaller number first."""
    p, q = player(i, round_, players), player(players - 1 - i, round_, players)
    return min(p, q), max(p, q)


@functools.cache
def rotation(dtype):
    def angle(p, q, between):
        """(cosine, sine) of the rotation after which what lies between two diagonal elements p, q is zero."""
        if between == dtype(0):
            return dtype(1), dtype(0)
        theta = (q - p) / (dtype(2) * between)
        t = dtype(1) / (abs(theta) + math.sqrt(theta * theta + dtype(1)))
        t = -t if theta < dtype(0) else t
        c = dtype(1) / math.sqrt(t * t + dtype(1))
        return c, t * c

    return angle


def rotate(a, z, i, p, q, c, s):
    """Rotate columns p and q in row i."""
    x, y = a[z, i, p], a[z, i, q]
    a[z, i, p], a[z, i, q] = c * x - s * y, s * x + c * y


@functools.cache
def eigh_kernel(dtype):
    angle = rotation(dtype)

    def eigh(a, v):
        n, t, step = a.shape[1], cuda.threadIdx.x, cuda.blockDim.x
        players = n + n % 2
        for z in range(cuda.blockIdx.x, a.shape[0], cuda.gridDim.x):
            for turns in range(SWEEPS * (players - 1)):
                for i in range(t, players // 2, step):
                    p, q = pair_of(i, turns, players)
                    if q < n:
                        c, s = angle(a[z, p, p], a[z, q, q], a[z, p, q])
                        v[z, n, p], v[z, n, q] = c, s  # a row more, for the angles
                cuda.syncthreads()
                for e in range(t, players // 2 * n, step):
                    p, q = pair_of(e // n, turns, players)
                    if q < n:
                        c, s = v[z, n, p], v[z, n, q]
                        rotate(a, z, e % n, p, q, c, s)
                        rotate(v, z, e % n, p, q, c, s)
                cuda.syncthreads()
                for e in range(t, players // 2 * n, step):
                    p, q = pair_of(e // n, turns, players)
                    if q < n:
                        c, s, j = v[z, n, p], v[z, n, q], e % n
                        x, y = a[z, p, j], a[z, q, j]
                        a[z, p, j], a[z, q, j] = c * x - s * y, s * x + c * y
                cuda.syncthreads()

    return eigh


@functools.cache
def svd_kernel(dtype):
    angle = rotation(dtype)

    def svd(a, v):
        rows, n, t, step = a.shape[1], a.shape[2], cuda.threadIdx.x, cuda.blockDim.x
        players = n + n % 2
        for z in range(cuda.blockIdx.x, a.shape[0], cuda.gridDim.x):
            for turns in range(SWEEPS * (players - 1)):
                for i in range(t, players // 2, step):
                    p, q = pair_of(i, turns, players)
                    if q < n:
                        pp, qq, pq = dtype(0), dtype(0), dtype(0)
                        for r in range(rows):
                            x, y = a[z, r, p], a[z, r, q]
                            pp, qq, pq = pp + x * x, qq + y * y, pq + x * y
                        c, s = angle(pp, qq, pq)
                        for r in range(rows):
                            rotate(a, z, r, p, q, c, s)
                        for r in range(n):
                            rotate(v, z, r, p, q, c, s)
                cuda.syncthreads()

    return svd
