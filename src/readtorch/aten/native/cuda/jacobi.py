"""Eigenvalues of symmetric matrices and singular values, by Jacobi's rotations.

    eigh(a, v)      a becomes diagonal, v (a unit matrix) its eigenvectors: columns
    svd(a, v)       the columns of a become orthogonal: A V

Note [ Rotations side by side ]
A rotation of two rows and columns makes one element outside the diagonal zero; the next ones spoil it a little,
but after a few sweeps over all pairs nothing is left. Rotations of disjoint pairs do not meet: n / 2 of them are
done at a time, each by its own thread. The pairs of a round are those of a tournament: one player stays, the
others move on by one seat, and after n - 1 rounds everybody has met everybody.

Grid: one block for a matrix, Note [ One block for a matrix ] in factors.py.

In PyTorch: `aten/src/ATen/native/cuda/linalg/BatchLinearAlgebraLib.cpp`: cuSOLVER's `syevj`, `gesvdj`.
"""
import functools
import math

from numba import cuda

from .factors import each_matrix

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


def turn(a, z, i, p, q, c, s):
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
                        turn(a, z, e % n, p, q, c, s)
                        turn(v, z, e % n, p, q, c, s)
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
                            turn(a, z, r, p, q, c, s)
                        for r in range(n):
                            turn(v, z, r, p, q, c, s)
                cuda.syncthreads()
    return svd
