"""Sampling images at a grid of points. In PyTorch: part of `torch/nn/functional.py`."""

import warnings

import readtorch
from readtorch import Tensor
from readtorch.csrc.utils.disable_torch_function import (
    hand_on,
    handle_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)

__all__ = ["grid_sample", "affine_grid"]


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """The values of input (N, C, H, W) at the points grid (N, *, *, 2), or of (N, C, D, H, W) at (N, *, *, *, 3).

    A point is (x, y) or (x, y, z) from -1 to 1. mode: "bilinear" (also in three dimensions), "nearest", or "bicubic" (in
    two). padding_mode: the values outside the input, "zeros", "border" or "reflection". align_corners: whether -1 and 1
    are the centers of the outermost elements, instead of their outer edges. Raises ValueError for an unknown mode.
    """
    if has_torch_function_variadic(input, grid):
        return hand_on(grid_sample, (input, grid), locals())
    mode_enum, padding_mode_enum = _mode_enum(mode), _padding_mode_enum(padding_mode)
    if align_corners is None:
        _warn_of_corners()
        align_corners = False
    return readtorch.grid_sampler(input, grid, mode_enum, padding_mode_enum, align_corners)


def _mode_enum(mode: str) -> int:
    """The number that the operator knows a mode by."""
    if mode == "bilinear":
        return 0
    if mode == "nearest":
        return 1
    if mode == "bicubic":
        return 2
    raise ValueError(
        f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
    )


def _padding_mode_enum(padding_mode: str) -> int:
    if padding_mode == "zeros":
        return 0
    if padding_mode == "border":
        return 1
    if padding_mode == "reflection":
        return 2
    raise ValueError(
        "nn.functional.grid_sample(): expected padding_mode "
        f"to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
    )


def affine_grid(theta: Tensor, size: list[int], align_corners: bool | None = None) -> Tensor:
    """The points that `grid_sample` needs for affine transformations: theta (N, 2, 3) and size (N, C, H, W) give
    (N, H, W, 2); theta (N, 3, 4) and size (N, C, D, H, W) give (N, D, H, W, 3).
    """
    if has_torch_function_unary(theta):
        return handle_torch_function(affine_grid, (theta,), theta, size, align_corners=align_corners)
    if align_corners is None:
        _warn_of_corners()
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    dims = len(size) - 2
    if theta.dim() != 3 or theta.size(1) != dims or theta.size(2) != dims + 1:
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "This is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return readtorch.affine_grid_generator(theta, size, align_corners)


def _warn_of_corners() -> None:
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
        stacklevel=3,
    )
