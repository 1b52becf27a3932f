"""multinomial with replacement: each number drawn is looked up in the running sums of the probabilities.

    sample(state, ends, probabilities, out)

Grid: (blocks of 128 threads for the samples, distributions). A thread keeps drawing while it goes from one
distribution to the next; of the four numbers of an evaluation it uses one.

In PyTorch: `aten/src/ATen/native/cuda/MultinomialKernel.cu`.
"""

import math

import numpy as np
from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native.distributions import multinomial
from readtorch.aten.native.tensor_iterator import WIDENED
from readtorch.c10.cuda.launch import launch

from .copy import copy_elements
from .distribution_kernels import exponential_cuda_
from .distribution_templates import unit
from .philox_rng_engine import philox, philox_args, unpack
from .reduce_ops import LONG, converted
from .register_dispatch_key import cuda_impl, empty

THREADS, MOST_ROWS = 128, 65535
u64 = np.uint64


def draws_used(rows):
    return ((rows - 1) // min(rows, MOST_ROWS) + 1) * 4


def sample(state, ends, probabilities, out):
    """ends, probabilities (rows, categories): running sums of rows that sum to 1. out (rows, samples): int64."""
    rows, samples = out.shape
    launch(
        sample_kernel,
        (-(-samples // THREADS), min(rows, MOST_ROWS)),
        THREADS,
        philox_args(state),
        ends,
        probabilities,
        out,
    )


def sample_kernel(state, ends, probabilities, out):
    seed, offset = unpack(state)
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


@cuda_impl(multinomial)
def multinomial_cuda(self, num_samples, replacement, generator, out):
    rows = self if self._array.ndim == 2 else self.unsqueeze(0)
    if rows._array.shape[0]:
        draw = with_replacement if replacement and num_samples > 1 else winners
        copy_elements(draw(rows, num_samples, generator).reshape(out._array.shape), out)


def winners(rows, num_samples, generator):
    """A race: who has the largest of probability / (exponential number) is drawn first, and so on."""
    if not at.logical_and(rows.max() < math.inf, rows.min() >= 0).item():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if at.eq(rows.sum(1), 0).any().item():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    race = rows / exponential_cuda_(at.empty_like(rows), 1.0, generator)
    return race.argmax(1, True) if num_samples == 1 else race.topk(num_samples, 1)[1]


def with_replacement(rows, num_samples, generator):
    number = WIDENED.get(rows._array.dtype, rows._array.dtype)
    probabilities = converted(rows, number).contiguous()
    probabilities = probabilities / probabilities.sum(1, True)
    ends = probabilities.cumsum(1)
    result = empty((rows._array.shape[0], num_samples), LONG)
    state = generator.philox_state(draws_used(rows._array.shape[0]))
    sample(state, ends._array, probabilities._array, result._array)
    return result
