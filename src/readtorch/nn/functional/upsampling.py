"""Resizing. In PyTorch: part of `torch/nn/functional.py`."""

import warnings

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch._jit_internal import _overload
from readtorch.csrc.utils.disable_torch_function import hand_on, has_torch_function_unary

from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]


@_overload
def interpolate(
    input: Tensor,
    size: int | None = None,
    scale_factor: list[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor: ...


@_overload
def interpolate(
    input: Tensor,
    size: list[int] | None = None,
    scale_factor: list[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor: ...


@_overload
def interpolate(
    input: Tensor,
    size: int | None = None,
    scale_factor: float | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor: ...


@_overload
def interpolate(
    input: Tensor,
    size: list[int] | None = None,
    scale_factor: float | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor: ...


def interpolate(
    input: Tensor,
    size: int | None = None,
    scale_factor: list[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the input (N, C, *sizes) to `size`, or by `scale_factor`: a number for all dimensions or one for each.

    mode: "nearest", "nearest-exact", "area", "linear" (3-D input), "bilinear", "bicubic", "lanczos" (4-D), "trilinear"
    (5-D). align_corners: the centers of the outermost elements of input and result coincide, instead of their outer
    edges. recompute_scale_factor: from the sizes, which are whole numbers. antialias: filter before downsampling.
    """
    if has_torch_function_unary(input):
        return hand_on(interpolate, (input,), locals())
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the "
                "interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    dim = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        scale_factors = None
        if isinstance(size, (list, tuple)):
            _check_size(input, size)
            output_size = size
        else:
            output_size = [size for _ in range(dim)]
    elif scale_factor is not None:
        output_size = None
        if isinstance(scale_factor, (list, tuple)):
            _check_scale_factor(input, scale_factor)
            scale_factors = scale_factor
        else:
            scale_factors = [scale_factor for _ in range(dim)]
    else:
        raise ValueError("either size or scale_factor should be defined")
    if recompute_scale_factor is not None and recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scale_factors is not None and (mode == "area" or recompute_scale_factor is not None and recompute_scale_factor):
        output_size = [int(input.size(i + 2) * scale_factors[i]) for i in range(dim)]
        scale_factors = None
    return _interpolate(input, output_size, scale_factors, mode, align_corners, antialias)


def _check_size(input: Tensor, size: list[int]) -> None:
    if len(size) != input.dim() - 2:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got "
            f"input with spatial dimensions of {list(input.shape[2:])} and output size of {size}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            "output size in (o1, o2, ...,oK) format."
        )
    if not readtorch.jit.is_scripting():
        if not all(hasattr(n, "__index__") for n in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                f"Tuple[int, int, int], but got size with types {[type(n) for n in size]}"
            )


def _check_scale_factor(input: Tensor, scale_factor: list[float]) -> None:
    if len(scale_factor) != input.dim() - 2:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(input.shape[2:])} and "
            f"scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            "scale_factor in (s1, s2, ...,sK) format."
        )


def _interpolate(
    input: Tensor,
    output_size: list[int] | None,
    scale_factors: list[float] | None,
    mode: str,
    align_corners: bool | None,
    antialias: bool,
) -> Tensor:
    """The operator of a mode and a number of dimensions. align_corners: None in modes that do not take it."""
    dim = input.dim() - 2
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and dim == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if align_corners is not None:
        return _interpolate_between(input, output_size, scale_factors, mode, align_corners, antialias)
    if mode == "nearest":
        if dim == 1:
            return _nn.upsample_nearest1d(input, output_size, scale_factors)
        if dim == 2:
            return _nn.upsample_nearest2d(input, output_size, scale_factors)
        if dim == 3:
            return _nn.upsample_nearest3d(input, output_size, scale_factors)
    if mode == "nearest-exact":
        if dim == 1:
            return _nn._upsample_nearest_exact1d(input, output_size, scale_factors)
        if dim == 2:
            return _nn._upsample_nearest_exact2d(input, output_size, scale_factors)
        if dim == 3:
            return _nn._upsample_nearest_exact3d(input, output_size, scale_factors)
    if mode == "area" and output_size is not None:
        if dim == 1:
            return adaptive_avg_pool1d(input, output_size)
        if dim == 2:
            return adaptive_avg_pool2d(input, output_size)
        if dim == 3:
            return adaptive_avg_pool3d(input, output_size)
    raise NotImplementedError(_no_such_mode(mode, dim + 2))


def _interpolate_between(
    input: Tensor,
    output_size: list[int] | None,
    scale_factors: list[float] | None,
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Tensor:
    """The operator of a mode that computes new values between those of the input."""
    dim = input.dim() - 2
    if mode == "linear" and dim == 1:
        return _nn.upsample_linear1d(input, output_size, align_corners, scale_factors)
    if mode == "bilinear" and dim == 2:
        if antialias:
            return _nn._upsample_bilinear2d_aa(input, output_size, align_corners, scale_factors)
        return _nn.upsample_bilinear2d(input, output_size, align_corners, scale_factors)
    if mode == "bicubic" and dim == 2:
        if antialias:
            return _nn._upsample_bicubic2d_aa(input, output_size, align_corners, scale_factors)
        return _nn.upsample_bicubic2d(input, output_size, align_corners, scale_factors)
    if mode == "trilinear" and dim == 3:
        return _nn.upsample_trilinear3d(input, output_size, align_corners, scale_factors)
    if mode == "lanczos" and dim == 2:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        return _nn._upsample_lanczos2d_aa(input, output_size, align_corners, scale_factors)
    raise NotImplementedError(_no_such_mode(mode, dim + 2))


def _no_such_mode(mode: str, ndim: int) -> str:
    """What the error says."""
    if ndim in (3, 4, 5):
        needed = 0
        if mode == "linear":
            needed = 3
        elif mode == "bilinear":
            needed = 4
        elif mode == "trilinear":
            needed = 5
        if needed != 0:
            return f"Got {ndim}D input, but {mode} mode needs {needed}D input"
    return (
        "Input Error: Only 3D, 4D and 5D input Tensors supported"
        f" (got {ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area |"
        f" nearest-exact (got {mode})"
    )


def upsample(input: Tensor, size=None, scale_factor=None, mode="nearest", align_corners=None) -> Tensor:
    """Deprecated: `interpolate`."""
    _warn_deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """Deprecated: `interpolate` with mode="nearest"."""
    _warn_deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """Deprecated: `interpolate` with mode="bilinear" and align_corners=True."""
    _warn_deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn_deprecated(name):
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)
