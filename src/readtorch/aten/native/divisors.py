"""Greatest common divisor and least common multiple.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp`, `cpu/BinaryOpsKernel.cpp`.
"""
import numpy as np

from ...c10.scalar_type import INTEGRAL
from ..native_function import native_function
from .tensor_iterator import computing, not_implemented, result_type

BOTH = "function, method"


def of_integers(name, ufunc):
    """Declare a function of two tensors of integers."""
    operator = native_function(f"{name}(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True)

    @operator.kernel
    def kernel(self, other):
        common = result_type(self, other)
        if common.category != INTEGRAL:
            raise not_implemented(f"{name}_cpu")(common)
        return computing(ufunc, self, other, common=common)
    return operator


gcd = of_integers("gcd", np.gcd)  # not negative; gcd(0, 0) is 0
lcm = of_integers("lcm", np.lcm)
