"""Convolution as matrix products, in two ways: of rows of pixels, and of unfolded images.

Note [ Rows of pixels ]
A batch of images is stored with the places outside and the channels inside: [place, image, channel]. Then
neighbouring places of a line, in all images, are the rows of one matrix; and what a tap of the kernel sees,
as it moves along a line of the output, is such a matrix where it lies. Nothing is copied out (im2col), and
where a tap would see padding nothing is computed. So a convolution is a list of products with [in channels,
out channels] matrices,

    out[o : o + n] += x[i : i + n] @ w[tap]

and a `plan` is that list: its rows are (tap, i, o, n), counted in places, each of which stands for one
pixel in every image. With i and o exchanged and w transposed it is the gradient of the input; that of
w[tap] is the sum of grad[o : o + n]ᵀ @ x[i : i + n]. With a stride of s the columns of a line are stored as
0, s, 2s, …, 1, s + 1, …: then steps of s are neighbours.

In PyTorch: oneDNN's direct convolution stores images that way, in blocks of 16 channels;
`aten/src/ATen/native/ConvolutionMM2d.cpp` multiplies unfolded images.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import numpy as np

from readtorch.aten.cpu.blas import gemm
from readtorch.aten.cpu.compile import fast_kernel, kernel

# The operands of one call stand in a line or two; one a line, they would be pages.
# fmt: off

# Up to so many multiply-adds OpenBLAS reads its operands where they lie, and does not pack them first.
UNPACKED = 1_000_000
SHORTEST = 32  # rows that a piece of a product must have to be worth a call
TILE = 16  # places and channels that are transposed together


@kernel
def rows_of_piece(rows, other, inner):
    """How many of the `rows` to multiply at a time."""
    piece = UNPACKED // (other * inner)
    return min(rows, piece) if piece >= SHORTEST else rows


# ---------------------------------------- images <-> rows of pixels

@kernel
def to_pixels(x, places, pixels):
    """x (images, channels, size) to pixels (places, images, channels); pixel j goes to places[j]."""
    tile = np.empty((TILE, TILE), x.dtype)
    for n in range(x.shape[0]):
        for first in range(0, x.shape[1], TILE):
            channels = min(TILE, x.shape[1] - first)
            for start in range(0, places.size, TILE):
                count = min(TILE, places.size - start)
                for c in range(channels):
                    source = x[n, first + c, start:]
                    for j in range(count):
                        tile[j, c] = source[j]
                for j in range(count):
                    target = pixels[places[start + j], n, first:]
                    for c in range(channels):
                        target[c] = tile[j, c]


@kernel
def from_pixels(pixels, places, x):
    """The way back."""
    tile = np.empty((TILE, TILE), x.dtype)
    for n in range(x.shape[0]):
        for first in range(0, x.shape[1], TILE):
            channels = min(TILE, x.shape[1] - first)
            for start in range(0, places.size, TILE):
                count = min(TILE, places.size - start)
                for j in range(count):
                    source = pixels[places[start + j], n, first:]
                    for c in range(channels):
                        tile[c, j] = source[c]
                for c in range(channels):
                    target = x[n, first + c, start:]
                    for j in range(count):
                        target[j] = tile[c, j]


# ---------------------------------------- the plan carried out

@kernel
def add_products(plan, x, w, out, groups, transposed):
    """out[o : o + n] += x[i : i + n] @ w[tap] for each (tap, i, o, n).

    w: (taps, channels of a group of x, channels of out); transposed: (taps, channels of a group of out, of x).
    """
    images, channels, results = x.shape[1], x.shape[2], out.shape[2]
    inner, outer = channels // groups, results // groups
    for p in range(plan.shape[0]):
        tap, i, o, rows = plan[p, 0], plan[p, 1], plan[p, 2], plan[p, 3] * images
        step = rows_of_piece(rows, outer, inner)
        for g in range(groups):
            a, c = x[i:, :, g * inner:], out[o:, :, g * outer:]
            b = w[tap, :, g * (inner if transposed else outer):]
            for r in range(0, rows, step):
                gemm(False, transposed, min(step, rows - r), outer, inner, 1, a[r // images, r % images],
                     channels, b, w.shape[2], 1, c[r // images, r % images], results)


@kernel
def add_weight_products(plan, x, grad, dw, groups):
    """dw[tap] += grad[o : o + n]ᵀ @ x[i : i + n] for each (tap, i, o, n).

    dw: (taps, channels of a group of grad, channels of x).
    """
    images, channels, results = x.shape[1], x.shape[2], grad.shape[2]
    inner, outer = channels // groups, results // groups
    for p in range(plan.shape[0]):
        tap, i, o, rows = plan[p, 0], plan[p, 1], plan[p, 2], plan[p, 3] * images
        step = rows_of_piece(rows, outer, inner)
        for g in range(groups):
            a, b, c = grad[o:, :, g * outer:], x[i:, :, g * inner:], dw[tap, :, g * inner:]
            for r in range(0, rows, step):
                gemm(True, False, outer, inner, min(step, rows - r), 1, a[r // images, r % images], results,
                     b[r // images, r % images], channels, 1, c, channels)


# ---------------------------------------- each channel a group of its own

@kernel
def add_depthwise(plan, x, w, out):
    """What `add_products` does where the matrices have one element each. w: (taps, channels)."""
    for p in range(plan.shape[0]):
        weights = w[plan[p, 0]]
        for r in range(plan[p, 3]):
            source, target = x[plan[p, 1] + r], out[plan[p, 2] + r]
            for n in range(x.shape[1]):
                for c in range(x.shape[2]):
                    target[n, c] += source[n, c] * weights[c]


@kernel
def add_depthwise_weight(plan, x, grad, dw):
    """The gradient of `add_depthwise` with respect to w."""
    for p in range(plan.shape[0]):
        sums = dw[plan[p, 0]]
        for r in range(plan[p, 3]):
            left, right = x[plan[p, 1] + r], grad[plan[p, 2] + r]
            for n in range(x.shape[1]):
                for c in range(x.shape[2]):
                    sums[c] += left[n, c] * right[n, c]


# ---------------------------------------- few channels or few rows: one product an image, of all taps at once
# x (images, channels, size), w (results, channels * taps), out (images, results, size). `columns`, the
# scratch memory for an unfolded image, is (channels, taps, size of out), 0 where a tap sees padding. `step`
# is the stride along a line.

@kernel
def unfold(plan, step, x, columns):
    """columns[…, tap, o : o + n] = x[…, i : i + n * step : step] for one image."""
    for c in range(x.shape[0]):
        for p in range(plan.shape[0]):
            source, target = x[c, plan[p, 1]:], columns[c, plan[p, 0], plan[p, 2]:]
            for r in range(plan[p, 3]):
                target[r] = source[r * step]


@kernel
def fold(plan, step, columns, x):
    """The gradient of `unfold`."""
    for c in range(x.shape[0]):
        for p in range(plan.shape[0]):
            target, source = x[c, plan[p, 1]:], columns[c, plan[p, 0], plan[p, 2]:]
            for r in range(plan[p, 3]):
                target[r * step] += source[r]


@kernel
def add_unfolded(plan, step, x, w, columns, out):
    """out[n] += w @ unfold(x[n]) for each image."""
    results, inner, size = w.shape[0], w.shape[1], out.shape[2]
    piece = rows_of_piece(size, results, inner)
    for n in range(x.shape[0]):
        unfold(plan, step, x[n], columns)
        for s in range(0, size, piece):
            gemm(False, False, results, min(piece, size - s), inner, 1, w, inner, columns[0, 0, s:], size,
                 1, out[n, :, s:], size)


@kernel
def add_unfolded_gradient(plan, step, grad, w, columns, dx):
    """dx[n] += fold(wᵀ @ grad[n]) for each image."""
    results, inner, size = w.shape[0], w.shape[1], grad.shape[2]
    piece = rows_of_piece(size, results, inner)
    for n in range(dx.shape[0]):
        for s in range(0, size, piece):
            gemm(True, False, inner, min(piece, size - s), results, 1, w, inner, grad[n, :, s:], size,
                 0, columns[0, 0, s:], size)
        fold(plan, step, columns, dx[n])


@kernel
def add_unfolded_weight(plan, step, x, grad, columns, dw):
    """dw += grad[n] @ unfold(x[n])ᵀ for each image."""
    results, inner, size = dw.shape[0], dw.shape[1], grad.shape[2]
    piece = rows_of_piece(size, results, inner)
    for n in range(x.shape[0]):
        unfold(plan, step, x[n], columns)
        for s in range(0, size, piece):
            gemm(False, True, results, inner, min(piece, size - s), 1, grad[n, :, s:], size,
                 columns[0, 0, s:], size, 1, dw, inner)


@kernel
def add_unfolded_weight_of_groups(plan, step, x, grad, columns, dw):
    """dw[g] += grad[n, g] @ unfold(x[n, g])ᵀ for each image and group.

    x (images, groups, channels, size), grad (images, groups, results, size of out), dw (groups, results, channels * taps).
    """
    for g in range(dw.shape[0]):
        add_unfolded_weight(plan, step, x[:, g], grad[:, g], columns, dw[g])


@fast_kernel
def channel_sums(x, sums):
    """The sum over images and places, for x (images, channels, places)."""
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            total = sums[c] - sums[c]
            for i in range(x.shape[2]):
                total += x[n, c, i]
            sums[c] += total
