"""Products with banded matrices along one dimension: interpolation, forward and backward, and adaptive average pooling
of volumes.

    times_band(start, count, weights, x, out)     out[…, o, …] = Σ weights[o, k] x[…, start[o] + k, …]

`start`, `count` and `weights` say for each element of the result which elements it is made of: Note [ Resizing is a
banded matrix ].

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element of the result.

In PyTorch: `aten/src/ATen/native/cuda/UpSample.cuh`, `aten/src/ATen/native/cuda/UpSampleBilinear2d.cu`,
`aten/src/ATen/native/cuda/UpSampleNearest2d.cu`, `aten/src/ATen/native/cuda/UpSampleBicubic2d.cu`: a kernel for each
method and number of dimensions, which computes the weights anew for each element and adds gradients atomically.
"""

import math

import numpy as np
from numba import cuda

from readtorch.aten.native import upsample
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.cuda.device_memory import tensor_on
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.tensor_impl import dtype_of

from .copy import copy as copy_kernel
from .loops import THREADS
from .register_dispatch_key import cuda_impl, empty, here, operator_named
from .rows import contiguous
from .softmax import wide


def times_band(start, count, weights, x, out):
    """x, out: (outer, n, inner)."""
    if out.size:
        launch(band_kernel, blocks_of(out.size, THREADS), THREADS, start, count, weights, x, out)


def band_kernel(start, count, weights, x, out):
    rows, inner = out.shape[1], out.shape[2]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        i, o, j = e // (rows * inner), e // inner % rows, e % inner
        total = x.dtype.type(0)
        for k in range(count[o]):
            total += weights[o, k] * x[i, start[o] + k, j]
        out[i, o, j] = total


def fill_times_bands(t, bands_of_axes, out, last_first=False):
    """`out` = the product of `t` (N, C, *sizes) with a band for each of the sizes."""
    x, axes = wide(t), list(enumerate(bands_of_axes, 2))
    for axis, one in reversed(axes) if last_first else axes:
        x = product_along(x, axis, one)
    copy_kernel(x._array, out._array)


def product_along(x, axis, one):
    """The band depends on sizes alone: the host works it out and sends it."""
    array, rows = contiguous(x._array), len(one.start)
    before, size, after = array.shape[:axis], array.shape[axis], array.shape[axis + 1 :]
    result = empty((*before, rows, *after), array.dtype)
    sent = [tensor_on(here(), np.ascontiguousarray(a)) for a in one]
    outer, inner = math.prod(before), math.prod(after)
    times_band(*[t._array for t in sent], array.reshape(outer, size, inner), result._array.reshape(outer, rows, inner))
    return result


METHODS = {
    **{f"upsample_nearest{d}d": ("nearest", d) for d in (1, 2, 3)},
    **{f"_upsample_nearest_exact{d}d": ("nearest_exact", d) for d in (1, 2, 3)},
    "upsample_linear1d": ("linear", 1),
    "upsample_bilinear2d": ("linear", 2),
    "upsample_trilinear3d": ("linear", 3),
    "upsample_bicubic2d": ("cubic", 2),
    "_upsample_bilinear2d_aa": ("linear_aa", 2),
    "_upsample_bicubic2d_aa": ("cubic_aa", 2),
    "_upsample_lanczos2d_aa": ("lanczos_aa", 2),
}


def resizing(name, method, dims):
    has_corners = not method.startswith("nearest")

    def bands_for(make, input_size, output_size, dtype, settings):
        wide_dtype = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
        return upsample.bands_of(
            make, method, input_size, output_size, has_corners and settings[0], settings[has_corners:], wide_dtype
        )

    @cuda_impl(operator_named(name))
    def forward(self, output_size, *settings_and_out):
        if not dtype_of(self).is_floating_point:
            raise not_implemented(f"{name.removeprefix('_')}_out_frame")(dtype_of(self))
        *settings, out = settings_and_out
        x = self._array
        fill_times_bands(self, bands_for(upsample.band, x.shape, output_size, x.dtype, settings), out, last_first=True)

    @cuda_impl(operator_named(f"{name}_backward"))
    def backward(grad_output, output_size, input_size, *settings_and_out):
        *settings, out = settings_and_out
        found = bands_for(upsample.transposed_band, input_size, output_size, grad_output._array.dtype, settings)
        fill_times_bands(grad_output, found, out)


for _name, _arguments in METHODS.items():
    resizing(_name, *_arguments)
