"""Triangular systems of equations.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import check_square, each_matrix, lapack, repeated
from readtorch.aten.native.tensor_iterator import conj, not_implemented
from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10.scalar_type import FLOAT
from readtorch.c10.tensor_impl import dtype_of

from .cholesky import check_systems, columns_together

# --------------------------------------------------------------------------------------- triangular equations

solve_triangular = native_function(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    module="linalg",
    name="solve_triangular",
    out=exact_out(),
)


def solve_triangular_one(a, b, upper, unitriangular):
    if not b.size:
        return b.copy()
    return lapack("trtrs", a)(a, b, lower=not upper, unitdiag=unitriangular)[0]


@solve_triangular.meta
def solve_triangular_meta(self, B, upper, left, unitriangular):
    check_square(self, "linalg.solve_triangular")
    check_equation(self, B, left, "linalg.solve_triangular")
    return columns_together(B, self)[0]


def check_equation(A, B, left, name):
    """Raises RuntimeError unless AX = B, or XA = B, can be written down. In PyTorch: `linearSolveCheckInputs`."""
    if B._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if A._array.shape[-1] != B._array.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )


@solve_triangular.impl()
def solve_triangular_cpu(self, B, upper, left, unitriangular, out):
    """X in A X = B; X A = B is solved as Aᵀ Xᵀ = Bᵀ. Batches broadcast."""
    if dtype_of(self).category < FLOAT or dtype_of(self).itemsize == 2:
        raise not_implemented("triangular_solve_cpu")(dtype_of(self))
    a, b, x = self._array, B._array, out._array
    if not left:
        a, b, x, upper = a.swapaxes(-1, -2), b.swapaxes(-1, -2), x.swapaxes(-1, -2), not upper
    inputs = [repeated(array, x.shape[:-2]) for array in (a, b)]
    each_matrix(lambda a, b: (solve_triangular_one(a, b, upper, unitriangular),), inputs, [x])


@solve_triangular.backward
class LinalgSolveTriangularBackward0:
    def self__B(grad, self, result, upper, left, unitriangular, grad_input_mask):
        to_b = solve_triangular.call(self.mH, grad, not upper, left, unitriangular)
        to_a = None
        if grad_input_mask[0]:
            to_a = -(to_b.matmul(result.mH) if left else result.mH.matmul(to_b))
            edge = int(unitriangular)
            to_a = to_a.triu(edge) if upper else to_a.tril(-edge)
        return to_a, to_b

    def result(self_p, self_t, B_t, result, upper, left, unitriangular):
        """A dX = dB - dA X, where dA is what is read of it."""
        edge = int(unitriangular)
        change = self_t.triu(edge) if upper else self_t.tril(-edge)
        change = B_t - (change.matmul(result) if left else result.matmul(change))
        return solve_triangular.call(self_p, change, upper, left, unitriangular)


# ------------------------------------------------------------------------------------------- triangular_solve

# ------------------------------------------------------------------------------------------- triangular_solve

triangular_solve = native_function(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)",
    BOTH,
    out=exact_out(names=("X", "M")),
)


@triangular_solve.meta
def triangular_solve_meta(self, A, upper, transpose, unitriangular):
    check_systems(
        self,
        A,
        "triangular_solve",
        "torch.triangular_solve: Expected {} to have at least 2 dimensions, but it has {} dimensions instead",
    )
    return columns_together(self, A)


@triangular_solve.impl()
def triangular_solve_cpu(self, A, upper, transpose, unitriangular, solution, cloned_coefficient):
    """solution: X in A X = self, or Aᵀ X = self."""
    a, x = cloned_coefficient._array, solution._array
    a[...] = A._array
    if not x.size:
        return
    solve = lapack("trtrs", x)
    each_matrix(
        lambda a, b: (solve(a, b, lower=not upper, trans=int(transpose), unitdiag=unitriangular)[0],),
        [a, repeated(self._array, x.shape[:-2])],
        [x],
    )


@triangular_solve.backward
class TriangularSolveBackward0:
    def self__A(grads, A, solution, upper, transpose, unitriangular, grad_input_mask):
        to_x, to_copy = grads
        to_b = to_a = None
        if to_x is not None:
            to_b = triangular_solve.call(to_x, conj(A), upper, not transpose, unitriangular)[0]
            if grad_input_mask[1]:
                to_a = -conj(solution).matmul(to_b.mT) if transpose else -to_b.matmul(solution.mH)
                to_a = to_a.triu(int(unitriangular)) if upper else to_a.tril(-int(unitriangular))
        if to_copy is not None and grad_input_mask[1]:
            to_a = to_copy if to_a is None else to_a + to_copy
        return to_b, to_a

    def solution(self_t, A_p, A_t, upper, transpose, unitriangular, solution):
        edge = int(unitriangular)
        change = A_t.triu(edge) if upper else A_t.tril(-edge)
        change = self_t - (change.mT if transpose else change).matmul(solution)
        return triangular_solve.call(change, A_p, upper, transpose, unitriangular)[0]

    def cloned_coefficient(A_t):
        return A_t
