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
from .fill_kernel import filled
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named
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


for _name, _function in {"logical_not": f.is_zero, "isnan": f.isnan, "isfinite": f.isfinite, "isinf": f.isinf}.items():
    unary(_name, _function, result=scalar_type.bool)


def constant(self, value):
    return filled(empty(self._array.shape, scalar_type.bool.numpy), value)


@cuda_kernel(operator_named("signbit"))
def signbit_cuda(self):
    dtype = dtype_of(self)
    if dtype.is_complex:
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    if dtype is scalar_type.bool:
        return constant(self, False)
    function = f.signbit if dtype.category == FLOAT else f.is_negative
    return apply(function, [self], (), dtype, scalar_type.bool)


def which_infinity(name, value):
    @cuda_kernel(operator_named(name))
    def kernel(self):
        dtype = dtype_of(self)
        if dtype.is_complex:
            raise RuntimeError(f"{name} does not support complex inputs.")
        if dtype.category < FLOAT:
            return constant(self, False)
        return apply(f.is_infinite, [self], (value,), dtype, scalar_type.bool)


which_infinity("isposinf", math.inf)
which_infinity("isneginf", -math.inf)


@cuda_kernel(operator_named("isreal"))
def isreal_cuda(self):
    return at.imag(self) == 0 if dtype_of(self).is_complex else constant(self, True)


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
