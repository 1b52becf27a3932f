"""Functions of one tensor, element by element.

In PyTorch: `aten/src/ATen/native/cuda/UnaryOpsKernel.cu`.
"""

import math

import ml_dtypes

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import BOOL, FLOAT
from readtorch.c10.tensor_impl import dtype_of

from .copy import clone_cuda
from .register_dispatch_key import cuda_impl, cuda_kernel, operator_named
from .tensor_iterator import apply, apply_

NEVER = ()


def declare(name, kernel, kernel_=None):
    """`kernel` for the operator, `kernel_` for its in-place form, whether derived from it or declared for
    itself."""
    operator = operator_named(name)
    cuda_kernel(operator)(kernel)
    base, dot, overload = name.partition(".")
    inplace = operator.inplace or registry.get(f"aten::{base}_{dot}{overload}")
    if kernel_ is not None and inplace is not None:
        cuda_kernel(inplace)(kernel_)


def own_float(t):
    """The dtype of functions like exp: the tensor's, the default one for integers."""
    dtype = dtype_of(t)
    return dtype if dtype.category >= FLOAT else scalar_type.get_default_dtype()


def unary(name, function, dtype=dtype_of, result=None, scalars=lambda *arguments: NEVER):
    """`scalars(*arguments)`: the function's scalars, from the schema's arguments behind the tensor."""

    def kernel(self, *arguments):
        return apply(function, [self], scalars(*arguments), dtype(self), result)

    def kernel_(self, *arguments):
        return apply_(function, self, [], scalars(*arguments), dtype(self))

    declare(name, kernel, None if result else kernel_)


@cuda_impl(operator_named("frexp.Tensor"))
def frexp_cuda(self, mantissa, exponent):
    apply(f.mantissa, [self], out=mantissa)
    apply(f.exponent, [self], out=exponent)


@cuda_kernel(operator_named("bitwise_not"))
def bitwise_not_cuda(self):
    return at.logical_not(self) if dtype_of(self).category == BOOL else -1 - self


@cuda_kernel(operator_named("nan_to_num"))
def nan_to_num_cuda(self, nan, posinf, neginf):
    if dtype_of(self).category < FLOAT:
        return clone_cuda(self, None)
    most = float(ml_dtypes.finfo(self._array.dtype).max)
    self = at.where(self != self, 0.0 if nan is None else nan, self)
    self = at.where(self == math.inf, most if posinf is None else posinf, self)
    return at.where(self == -math.inf, -most if neginf is None else neginf, self)
