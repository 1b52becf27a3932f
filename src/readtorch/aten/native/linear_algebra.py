"""Matrix products.

In PyTorch: `aten/src/ATen/native/{LinearAlgebra,Blas}.cpp`.
"""
import numpy as np

from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of, wrap
from ..native_function import native_function

BOTH = "function, method"


def check_same_type(a, b, first="mat1", second="mat2"):
    if a._array.dtype != b._array.dtype:
        have, other = SCALAR_TYPE_NAMES[dtype_of(a)].lower(), SCALAR_TYPE_NAMES[dtype_of(b)].lower()
        raise RuntimeError(f"{first} and {second} must have the same dtype, but got {have.capitalize()} and {other.capitalize()}")


def product(x, y):
    """`x @ y` for arrays; 16-bit floats are widened, because NumPy would add them up in 16 bits."""
    if x.dtype.itemsize == 2 and x.dtype.kind in "fV":
        return (x.astype(np.float32) @ y.astype(np.float32)).astype(x.dtype)
    return np.dot(x, y)


mm = native_function("mm(Tensor self, Tensor mat2) -> Tensor", BOTH, out=True, direct=True)


@mm.kernel
def mm_cpu(self, mat2):
    x, y = self._array, mat2._array
    if x.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if y.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if x.shape[1] != y.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({x.shape[0]}x{x.shape[1]} and {y.shape[0]}x{y.shape[1]})")
    check_same_type(self, mat2)
    return wrap(product(x, y))


@mm.backward
class MmBackward0:
    def self(grad, mat2):
        return grad.mm(mat2.t().conj())

    def mat2(grad, self):
        return self.t().conj().mm(grad)


