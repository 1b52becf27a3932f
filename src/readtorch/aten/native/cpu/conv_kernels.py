"""Convolution as matrix products of rows of pixels.

Note [ Rows of pixels ]
A batch of images is stored here with the places outside and the channels inside: [place, image, channel]. Then neighbouring
places of a line, in all images, are the rows of one matrix; and what a tap of the kernel sees, as it moves along a line of
the output, is such a matrix where it lies. Nothing is copied out (im2col), and where a tap would see padding nothing is
computed. So a convolution is a list of products with [in channels, out channels] matrices,

    out[o : o + n] += x[i : i + n] @ w[tap]

and a `plan` is that list: its rows are (tap, i, o, n), counted in places, each of which stands for one pixel in every image.
With i and o exchanged and w transposed it is the gradient of the input; x[i : i + n]ᵀ @ grad[o : o + n] is that of w[tap].
With a stride of s the columns of a line are stored as 0, s, 2s, …, 1, s + 1, …: then steps of s are neighbours.

In PyTorch: oneDNN's direct convolution stores images that way, in blocks of 16 channels.
Explained in the chapter "Layers".
"""
from ...cpu.blas import gemm
from ...cpu.compile import fast_kernel, kernel

BLOCK = 8  # channels that are moved together

# Up to so many multiply-adds OpenBLAS reads its operands where they lie, and does not pack them first.
UNPACKED = 1_000_000
SHORTEST = 32  # rows or columns that a piece of a product must have to be worth a call


# --------------------------------------------------------------------------------------- images <-> rows of pixels

@kernel
def to_pixels(x, lines, places, row, pixels):
    """x (images, channels, lines * columns) to pixels (lines * row, images, channels); column j goes to places[j]."""
    images, channels = x.shape[0], x.shape[1]
    for line in range(lines):
        for n in range(images):
            for begin in range(0, channels, BLOCK):
                block, count = x[n, begin:, line * places.size:], min(BLOCK, channels - begin)
                for j in range(places.size):
                    target = pixels[line * row + places[j], n, begin:]
                    if count == BLOCK:
                        for c in range(BLOCK):
                            target[c] = block[c, j]
                    else:
                        for c in range(count):
                            target[c] = block[c, j]


@kernel
def from_pixels(pixels, lines, places, row, x):
    """The way back: pixels (lines * row, images, channels) to x (images, channels, lines * columns)."""
    images, channels = x.shape[0], x.shape[1]
    for n in range(images):
        for begin in range(0, channels, BLOCK):
            count = min(BLOCK, channels - begin)
            for line in range(lines):
                block = x[n, begin:, line * places.size:]
                for j in range(places.size):
                    source = pixels[line * row + places[j], n, begin:]
                    if count == BLOCK:
                        for c in range(BLOCK):
                            block[c, j] = source[c]
                    else:
                        for c in range(count):
                            block[c, j] = source[c]


# ------------------------------------------------------------------------------------------- the plan carried out

@kernel
def add_products(plan, x, w, out, groups):
    """out[o : o + n] += x[i : i + n] @ w[tap] for each (tap, i, o, n). w: (taps, channels of a group of x, channels)."""
    images, channels, results = x.shape[1], x.shape[2], out.shape[2]
    inner, outer = channels // groups, results // groups
    piece = UNPACKED // (inner * outer)
    for p in range(plan.shape[0]):
        tap, i, o, rows = plan[p, 0], plan[p, 1], plan[p, 2], plan[p, 3] * images
        step = piece if piece >= SHORTEST else rows
        for g in range(groups):
            a, b, c = x[i:, :, g * inner:], w[tap, :, g * outer:], out[o:, :, g * outer:]
            for r in range(0, rows, step):
                gemm(False, False, min(step, rows - r), outer, inner, 1, a[r // images, r % images], channels, b, results,
                     1, c[r // images, r % images], results)


@kernel
def add_weight_products(plan, x, grad, dw, groups):
    """dw[tap] += x[i : i + n]ᵀ @ grad[o : o + n] for each (tap, i, o, n). dw: (taps, channels of a group of x, channels)."""
    images, channels, results = x.shape[1], x.shape[2], grad.shape[2]
    inner, outer = channels // groups, results // groups
    piece = UNPACKED // (inner * outer)
    for p in range(plan.shape[0]):
        tap, i, o, rows = plan[p, 0], plan[p, 1], plan[p, 2], plan[p, 3] * images
        step = piece if piece >= SHORTEST else rows
        for g in range(groups):
            a, b, c = x[i:, :, g * inner:], grad[o:, :, g * outer:], dw[tap, :, g * outer:]
            for r in range(0, rows, step):
                gemm(True, False, inner, outer, min(step, rows - r), 1, a[r // images, r % images], channels,
                     b[r // images, r % images], results, 1, c, results)


@kernel
def add_depthwise(plan, x, w, out):
    """The same where each channel is a group of its own: the products are of single numbers. w: (taps, channels)."""
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


# --------------------------------------------------------------------------- few channels: all taps in one product

@kernel
def unfold(plan, x, patches):
    """patches[o : o + n, …, tap] = x[i : i + n]; patches: (places of the output, images, taps, channels)."""
    for p in range(plan.shape[0]):
        for r in range(plan[p, 3]):
            source, target = x[plan[p, 1] + r], patches[plan[p, 2] + r, :, plan[p, 0]]
            for n in range(x.shape[1]):
                for c in range(x.shape[2]):
                    target[n, c] = source[n, c]


@kernel
def fold(plan, patches, x):
    """x[i : i + n] += patches[o : o + n, …, tap]: the gradient of `unfold`."""
    for p in range(plan.shape[0]):
        for r in range(plan[p, 3]):
            target, source = x[plan[p, 1] + r], patches[plan[p, 2] + r, :, plan[p, 0]]
            for n in range(x.shape[1]):
                for c in range(x.shape[2]):
                    target[n, c] += source[n, c]


@fast_kernel
def channel_sums(x, sums):
    """The sum over images and places, for x (images, channels, places)."""
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            total = sums[c] - sums[c]
            for i in range(x.shape[2]):
                total += x[n, c, i]
            sums[c] += total
