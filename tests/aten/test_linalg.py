"""readtorch.linalg: values, gradients of two orders, layouts, and errors, against the reference."""

import math
import warnings

import numpy as np
import pytest
import torch

import readtorch
from tests.reference import both


def matrix(*shape, dtype=torch.float64):
    """Matrices with well separated singular values."""
    rows = torch.arange(1, shape[-2] + 1, dtype=torch.float64).unsqueeze(-1)
    return (
        torch.randn(shape, dtype=dtype) + rows.to(dtype) * torch.eye(shape[-2], shape[-1]).to(dtype)
    ).requires_grad_()


def positive(*shape, dtype=torch.float64):
    a = torch.randn(shape, dtype=dtype)
    return (a @ a.mH + shape[-1] * torch.eye(shape[-1]).to(dtype)).requires_grad_()


SQUARE = {
    "inv": lambda T, a: T.linalg.inv(a),
    "inverse": lambda T, a: a.inverse(),
    "det": lambda T, a: T.linalg.det(a),
    "slogdet": lambda T, a: T.linalg.slogdet(a),
    "inv_ex": lambda T, a: T.linalg.inv_ex(a),
    "matrix_power": lambda T, a: T.linalg.matrix_power(a, 5),
    "negative power": lambda T, a: T.linalg.matrix_power(a, -2),
    "lu": lambda T, a: T.linalg.lu(a),
    "lu_factor": lambda T, a: T.linalg.lu_factor(a),
}


@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 3, 3)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_square(name, shape, dtype):
    both(SQUARE[name], matrix(*shape, dtype=dtype), grad=2)


def test_determinant_of_singular_matrices_has_a_gradient():
    singular = torch.tensor([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 3.0]]], dtype=torch.float64)
    for a in (singular, singular[0]):
        both(lambda T, a: T.linalg.det(a), a.clone().requires_grad_(), grad=2, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize(
    "shapes",
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (3, 2)), ((2, 1, 3, 3), (4, 3, 2))],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_solve(shapes, dtype):
    b = torch.randn(shapes[1], dtype=dtype).requires_grad_()
    both(lambda T, a, b: T.linalg.solve(a, b), matrix(*shapes[0], dtype=dtype), b, grad=2)


def test_solve_from_the_right():
    b = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    both(lambda T, a, b: T.linalg.solve(a, b, left=False), matrix(3, 3), b, grad=2)


@pytest.mark.parametrize(
    "upper, left, unit", [(u, x, d) for u in (False, True) for x in (False, True) for d in (False, True)]
)
def test_solve_triangular(upper, left, unit):
    b = torch.randn(*((3, 2) if left else (2, 3)), dtype=torch.float64).requires_grad_()
    both(
        lambda T, a, b: T.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit),
        matrix(3, 3),
        b,
        grad=2,
    )


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_cholesky(shape, dtype):
    for upper in (False, True):
        both(lambda T, a: T.linalg.cholesky(a, upper=upper), positive(*shape, dtype=dtype), grad=2)
    both(lambda T, a: T.cholesky(a), positive(*shape, dtype=dtype))


RECTANGULAR = [(4, 3), (3, 4), (3, 3), (2, 4, 3)]


@pytest.mark.parametrize("shape", RECTANGULAR, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_qr_up_to_signs(shape, dtype):
    """The product of the factors, and what does not depend on the signs of Q's columns."""

    def products(T, a):
        Q, R = T.linalg.qr(a)
        return Q @ R, Q.abs(), R.abs()

    both(products, matrix(*shape, dtype=dtype))


@pytest.mark.parametrize("shape", RECTANGULAR, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_svd_up_to_signs(shape, dtype, full):
    def products(T, a):
        U, S, Vh = T.linalg.svd(a, full_matrices=full)
        k = S.shape[-1]
        return S, U[..., :k].abs(), Vh[..., :k, :].abs(), (U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :]

    both(products, matrix(*shape, dtype=dtype))
    both(lambda T, a: T.linalg.svdvals(a), matrix(*shape, dtype=dtype), grad=2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("side", ["L", "U"])
def test_eigh_up_to_signs(dtype, side):
    def parts(T, a):
        values, vectors = T.linalg.eigh(a, side)
        return values, vectors.abs(), (vectors * values.unsqueeze(-2)) @ vectors.mH

    both(parts, positive(2, 3, 3, dtype=dtype))
    both(lambda T, a: T.linalg.eigvalsh(a, side), positive(3, 3, dtype=dtype), grad=2)


@pytest.mark.parametrize("tolerances", [(2, 1), (4, 2, 3), (), (1, 3)])
@pytest.mark.parametrize("shape", [(2, 3, 2, 2), (2, 3, 0, 2), (1, 3, 2, 4)])
def test_a_rank_for_each_tolerance(shape, tolerances):
    def ranks(T):
        generator = np.random.default_rng(0)
        a = T.tensor(generator.standard_normal(shape))
        limits = T.tensor(generator.uniform(0, 2, tolerances))
        return T.linalg.matrix_rank(a, atol=limits), T.linalg.matrix_rank(a, rtol=limits / 3)

    for ours, theirs in zip(ranks(readtorch), ranks(torch)):
        assert ours.shape == theirs.shape and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("shape", RECTANGULAR, ids=str)
def test_pinv_and_rank(shape):
    both(lambda T, a: T.linalg.pinv(a), matrix(*shape), grad=2, versions=False)
    both(
        lambda T, a: (T.linalg.matrix_rank(a), T.linalg.matrix_rank(a[..., :1] @ a[..., :1, :])),
        matrix(*shape).detach(),
        versions=False,
    )


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, 1.5, -1, math.inf, -math.inf])
@pytest.mark.parametrize("dim", [None, 0, (0, 2)])
def test_vector_norm(order, dim):
    both(
        lambda T, a: T.linalg.vector_norm(a, order, dim, keepdim=True),
        torch.randn(2, 3, 4, dtype=torch.float64).requires_grad_(),
        grad=2,
    )


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [(-2, -1), (0, 2), (2, 0)], ids=str)
def test_matrix_norm(order, keepdim, dim):
    both(lambda T, a: T.linalg.matrix_norm(a, order, dim, keepdim), matrix(2, 3, 4))
    both(lambda T, a: T.linalg.norm(a, order, dim, keepdim), matrix(2, 3, 4))


ERRORS = [
    "L.inv(a(2, 3))",
    "L.inv(a(3))",
    "L.inv(a(3, 3).half())",
    "L.inv(a(3, 3).long())",
    "L.inv(a(3, 3))",
    "L.inv(a(2, 3, 3) * 0)",
    "L.det(a(2, 3))",
    "L.solve(a(2, 3, 3), a(4, 3))",
    "L.solve(a(3, 3) * 0, a(3))",
    "L.solve(a(3, 2), a(3))",
    "L.solve(a(3, 3), a(3).double())",
    "L.cholesky(-a(3, 3))",
    "L.cholesky(-a(2, 3, 3))",
    "L.cholesky(a(2, 3))",
    "L.qr(a(4, 3), mode='x')",
    "L.qr(a(4))",
    "L.svd(a(3))",
    "L.eigh(a(2, 3))",
    "L.eigh(a(2, 2), 'x')",
    "L.vector_norm(a(3).long())",
    "L.vector_norm(a(0), math.inf)",
    "L.matrix_norm(a(3))",
    "L.matrix_norm(a(2, 3, 3), 3)",
    "L.matrix_norm(a(2, 3, 3), 'x')",
    "L.norm(a(2, 3, 3), 2)",
    "L.norm(a(2, 3, 3), dim=(0, 1, 2))",
    "L.matrix_power(a(3, 2), 2)",
    "L.lu_factor(a(3, 3) * 0)",
    "L.norm(a(3, 3), 2, dtype=T.int32)",
    "L.matrix_norm(a(3, 3), dim=(0, 0))",
    "L.inv(T.eye(3), out=a(3, 3).double())",
]


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_use_the_same_words(expression):
    ours, _ = both(lambda T: eval(expression, {"T": T, "L": T.linalg, "a": T.ones, "math": math}))
    assert isinstance(ours, Exception)


def test_a_failure_is_a_linalg_error():
    import readtorch

    with pytest.raises(readtorch.linalg.LinAlgError):
        readtorch.linalg.inv(readtorch.zeros(2, 2))


def test_named_results_print_as_in_the_reference():
    both(lambda T, a: repr(T.linalg.inv_ex(a)), torch.eye(2))


@pytest.mark.parametrize(
    "expression",
    [
        "linalg.lstsq(e(4, 3), e(4, 2).double())",
        "linalg.lstsq(e(4, 3).int(), e(4, 2).int())",
        "linalg.lstsq(e(4, 3).int(), e(4, 2).int(), rcond=0.1)",
        "linalg.lstsq(e(4), e(5))",
        "linalg.lstsq(e(4, 3), e(5))",
        "linalg.lstsq(e(4, 3), e(5, 2))",
        "linalg.lstsq(e(4, 3), e(2, 4, 2))",
        "linalg.lstsq(e(2, 4, 3), e(3, 4, 2))",
        "linalg.lu(e(2, 4), pivot=False)",
    ],
)
def test_what_equations_refuse(expression):
    def words(T):
        with pytest.raises((RuntimeError, NotImplementedError)) as caught:
            eval(expression, {"linalg": T.linalg, "e": lambda *sizes: T.ones(*sizes)})
        return type(caught.value).__name__, str(caught.value)

    assert words(readtorch) == words(torch)


RESULTS = {
    "lstsq": lambda T, e: T.linalg.lstsq(e(2, 5, 3), e(2, 5, 2)).solution,
    "lstsq of vectors": lambda T, e: T.linalg.lstsq(e(2, 5, 3), e(2, 5)).solution,
    "svd without vectors": lambda T, e: T.svd(e(2, 4), compute_uv=False)[2],
    "matrix_power of a transposed matrix": lambda T, e: T.linalg.matrix_power(e(3, 3).mT, 1),
    "qr without rows": lambda T, e: T.linalg.qr(e(0, 3))[1],
    "solve without rows": lambda T, e: T.linalg.solve(e(2, 0, 0), e(2, 0, 2)),
    "solve of no batch": lambda T, e: T.linalg.solve(e(0, 4, 4), e(0, 4, 2)),
    "inverse of no batch": lambda T, e: T.linalg.inv(e(0, 4, 4)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_lie_column_by_column_also_where_there_are_few(name):
    def strides(T):
        return RESULTS[name](T, lambda *sizes: T.ones(*sizes)).stride()

    assert strides(readtorch) == strides(torch)


def test_a_matrix_s_exponential_has_no_imaginary_part_to_lose():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [T.linalg.matrix_exp(T.tensor([[1.0, 2.0], [-0.5, 0.25]])).tolist() for T in (torch, readtorch)]
    np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize("order", [-1.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_the_gradient_of_a_norm_of_zeros(order):
    def gradient(T):
        x = T.tensor([[0.0, 0.0], [0.0, 3.0]], requires_grad=True)
        T.linalg.vector_norm(x, order, dim=1).sum().backward()
        return x.grad.tolist()

    np.testing.assert_allclose(gradient(readtorch), gradient(torch), rtol=1e-6)


def test_a_matrix_with_nan_has_no_cholesky_factor():
    nan = float("nan")
    matrices = torch.tensor([[[1.0, nan], [nan, 1.0]], [[nan, 0.0], [0.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]])
    both(lambda T, a: T.linalg.cholesky_ex(a).info, matrices)
    both(lambda T, a: T.linalg.cholesky(a), matrices)
    both(lambda T, a: T.linalg.cholesky(a), matrices[1])
