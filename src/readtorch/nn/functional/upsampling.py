"""Resizing. In PyTorch: part of `torch/nn/functional.py`."""
import warnings

from readtorch._C import _nn
from readtorch.nn.functional.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

# (mode, dimensions of the input) -> the operator. Those of the second table also take `align_corners`.
_COPYING = {
    ("nearest", 3): _nn.upsample_nearest1d,
    ("nearest", 4): _nn.upsample_nearest2d,
    ("nearest", 5): _nn.upsample_nearest3d,
    ("nearest-exact", 3): _nn._upsample_nearest_exact1d,
    ("nearest-exact", 4): _nn._upsample_nearest_exact2d,
    ("nearest-exact", 5): _nn._upsample_nearest_exact3d,
}
_MIXING = {
    ("linear", 3): _nn.upsample_linear1d,
    ("bilinear", 4): _nn.upsample_bilinear2d,
    ("trilinear", 5): _nn.upsample_trilinear3d,
    ("bicubic", 4): _nn.upsample_bicubic2d,
}
_ANTIALIAS = {
    "bilinear": _nn._upsample_bilinear2d_aa,
    "bicubic": _nn._upsample_bicubic2d_aa,
    "lanczos": _nn._upsample_lanczos2d_aa,
}
_AVERAGING = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}
_DIMENSIONS = {"linear": 3, "bilinear": 4, "trilinear": 5}


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
    antialias=False,
):
    """Resize the input (N, C, *sizes) to `size`, or by `scale_factor`: a number for all dimensions or one for each.

    mode: "nearest", "nearest-exact", "area", "linear" (3-D input), "bilinear", "bicubic", "lanczos" (4-D), "trilinear"
    (5-D). align_corners: the outermost elements of input and result stand over each other, instead of the outer edges.
    recompute_scale_factor: from the sizes, which are whole. antialias: blur first what becomes smaller.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the "
                "interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    output_size, scale_factors = _size_or_factors(input, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if recompute_scale_factor or mode == "area" and output_size is None:
        output_size = [int(n * factor) for n, factor in zip(input.shape[2:], scale_factors)]
        scale_factors = None
    ndim = input.dim()
    if antialias and not (mode in _ANTIALIAS and ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if (mode, ndim) in _COPYING:
        return _COPYING[mode, ndim](input, output_size, scale_factors)
    if mode == "area" and ndim in _AVERAGING:
        return _AVERAGING[ndim](input, output_size)
    if antialias and mode != "lanczos":
        return _ANTIALIAS[mode](input, output_size, align_corners, scale_factors)
    if (mode, ndim) in _MIXING:
        return _MIXING[mode, ndim](input, output_size, align_corners, scale_factors)
    if mode == "lanczos" and ndim == 4:
        return _lanczos(input, output_size, align_corners, scale_factors, antialias)
    raise _no_such_mode(mode, ndim)


def _size_or_factors(input, size, scale_factor):
    """(size for each dimension, None), or (None, factor for each dimension)."""
    dim = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        return _each_size(input, size, dim), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, (list, tuple)):
        return None, [scale_factor] * dim
    if len(scale_factor) != dim:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(input.shape[2:])} and "
            f"scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            "scale_factor in (s1, s2, ...,sK) format."
        )
    return None, scale_factor


def _each_size(input, size, dim):
    if not isinstance(size, (list, tuple)):
        return [size] * dim
    if len(size) != dim:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got "
            f"input with spatial dimensions of {list(input.shape[2:])} and output size of {size}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            "output size in (o1, o2, ...,oK) format."
        )
    if not all(hasattr(n, "__index__") for n in size):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
            f"Tuple[int, int, int], but got size with types {[type(n) for n in size]}"
        )
    return size


def _lanczos(input, output_size, align_corners, scale_factors, antialias):
    if align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    return _ANTIALIAS["lanczos"](input, output_size, align_corners, scale_factors)


def _no_such_mode(mode, ndim):
    if ndim in (3, 4, 5) and mode in _DIMENSIONS:
        return NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {_DIMENSIONS[mode]}D input")
    return NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported"
        f" (got {ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area |"
        f" nearest-exact (got {mode})"
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Deprecated: `interpolate`."""
    _warn_deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """Deprecated: `interpolate` with mode="nearest"."""
    _warn_deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """Deprecated: `interpolate` with mode="bilinear" and align_corners=True."""
    _warn_deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn_deprecated(name):
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3
    )
