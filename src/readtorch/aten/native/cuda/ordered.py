"""What sorted rows tell: where a value belongs, the k-th element, the median, the most frequent one; and rows
of a matrix in the order of a dictionary.

    search(sequence, sorter, values, right, out)           searchsorted
    pick(rank, x, dim, values, indices, numbers)           rank: kth, median, nanmedian or mode
    word_order(rows, order)                                the order that sorts the rows of a matrix
    repeat_indices(ends, out)                              0, 0, 1, 2, 2, 2 … by the running sum of the counts

Grid: blocks of 256 threads with a grid-stride loop: a thread for each value that is searched, each row, each
pair of rows.

In PyTorch: `aten/src/ATen/native/cuda/{Bucketization,Sorting,TensorModeKernel,Unique,Repeat}.cu`.
"""
import functools

from numba import cuda

from ....c10.cuda.launch import blocks_of, launch
from .rows import as_rows
from .sort import pair, sorted_rows

THREADS = 256


def search(sequence, sorter, values, right, out):
    """out[r, i]: the place of values[r, i] in the r-th sorted row, or in the only one there is. All contiguous
    matrices; sorter (int64): the order that sorts the rows, or None."""
    if out.size:
        launch(search_kernel(sorter is not None, right), blocks_of(out.size, THREADS), THREADS, sequence,
               sequence if sorter is None else sorter, values, out)


def pick(rank, x, dim, values, indices, numbers=(0,)):
    """Of each row the element that `rank(sorted row, length, numbers)` names, and its place. Both contiguous."""
    if values.size:
        length = as_rows(x, dim).shape[1]
        keys, places = sorted_rows(as_rows(x, dim), False)
        launch(pick_kernel(rank), blocks_of(values.size, THREADS), THREADS, keys, places, length, numbers,
               values.reshape(-1), indices.reshape(-1))


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


def repeat_indices(ends, out):
    """ends: the running sum of how often each index is repeated."""
    if out.size:
        launch(repeat_kernel, blocks_of(ends.size, THREADS), THREADS, ends, out)


# --------------------------------------------------------------------------- which element of a sorted row


def kth(row, n, numbers):
    """numbers: k, counted from 0."""
    return numbers[0]


def median(row, n, numbers):
    """The lower one of two in the middle; the first nan if there is one, and a nan comes last."""
    known = without_nans(row, n)
    return known if known < n else (n - 1) // 2


def nanmedian(row, n, numbers):
    return (max(1, without_nans(row, n)) - 1) // 2


def without_nans(row, n):
    """How many elements come before the first nan."""
    while n > 0 and row[n - 1] != row[n - 1]:
        n -= 1
    return n


def mode(row, n, numbers):
    """The end of the first among the longest runs of equal elements."""
    best, longest, begin = 0, 0, 0
    for i in range(n):
        if row[i] != row[begin]:
            begin = i
        if i - begin + 1 > longest:
            best, longest = i, i - begin + 1
    return best


# ---------------------------------------------------------------------------------------------------- kernels


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


@functools.cache
def pick_kernel(rank):
    def pick(keys, places, length, numbers, values, indices):
        for r in range(cuda.grid(1), values.size, cuda.gridsize(1)):
            k = rank(keys[r], length, numbers)
            values[r], indices[r] = keys[r, k], places[r, k]
    return pick


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


def repeat_kernel(ends, out):
    """Each index writes its own run."""
    for i in range(cuda.grid(1), ends.size, cuda.gridsize(1)):
        for place in range(ends[i - 1] if i > 0 else 0, ends[i]):
            out[place] = i
