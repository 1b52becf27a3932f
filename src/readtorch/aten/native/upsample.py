"""Resizing images: what `F.interpolate` calls, one operator for each method and number of dimensions.

In PyTorch: `aten/src/ATen/native/UpSample*.cpp`. Explained in the chapter "Layers, functional, init".
"""
import functools
import inspect
import math

import numpy as np

from ...c10.tensor_impl import dtype_of, wrap
from .. import parallel
from ..native_function import native_function
from .copy import empty_in_format_of
from .gradient_sizes import check_resized
from .tensor_iterator import F4, F8, not_implemented
from .upsample_bands import band, transposed_band
from .upsample_bytes import resize_bytes

# ---------------------------------------------------------------------------------------------------- computing


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import upsample_kernels
    return upsample_kernels


# Results with fewer elements are not worth loading the compiler for.
FROM_SIZE = 4096
GRAIN = 1 << 15  # elements of a result that make a piece of work for a thread


def share(count, size, body):
    """`body(begin, end)` over `count` pieces of work that make a result of `size` elements."""
    parallel.parallel_for(0, count, max(1, GRAIN * count // max(size, 1)), body)


def times_band(band, x, axis):
    """The product with a band along one dimension."""
    shape = (*x.shape[:axis], len(band.start), *x.shape[axis + 1:])
    if math.prod(shape) < FROM_SIZE:
        return times_small_band(band, x, axis)
    x = np.ascontiguousarray(x)
    result = np.empty(shape, x.dtype)
    if axis == x.ndim - 1:
        rows, out = x.reshape(-1, x.shape[-1]), result.reshape(-1, shape[-1])
        share(len(rows), out.size, lambda b, e: loops().band_rows(rows, *band, out, b, e))
        return result
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
    lines, out = x.reshape(before, x.shape[axis], after), result.reshape(before, shape[axis], after)
    share(before, out.size, lambda b, e: loops().band_lines(lines, *band, out, b, e))
    return result


def times_small_band(band, x, axis):
    start, count, weights = band
    lines = x.swapaxes(0, axis)
    result = np.zeros((len(start), *lines.shape[1:]), x.dtype)
    for k in range(weights.shape[1]):
        rows = np.flatnonzero(count > k)
        weight = weights[rows, k].reshape(-1, *[1] * (x.ndim - 1))
        result[rows] += weight * lines[start[rows] + k]
    return result.swapaxes(0, axis)


def pick(x, indices):
    """x[:, :, indices[0], indices[1], …]: each element of the result is a copy of one."""
    if x.dtype not in (F4, F8) or x.size < FROM_SIZE:
        for axis, index in enumerate(indices, 2):
            x = x.take(index, axis)
        return x
    if len(indices) == 3:
        x = x.take(indices[0], 2)
    rows, columns = indices[-2] if len(indices) > 1 else np.arange(x.shape[1]), indices[-1]
    planes = np.ascontiguousarray(x).reshape(-1, *x.shape[-2:])
    out = np.empty((len(planes), len(rows), len(columns)), x.dtype)
    share(len(planes), out.size, lambda b, e: loops().pick(planes, rows, columns, out, b, e))
    return out.reshape(*x.shape[:-2], *out.shape[1:])


def pick_backward(grad, bands):
    if len(bands) != 2 or grad.dtype not in (F4, F8) or grad.size < FROM_SIZE:
        for axis, one in enumerate(bands, 2):
            grad = times_band(one, grad, axis)
        return grad
    rows, columns = bands
    planes = np.ascontiguousarray(grad).reshape(-1, *grad.shape[2:])
    out = np.empty((len(planes), len(rows.start), len(columns.start)), grad.dtype)
    share(len(planes), grad.size, lambda b, e: loops().pick_backward(
        planes, rows.start, rows.count, columns.start, columns.count, out, b, e))
    return out.reshape(*grad.shape[:2], *out.shape[1:])


def bands_of(make, method, input_size, output_size, align_corners, scales, dtype, *kept):
    """One Band for each dimension; places are computed in float32, in float64 for float64."""
    real = np.float64 if dtype is F8 else np.float32
    return [make(method, n, m, align_corners, s, real, *kept) for n, m, s in zip(input_size[2:], output_size, scales)]


def resize(x, method, output_size, align_corners, scales):
    """`x` (N, C, *sizes) resized to (N, C, *output_size); the last dimension first."""
    dtype = x.dtype
    if dtype.kind == "u" and not method.startswith("nearest"):
        return resize_bytes(x, method, output_size, align_corners, scales)
    if method == "nearest" and x.ndim != 4:
        method = "nearest_by_scale"  # in PyTorch too: only its loop for images, and backward, take the short cuts
    is_bilinear = method == "linear" and x.ndim == 4  # PyTorch's loop for these does not round the weights
    kept = dtype if dtype.itemsize == 2 and not is_bilinear else None
    bands = bands_of(band, method, x.shape, output_size, align_corners, scales, dtype, kept)
    if method.startswith("nearest"):
        return pick(x, [one.start for one in bands])
    if dtype.itemsize == 2:
        x = x.astype(F4)
    for axis in reversed(range(2, x.ndim)):
        # in PyTorch: where antialiasing leaves one element in the last dimension, all rows come out as the first one
        if not (method.endswith("_aa") and x.shape[axis] == output_size[axis - 2]):
            x = times_band(bands[axis - 2], x, axis)
    return x


def resize_backward(grad, method, input_size, output_size, align_corners, scales):
    """The transposed products; the first dimension first, while the last is long."""
    if method == "cubic" and tuple(input_size[2:]) == tuple(output_size):
        return grad  # in PyTorch too, whatever the scales
    bands = bands_of(transposed_band, method, input_size, output_size, align_corners, scales, grad.dtype)
    if grad.dtype.itemsize == 2:
        grad = grad.astype(F4)
    if method.startswith("nearest"):
        return pick_backward(grad, bands)
    for axis, one in enumerate(bands, 2):
        grad = times_band(one, grad, axis)
    return grad


def in_format_of(x, result):
    """`result`, in memory of its own, with the dtype and the memory format of `x`."""
    out = empty_in_format_of(x, result.shape)
    if result.dtype == x.dtype and result.strides == out.strides and not np.may_share_memory(result, x):
        return wrap(result)
    out[...] = result
    return wrap(out)


# ------------------------------------------------------------------------------------------------------- checks

def check_sizes(input_size, output_size, dims):
    if len(output_size) != dims:
        raise RuntimeError(f"It is expected output_size equals to {dims}, but got size {len(output_size)}")
    if len(input_size) != dims + 2:
        raise RuntimeError(f"It is expected input_size equals to {dims + 2}, but got size {len(input_size)}")
    if min(*input_size[2:], *output_size) <= 0:
        have, want = (", ".join([f"{name}: {n}" for name, n in zip("DHW"[-dims:], sizes)])
                      for sizes in (input_size[2:], output_size))
        joint = " and" if dims == 1 else ""
        raise RuntimeError("Input and output sizes should be greater than 0, but got input "
                           f"({have}){joint} output ({want})")


def check_not_empty(x):
    if x.shape[1] == 0:
        raise RuntimeError(f"Non-empty {x.ndim}D data tensor expected but got a tensor with sizes {list(x.shape)}")


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
        raise RuntimeError(f"Expected static_cast<int64_t>({name}->size()) == spatial_dimensions to be true, but got "
                           "false.  (Could this error message be improved?  If so, please report an enhancement "
                           "request to PyTorch.)")
    if scale_factors is None:
        return tuple(output_size)
    return tuple([int(n * factor) for n, factor in zip(input_size[2:], scale_factors)])


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
    saved = [*["align_corners"] * has_corners, *SCALES[dims]]
    vec = native_function(f"{name}.vec(Tensor input, SymInt[]? output_size, {corners}float[]? scale_factors) -> Tensor",
                          module="nn")
    operator = native_function(f"{name}(Tensor self, SymInt[{dims}] output_size, {settings}) -> Tensor", module="nn",
                               out=True)
    backward = native_function(
        f"{name}_backward(Tensor grad_output, SymInt[{dims}] output_size, SymInt[{dims + 2}] input_size, {settings}) "
        "-> Tensor", "", module="nn")

    @vec.compose
    def with_factors(input, output_size, *settings):
        *align_corners, scale_factors = settings
        size = wanted_size(input._array.shape, output_size, scale_factors)
        return operator.call(input, size, *align_corners, *(scale_factors or [None] * dims))

    @operator.kernel
    def resize_cpu(self, output_size, *settings):
        x = self._array
        check_sizes(x.shape, output_size, dims)
        check_not_empty(x)
        check_dtype(self, method, dims)
        align_corners = has_corners and settings[0]
        return in_format_of(x, resize(x, method, output_size, align_corners, settings[has_corners:]))

    @backward.kernel
    def resize_backward_cpu(grad_output, output_size, input_size, *settings):
        check_sizes(input_size, output_size, dims)
        check_resized(grad_output, (*input_size[:2], *output_size))
        g = grad_output._array
        align_corners = has_corners and settings[0]
        return in_format_of(g, resize_backward(g, method, input_size, output_size, align_corners,
                                               settings[has_corners:]))

    @operator.backward
    class UpsampleBackward:
        @formula("grad", "self_sym_sizes", "output_size", *saved)
        def self(grad, input_size, output_size, *settings):
            return backward.call(grad, output_size, tuple(input_size), *settings)

    @backward.backward
    class UpsampleBackwardBackward:
        @formula("grad", "output_size", *saved)
        def grad_output(grad, output_size, *settings):
            return operator.call(grad, output_size, *settings)

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
