"""unique, of elements and of slices: sorted, compared with their neighbors, and counted.

    word_order(rows, order)                                the order that sorts the rows of a matrix

Grid: blocks of 256 threads with a grid-stride loop, a thread for each pair of rows.

In PyTorch: `aten/src/ATen/native/cuda/Unique.cu`.
"""

from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native.unique import check_rows
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.wrap_dim import wrap_dim

from .copy import clone_cuda
from .fill_kernel import filled
from .loops import THREADS
from .reduce_ops import LONG
from .register_dispatch_key import cuda_kernel, empty, here, operator_named, owned
from .sort import pair


def word_order(rows, order):
    """order (int64): 0, 1, 2 …, as many as a power of two; becomes the order of the rows of a matrix as words in
    a dictionary. See Note [ A sorting network ]."""
    length, k = order.size, 2
    while k <= length:
        j = k // 2
        while j > 0:
            launch(exchange_rows, blocks_of(length // 2, THREADS), THREADS, rows, order, k, j)
            j //= 2
        k *= 2


def power_of_two(n):
    """The least one from n on, but at least 2."""
    return 1 << max(1, (n - 1).bit_length())


def comes_before(rows, a, b):
    """Row a before row b; of equal rows the one that stands first. Rows that do not exist come last."""
    if a >= rows.shape[0] or b >= rows.shape[0]:
        return a < b
    for c in range(rows.shape[1]):
        x, y = rows[a, c], rows[b, c]
        if x < y or (y != y and x == x):
            return True
        if x > y or (x != x and y == y):
            return False
    return a < b


def exchange_rows(rows, order, k, j):
    """One step (k, j) of the network: each thread takes a pair."""
    for t in range(cuda.grid(1), order.size // 2, cuda.gridsize(1)):
        first = pair(t, j)
        a, b = order[first], order[first + j]
        if comes_before(rows, b, a) == (first & k == 0):
            order[first], order[first + j] = b, a


def grouped(ranked, order, is_new, return_inverse, return_counts):
    """(first row of each run, run of each row, lengths of the runs). ranked: the rows in `order`; is_new: does
    a run begin here?"""
    runs = is_new.cumsum(0) - 1
    inverse = counts = empty((0,), LONG)
    if return_inverse:
        inverse = at.scatter(empty(order._array.shape, LONG), 0, order, runs)
    values = ranked[is_new]
    if return_counts:
        counts = filled(empty(values._array.shape[:1], LONG), 0)
        counts.scatter_add_(0, runs, at.ones_like(runs))
    return values, inverse, counts


def begins_of(different):
    """Whether a run begins with each row, from whether each but the first differs from the one before."""
    return at.cat([at.ones((1,), dtype=different.dtype, device=here()), different])


def numbers_to(n):
    return at.arange(n, device=here())


def unique_elements(self, is_sorted, return_inverse, return_counts):
    flat = self.reshape(-1)
    if not flat._array.size:
        inverse = empty(self._array.shape if return_inverse else (0,), LONG)
        return clone_cuda(flat, None), inverse, empty((0,), LONG)
    ranked, order = (flat, numbers_to(flat._array.size)) if is_sorted else at.sort(flat)
    is_new = begins_of(at.ne(ranked[1:], ranked[:-1]))
    values, inverse, counts = grouped(ranked, order, is_new, return_inverse, return_counts)
    return values, owned(inverse.view(self._array.shape)) if return_inverse else inverse, counts


def unique_rows(self, dim, is_sorted, return_inverse, return_counts):
    dim = wrap_dim(dim, self._array.ndim)
    check_rows(self._array, dim)
    rows = self.movedim(dim, 0).contiguous()
    count = rows._array.shape[0]
    if not count:
        return clone_cuda(self, None), empty((0,), LONG), empty((0,), LONG)
    words = rows.view(count, -1)
    order = numbers_to(count) if is_sorted else order_of_words(words)
    ranked = words[order]
    is_new = begins_of(at.ne(ranked[1:], ranked[:-1]).any(1))
    _, inverse, counts = grouped(order, order, is_new, return_inverse, return_counts)
    values = rows.index_select(0, order[is_new]).movedim(0, dim)
    return owned(values), inverse, counts


def order_of_words(words):
    """A sorting network has a power of two of places; what fills them up comes last."""
    count = words._array.shape[0]
    order = numbers_to(power_of_two(count))
    word_order(words._array, order._array)
    return order[:count]


@cuda_kernel(operator_named("_unique2"))
def unique2_cuda(self, sorted, return_inverse, return_counts):
    return unique_elements(self, False, return_inverse, return_counts)


@cuda_kernel(operator_named("unique_dim"))
def unique_dim_cuda(self, dim, sorted, return_inverse, return_counts):
    return unique_rows(self, dim, False, return_inverse, return_counts)


@cuda_kernel(operator_named("unique_consecutive"))
def unique_consecutive_cuda(self, return_inverse, return_counts, dim):
    if dim is None:
        return unique_elements(self, True, return_inverse, return_counts)
    return unique_rows(self, dim, True, return_inverse, return_counts)
