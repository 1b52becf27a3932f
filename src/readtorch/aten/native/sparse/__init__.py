"""Sparse tensors: what gradients that touch few rows need of them, and products of sparse matrices.

In PyTorch: `aten/src/ATen/native/sparse`, which also has kernels for CUDA.
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.register_dispatch_key import tensors_among
from readtorch.c10.dispatch_key import META, SPARSE_CPU

from . import (
    conversions,
    sparse_blas,
    sparse_csr_tensor,
    sparse_csr_tensor_math,
    sparse_tensor,
    sparse_tensor_math,
    sparse_unary_ops,
)
from . import soft_max, tensor_conversions, tensor_shape


def refusing_meta(operator, kernel):
    """`kernel` for calls whose other tensors have elements. In PyTorch: few operators have the key SparseMeta."""

    def with_elements(*arguments):
        for t in tensors_among(arguments):
            if t._keys & META:
                raise NotImplementedError(
                    f"Could not run '{operator.name}' with arguments from the 'SparseMeta' backend."
                )
        return kernel(*arguments)

    return with_elements


for _operator in registry.values():
    if SPARSE_CPU in _operator.kernels and len(_operator.schema.arguments) > 1:
        _operator.kernel(refusing_meta(_operator, _operator.kernels[SPARSE_CPU]), SPARSE_CPU)
