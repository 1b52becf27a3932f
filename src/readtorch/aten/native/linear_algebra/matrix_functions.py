"""Functions of a square matrix: its exponential and its powers; and the Vandermonde matrix.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.batch_linear_algebra.solve import inv_composite
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import check_floating, check_square
from readtorch.aten.native.tensor_iterator import cast
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.scalar_type import BOOL
from readtorch.c10.tensor_impl import dtype_of, type_name

linalg_matrix_exp = native_function("linalg_matrix_exp(Tensor self) -> Tensor", module="linalg", name="matrix_exp")
matrix_exp = native_function("matrix_exp(Tensor self) -> Tensor", "function, method")


@linalg_matrix_exp.meta
def matrix_exp_meta(self):
    check_square(self, "linalg.matrix_exp")
    check_floating(self, "linalg.matrix_exp", low_precision=True)
    return TensorMeta(self._array.shape, dtype_of(self))


@linalg_matrix_exp.impl()
def matrix_exp_cpu(self, out):
    """In double precision: SciPy's quotient of polynomials loses digits where PyTorch does not."""
    x = self._array
    if x.size:
        out._array[...] = exponential(cast(x, np.complex128 if x.dtype.kind == "c" else np.float64))


def exponential(x):
    from scipy.linalg import expm

    return expm(x)


def place_block(blocks, row, column, n, value):
    blocks.narrow(-2, row * n, n).narrow(-1, column * n, n).copy_(value)


def exponential_change(A, E):
    """The change of exp(A) in the direction E: exp [[A, E], [0, A]] has it in its corner (R. Mathias, 1996).

    With Aᴴ for A it is the gradient.
    """
    n = A.shape[-1]
    blocks = at.zeros((*A.shape[:-2], 2 * n, 2 * n), dtype=E.dtype, device=E.device)
    place_block(blocks, 0, 0, n, A)
    place_block(blocks, 1, 1, n, A)
    place_block(blocks, 0, 1, n, E)
    return linalg_matrix_exp.call(blocks).narrow(-2, 0, n).narrow(-1, n, n)


@linalg_matrix_exp.backward
class LinalgMatrixExpBackward0:
    def self(grad, self):
        return exponential_change(self.mH, grad)

    def result(self_p, self_t):
        return exponential_change(self_p, self_t)


@matrix_exp.compose
def matrix_exp_composite(self):
    return linalg_matrix_exp.call(self)


# ----------------------------------------------------------------------------------------------- matrix_power

# ----------------------------------------------------------------------------------------- powers of a matrix

matrix_power = native_function(
    "linalg_matrix_power(Tensor self, int n) -> Tensor", module="linalg", name="matrix_power", out=exact_out()
)
torch_matrix_power = native_function("matrix_power(Tensor self, int n) -> Tensor", BOTH, out=exact_out())


@matrix_power.compose
@torch_matrix_power.compose
def matrix_power_composite(self, n):
    """By squaring: about log2(n) products. Negative powers are powers of the inverse."""
    check_square(self, "linalg.matrix_power")
    if n == 0:
        one = at.eye(self.shape[-1], dtype=self.dtype, device=self.device)
        return self.clone(memory_format=contiguous_format).copy_(one)
    base = self if n > 0 else inv_composite(self)
    n = abs(n)
    if n == 1:
        return self.clone(memory_format=contiguous_format) if base is self else base
    if n == 3:
        return base.matmul(base).matmul(base)
    result, power = None, base
    while True:
        if n % 2:
            result = power if result is None else result.matmul(power)
        n //= 2
        if not n:
            return result
        power = power.matmul(power)


# ----------------------------------------------------------------------------------------------------- vander

vander = native_function("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", module="linalg", name="vander")


@vander.compose
def vander_composite(x, N):
    """A row 1, x, x², … for each x."""
    if dtype_of(x).category == BOOL:
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {type_name(x)}"
        )
    x = x if x._array.ndim else x.unsqueeze(-1)
    count = x._array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand((*x._array.shape, count - 1)).cumprod(-1)
    return at.cat([at.new_ones(powers, (*x._array.shape, 1)), powers], -1)
