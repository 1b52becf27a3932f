"""multinomial with replacement: a place in the running sums of the probabilities for each number drawn.

    sample(state, ends, probabilities, out)

Grid: (blocks of 128 threads for the samples, distributions). A thread keeps drawing while it goes from one
distribution to the next; of the four numbers of an evaluation it uses one.

In PyTorch: `aten/src/ATen/native/cuda/MultinomialKernel.cu` (`sampleMultinomialWithReplacement`).
"""
import numpy as np
from numba import cuda

from ....c10.cuda.launch import launch
from .distributions import unit
from .philox import philox

THREADS, MOST_ROWS = 128, 65535
u64 = np.uint64


def draws_used(rows):
    return ((rows - 1) // min(rows, MOST_ROWS) + 1) * 4


def sample(state, ends, probabilities, out):
    """ends, probabilities (rows, categories): running sums of rows that sum to 1. out (rows, samples): int64."""
    rows, samples = out.shape
    launch(sample_kernel, (-(-samples // THREADS), min(rows, MOST_ROWS)), THREADS, *map(u64, state), ends,
           probabilities, out)


def sample_kernel(seed, offset, ends, probabilities, out):
    rows, samples = out.shape
    column, count = cuda.grid(1), u64(offset // u64(4))
    thread = u64(cuda.blockIdx.y * cuda.gridDim.x * cuda.blockDim.x + column)
    for r in range(cuda.blockIdx.y, rows, cuda.gridDim.y):
        if column < samples:
            a, _, _, _ = philox(seed, thread, count)
            count += u64(1)
            out[r, column] = place_of(unit(a), ends, probabilities, r)


def place_of(number, ends, probabilities, r):
    """The first category whose running sum reaches the number; never one of probability 0."""
    categories = ends.shape[1]
    begin, end = 0, categories
    while begin < end:
        middle = (begin + end) // 2
        if ends[r, middle] < number:
            begin = middle + 1
        else:
            end = middle
    begin = min(begin, categories - 1)
    while begin > 0 and probabilities[r, begin] == 0:
        begin -= 1
    return begin
