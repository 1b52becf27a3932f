"""The exponential of a matrix.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp`; formula in `torch/csrc/autograd/FunctionsManual.cpp`.
"""
import numpy as np

from ...c10.tensor_impl import wrap
from ..functions import at
from ..native_function import native_function
from .linalg_common import check_floating, check_square
from .tensor_iterator import cast

linalg_matrix_exp = native_function("linalg_matrix_exp(Tensor self) -> Tensor", module="linalg",
                                    name="matrix_exp")
matrix_exp = native_function("matrix_exp(Tensor self) -> Tensor", "function, method")


@linalg_matrix_exp.kernel
def matrix_exp_cpu(self):
    """In double precision: SciPy's quotient of polynomials loses digits where PyTorch does not."""
    check_square(self, "linalg.matrix_exp")
    check_floating(self, "linalg.matrix_exp", low_precision=True)
    x = self._array
    if not x.size:
        return wrap(np.empty(x.shape, x.dtype))
    double = np.complex128 if x.dtype.kind == "c" else np.float64
    return wrap(np.ascontiguousarray(cast(exponential(cast(x, double)), x.dtype)))


def exponential(x):
    from scipy.linalg import expm
    return expm(x)


def place_block(blocks, row, column, n, value):
    blocks.narrow(-2, row * n, n).narrow(-1, column * n, n).copy_(value)


@linalg_matrix_exp.backward
class LinalgMatrixExpBackward0:
    def self(grad, self):
        """exp [[A, E], [0, A]] has the change of exp(A) in the direction E in its corner (R. Mathias, 1996).

        With Aᴴ for A it is the gradient.
        """
        n = self.shape[-1]
        blocks = at.zeros((*self.shape[:-2], 2 * n, 2 * n), dtype=grad.dtype, device=grad.device)
        place_block(blocks, 0, 0, n, self.mH)
        place_block(blocks, 1, 1, n, self.mH)
        place_block(blocks, 0, 1, n, grad)
        return linalg_matrix_exp.call(blocks).narrow(-2, 0, n).narrow(-1, n, n)


@matrix_exp.compose
def matrix_exp_composite(self):
    return linalg_matrix_exp.call(self)
