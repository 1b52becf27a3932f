"""Convolution of float32 and float64, in any dimension, as matrix products in compiled loops.

See Note [ Rows of pixels ] in cpu/convolution_mm2d.py. The batch is processed in chunks of a few images, so that no
intermediate result is larger than the cache.

In PyTorch: oneDNN, which `aten/src/ATen/native/Convolution.cpp` chooses in `_select_conv_backend`.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from readtorch.aten.parallel import get_num_threads, parallel_for


class Plan(NamedTuple):
    """The products of one convolution: rows of (kernel element, first position in x, in out, number of positions)."""

    natural: np.ndarray  # places of x counted in the image as it is; each next one is a stride further
    stored: np.ndarray  # places of x counted as they are stored for rows of pixels
    by_line: np.ndarray  # the same line by line of out, for products that cost little more than reading them
    places: np.ndarray  # where each pixel of x is stored
    room: int  # places that x takes: some stay empty if the stride does not divide the width
    size: int  # places of out


@functools.lru_cache(maxsize=256)
def plan_of(size, kernel, out, stride, padding, dilation):
    """The plan for images of `size`: for each kernel element and line of the output, the part of the line that it
    multiplies."""
    natural = np.array(list(_products(size, kernel, out, stride, padding, dilation)), np.int64).reshape(-1, 4)
    places, room = _places(size, stride[-1])
    stored = natural.copy()
    stored[:, 1] = places[natural[:, 1]]
    by_line = stored[np.argsort(stored[:, 2] // out[-1], kind="stable")]
    stored = _joined(stored)
    natural = stored if stride[-1] == 1 else natural
    return Plan(natural, stored, by_line, places, room, math.prod(out))


def exchanged(products):
    """The products of the gradient of x: x and out exchanged."""
    return np.ascontiguousarray(products[:, (0, 2, 1, 3)])


def _places(size, step):
    """In each line the columns 0, step, 2 * step, … come first, then 1, step + 1, …"""
    phase = -(-size[-1] // step)
    columns = np.arange(size[-1])
    line = columns % step * phase + columns // step
    lines = math.prod(size[:-1])
    return (np.arange(lines)[:, None] * (phase * step) + line).reshape(-1), lines * phase * step


def _products(size, kernel, out, stride, padding, dilation):
    for tap, offsets in enumerate(np.ndindex(*kernel)):
        shifts = [t * d - p for t, d, p in zip(offsets, dilation, padding)]
        first, last = _reached(shifts[-1], size[-1], out[-1], stride[-1])
        if first >= last:
            continue
        for line in np.ndindex(*out[:-1]):
            seen = [o * s + shift for o, s, shift in zip(line, stride, shifts)]
            if all(0 <= y < n for y, n in zip(seen, size)):
                start = _index((*seen, first * stride[-1] + shifts[-1]), size)
                yield tap, start, _index((*line, first), out), last - first


def _reached(shift, size, out, stride):
    """The outputs o from first to last for which o * stride + shift is a column and not padding."""
    return max(0, -(shift // stride)), min(out, (size - 1 - shift) // stride + 1)


def _index(position, size):
    """The number of a place, counted line by line."""
    number = 0
    for p, n in zip(position, size):
        number = number * n + p
    return number


def _joined(products):
    """Products of which one goes on where the last ended become one."""
    joined = []
    for tap, i, o, n in products.tolist():
        last = joined[-1] if joined else None
        if last and (last[0], last[1] + last[3], last[2] + last[3]) == (tap, i, o):
            last[3] += n
        else:
            joined.append([tap, i, o, n])
    return np.array(joined, np.int64).reshape(-1, 4)


# ----------------------------------------------------------------------------------------- the compiled loops

WORTH = 10_000  # multiply-adds for which to load the compiled loops
ROWS = 256  # that a product should have
FEW = 32  # rows of a product, and
FEW_CHANNELS = 16  # channels of a group, below which all taps are taken in one product
SMALL = 32_000  # elements of a matrix from which on transposing it beforehand is faster than BLAS


@functools.cache
def loops():
    from readtorch.aten.native.cpu import convolution_mm2d

    return convolution_mm2d


def is_worth_it(x, w, y_shape):
    """Whether these functions take the dtype of `x`, and are the faster ones for x (N, C, …) * w = y."""
    return x.dtype.char in "fd" and w.size * math.prod(y_shape[2:]) * y_shape[0] > WORTH


def forward(x, w, bias, geometry, result):
    """result = the convolution of x (N, C, …) with w (out, C / groups, …), plus bias."""
    task = task_of(x.shape, w.shape, result.shape, geometry)
    task.forward(_flat(x), w, 0 if bias is None else bias, _flat(result))


def grad_input(grad, w, geometry, result):
    """result = the gradient of an input."""
    task_of(result.shape, w.shape, grad.shape, geometry).grad_input(_flat(grad), w, _flat(result))


def grad_weight(grad, x, geometry, result):
    """result = the gradient of a weight."""
    task = task_of(x.shape, result.shape, grad.shape, geometry)
    result[...] = task.grad_weight(_flat(grad), _flat(x)).reshape(result.shape)


def grad_bias(grad):
    """The gradient of the bias: the sum over images and places."""
    sums = np.zeros(grad.shape[1], grad.dtype)
    loops().channel_sums(_flat(grad), sums)
    return sums


def _flat(x):
    """(N, C, …) as a contiguous (N, C, places)."""
    return np.ascontiguousarray(x).reshape(*x.shape[:2], -1)


def task_of(x_shape, w_shape, y_shape, geometry):
    """The way to compute a convolution: x (N, C, …), w (out, C / groups, …), y (N, out, …)."""
    results, inner, *kernel = w_shape
    few = inner < FEW_CHANNELS or y_shape[0] * y_shape[-1] < FEW
    if inner == 1 and geometry.groups == results > 1:
        kind = Depthwise
    elif geometry.groups > 1 and few:
        kind = FewInGroups
    else:
        kind = Unfolded if geometry.groups == 1 and (few or math.prod(kernel) == 1) else RowsOfPixels
    return kind(x_shape, w_shape, y_shape, geometry)


class Task:
    """A convolution of known shapes. x, y and their gradients are flat, w is as it comes."""

    def __init__(self, x_shape, w_shape, y_shape, geometry):
        self.plan = plan_of(x_shape[2:], w_shape[2:], y_shape[2:], *geometry[:3])
        self.images, self.channels = x_shape[:2]
        self.results, self.inner = w_shape[:2]
        self.taps = math.prod(w_shape[2:])
        self.groups = geometry.groups
        self.step = geometry.stride[-1]
        self.chunk = max(1, min(-(-ROWS // y_shape[-1]), -(-self.images // get_num_threads())))

    def for_chunks(self, compute):
        """compute(first, last) for pieces of the batch, shared among threads."""

        def body(begin, end):
            for first in range(begin, end, self.chunk):
                compute(first, min(first + self.chunk, end))

        parallel_for(0, self.images, self.chunk, body)

    def sum_of_chunks(self, shape, dtype, add):
        """What add(total, first, last) adds to `total`, an array of `shape`. Each thread has its own."""
        totals = {}

        def body(begin, end):
            total = np.zeros(shape, dtype)
            for first in range(begin, end, self.chunk):
                add(total, first, min(first + self.chunk, end))
            totals[begin] = total

        parallel_for(0, self.images, self.chunk, body)
        return functools.reduce(np.add, [totals[begin] for begin in sorted(totals)])


class RowsOfPixels(Task):
    """See Note [ Rows of pixels ]."""

    def forward(self, x, w, bias, y):
        products = self.products(w)

        def compute(first, last):
            pixels = np.empty((self.plan.size, last - first, self.results), x.dtype)
            pixels[:] = bias
            products(self.x_pixels(x[first:last]), pixels)
            loops().from_pixels(pixels, self.y_places(), y[first:last])

        self.for_chunks(compute)

    def grad_input(self, grad, w, dx):
        products = self.exchanged_products(w)

        def compute(first, last):
            pixels = np.zeros((self.plan.room, last - first, self.channels), grad.dtype)
            products(self.y_pixels(grad[first:last]), pixels)
            loops().from_pixels(pixels, self.plan.places, dx[first:last])

        self.for_chunks(compute)

    def grad_weight(self, grad, x):
        def add(total, first, last):
            self.add_weight_products(self.x_pixels(x[first:last]), self.y_pixels(grad[first:last]), total)

        shape = (self.taps, self.results // self.groups, self.groups * self.inner)
        total = self.sum_of_chunks(shape, x.dtype, add).reshape(*shape[:2], self.groups, self.inner)
        return np.ascontiguousarray(total.transpose(2, 1, 3, 0))

    def products(self, w):
        """The function (x, out) that adds the convolution of x to out, both rows of pixels."""
        transposed = w.size > SMALL * self.taps * self.groups
        matrices, plan = _matrices(w, self.groups, transposed), self.plan.stored
        return lambda x, out: loops().add_products(plan, x, matrices, out, self.groups, transposed)

    def exchanged_products(self, w):
        """The function (grad, dx) that adds the gradient of x to dx."""
        matrices, plan = _matrices(w, self.groups, True), exchanged(self.plan.stored)
        return lambda grad, dx: loops().add_products(plan, grad, matrices, dx, self.groups, False)

    def add_weight_products(self, x, grad, total):
        loops().add_weight_products(self.plan.stored, x, grad, total, self.groups)

    def x_pixels(self, x):
        pixels = np.empty((self.plan.room, *x.shape[:2]), x.dtype)
        loops().to_pixels(x, self.plan.places, pixels)
        return pixels

    def y_pixels(self, y):
        pixels = np.empty((self.plan.size, *y.shape[:2]), y.dtype)
        loops().to_pixels(y, self.y_places(), pixels)
        return pixels

    def y_places(self):
        return np.arange(self.plan.size)


def _matrices(w, groups, transposed):
    """w as (taps, channels of a group of x, channels of y), or (taps, channels of a group of y, of x)."""
    grouped = w.reshape(groups, w.shape[0] // groups, w.shape[1], -1)
    ordered = np.ascontiguousarray(grouped.transpose((3, 1, 0, 2) if transposed else (3, 2, 0, 1)))
    return ordered.reshape(*ordered.shape[:2], -1)


class FewInGroups(RowsOfPixels):
    """Groups of few channels, or with few rows of pixels: each group's gradient of the weight is one product of all taps.

    A vmap with weights of each example's own has as many groups as examples, and often one image.
    """

    def grad_weight(self, grad, x):
        groups, images = self.groups, x.shape[0]
        x = x.reshape(images, groups, self.inner, -1)
        grad = grad.reshape(images, groups, self.results // groups, -1)
        total = np.zeros((groups, self.results // groups, self.inner * self.taps), x.dtype)

        def body(begin, end):
            columns = np.zeros((self.inner, self.taps, self.plan.size), x.dtype)
            loops().add_unfolded_weight_of_groups(
                self.plan.natural, self.step, x[:, begin:end], grad[:, begin:end], columns, total[begin:end]
            )

        parallel_for(0, groups, -(-groups // get_num_threads()), body)
        return total


class Depthwise(RowsOfPixels):
    """Each channel is a group of its own: products of numbers, not of matrices."""

    def products(self, w):
        weights = _matrices(w, self.groups, False)[:, 0]
        return lambda x, out: loops().add_depthwise(self.plan.by_line, x, weights, out)

    def exchanged_products(self, w):
        weights, plan = _matrices(w, self.groups, False)[:, 0], exchanged(self.plan.by_line)
        return lambda grad, dx: loops().add_depthwise(plan, grad, weights, dx)

    def add_weight_products(self, x, grad, total):
        loops().add_depthwise_weight(self.plan.by_line, x, grad, total[:, 0])


class Unfolded(Task):
    """An image at a time, all taps in one product: for few channels, few rows of pixels, or one tap."""

    def forward(self, x, w, bias, y):
        matrix = np.ascontiguousarray(w.reshape(self.results, -1))

        def compute(first, last):
            y[first:last] = np.reshape(bias, (-1, 1))
            loops().add_unfolded(self.plan.natural, self.step, x[first:last], matrix, self.columns(x), y[first:last])

        self.for_chunks(compute)

    def grad_input(self, grad, w, dx):
        matrix = np.ascontiguousarray(w.reshape(self.results, -1))

        def compute(first, last):
            dx[first:last] = 0
            loops().add_unfolded_gradient(
                self.plan.natural, self.step, grad[first:last], matrix, self.columns(grad), dx[first:last]
            )

        self.for_chunks(compute)

    def grad_weight(self, grad, x):
        def add(total, first, last):
            loops().add_unfolded_weight(
                self.plan.natural, self.step, x[first:last], grad[first:last], self.columns(x), total
            )

        return self.sum_of_chunks((self.results, self.channels * self.taps), x.dtype, add)

    def columns(self, like):
        return np.zeros((self.channels, self.taps, self.plan.size), like.dtype)
