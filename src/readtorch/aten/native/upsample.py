"""Resizing images: what `F.interpolate` calls, one operator for each method and number of dimensions.

Note [ Resizing is a banded matrix ]
Every method of resizing treats the dimensions one after the other, and in each of them an output element is a weighted
sum of a few neighbouring input elements: one (nearest), two (linear), four (cubic), or as many as lie under a stretched
filter (antialias). So a method is a matrix with a narrow band for each dimension. Forward multiplies by the matrices,
backward by their transposes, which have narrow bands too. A Band keeps the band only.

In PyTorch: `aten/src/ATen/native/UpSample.cpp`, `aten/src/ATen/native/UpSample.h`, and the HelperInterp classes in
`aten/src/ATen/native/cpu/UpSampleKernel.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import functools
import inspect
from typing import NamedTuple

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import in_format_of, remembered
from readtorch.aten.tensor_utils import check_resized, memory_for, put
from readtorch.c10.tensor_impl import dtype_of

from .dispatch_stub import dispatch_stub
from .tensor_iterator import F4, F8, not_implemented


class Band(NamedTuple):
    """Row o of the matrix is 0 but for weights[o, :count[o]], which begins in column start[o]."""

    start: np.ndarray
    count: np.ndarray
    weights: np.ndarray


@functools.lru_cache(128)
def band(method, size_in, size_out, align_corners, scale, real, kept=None):
    """The Band of a method for one dimension. scale: what the caller asked for, which may differ from the ratio of the
    sizes by rounding; or None. real: the type in which positions are computed. kept: the narrower type in which PyTorch
    keeps the weights, if it does."""
    return METHODS[method](size_in, size_out, align_corners, scale, real, kept or real)


@functools.lru_cache(128)
def transposed_band(method, size_in, size_out, align_corners, scale, real):
    """The transposed matrix: for each input element the output elements that it contributes to."""
    start, count, weights = band(method, size_in, size_out, align_corners, scale, real)
    matrix = np.zeros((size_out, size_in), real)
    is_part = np.zeros((size_out, size_in), bool)
    for o in range(size_out):
        columns = slice(start[o], start[o] + count[o])
        matrix[o, columns] = weights[o, : count[o]]
        is_part[o, columns] = True
    return band_of(matrix.T, is_part.T)


def band_of(matrix, is_part):
    start = is_part.argmax(1)
    count = np.where(is_part.any(1), is_part.shape[1] - is_part[:, ::-1].argmax(1) - start, 0)
    columns = start[:, None] + np.arange(max(count.max(initial=0), 1))
    rows = np.arange(len(start))[:, None]
    return Band(start, count, np.ascontiguousarray(matrix[rows, columns.clip(max=matrix.shape[1] - 1)]))


# ---------------------------------------------------------------------------------- where an output element lies


def scale_of(size_in, size_out, scale, real):
    """Input elements per output element."""
    return real(1 / scale) if scale is not None and scale > 0 else real(size_in) / real(size_out)


def scale_with_corners(size_in, size_out, align_corners, scale, real):
    if align_corners:  # the outermost elements of input and output stand over each other
        return real(size_in - 1) / real(size_out - 1) if size_out > 1 else real(0)
    return scale_of(size_in, size_out, scale, real)


def positions(size_in, size_out, align_corners, scale, real):
    """The position of each output element, in input elements."""
    step = scale_with_corners(size_in, size_out, align_corners, scale, real)
    positions = np.arange(size_out).astype(real)
    if align_corners:
        return step * positions
    # PyTorch's compilers make one fused multiply-add of it; for float32, so does this detour through float64.
    return (step * (positions + np.float64(0.5)) - 0.5).astype(real)


def split_position(place, size_in):
    """The element at or before each position, and the fraction beyond it (0 to 1)."""
    before = np.minimum(np.floor(place).astype(np.int64), size_in - 1)
    return before, (place - before.astype(place.dtype)).clip(0, 1)


# ------------------------------------------------------------------------------------------------------ methods


def one_element(index, real):
    return Band(index, np.ones_like(index), np.ones((len(index), 1), real))


def nearest(size_in, size_out, align_corners, scale, real, kept):
    """The element whose cell begins at or before the output element's; the commonest sizes ignore the scale."""
    if size_in == size_out:
        return one_element(np.arange(size_out), real)
    if size_out == 2 * size_in:
        return one_element(np.arange(size_out) // 2, real)
    return nearest_by_scale(size_in, size_out, align_corners, scale, real, kept)


def nearest_by_scale(size_in, size_out, align_corners, scale, real, kept):
    """The same by the rule alone."""
    step = scale_of(size_in, size_out, scale, np.float32)
    return one_element(whole(np.arange(size_out).astype(np.float32) * step, size_in), real)


def nearest_exact(size_in, size_out, align_corners, scale, real, kept):
    """The element whose cell covers the middle of the output element's cell."""
    step = scale_of(size_in, size_out, scale, np.float32)
    return one_element(whole((np.arange(size_out).astype(np.float32) + np.float32(0.5)) * step, size_in), real)


def whole(place, size_in):
    """The element in which each position lies; the last one beyond the end, however far."""
    return np.minimum(np.floor(place), np.float64(size_in - 1)).astype(np.int64)


def linear(size_in, size_out, align_corners, scale, real, kept):
    if size_in == size_out:
        return one_element(np.arange(size_out), real)
    place = positions(size_in, size_out, align_corners, scale, real)
    before, part = split_position(np.maximum(place, real(0)), size_in)
    part = part.astype(kept).astype(real)
    weights = np.stack([1 - part, part], 1).astype(kept).astype(real)
    is_last = before == size_in - 1
    weights[is_last] = [1, 0]
    return Band(before, np.where(is_last, 1, 2), weights)


def cubic(size_in, size_out, align_corners, scale, real, kept):
    """Four neighbours; those that would lie outside are the outermost element."""
    place = positions(size_in, size_out, align_corners, scale, real)
    before, t = split_position(place, size_in)
    weights = np.stack([outer_cubic(t + 1), inner_cubic(t), inner_cubic(1 - t), outer_cubic(2 - t)], 1)
    weights = weights.astype(kept).astype(real)
    neighbours = (before[:, None] + np.arange(-1, 3)).clip(0, size_in - 1)
    start, end = neighbours[:, 0], neighbours[:, -1]
    joined = np.zeros_like(weights)
    np.add.at(joined, (np.arange(size_out)[:, None], neighbours - start[:, None]), weights)
    return Band(start, end - start + 1, joined)


def inner_cubic(x, a=-0.75):
    """Keys's cubic convolution for distances up to 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def outer_cubic(x, a=-0.75):
    """The same for distances from 1 to 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def antialiased(width, filter_at):
    """A method that lays a filter, `width` elements wide, over the input, stretched when the image shrinks."""

    def method(size_in, size_out, align_corners, scale, real, kept):
        step = scale_with_corners(size_in, size_out, align_corners, scale, real)
        stretch = max(step, real(1))
        center = step * (np.arange(size_out).astype(real) + real(0.5))
        reach = real(width / 2) * stretch
        start = np.maximum((center - reach + real(0.5)).astype(np.int64), 0)
        end = np.minimum((center + reach + real(0.5)).astype(np.int64), size_in)
        count = (end - start).clip(0, int(np.ceil(reach)) * 2 + 1)
        columns = np.arange(max(count.max(initial=0), 1))
        distance = (columns + start[:, None] - center[:, None] + real(0.5)) * (real(1) / stretch)
        weights = np.where(columns < count[:, None], filter_at(distance), 0).astype(real)
        total = weights.sum(1, keepdims=True)
        return Band(start, count, np.divide(weights, total, out=weights, where=total != 0))

    return method


def triangle(x):
    return np.maximum(1 - np.abs(x), 0)


def cubic_filter(x):
    x = np.abs(x)
    return np.where(x < 1, inner_cubic(x, -0.5), np.where(x < 2, outer_cubic(x, -0.5), 0))


def lanczos_filter(x):
    """The middle of sinc, faded out by the middle lobe of a sinc three times as wide."""
    return np.where((x >= -3) & (x < 3), np.sinc(x) * np.sinc(x / 3), 0)


METHODS = {
    "nearest": nearest,
    "nearest_by_scale": nearest_by_scale,
    "nearest_exact": nearest_exact,
    "linear": linear,
    "cubic": cubic,
    "linear_aa": antialiased(2, triangle),
    "cubic_aa": antialiased(4, cubic_filter),
    "lanczos_aa": antialiased(6, lanczos_filter),
}


# ------------------------------------------------------------------------------------------------------ bytes
# Images of bytes are resized in integers only, as Pillow does it. In PyTorch:
# `separable_upsample_generic_Nd_kernel_impl` for uint8 in `aten/src/ATen/native/cpu/UpSampleKernel.cpp`; vectorized in
# `UpSampleKernelAVXAntialias.h`.


def resize_bytes(x, method, output_size, align_corners, scales):
    """The last dimension first; after each dimension the result is bytes again."""
    for axis in reversed(range(2, x.ndim)):
        size, scale = output_size[axis - 2], scales[axis - 2]
        if size != x.shape[axis]:
            x = times_whole_band(band(method, x.shape[axis], size, align_corners, scale, np.float64), x, axis)
    return x


def times_whole_band(band, x, axis):
    start, count, weights = band
    weights, precision = as_whole_numbers(weights)
    lines = x.swapaxes(0, axis).astype(np.int32)
    total = np.full((len(start), *lines.shape[1:]), 1 << precision >> 1, np.int32)
    for k in range(weights.shape[1]):
        rows = np.flatnonzero(count > k)
        weight = weights[rows, k].reshape(-1, *[1] * (x.ndim - 1))
        total[rows] += weight * lines[start[rows] + k]
    return (total >> precision).clip(0, 255).astype(np.uint8).swapaxes(0, axis)


def as_whole_numbers(weights):
    """The weights times 2^precision, rounded: the largest power for which they fit into 16 bits."""
    largest_weight = weights.max()
    precision = next(p for p in range(23) if p == 22 or int(0.5 + largest_weight * 2 ** (p + 1)) >= 1 << 15)
    scaled = weights * 2.0**precision
    return np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32), precision


# ---------------------------------------------------------------------------------------------------- computing

FROM_SIZE = 4096  # fewer elements are not worth loading the compiler for


@dispatch_stub("upsample_kernel", FROM_SIZE)
def times_band(out, one, x, axis):
    """out = the product of a Band and `x` along one dimension."""
    start, count, weights = one
    lines, result = x.swapaxes(0, axis), out.swapaxes(0, axis)
    result[...] = 0
    for k in range(weights.shape[1]):
        rows = np.flatnonzero(count > k)
        weight = weights[rows, k].reshape(-1, *[1] * (x.ndim - 1))
        result[rows] += weight * lines[start[rows] + k]


def times_bands(x, steps, out):
    """out = `x` times several bands, each given with its dimension."""
    if not steps:
        out[...] = x
    for left, (axis, one) in enumerate(steps, 1 - len(steps)):
        product = np.empty((*x.shape[:axis], len(one.start), *x.shape[axis + 1 :]), x.dtype) if left else out
        times_band(product, one, x, axis)
        x = product


@dispatch_stub("upsample_kernel", FROM_SIZE)
def pick(x, indices, out):
    """out = x[:, :, indices[0], indices[1], …]: each element is a copy of one."""
    *others, last = enumerate(indices, 2)
    for axis, index in others:
        x = x.take(index, axis)
    x.take(last[1], last[0], out=out, mode="clip")


@dispatch_stub("upsample_kernel", FROM_SIZE)
def pick_backward(grad, bands, out):
    """The transposed of `pick`."""
    times_bands(grad, list(enumerate(bands, 2)), out)


def bands_of(make, method, input_size, output_size, align_corners, scales, dtype, *kept):
    """One Band for each dimension; positions are computed in float32, in float64 for float64."""
    real = np.float64 if dtype is F8 else np.float32
    return [make(method, n, m, align_corners, s, real, *kept) for n, m, s in zip(input_size[2:], output_size, scales)]


def resize(x, method, align_corners, scales, out):
    """Fill `out` (N, C, *output_size) with `x` (N, C, *sizes) resized; the last dimension first."""
    dtype, output_size = x.dtype, out._array.shape[2:]
    if dtype.kind == "u" and not method.startswith("nearest"):
        return put(resize_bytes(x, method, output_size, align_corners, scales), out)
    if method == "nearest" and x.ndim != 4:
        method = "nearest_by_scale"  # in PyTorch too: only its loop for images, and backward, take the short cuts
    is_bilinear = method == "linear" and x.ndim == 4  # PyTorch's loop for these does not round the weights
    kept = dtype if dtype.itemsize == 2 and not is_bilinear else None
    bands = bands_of(band, method, x.shape, output_size, align_corners, scales, dtype, kept)
    if method.startswith("nearest"):
        result = memory_for(out, dtype)
        pick(x, [one.start for one in bands], result)
    else:
        x = x.astype(F4) if dtype.itemsize == 2 else x
        result = memory_for(out, x.dtype)
        # in PyTorch: where antialiasing leaves one element in the last dimension, all rows come out as the first one
        steps = [
            (axis, one)
            for axis, one in enumerate(bands, 2)
            if not (method.endswith("_aa") and x.shape[axis] == output_size[axis - 2])
        ]
        times_bands(x, steps[::-1], result)
    put(result, out)


def resize_backward(grad, method, output_size, align_corners, scales, out):
    """The transposed products; the first dimension first, while the last is long."""
    input_size = out._array.shape
    if method == "cubic" and input_size[2:] == tuple(output_size):
        return put(grad, out)  # in PyTorch too, whatever the scales
    bands = bands_of(transposed_band, method, input_size, output_size, align_corners, scales, grad.dtype)
    grad = grad.astype(F4) if grad.dtype.itemsize == 2 else grad
    result = memory_for(out, grad.dtype)
    if method.startswith("nearest"):
        pick_backward(grad, bands, result)
    else:
        times_bands(grad, list(enumerate(bands, 2)), result)
    put(result, out)


# ------------------------------------------------------------------------------------------------------- checks


def check_sizes(input_size, output_size, dims):
    if len(output_size) != dims:
        raise RuntimeError(f"It is expected output_size equals to {dims}, but got size {len(output_size)}")
    if len(input_size) != dims + 2:
        raise RuntimeError(f"It is expected input_size equals to {dims + 2}, but got size {len(input_size)}")
    if min(*input_size[2:], *output_size) <= 0:
        have, want = (
            ", ".join([f"{name}: {n}" for name, n in zip("DHW"[-dims:], sizes)])
            for sizes in (input_size[2:], output_size)
        )
        joint = " and" if dims == 1 else ""
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({have}){joint} output ({want})"
        )


@remembered
def resized_shape(shape, output_size, dims):
    """The shape of the result. Raises RuntimeError."""
    check_sizes(shape, output_size, dims)
    if shape[1] == 0:
        raise RuntimeError(f"Non-empty {len(shape)}D data tensor expected but got a tensor with sizes {list(shape)}")
    return (*shape[:2], *output_size)


def check_dtype(self, method, dims):
    """Floats; bytes for copies, and for images of two dimensions. 16-bit floats have no antialiasing."""
    dtype = dtype_of(self)
    takes_bytes = method.startswith("nearest") or dims == 2
    if dtype.name == "uint8" and takes_bytes:
        return
    has_filter = method.endswith("_aa")
    if dtype.is_floating_point and not (has_filter and self._array.itemsize == 2):
        return
    name = f"compute_indices_weights_{method.removesuffix('_exact')}"
    if has_filter:
        name = "compute_index_ranges_weights"
    elif dims == 2 and method != "cubic":
        name = f"upsample_{'bilinear' if method == 'linear' else 'nearest'}2d_channels_last"
    raise not_implemented(name)(dtype)


def wanted_size(input_size, output_size, scale_factors):
    """The output size, given itself or as factors."""
    dims = len(input_size) - 2
    if (output_size is None) == (scale_factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    given, name = (output_size, "output_size") if scale_factors is None else (scale_factors, "scale_factors")
    if len(given) != dims:
        raise RuntimeError(
            f"Expected static_cast<int64_t>({name}->size()) == spatial_dimensions to be true, but got "
            "false.  (Could this error message be improved?  If so, please report an enhancement "
            "request to PyTorch.)"
        )
    if scale_factors is None:
        return tuple(output_size)
    return tuple([whole_size(n * factor) for n, factor in zip(input_size[2:], scale_factors)])


def whole_size(size):
    if not -(2**63) <= size < 2**63:  # nan, too
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return int(size)


# ---------------------------------------------------------------------------------------------------- operators

SCALES = {1: ["scales"], 2: ["scales_h", "scales_w"], 3: ["scales_d", "scales_h", "scales_w"]}


def formula(*parameters):
    """Decorator: a formula's parameters say what is saved; this one's depend on the number of dimensions."""

    def name_parameters(function):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        function.__signature__ = inspect.Signature([inspect.Parameter(p, kind) for p in parameters])
        return function

    return name_parameters


def declare(name, node, dims, method, has_corners=True):
    """The operator, its overload for `F.interpolate`, its backward, and the backward of that."""
    corners = "bool align_corners, " if has_corners else ""
    settings = corners + ", ".join(f"float? {s}=None" for s in SCALES[dims])
    vec = native_function(
        f"{name}.vec(Tensor input, SymInt[]? output_size, {corners}float[]? scale_factors) -> Tensor", module="nn"
    )
    operator = native_function(
        f"{name}(Tensor self, SymInt[{dims}] output_size, {settings}) -> Tensor", module="nn", out=True
    )
    backward = native_function(
        f"{name}_backward(Tensor grad_output, SymInt[{dims}] output_size, SymInt[{dims + 2}] input_size, {settings}) "
        "-> Tensor",
        "",
        module="nn",
    )

    @vec.compose
    def with_factors(input, output_size, *settings):
        *align_corners, scale_factors = settings
        size = wanted_size(input._array.shape, output_size, scale_factors)
        return operator.call(input, size, *align_corners, *(scale_factors or [None] * dims))

    @operator.meta
    def resize_meta(self, output_size, *settings):
        return in_format_of(self, resized_shape(self._array.shape, output_size, dims))

    @operator.impl()
    def resize_cpu(self, output_size, *settings_and_out):
        check_dtype(self, method, dims)
        *settings, out = settings_and_out
        resize(self._array, method, has_corners and settings[0], settings[has_corners:], out)

    @backward.meta
    def resize_backward_meta(grad_output, output_size, input_size, *settings):
        check_sizes(input_size, output_size, dims)
        check_resized(grad_output, (*input_size[:2], *output_size))
        return in_format_of(grad_output, input_size)

    @backward.impl()
    def resize_backward_cpu(grad_output, output_size, input_size, *settings_and_out):
        *settings, out = settings_and_out
        align_corners, scales = has_corners and settings[0], settings[has_corners:]
        resize_backward(grad_output._array, method, output_size, align_corners, scales, out)

    derivatives(operator, backward, node, [*["align_corners"] * has_corners, *SCALES[dims]])


def derivatives(operator, backward, node, saved):
    """Of an operator and of its backward: each is the other's transpose."""

    @operator.backward
    class UpsampleBackward:
        @formula("grad", "self_sym_sizes", "output_size", *saved)
        def self(grad, input_size, output_size, *settings):
            return backward.call(grad, output_size, tuple(input_size), *settings)

        result = "auto_linear"

    @backward.backward
    class UpsampleBackwardBackward:
        @formula("grad", "output_size", *saved)
        def grad_output(grad, output_size, *settings):
            return operator.call(grad, output_size, *settings)

        result = "auto_linear"

    UpsampleBackward.__name__ = f"Upsample{node}Backward0"
    UpsampleBackwardBackward.__name__ = f"Upsample{node}BackwardBackward0"


for _dims in (1, 2, 3):
    declare(f"upsample_nearest{_dims}d", f"Nearest{_dims}D", _dims, "nearest", has_corners=False)
    declare(f"_upsample_nearest_exact{_dims}d", f"NearestExact{_dims}D", _dims, "nearest_exact", has_corners=False)
declare("upsample_linear1d", "Linear1D", 1, "linear")
declare("upsample_bilinear2d", "Bilinear2D", 2, "linear")
declare("upsample_trilinear3d", "Trilinear3D", 3, "linear")
declare("upsample_bicubic2d", "Bicubic2D", 2, "cubic")
declare("_upsample_bilinear2d_aa", "Bilinear2DAa", 2, "linear_aa")
declare("_upsample_bicubic2d_aa", "Bicubic2DAa", 2, "cubic_aa")
declare("_upsample_lanczos2d_aa", "Lanczos2DAa", 2, "lanczos_aa")
