"""The windows of pooling: which elements of the input each element of the result is made of.

Every kind of pooling slides a window over planes (what one channel of one sample holds: a row, an image, a volume) and
makes one number of its elements. What all kinds share is here: the sizes and their checks, and the windows.

In PyTorch: `aten/src/ATen/native/Pool.h`, `aten/src/ATen/native/AdaptivePooling.h`.
"""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from readtorch.aten.native.tensor_iterator import WIDENED, cast

FROM_SIZE = 1024  # fewer numbers are not worth loading the compiler for
COUNT = {2: "two", 3: "three"}
AXES = {2: "HW", 3: "THW"}


# ------------------------------------------------------------------------------------------------------ sizes


class Sliding(NamedTuple):
    """How a window slides: one number a dimension."""

    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple
    ceil_mode: bool = False

    def output_size(self, d, size):
        """How many windows fit into `size` elements along dimension `d`."""
        kernel, stride, padding, dilation = self.kernel[d], self.stride[d], self.padding[d], self.dilation[d]
        if stride == 0:
            raise RuntimeError("stride should not be zero")
        if padding < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {padding}")
        reach = dilation * (kernel - 1) + 1
        if padding > int(reach / 2):
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={padding}, "
                f"kernel_size={kernel} and dilation={dilation}"
            )
        return output_size(size, padding, stride, reach, self.ceil_mode)


def output_size(size, padding, stride, reach, ceil_mode):
    """The number of windows; with ceil_mode the last may hang over the end, but starts before the padding."""
    count = (size + 2 * padding - reach + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def sliding(name, dims, kernel_size, stride, padding, dilation=(1,), ceil_mode=False, either="either "):
    """The Sliding that the arguments describe: one number may stand for all dimensions, no stride for the
    kernel's size.

    Raises RuntimeError for lists of another length.
    """
    tuple_of = f"a tuple of {COUNT[dims]} ints"
    kernel = for_each(kernel_size, dims, f"{name}: kernel_size must {either}be a single int, or {tuple_of}")
    omitted = f"{name}: stride must {either}be omitted, a single int, or {tuple_of}"
    stride = for_each(stride, dims, omitted) if stride else kernel
    padding = for_each(padding, dims, f"{name}: padding must {either}be a single int, or {tuple_of}")
    dilation = for_each(dilation, dims, f"{name}: dilation must be either a single int, or {tuple_of}")
    if not all(-1 << 31 <= n < 1 << 31 for n in (*kernel, *stride, *padding, *dilation)):
        raise RuntimeError("value cannot be converted to type int without overflow")
    return Sliding(kernel, stride, padding, dilation, ceil_mode)


def for_each(numbers, dims, message):
    if len(numbers) not in (1, dims):
        raise RuntimeError(message)
    return tuple(numbers) * dims if len(numbers) == 1 else tuple(numbers)


def check_window(slide, spatial):
    """Raises RuntimeError unless the window's own parameters are valid."""
    axes = AXES[len(spatial)]

    def shown(prefix, numbers):
        return " ".join(f"{prefix}{axis}: {n}" for axis, n in zip(axes, numbers))

    if min(slide.kernel) <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got {shown('k', slide.kernel)}")
    if min(slide.stride) <= 0:
        raise RuntimeError(f"stride should be greater than zero, but got {shown('d', slide.stride)}")
    if min(slide.dilation) <= 0:
        shown_dilation = shown("dilation", slide.dilation)
        raise RuntimeError(f"dilation should be greater than zero, but got {shown_dilation}")


def check_result(channels, spatial, outputs):
    """Raises RuntimeError unless every dimension has room for a window."""
    if min(outputs) < 1:
        raise RuntimeError(
            f"Given input size: ({by(channels, *spatial)}). Calculated output size: "
            f"({by(channels, *outputs)}). Output size is too small"
        )


def check_sizes(sizes):
    """Raises RuntimeError for a negative size."""
    if min(sizes) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")


def by(*sizes):
    return "x".join(map(str, sizes))


def pool2d_outputs(slide, shape):
    """The sizes of the result for an input (N, C, H, W) or (C, H, W). N may be 0. Raises RuntimeError."""
    spatial = shape[-2:]
    outputs = tuple([slide.output_size(d, n) for d, n in enumerate(spatial)])
    check_window(slide, spatial)
    if len(shape) not in (3, 4) or 0 in shape[len(shape) - 3 :]:
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(shape)}"
        )
    check_result(shape[-3], spatial, outputs)
    return outputs


def pool3d_outputs(slide, shape, caller, check_size=False):
    """The result's sizes for an input (N, C, T, H, W) or (C, T, H, W). N may be 0. Raises RuntimeError."""
    channels, *spatial = shape[-4:]
    outputs = tuple([slide.output_size(d, n) for d, n in enumerate(spatial)])
    check_window(slide, spatial)
    if 0 in shape[-4:]:
        raise RuntimeError(
            f"{caller}: Expected input's non-batch dimensions to have positive length, but input "
            f"has a shape of {list(shape)} and non-batch dimension 0 has length zero!"
        )
    (kt, kh, kw), (pt, ph, pw), (t, h, w) = slide.kernel, slide.padding, spatial
    if check_size and (t < kt or h < kh or w < kw):
        raise RuntimeError(f"input image (T: {t} H: {h} W: {w}) smaller than kernel size (kT: {kt} kH: {kh} kW: {kw})")
    if kt // 2 < pt or kh // 2 < ph or kw // 2 < pw:
        raise RuntimeError(
            "pad should be smaller than or equal to half of kernel size, but got "
            f"kT: {kt} kW: {kw} kH: {kh} padT: {pt} padW: {pw} padH: {ph}"
        )
    check_result(channels, spatial, outputs)
    return outputs


# ---------------------------------------------------------------------------------------------------- windows


class Line(NamedTuple):
    """Windows along one dimension: arrays (length, planes, results), planes 1 if all share the windows."""

    places: np.ndarray  # the index of each of the window's entries
    inside: np.ndarray  # whether that is inside the plane; if not, `places` holds an index nearby
    first: np.ndarray  # (planes, results): the first index that is not before the start of the plane
    bounds: np.ndarray | None  # (2, results): begin and end of each window, if all planes share them
    step: int = 1  # from one element of a window to the next


class Windows:
    """The windows over a plane, as tables for NumPy and as bounds for the compiled loops."""

    def __init__(self, lines, sizes, outputs, square=0):
        self.lines, self.sizes, self.outputs = lines, tuple(sizes), tuple(outputs)
        self.square = square  # see `search` in `cpu/max_pool_kernel.py`

    @functools.cached_property
    def entries(self):
        """For each entry of a window a pair (places, inside) of arrays (planes, results); inside is None if
        all places are.

        Indices count along the flattened plane.
        """
        lengths = [len(line.places) for line in self.lines]
        return [self._entry(at) for at in itertools.product(*map(range, lengths))]

    def _entry(self, at):
        inside = all_of([line.inside[i] for line, i in zip(self.lines, at)])
        return (
            joined([line.places[i] for line, i in zip(self.lines, at)], self.sizes),
            None if inside.all() else inside,
        )

    @functools.cached_property
    def first(self):
        """The begin of each window, which is the index of the maximum if all elements are -infinity."""
        return joined([line.first for line in self.lines], self.sizes)

    @functools.cached_property
    def bounds(self):
        """The bounds in three dimensions, for a kernel; None if each plane has windows of its own."""
        found = [line.bounds for line in self.lines]
        return None if found[0] is None else (*[np.array([[0], [1]])] * (3 - len(found)), *found)

    @functools.cached_property
    def steps(self):
        return (*[1] * (3 - len(self.lines)), *[line.step for line in self.lines])

    @functools.cached_property
    def counts(self):
        """How many elements each window has."""
        counts = np.zeros((1, math.prod(self.outputs)), np.int64)
        for _, inside in self.entries:
            counts += 1 if inside is None else inside
        return counts


def joined(places, sizes):
    """Places along each dimension, (planes, results), as places in the plane, for all their combinations."""
    flat = places[0]
    for more, size in zip(places[1:], sizes[1:]):
        flat = as_rows(flat[:, :, None] * size + more[:, None, :])
    return flat


def all_of(insides):
    flat = insides[0]
    for more in insides[1:]:
        flat = as_rows(flat[:, :, None] & more[:, None, :])
    return flat


def as_rows(array):
    return array.reshape(len(array), math.prod(array.shape[1:]))


@functools.lru_cache(32)
def sliding_windows(slide, sizes, outputs):
    """Windows of one size at equal distances."""
    lines = [sliding_line(*along) for along in zip(*slide[:4], sizes, outputs)]
    square = slide.kernel[0] if slide[:4] in SQUARES else 0
    return Windows(lines, sizes, outputs, square)


# The two commonest kinds of window; the compiler makes loops for each.
SQUARES = [((size,) * 2, (2, 2), (padding,) * 2, (1, 1)) for size, padding in ((2, 0), (3, 0), (3, 1))]


def sliding_line(kernel, stride, padding, dilation, size, outputs):
    starts = np.arange(outputs) * stride - padding
    places = starts + dilation * np.arange(kernel)[:, None]
    missing = np.maximum(-starts, 0)
    first = starts + -(-missing // dilation) * dilation
    bounds = np.stack([first, np.minimum(starts + dilation * (kernel - 1) + 1, size)])
    inside = (places >= 0) & (places < size)
    return Line(places.clip(0, size - 1)[:, None], inside[:, None], first[None], bounds, dilation)


def window_bounds(size, outputs):
    """Begin and end of each of the `outputs` windows that divide `size` elements."""
    numbers = np.arange(outputs)
    return numbers * size // max(outputs, 1), -(-(numbers + 1) * size // max(outputs, 1))


@functools.lru_cache(32)
def adaptive_windows(sizes, outputs):
    """As many windows as the result has elements. Their sizes differ by one at most."""
    return Windows([adaptive_line(*along) for along in zip(sizes, outputs)], sizes, outputs)


def adaptive_line(size, outputs):
    starts, ends = window_bounds(size, outputs)
    places = starts + np.arange((ends - starts).max(initial=0))[:, None]
    bounds = np.stack([starts, ends])
    return Line(places.clip(0, size - 1)[:, None], (places < ends)[:, None], starts[None], bounds)


def windows_from(starts, kernel, sizes, outputs):
    """Windows of one size that begin at `starts`: for each dimension an array (planes, results)."""
    lines = []
    for start, length in zip(starts, kernel):
        places = start + np.arange(length)[:, None, None]
        lines.append(Line(places, np.ones_like(places, bool), start, None))
    return Windows(lines, sizes, outputs)


# ----------------------------------------------------------------------------------------------------- planes


def planes_of(array, dims):
    """The array's planes as rows: (planes, elements)."""
    kept = array.ndim - dims
    return np.ascontiguousarray(array).reshape(math.prod(array.shape[:kept]), math.prod(array.shape[kept:]))


def look(planes, places):
    """The elements of each plane at the indices `places`."""
    return planes.take(places[0], 1) if len(places) == 1 else np.take_along_axis(planes, places, 1)


def in_float32(array):
    """16-bit floats as float32: comparing and adding them is done there."""
    wide = WIDENED.get(array.dtype)
    return array if wide is None else array.astype(wide)


def rows_to_fill(out, dims, dtype):
    """An output's planes as rows to write to: (planes, elements). Its own memory if it lies like that, else other."""
    array, kept = out._array, out._array.ndim - dims
    sizes = math.prod(array.shape[:kept]), math.prod(array.shape[kept:])
    return array.reshape(sizes) if array.flags.c_contiguous and array.dtype is dtype else np.empty(sizes, dtype)


def put_rows(rows, out):
    """Rows that were filled, to the output if they are not a view of its memory."""
    if rows.base is None:
        out._array[...] = cast(rows, out._array.dtype).reshape(out._array.shape)
