"""Copies: clone, copy_, _to_copy, fill_ and zero_, cat and stack; between host and device by the driver.

A copy between devices is one of memory, for which the elements must lie there without gaps and in the same
order: where they do not, a kernel lays them out first. A kernel also converts, on the device that has the
wider type.

In PyTorch: `aten/src/ATen/native/cuda/{Copy,FillKernel,Shape}.cu`.
"""

import numpy as np

from .....c10.cuda import runtime
from .....c10.cuda.device_memory import copy_bytes, empty_on, reach_of, tensor_on
from .....c10.cuda.cuda_stream import DeviceGuard, current_stream
from .....c10.memory_format import dense_strides, is_non_overlapping_and_dense, strides_in_format
from .....c10.overflows import number_as
from .....c10.tensor_impl import dtype_of, host_array
from .....c10.wrap_dim import wrap_dim
from ....common_device import wait_for
from ....sparse_tensor_impl import refuse_sparse
from ... import copy as native_copy
from ... import fill as native_fill
from ...copy import copy_in_format
from ...tensor_shape.cat import cat, check_cat, check_equal_sizes, common_format, stack
from ...tensor_iterator import broadcast_error, inplace_shape_error, refuse_overlap, result_type
from ..copy import cat as copy_parts
from ..copy import copy as copy_kernel
from ..fills import fill
from ..loops import broadcast
from .registration import cuda_kernel, empty, here, is_on_device

# ----------------------------------------------------------------------------------------- from array to
# array


def copy_elements(source, target):
    """The elements of one tensor, converted and broadcast, into another; each may be on any device or the
    host."""
    if not target._array.size:
        return
    if not is_on_device(source):
        from_host(source._array, target)
    elif not is_on_device(target):
        to_host(source, target)
    elif source.device == target.device:
        with DeviceGuard(target.device.index):
            copy_kernel(broadcast(real_part(source._array, target), target._array.shape), target._array)
    else:
        from_peer(source, target)


def real_part(array, target):
    """What is converted to `target`: of complex numbers the real part, unless it is complex as well."""
    return array.real if array.dtype.kind == "c" and target._array.dtype.kind not in "cb" else array


def from_host(array, target):
    """Converted and laid out by the host, sent, and copied on the device if `target` has gaps."""
    staged = np.broadcast_to(native_copy.cast(array, target._array.dtype), target._array.shape)
    copied_into(tensor_on(target.device, np.asarray(staged, order="C")), target)


def to_host(source, target):
    """Fetched without gaps, converted by the host."""
    np.copyto(target._array, native_copy.cast(host_array(dense(source)), target._array.dtype))


def from_peer(source, target):
    """Laid out there, sent to a tensor here, and copied into `target`."""
    laid_out = dense(source)
    arrived = empty_on(
        target.device,
        laid_out._array.shape,
        laid_out._array.dtype,
        [s // laid_out._array.itemsize for s in laid_out._array.strides],
    )
    near, far = [(t.device.index, current_stream(t.device.index).handle) for t in (target, source)]
    wait_for(runtime.driver(), near, far)
    copy_bytes(target.device, arrived._array, laid_out._array, reach_of(laid_out._array))
    wait_for(runtime.driver(), far, near)
    copied_into(arrived, target)


def copied_into(source, target):
    with DeviceGuard(target.device.index):
        copy_kernel(broadcast(source._array, target._array.shape), target._array)


def dense(t):
    """`t`, or a copy of it without gaps."""
    if is_non_overlapping_and_dense(t._array):
        return t
    with DeviceGuard(t.device.index):
        result = empty(t._array.shape, t._array.dtype, dense_strides(t._array))
        copy_kernel(t._array, result._array)
    return result


# ---------------------------------------------------------------------------------------------------
# operators


@cuda_kernel(native_copy.clone)
def clone_cuda(self, memory_format):
    result = empty(self._array.shape, self._array.dtype, strides_in_format(self._array, memory_format))
    copy_elements(self, result)
    return result


@cuda_kernel(native_copy._to_copy)
def to_copy_cuda(self, dtype, layout, device, pin_memory, non_blocking, memory_format):
    refuse_sparse(self)
    numpy_dtype = self._array.dtype if dtype is None else dtype.numpy
    if not is_on_device(self):
        array = copy_in_format(self._array, memory_format)
        return tensor_on(
            here(), array if array.dtype == numpy_dtype else native_copy.cast(array, numpy_dtype)
        )
    result = empty(self._array.shape, numpy_dtype, strides_in_format(self._array, memory_format))
    copy_elements(self, result)
    return result


@cuda_kernel(native_copy.copy_)
def copy_cuda_(self, src, non_blocking):
    refuse_overlap(self)
    if src._array.shape != self._array.shape:
        check_broadcast(self._array.shape, src._array.shape)
    copy_elements(src, self)
    self._counter[0] += 1
    return self


def check_broadcast(shape, other):
    """RuntimeError unless `other` broadcasts to `shape`."""
    if (
        broadcast_error(shape, other)
        or len(other) > len(shape)
        or any(n != 1 and n != m for n, m in zip(reversed(other), reversed(shape)))
    ):
        raise inplace_shape_error(shape, other)


# --------------------------------------------------------------------------------------------------------
# fill


@cuda_kernel(native_fill.fill_scalar_)
def fill_cuda_(self, value):
    refuse_overlap(self)
    fill(self._array, number_as(value, dtype_of(self))[()])
    self._counter[0] += 1
    return self


@cuda_kernel(native_fill.zero_)
def zero_cuda_(self):
    fill(self._array, self._array.dtype.type(0))
    self._counter[0] += 1
    return self


@cuda_kernel(native_fill.fill_tensor_)
def fill_tensor_cuda_(self, value):
    if value._array.ndim:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value._array.ndim} dimensions."
        )
    refuse_overlap(self)
    copy_elements(value, self)
    self._counter[0] += 1
    return self


@cuda_kernel(native_fill.fill_scalar, native_fill.fill_tensor)
def fill_cuda(self, value):
    result = empty(self._array.shape, self._array.dtype, dense_strides(self._array))
    return (fill_tensor_cuda_ if hasattr(value, "_array") else fill_cuda_)(result, value)


# ----------------------------------------------------------------------------------------------- cat and
# stack


@cuda_kernel(cat)
def cat_cuda(tensors, dim):
    parts, dim = check_cat(tensors, dim)
    dtype = result_type(*tensors).numpy
    if not parts:
        return empty((0,), dtype)
    shape = list(parts[0]._array.shape)
    shape[dim] = sum(t._array.shape[dim] for t in parts)
    like = np.broadcast_to(np.empty((), np.int8), shape)
    result = empty(shape, dtype, strides_in_format(like, common_format([t._array for t in parts])))
    copy_parts([t._array for t in parts if t._array.size], dim, result._array)
    return result


@cuda_kernel(stack)
def stack_cuda(tensors, dim):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    check_equal_sizes([t._array for t in tensors], tensors[0]._array.shape)
    dtype, dim = result_type(*tensors), wrap_dim(dim, tensors[0]._array.ndim + 1)
    shape = [*tensors[0]._array.shape[:dim], len(tensors), *tensors[0]._array.shape[dim:]]
    result = empty(shape, dtype.numpy)
    copy_parts([np.expand_dims(t._array, dim) for t in tensors], dim, result._array)
    return result
