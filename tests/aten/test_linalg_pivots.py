"""Pivots that no factorization gave: LAPACK would exchange rows that lie outside the matrix."""

import pytest
import torch

import readtorch as rt
from tests.reference import both, to_readtorch

EYE, ONES = torch.eye(3), torch.ones(3, 1)


def pivots(*numbers, dtype=torch.int32):
    return torch.tensor(numbers, dtype=dtype)


@pytest.mark.parametrize(
    "p",
    [
        pivots(1, 2, 4),
        pivots(0, 2, 3),
        pivots(1, 2, -1),
        pivots(1, 900000, -9),
        pivots(1, 2),
        pivots(3, 3, 3),
        pivots(1, 2, 3, dtype=torch.int64),
        pivots(1, 2, 3, dtype=torch.float32),
        pivots(-(2**31), 1, 1),
        pivots(1, 2, 3).expand(2, 3),
    ],
)
def test_lu_solve(p):
    both(lambda T, lu, p, b: T.linalg.lu_solve(lu, p, b), EYE, p, ONES)
    both(lambda T, lu, p, b: T.linalg.lu_solve(lu, p, b, left=False), EYE, p, ONES.mT)
    both(lambda T, lu, p, b: T.linalg.lu_solve(lu, p, b, adjoint=True), EYE, p, ONES)


def test_lu_solve_finds_the_bad_matrix_of_a_batch():
    both(
        lambda T, lu, p, b: T.linalg.lu_solve(lu, p, b),
        EYE.expand(2, 3, 3),
        torch.stack([pivots(1, 2, 3), pivots(1, 2, 4)]),
        ONES,
    )


@pytest.mark.parametrize("shape", [(3, 0), (2, 1), (3,), (3, 3, 1)])
def test_lu_solve_of_other_right_hand_sides(shape):
    both(
        lambda T, lu, p, b: T.linalg.lu_solve(lu, p, b),
        EYE.expand(2, 3, 3),
        pivots(1, 2, 4).expand(2, 3),
        torch.ones(shape),
    )


@pytest.mark.parametrize(
    "p",
    [
        pivots(1, 2, 4),
        pivots(1, 2, 0),
        pivots(1, 900000, -9),
        pivots(-9, -9, -9),
        pivots(-3, -3, 3),
        pivots(1, 2, 3, dtype=torch.bool),
        pivots(1, 2, 3, dtype=torch.int64),
        pivots(1, 2),
    ],
)
def test_ldl_solve(p):
    both(lambda T, ld, p, b: T.linalg.ldl_solve(ld, p, b), EYE + 1, p, ONES)


@pytest.mark.parametrize("p", [(1, 2, -3), (-1, -2, -3), (-1, 2, 3), (-1, 2, -3)])
def test_half_a_block_of_ldl_solve(p):
    """PyTorch reads outside the matrix."""
    with pytest.raises(RuntimeError, match="Negative pivots given to ldl_solve must come in pairs"):
        rt.linalg.ldl_solve(to_readtorch(EYE), rt.tensor(p, dtype=rt.int32), to_readtorch(ONES))


def test_own_factors_are_taken():
    a = torch.tensor([[0.0, 1, 2], [1, 0, 3], [2, 3, 0]], dtype=torch.float64)
    both(lambda T, a, b: T.linalg.ldl_solve(*T.linalg.ldl_factor(a), b), a, ONES.double())
    both(lambda T, a, b: T.linalg.lu_solve(*T.linalg.lu_factor(a), b), a, ONES.double())


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32])
def test_dtypes_that_lapack_does_not_know(dtype):
    eye, ones = EYE.to(dtype), ONES.to(dtype)
    both(lambda T, a, b: T.linalg.lu_solve(a, T.tensor([1, 2, 3], dtype=T.int32), b), eye, ones)
    both(lambda T, a, b: T.linalg.ldl_solve(a, T.tensor([1, 2, 3], dtype=T.int32), b), eye, ones)
    both(lambda T, a, b: T.linalg.solve_triangular(a, b, upper=True), eye, ones)
