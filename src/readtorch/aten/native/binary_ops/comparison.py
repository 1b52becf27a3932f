"""Comparisons and logic: eq, lt, logical_and …, whose result is a mask of bools.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`.
"""

import numpy as np

from readtorch.aten.expand_utils import broadcast_error
from readtorch.aten.native.tensor_iterator import compute, computing, not_implemented, result_type, scalar_tensor
from readtorch.aten.native_function import BOTH, alias_of, native_function
from readtorch.c10 import scalar_type
from readtorch.c10.tensor_impl import wrap_result

# ------------------------------------------------------------------------------------------------ comparisons


def comparison(name, ufunc, refuses_complex=True):
    """Declare eq, lt …: operands are compared in their common type, the result is bool and has no gradient."""
    operator = native_function(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True, direct=True
    )
    with_number = native_function(f"{name}.Scalar(Tensor self, Scalar other) -> Tensor", BOTH, inplace=True, out=True)
    with_number.kernel(lambda self, other: compare(self, scalar_tensor(other)))
    refusal = not_implemented(f"{name}_cpu")

    @operator.kernel
    def compare(self, other):
        x, y = self._array, other._array
        try:
            if x.dtype is y.dtype and x.dtype.kind != "c":
                return wrap_result(ufunc(x, y))
            common = result_type(self, other)
            if refuses_complex and common.is_complex:
                raise refusal(common)
            return wrap_result(compute(ufunc, (x, y), common, scalar_type.bool))
        except ValueError:
            raise broadcast_error(x.shape, y.shape) from None

    return operator


eq = comparison("eq", np.equal, refuses_complex=False)
ne = comparison("ne", np.not_equal, refuses_complex=False)
lt = comparison("lt", np.less)
le = comparison("le", np.less_equal)
gt = comparison("gt", np.greater)
ge = comparison("ge", np.greater_equal)


for _alias, _name in {
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}.items():
    alias_of(_alias, _name)


def logical(name, ufunc):
    operator = native_function(
        f"{name}(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True, direct=True
    )

    @operator.kernel
    def combine(self, other):
        return computing(ufunc, self, other, result=scalar_type.bool)

    return operator


logical_and = logical("logical_and", np.logical_and)
logical_or = logical("logical_or", np.logical_or)
logical_xor = logical("logical_xor", np.logical_xor)
