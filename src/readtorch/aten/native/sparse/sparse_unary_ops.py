"""Functions with f(0) = 0, which need to be applied to the values only.

In PyTorch: `aten/src/ATen/native/sparse/SparseUnaryOps.cpp`.
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.native import activation, pow, tensor_compare, unary_ops  # noqa: F401  (they declare the operators)
from readtorch.aten.sparse_tensor_impl import wrap_sparse
from readtorch.c10.dispatch_key import CPU, SPARSE_CPU
from readtorch.c10.tensor_impl import wrap

from .sparse_tensor import coalesced_array

NAMES = (
    "abs",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "deg2rad",
    "erf",
    "erfinv",
    "expm1",
    "floor",
    "frac",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "log1p",
    "rad2deg",
    "relu",
    "round",
    "sgn",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
)


def on_values(operator):
    """A kernel for sparse tensors from the one for dense tensors. Each index must first have one value."""

    def kernel(self):
        array = coalesced_array(self._array)
        return wrap_sparse(array.with_values(operator.kernels[CPU](wrap(array.values))._array))

    return kernel


for _name in NAMES:
    _operator = registry[f"aten::{_name}"]
    if CPU in _operator.kernels:
        _operator.kernel(on_values(_operator), SPARSE_CPU)


def pow_sparse_scalar(self, exponent):
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    array = coalesced_array(self._array)
    return wrap_sparse(array.with_values(pow_scalar.call(wrap(array.values), exponent)._array))


pow_scalar = registry["aten::pow.Tensor_Scalar"]
pow_scalar.kernel(pow_sparse_scalar, SPARSE_CPU)
