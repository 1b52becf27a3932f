"""Elements picked by a condition: where, masked_fill and their relatives.

In PyTorch: `aten/src/ATen/native/TensorCompare.cpp` (where), `TensorAdvancedIndexing.cpp`. Explained in the chapter
"Tensor and Storage".
"""
import numpy as np

from ...c10.scalar_type import SCALAR_TYPE_NAMES, uint8
from ...c10.tensor_impl import dtype_of, wrap
from ..functions import at
from ..native_function import native_function
from .tensor_iterator import broadcast_error, result_type

BOTH = "function, method"

where = native_function("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", BOTH, out=True,
                        numbers_as_tensors=True)
where_nonzero = native_function("where(Tensor condition) -> Tensor[]", "function")


@where.kernel
def where_cpu(condition, self, other):
    mask = condition._array
    if mask.dtype != bool:
        if dtype_of(condition) is not uint8:
            raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype "
                               f"{SCALAR_TYPE_NAMES[dtype_of(condition)]}")
        mask = mask.astype(bool)
    common = result_type(self, other).numpy
    try:
        result = np.where(mask, self._array, other._array)
    except ValueError:
        raise broadcast_error(mask.shape, self._array.shape, other._array.shape) from None
    return wrap(result.astype(common, copy=False))


@where.backward
class WhereBackward0:
    def self(grad, condition):
        return at.where(condition, grad, 0)

    def other(grad, condition):
        return at.where(condition, 0, grad)


@where_nonzero.compose
def where_nonzero_composite(condition):
    return list(at.nonzero(condition, as_tuple=True))
