"""grid_sample and affine_grid next to the reference: modes, points far outside, second derivatives, refusals."""

import itertools

import pytest
import torch

from tests.programs import same
from tests.reference import both

PADDING = ("zeros", "border", "reflection")


def look(mode, padding_mode, align_corners):
    return lambda T, x, grid: T.nn.functional.grid_sample(x, grid, mode, padding_mode, align_corners)


def points(*shape, dtype=torch.float64):
    """Points of which many lie outside, none of them on an edge."""
    return torch.rand(*shape, dtype=dtype) * 5 - 2.5


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_images(mode):
    x, grid = torch.randn(2, 3, 4, 5, dtype=torch.float64), points(2, 3, 4, 2)
    for padding_mode, corners in itertools.product(PADDING, (False, True)):
        for x_wants, grid_wants in ((True, True), (True, False), (False, True)):
            both(
                look(mode, padding_mode, corners),
                x.clone().requires_grad_(x_wants),
                grid.clone().requires_grad_(grid_wants),
                grad=2,
            )


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_volumes(mode):
    x, grid = torch.randn(1, 2, 3, 4, 5, dtype=torch.float64), points(1, 2, 3, 2, 3)
    for padding_mode, corners in itertools.product(PADDING, (False, True)):
        both(look(mode, padding_mode, corners), x.requires_grad_(), grid.requires_grad_(), grad=2)


@pytest.mark.parametrize("padding_mode", PADDING)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_points(padding_mode, dtype):
    """Enough of them for the compiled loops."""
    x, grid = torch.randn(3, 4, 15, 20, dtype=dtype), points(3, 30, 30, 2, dtype=dtype)
    for corners in (False, True):
        both(
            look("bilinear", padding_mode, corners),
            x.requires_grad_(),
            grid.requires_grad_(),
            rtol=1e-4,
            atol=2e-4 if dtype == torch.float32 else 1e-10,
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_are_rounded_alike(dtype):
    x, grid = torch.randn(2, 3, 5, 6).to(dtype), points(2, 4, 5, 2).to(dtype)
    for mode, padding_mode in itertools.product(("bilinear", "nearest", "bicubic"), PADDING):
        both(look(mode, padding_mode, False), x, grid, exact=True)


def test_points_that_are_no_numbers():
    nan, inf = float("nan"), float("inf")
    grid = torch.tensor([[nan, 0], [0, nan], [inf, 0], [-inf, 0], [1e10, 0], [-1e30, 0], [1, 1], [-1, -1]])
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    for mode, padding_mode in itertools.product(("bilinear", "nearest", "bicubic"), PADDING):
        both(look(mode, padding_mode, False), x, grid[None, None])
    many = grid.repeat(1, 600, 1)[None].float()  # through the compiled loops
    for padding_mode in PADDING:
        both(look("bilinear", padding_mode, True), x.repeat(1, 2, 1, 1), many.reshape(1, 60, 80, 2))


def test_affine_grids():
    theta = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    for corners in (False, True):
        both(lambda T, theta: T.nn.functional.affine_grid(theta, (2, 3, 4, 5), corners), theta, grad=2)
        both(lambda T, theta: T.nn.functional.affine_grid(theta, [2, 3, 1, 5], corners), theta.float())
    theta = torch.randn(1, 3, 4, requires_grad=True)
    both(lambda T, theta: T.nn.functional.affine_grid(theta, (1, 1, 2, 3, 4), False), theta, grad=2)


def test_refusals_and_warnings():
    def program(T, show):
        F, x, grid = T.nn.functional, T.zeros(2, 3, 4, 5), T.zeros(2, 6, 7, 2)
        for wrong in (
            (x, grid[:1]),
            (x, T.zeros(2, 6, 7, 3)),
            (x, T.zeros(2, 6, 7, 8, 2)),
            (x[0], grid[0, :, :1]),
            (x[..., :0], grid),
            (x, grid.double()),
            (x.long(), grid.long()),
            (x[None], T.zeros(1, 2, 2, 2, 2)),
        ):
            show.error(lambda: F.grid_sample(*wrong, align_corners=False))
        show.error(lambda: F.grid_sample(x[None, :1], T.zeros(1, 2, 2, 2, 3), "bicubic", align_corners=False))
        show.error(lambda: F.grid_sample(x, grid, "cubic"))
        show.error(lambda: F.grid_sample(x, grid, padding_mode="none"))
        show.warnings(lambda: F.grid_sample(x, grid))
        theta = T.zeros(2, 2, 3)
        for size in ((2, 3, 4), (2, 3, 4, 0), (2, 3, 4, 5, 6), (3, 3, 4, 5)):
            show.error(lambda: F.affine_grid(theta, size, True))
        show.error(lambda: F.affine_grid(theta.long(), (2, 3, 4, 5), True))
        show.warnings(lambda: F.affine_grid(theta, (2, 3, 4, 5)))
        show.warnings(lambda: F.affine_grid(theta, (2, 3, 1, 5), True))

    same(program)
