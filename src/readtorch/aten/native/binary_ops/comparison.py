"""Comparisons and logic: eq, lt, logical_and …, whose result is a mask of bools.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`.
"""

import numpy as np

from readtorch.aten.expand_utils import broadcast_error
from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import (
    F4,
    compute,
    elementwise,
    in_order,
    is_real,
    not_implemented,
    result_type,
    takes_number,
)
from readtorch.aten.native_function import BOTH, alias_of, native_function
from readtorch.c10 import scalar_type
from readtorch.c10.tensor_impl import wrap_result

# ------------------------------------------------------------------------------------------------ comparisons


def bool_kernel(ufunc, name, kinds, takes=None):
    """A CPU kernel whose result is bool. kinds: NumPy's letters of the dtypes that `ufunc` takes as they are."""
    refusal = not_implemented(f"{name}_cpu")

    def kernel(self, other):
        x, y = self._array, other._array
        dtype = x.dtype
        try:
            if dtype is y.dtype and (dtype is F4 or dtype.kind in kinds):
                value = ufunc(x, y)
            else:
                common = result_type(self, other)
                if takes and not takes(common):
                    raise refusal(common)
                value = compute(ufunc, (x, y), common, scalar_type.bool)
            if x.ndim == 1 or x.flags.c_contiguous or x.strides == y.strides:
                return wrap_result(value)
            return wrap_result(in_order(value, x, y))
        except ValueError:
            raise broadcast_error(x.shape, y.shape) from None

    return kernel


def comparison(name, ufunc, function, takes=None):
    """Declare eq, lt …: operands are compared in their common type, the result is bool and has no gradient.

    takes: which dtypes it compares, see `elementwise`.
    """
    operator = native_function(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True, direct=True
    )
    with_number = native_function(f"{name}.Scalar(Tensor self, Scalar other) -> Tensor", BOTH, inplace=True, out=True)
    elementwise(operator, function, result=scalar_type.bool, takes=takes)
    operator.kernel(bool_kernel(ufunc, name, "biufV", takes))
    takes_number(with_number, operator)
    return operator


eq = comparison("eq", np.equal, f.equal)
ne = comparison("ne", np.not_equal, f.not_equal)
lt = comparison("lt", np.less, f.less, is_real)
le = comparison("le", np.less_equal, f.less_equal, is_real)
gt = comparison("gt", np.greater, f.greater, is_real)
ge = comparison("ge", np.greater_equal, f.greater_equal, is_real)


for _alias, _name in {
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}.items():
    alias_of(_alias, _name)


# ------------------------------------------------------------------------------------------------------ logic


def logical(name, ufunc, function):
    """Declare logical_and …: an element is true unless it is zero."""
    operator = native_function(
        f"{name}(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True, direct=True
    )
    elementwise(operator, function, result=scalar_type.bool)
    operator.kernel(bool_kernel(ufunc, name, "biuf"))
    return operator


logical_and = logical("logical_and", np.logical_and, f.nonzero_and)
logical_or = logical("logical_or", np.logical_or, f.nonzero_or)
logical_xor = logical("logical_xor", np.logical_xor, f.nonzero_xor)
