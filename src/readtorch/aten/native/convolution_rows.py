"""The fast convolution: float32 and float64, any dimension, by products of rows of pixels.

See Note [ Rows of pixels ] in cpu/conv_kernels.py. The batch is taken in chunks of some images, so that nothing the size
of the batch is needed besides the result; threads share the chunks.

In PyTorch: `mkldnn/Conv.cpp` (oneDNN). Explained in the chapter "Layers".
"""
import functools
from typing import NamedTuple

import numpy as np

from ..parallel import get_num_threads, parallel_for

ROWS = 256  # that a product should have
FEW = 16  # channels, or rows of a product, for which all taps are copied into one product
WORTH = 100_000  # multiply-adds below which compiled loops do not pay


@functools.cache
def loops():
    from .cpu import conv_kernels
    return conv_kernels


class Plan(NamedTuple):
    """The products of one convolution, for images of one size. See Note [ Rows of pixels ]."""

    products: np.ndarray  # rows of (tap, first place of x, first place of out, number of places)
    exchanged: np.ndarray  # the same for the gradient of x
    places: np.ndarray  # where each column of x is stored in its line
    row: int  # places of a line of x
    columns: np.ndarray  # the same for out, where columns are stored as they are


@functools.lru_cache(maxsize=256)
def plan_of(size, kernel, out, stride, padding, dilation):
    """The plan for images of `size`: for each line of the output and each tap, what it sees of its line of the input."""
    row = -(-size[-1] // stride[-1]) * stride[-1]
    phase = row // stride[-1]
    columns = np.arange(size[-1])
    places = columns % stride[-1] * phase + columns // stride[-1]
    products = []
    for line in np.ndindex(*out[:-1]):
        for tap, offsets in enumerate(np.ndindex(*kernel)):
            seen = [o * s + t * d - p for o, s, t, d, p in zip(line, stride, offsets, dilation, padding)]
            if any(not 0 <= y < n for y, n in zip(seen, size)):
                continue
            shift = offsets[-1] * dilation[-1] - padding[-1]
            first, last = max(0, -(shift // stride[-1])), min(out[-1], (size[-1] - 1 - shift) // stride[-1] + 1)
            if first < last:
                start = _index(seen, size[:-1]) * row + int(places[first * stride[-1] + shift])
                _append(products, tap, start, _index(line, out[:-1]) * out[-1] + first, last - first)
    products = np.array(products, np.int64).reshape(-1, 4)
    return Plan(products, np.ascontiguousarray(products[:, (0, 2, 1, 3)]), places, row, np.arange(out[-1]))


def _index(position, size):
    """The number of a line, counted row by row."""
    number = 0
    for p, n in zip(position, size):
        number = number * n + p
    return number


def _append(products, tap, start, result, count):
    """Adds a product, or makes the last one longer if this goes on where that ends."""
    if products:
        last = products[-1]
        if (last[0], last[1] + last[3], last[2] + last[3]) == (tap, start, result):
            last[3] += count
            return
    products.append([tap, start, result, count])


class Task:
    """One convolution of known shapes: x (N, C, …), w (out, C / groups, …), y (N, out, …)."""

    def __init__(self, x_shape, w_shape, y_shape, geometry):
        self.plan = plan_of(x_shape[2:], w_shape[2:], y_shape[2:], *geometry[:3])
        self.groups = geometry.groups
        self.images, self.channels = x_shape[:2]
        self.results, self.inner = w_shape[:2]
        self.taps = int(np.prod(w_shape[2:]))
        self.x_lines, self.y_lines = int(np.prod(x_shape[2:-1])), int(np.prod(y_shape[2:-1]))
        longest = int(self.plan.products[:, 3].max(initial=1))
        self.chunk = max(1, min(-(-ROWS // longest), -(-self.images // get_num_threads())))
        few = self.inner < FEW or longest * self.chunk < FEW
        self.depthwise = self.inner == 1 and self.groups == self.results
        self.unfolded = few and self.groups == 1 and self.taps > 1

    def x_pixels(self, x, first, images):
        plan = self.plan
        pixels = np.empty((self.x_lines * plan.row, images, self.channels), x.dtype)
        loops().to_pixels(x[first:first + images], self.x_lines, plan.places, plan.row, pixels)
        return pixels

    def y_pixels(self, y, first, images):
        columns = self.plan.columns
        pixels = np.empty((self.y_lines * columns.size, images, self.results), y.dtype)
        loops().to_pixels(y[first:first + images], self.y_lines, columns, columns.size, pixels)
        return pixels

    def patches(self, pixels):
        """What all taps see, side by side: (places of y, images, taps * channels)."""
        patches = np.zeros((self.y_lines * self.plan.columns.size, pixels.shape[1], self.taps, self.channels), pixels.dtype)
        loops().unfold(self.plan.products, pixels, patches)
        return patches.reshape(*patches.shape[:2], -1)

    def chunks(self, begin, end):
        for first in range(begin, end, self.chunk):
            yield first, min(self.chunk, end - first)

    def whole(self):
        """The plan of one product: all places with all places."""
        return np.array([[0, 0, 0, self.y_lines * self.plan.columns.size]])


def worth_it(x, w, shape, groups):
    """Whether these functions compute x (N, C, …) * w = y of `shape`, and are the faster ones."""
    return x.dtype.char in "fd" and w.size // groups * int(np.prod(shape[2:])) * shape[0] > WORTH


def _flat(x):
    """(N, C, …) as a contiguous (N, C, places)."""
    return np.ascontiguousarray(x).reshape(*x.shape[:2], -1)


def _matrices(w, groups):
    """w as (taps, channels of a group, out channels)."""
    grouped = w.reshape(groups, w.shape[0] // groups, w.shape[1], -1)
    return np.ascontiguousarray(grouped.transpose(3, 2, 0, 1)).reshape(-1, w.shape[1], w.shape[0])


def _transposed_matrices(w, groups):
    """w as (taps, out channels of a group, channels)."""
    grouped = w.reshape(groups, w.shape[0] // groups, w.shape[1], -1)
    return np.ascontiguousarray(grouped.transpose(3, 1, 0, 2)).reshape(-1, w.shape[0] // groups, w.shape[1] * groups)


def forward(x, w, bias, shape, geometry):
    """The convolution of x (N, C, …) with w (out, C / groups, …), plus bias: an array of `shape`."""
    task = Task(x.shape, w.shape, shape, geometry)
    x, matrices, result = _flat(x), _matrices(w, task.groups), np.empty(shape, x.dtype)
    y, columns = _flat(result), task.plan.columns

    def compute(begin, end):
        for first, images in task.chunks(begin, end):
            pixels = np.empty((task.y_lines * columns.size, images, task.results), x.dtype)
            pixels[:] = 0 if bias is None else bias
            _add_forward(task, task.x_pixels(x, first, images), matrices, pixels)
            loops().from_pixels(pixels, task.y_lines, columns, columns.size, y[first:first + images])
    parallel_for(0, task.images, task.chunk, compute)
    return result


def _add_forward(task, x, matrices, out):
    if task.depthwise:
        loops().add_depthwise(task.plan.products, x, matrices[:, 0], out)
    elif task.unfolded:
        loops().add_products(task.whole(), task.patches(x), matrices.reshape(1, -1, task.results), out, 1)
    else:
        loops().add_products(task.plan.products, x, matrices, out, task.groups)


def grad_input(grad, w, shape, geometry):
    """The gradient of an input of `shape`."""
    task = Task(shape, w.shape, grad.shape, geometry)
    matrices, result = _transposed_matrices(w, task.groups), np.empty(shape, grad.dtype)
    grad, dx, plan = _flat(grad), _flat(result), task.plan

    def compute(begin, end):
        for first, images in task.chunks(begin, end):
            pixels = np.zeros((task.x_lines * plan.row, images, task.channels), grad.dtype)
            _add_grad_input(task, task.y_pixels(grad, first, images), matrices, pixels)
            loops().from_pixels(pixels, task.x_lines, plan.places, plan.row, dx[first:first + images])
    parallel_for(0, task.images, task.chunk, compute)
    return result


def _add_grad_input(task, grad, matrices, dx):
    if task.depthwise:
        loops().add_depthwise(task.plan.exchanged, grad, matrices[:, 0], dx)
    elif task.unfolded:
        patches = np.zeros((*grad.shape[:2], task.taps * task.channels), grad.dtype)
        side_by_side = np.ascontiguousarray(matrices.swapaxes(0, 1)).reshape(1, task.results, -1)
        loops().add_products(task.whole(), grad, side_by_side, patches, 1)
        loops().fold(task.plan.products, patches.reshape(*grad.shape[:2], task.taps, task.channels), dx)
    else:
        loops().add_products(task.plan.exchanged, grad, matrices, dx, task.groups)


def grad_weight(grad, x, shape, geometry):
    """The gradient of a weight of `shape`."""
    task = Task(x.shape, shape, grad.shape, geometry)
    x, grad, parts = _flat(x), _flat(grad), []

    def compute(begin, end):
        dw = np.zeros((task.taps, task.inner, task.results), grad.dtype)
        for first, images in task.chunks(begin, end):
            _add_grad_weight(task, task.x_pixels(x, first, images), task.y_pixels(grad, first, images), dw)
        parts.append(dw)
    parallel_for(0, task.images, task.chunk, compute)
    total = functools.reduce(np.add, parts).reshape(task.taps, task.inner, task.groups, -1)
    return np.ascontiguousarray(total.transpose(2, 3, 1, 0)).reshape(shape)


def _add_grad_weight(task, x, grad, dw):
    if task.depthwise:
        loops().add_depthwise_weight(task.plan.products, x, grad, dw[:, 0])
    elif task.unfolded:
        loops().add_weight_products(task.whole(), task.patches(x), grad, dw.reshape(1, -1, task.results), 1)
    else:
        loops().add_weight_products(task.plan.products, x, grad, dw, task.groups)


def grad_bias(grad):
    """The gradient of the bias: the sum over images and places."""
    sums = np.zeros(grad.shape[1], grad.dtype)
    loops().channel_sums(_flat(grad), sums)
    return sums
