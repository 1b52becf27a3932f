"""The parameters of a convolution: strides, padding, dilation, and which sizes fit together.

In PyTorch: `ConvParams` and the checks in `aten/src/ATen/native/Convolution.cpp`, and
`aten/src/ATen/native/ConvUtils.h`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

from typing import NamedTuple

import numpy as np

from readtorch.aten.tensor_meta import remembered
from readtorch.c10.scalar_type import bfloat16
from readtorch.c10.tensor_impl import legacy_type_name, type_name

_FLOAT32 = np.dtype(np.float32)
_ONEDNN = (_FLOAT32, bfloat16.numpy)  # what PyTorch convolves with oneDNN


class Geometry(NamedTuple):
    """How a kernel moves over its input. Each tuple has an entry for each spatial dimension."""

    stride: tuple
    padding: tuple
    dilation: tuple
    transposed: bool
    output_padding: tuple
    groups: int


def geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups):
    """The arguments of `convolution`, with lists of one number expanded to all spatial dimensions."""
    return _geometry(weight._array.ndim - 2, stride, padding, dilation, transposed, output_padding, groups)


@remembered
def _geometry(dim, stride, padding, dilation, transposed, output_padding, groups):
    if dim <= 0:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    return Geometry(
        _expand(stride, "stride", dim),
        _expand(padding, "padding", dim),
        _expand(dilation, "dilation", dim),
        transposed,
        _expand(output_padding, "output_padding", dim),
        groups,
    )


def _expand(values, name, dim):
    if len(values) == 1:
        return tuple(values) * dim
    if len(values) != dim:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dim} values to match "
            f"the convolution dimensions, but got {name}={list(values)}"
        )
    return tuple(values)


def output_shape(shape, weight_shape, geometry):
    """The shape of the result for an input of `shape`; its entries may be negative where nothing fits."""
    g = geometry
    places = zip(shape[2:], weight_shape[2:], g.stride, g.padding, g.dilation, g.output_padding)
    if g.transposed:
        spatial = [(n - 1) * s - 2 * p + d * (k - 1) + extra + 1 for n, k, s, p, d, extra in places]
        return (shape[0], weight_shape[1] * g.groups, *spatial)
    spatial = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in places]
    return (shape[0], weight_shape[0], *spatial)


# ----------------------------------------------------------------------------------------------------- checks


def check_shapes(input, weight, bias, geometry):
    """Raises RuntimeError unless input, weight and bias fit together."""
    x, w, groups = input._array.shape, weight._array.shape, geometry.groups
    if min(geometry.padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(geometry.output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(geometry.stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(geometry.dilation) <= 0:
        negative = min(geometry.dilation) < 0
        raise RuntimeError(
            "dilation should be greater than zero" if negative else "non-positive dilation is not supported"
        )
    if len(x) != len(w):
        raise RuntimeError(
            f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight {list(w)}, "
            f"but got {len(x)}-dimensional input of size {list(x)} instead"
        )
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {list(w)} instead"
        )
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension "
            f"0, but got weight of size [{list(w)}] instead"
        )
    (_check_transposed if geometry.transposed else _check_direct)(x, w, bias, geometry)


def _check_direct(x, w, bias, geometry):
    channels = w[1] * geometry.groups
    if x[1] != channels:
        raise RuntimeError(
            f"Given groups={geometry.groups}, weight of size {list(w)}, expected "
            f"input{list(x)} to have {channels} channels, but got {x[1]} channels instead"
        )
    _check_bias(bias, w[0], f"Given weight of size {list(w)}")
    padded = [n + 2 * p for n, p in zip(x[2:], geometry.padding)]
    kernel = [d * (k - 1) + 1 for k, d in zip(w[2:], geometry.dilation)]
    if any(n < k for n, k in zip(padded, kernel)):
        padded, kernel = [" x ".join(map(str, sizes)) for sizes in (padded, kernel)]
        raise RuntimeError(
            f"Calculated padded input size per channel: ({padded}). Kernel size: ({kernel}). "
            "Kernel size can't be greater than actual input size"
        )


def _check_transposed(x, w, bias, geometry):
    if x[1] != w[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w)}, expected input{list(x)} to have "
            f"{w[0]} channels, but got {x[1]} channels instead"
        )
    _check_bias(bias, w[1] * geometry.groups, f"Given transposed=1, weight of size {list(w)}")


def _check_bias(bias, size, given):
    if bias is not None and bias._array.shape != (size,):
        raise RuntimeError(
            f"{given}, expected bias to be 1-dimensional with {size} elements, but got bias "
            f"of size {list(bias._array.shape)} instead"
        )


def check_same_type(input, weight, bias):
    """Raises RuntimeError unless weight and bias have the input's dtype."""
    dtype = input._array.dtype
    for name, t in (("weight", weight), ("bias", bias)):
        if t is None or t._array.dtype == dtype:
            continue
        # In PyTorch: each convolution library has its own message.
        if dtype in _ONEDNN or dtype.kind == "c":
            longer = f" or input should be a MKLDNN tensor and {name} is a dense tensor"
            raise RuntimeError(
                f"Input type ({legacy_type_name(input)}) and {name} type ({legacy_type_name(t)}) should "
                f"be the same{'' if dtype.kind == 'c' else longer}"
            )
        if name == "weight":
            raise RuntimeError(f"expected scalar type {type_name(input)} but found {type_name(t)}")


def check_room(input, geometry, spatial):
    """Raises RuntimeError for a transposed convolution's result that cannot be."""
    g = geometry
    if any(extra >= s and extra >= d for extra, s, d in zip(g.output_padding, g.stride, g.dilation)):
        axes = ("depth", "height", "width")[-max(2, len(spatial)) :]
        parts = [
            f"{name}_{axis}: {value}"
            for name in ("output_padding", "stride", "dilation")
            for axis, value in zip(axes, _as_plane(getattr(g, name), name))
        ]
        raise RuntimeError("output padding must be smaller than either stride or dilation, but got " + " ".join(parts))
    if min(spatial) <= 0:
        if input._array.dtype is _FLOAT32:
            raise RuntimeError("could not construct a memory descriptor using a format tag")
        sizes = [_as_plane(s, None) for s in (input._array.shape[2:], spatial)]
        before, after = [" x ".join(map(str, s)) for s in sizes]
        raise RuntimeError(
            f"Given input size per channel: ({before}). Calculated output size per channel: "
            f"({after}). Output size is too small"
        )


def _as_plane(values, name):
    """A signal counts as an image of height 1."""
    return values if len(values) > 1 else (0 if name == "output_padding" else 1, *values)
