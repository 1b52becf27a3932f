"""where, clamp, isclose, equal and isin.

In PyTorch: `aten/src/ATen/native/cuda/TensorCompare.cu`, `aten/src/ATen/native/TensorCompare.cpp`.
"""

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import result_type
from readtorch.aten.native.tensor_iterator import scalar_tensor as weak
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import FLOAT, uint8
from readtorch.c10.tensor_impl import dtype_of, type_name

from .loops import pointwise
from .reduce_ops import converted
from .register_dispatch_key import cuda_kernel, empty, is_on_device, operator_named
from .tensor_iterator import apply, on_this_device
from .unary_ops_kernel import unary


def operand(t, numpy_dtype):
    """The array of an operand on the current device, of this dtype; a number is brought there."""
    return converted(t, numpy_dtype)._array if is_on_device(t) else on_this_device(t._array, numpy_dtype)


@cuda_kernel(operator_named("where.self"))
def where_cuda(condition, self, other):
    if condition._array.dtype != bool and dtype_of(condition) is not uint8:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {type_name(condition)}"
        )
    common = result_type(self, other).numpy
    out = empty(broadcast_shape(*[t._array.shape for t in (condition, self, other)]), common)
    mask = operand(condition, condition._array.dtype)
    pointwise(f.where, [mask, operand(self, common), operand(other, common)], out._array)
    return out


@cuda_kernel(operator_named("clamp"))
def clamp_cuda(self, min, max):
    scalars = [weak(n) for n in (min, max) if n is not None]
    common = result_type(self, *scalars)
    if min is not None and max is not None:
        return apply(f.clamp, [self], (min, max), common)
    return apply(f.clamp_min if max is None else f.clamp_max, [self], (min if max is None else max,), common)


@cuda_kernel(operator_named("clamp.Tensor"))
def clamp_tensors_cuda(self, min, max):
    common = result_type(*[t for t in (self, min, max) if t is not None])
    if min is not None and max is not None:
        return apply(f.clamp_between, [self, min, max], (), common)
    bound = max if min is None else min
    return apply(f.minimum if min is None else f.maximum, [self, bound], (), common)


for _name, _function in {"clamp_min": f.clamp_min, "clamp_max": f.clamp_max}.items():
    unary(_name, _function, scalars=lambda bound: (bound,))
cuda_kernel(operator_named("clamp_min.Tensor"))(lambda self, bound: apply(f.maximum, [self, bound]))
cuda_kernel(operator_named("clamp_max.Tensor"))(lambda self, bound: apply(f.minimum, [self, bound]))


@cuda_kernel(operator_named("isclose"))
def isclose_cuda(self, other, rtol, atol, equal_nan):
    common = result_type(self, other)
    if common.category < FLOAT:
        common = scalar_type.float64
    return apply(f.is_close, [self, other], (rtol, atol, equal_nan), common, scalar_type.bool)


@cuda_kernel(operator_named("equal"))
def equal_cuda(self, other):
    """One bool, for which the host waits."""
    return self._array.shape == other._array.shape and bool(at.all(at.eq(self, other)))


@cuda_kernel(operator_named("isin.Tensor_Tensor"))
def isin_cuda(elements, test_elements, assume_unique, invert):
    """Everything is compared with everything."""
    found = at.eq(elements.unsqueeze(-1), test_elements.reshape(-1)).any(-1)
    return at.logical_not(found) if invert else found


@cuda_kernel(operator_named("isin.Tensor_Scalar"))
def isin_number_cuda(elements, test_element, assume_unique, invert):
    return at.ne(elements, test_element) if invert else at.eq(elements, test_element)


@cuda_kernel(operator_named("isin.Scalar_Tensor"))
def is_number_in_cuda(element, test_elements, assume_unique, invert):
    found = at.eq(test_elements, element).any()
    return at.logical_not(found) if invert else found
