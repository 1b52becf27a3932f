"""where, clamp, equal and isin.

In PyTorch: `aten/src/ATen/native/cuda/TensorCompare.cu`, `aten/src/ATen/native/TensorCompare.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native import tensor_compare as ops
from readtorch.c10.tensor_impl import dtype_of

from .loops import pointwise
from .reduce_ops import converted
from .register_dispatch_key import cuda_impl, cuda_kernel, is_on_device
from .tensor_iterator import on_this_device, run


def operand(t, numpy_dtype):
    """The array of an operand on the current device, of this dtype; a number is brought there."""
    return converted(t, numpy_dtype)._array if is_on_device(t) else on_this_device(t._array, numpy_dtype)


@cuda_impl(ops.where)
def where_cuda(condition, self, other, out):
    mask, common = operand(condition, condition._array.dtype), out._array.dtype
    pointwise(f.where, [mask, operand(self, common), operand(other, common)], out._array)


@cuda_impl(ops.clamp)
def clamp_cuda(self, min, max, out):
    if min is not None and max is not None:
        run(f.clamp, [self], (min, max), dtype_of(out), out._array)
    else:
        run(
            f.clamp_min if max is None else f.clamp_max,
            [self],
            (min if max is None else max,),
            dtype_of(out),
            out._array,
        )


@cuda_impl(ops.clamp_tensor)
def clamp_tensors_cuda(self, min, max, out):
    if min is not None and max is not None:
        run(f.clamp_between, [self, min, max], (), dtype_of(out), out._array)
    else:
        run(f.maximum if max is None else f.minimum, [self, min if max is None else max], (), dtype_of(out), out._array)


cuda_impl(ops.clamp_min)(lambda self, min, out: clamp_cuda(self, min, None, out))
cuda_impl(ops.clamp_max)(lambda self, max, out: clamp_cuda(self, None, max, out))
cuda_impl(ops.clamp_min_tensor)(lambda self, min, out: clamp_tensors_cuda(self, min, None, out))
cuda_impl(ops.clamp_max_tensor)(lambda self, max, out: clamp_tensors_cuda(self, None, max, out))


@cuda_kernel(ops.equal)
def equal_cuda(self, other):
    """One bool, for which the host waits."""
    return self._array.shape == other._array.shape and bool(at.all(at.eq(self, other)))


@cuda_kernel(ops.isin)
def isin_cuda(elements, test_elements, assume_unique, invert):
    """Everything is compared with everything; a number with all."""
    tests = test_elements.reshape(-1) if test_elements._array.ndim else test_elements
    found = at.eq(elements.unsqueeze(-1) if elements._array.ndim else elements, tests)
    found = found.any(-1) if tests._array.ndim or elements._array.ndim else found
    return at.logical_not(found) if invert else found
