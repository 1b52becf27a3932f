"""Copies between layouts and dtypes, and between host and device: clone, copy_, _to_copy.

A copy is a pointwise operation (loops.py) unless it transposes: then elements that are neighbors in one array are far
apart in the other. `transpose` goes through shared memory. Grid: (columns / 32, rows / 32, matrices); block: 32 × 8
threads, each of which moves 4 elements of a tile of 32 × 32. The tile has rows of 33: its columns then lie in different
banks.

A copy between devices is one of memory, for which the elements must lie there without gaps and in the same order: where
they do not, a kernel first copies them so. A kernel also converts, on the device that has the wider type.

In PyTorch: `aten/src/ATen/native/cuda/Copy.cu`.
"""

import functools

import numpy as np
from numba import cuda

from readtorch.aten.common_device import wait_for
from readtorch.aten.native import copy as native_copy
from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import refuse_overlap
from readtorch.aten.sparse_tensor_impl import refuse_sparse
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.cuda_stream import DeviceGuard, current_stream
from readtorch.c10.cuda.device_memory import copy_bytes, empty_on, reach_of, tensor_on
from readtorch.c10.cuda.launch import launch, strided
from readtorch.c10.memory_format import dense_strides, is_non_overlapping_and_dense, strides_in_format
from readtorch.c10.tensor_impl import dtype_of, host_array

from .loops import broadcast, pointwise
from .memory_access import load, store
from .offset_calculator import laid_out
from .register_dispatch_key import cuda_kernel, empty, is_on_device

TILE, PITCH, DOWN = 32, 33, 8


def copy(x, out):
    """out = x, converted to out's dtype; x broadcast."""
    if transposes(x, out):
        transpose(x.swapaxes(-1, -2), out)
    else:
        pointwise(f.copy, [x], out)


def transposes(x, out):
    """Is the last dimension the close one in `out` and the one before it in `x`?"""
    if x.ndim not in (2, 3) or x.shape != out.shape or min(x.shape[-2:]) < TILE:
        return False
    return x.strides[-2] == x.itemsize and out.strides[-1] == out.itemsize


def transpose(x, out):
    """out[…, j, i] = x[…, i, j], of matrices or a stack of them."""
    if out.size == 0:
        return
    x, out = (a if a.ndim == 3 else strided(a, (1, *a.shape), (0, *a.strides)) for a in (x, out))
    grid = (-(-x.shape[2] // TILE), -(-x.shape[1] // TILE), min(x.shape[0], 65535))
    (x_row, x_steps), (out_row, out_steps) = laid_out(x), laid_out(out)
    launch(transpose_kernel(x.dtype.type), grid, (TILE, DOWN), x_row, out_row, x.shape, x_steps[:2], out_steps[:2])


@functools.cache
def transpose_kernel(dtype):
    def transpose(x, out, shape, x_steps, out_steps):
        tile = cuda.shared.array((TILE, PITCH), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
        source, target = (top + ty) * x_steps[1] + left + tx, (left + ty) * out_steps[1] + top + tx
        for z in range(cuda.blockIdx.z, shape[0], cuda.gridDim.z):
            for i in range(0, TILE, DOWN):
                if top + ty + i < shape[1] and left + tx < shape[2]:
                    tile[ty + i, tx] = load(x, z * x_steps[0] + source + i * x_steps[1])
            cuda.syncthreads()
            for i in range(0, TILE, DOWN):
                if left + ty + i < shape[2] and top + tx < shape[1]:
                    store(out, z * out_steps[0] + target + i * out_steps[1], tile[tx, ty + i])
            cuda.syncthreads()

    return transpose


def copy_elements(source, target, non_blocking=False):
    """The elements of one tensor, converted and broadcast, into another; each may be on any device or the
    host. non_blocking: where they change their type and their place, the device converts them and not the host, which
    then need not wait."""
    if not target._array.size:
        return
    if not is_on_device(source):
        from_host(source._array, target, non_blocking)
    elif not is_on_device(target):
        to_host(source, target, non_blocking)
    elif source.device == target.device:
        copied_into(source, target)
    else:
        from_peer(source, target)


def real_part(array, target):
    """What is converted to `target`: of complex numbers the real part, unless it is complex as well."""
    return array.real if array.dtype.kind == "c" and target._array.dtype.kind not in "cb" else array


def lie_alike(one, other):
    """Whether a copy of memory makes one array's elements the other's."""
    strides = [(s, t) for n, s, t in zip(one.shape, one.strides, other.strides) if n != 1]
    alike = one.dtype == other.dtype and one.shape == other.shape and all(s == t for s, t in strides)
    return alike and is_non_overlapping_and_dense(one)


def from_host(array, target, non_blocking):
    """Sent where it shall be, or beside it and copied there by the device."""
    if array.dtype != target._array.dtype and not non_blocking:
        array = native_copy.cast(array, target._array.dtype)
    if lie_alike(array, target._array):
        copy_bytes(target.device, target._array, array, reach_of(array))
    else:
        laid_out = array if is_non_overlapping_and_dense(array) else np.array(array, order="C")
        copied_into(tensor_on(target.device, laid_out), target)


def to_host(source, target, non_blocking):
    """Fetched without gaps, converted by the host."""
    if non_blocking and source._array.dtype != target._array.dtype:
        with DeviceGuard(source.device.index):
            source = to_copy_cuda(source, dtype_of(target), None, None, None, False, None)
    source = dense(source)
    if lie_alike(source._array, target._array):
        copy_bytes(source.device, target._array, source._array, reach_of(source._array))
    else:
        np.copyto(target._array, native_copy.cast(host_array(source), target._array.dtype))


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
        copy(broadcast(real_part(source._array, target), target._array.shape), target._array)


def dense(t):
    """`t`, or a copy of it without gaps."""
    if is_non_overlapping_and_dense(t._array):
        return t
    with DeviceGuard(t.device.index):
        result = empty(t._array.shape, t._array.dtype, dense_strides(t._array))
        copy(t._array, result._array)
    return result


@cuda_kernel(native_copy.clone)
def clone_cuda(self, memory_format):
    result = empty(self._array.shape, self._array.dtype, strides_in_format(self._array, memory_format))
    copy_elements(self, result)
    return result


@cuda_kernel(native_copy._to_copy)
def to_copy_cuda(self, dtype, layout, device, pin_memory, non_blocking, memory_format):
    refuse_sparse(self)
    numpy_dtype = self._array.dtype if dtype is None else dtype.numpy
    result = empty(self._array.shape, numpy_dtype, strides_in_format(self._array, memory_format))
    copy_elements(self, result, non_blocking)
    return result


@cuda_kernel(native_copy.copy_)
def copy_cuda_(self, src, non_blocking):
    refuse_overlap(self)
    native_copy.check_broadcast(self._array.shape, src._array.shape)
    copy_elements(src, self, non_blocking)
    return self
