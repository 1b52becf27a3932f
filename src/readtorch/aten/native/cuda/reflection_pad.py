"""Padding by reflection, by the nearest element, and by a constant.

    pad_elements(source, x, before, out)      source: `mirrored` for reflection_pad, `nearest` for replication_pad
    pad_backward(source, grad, before, out)   each element gets what its copies get; `out` begins as zeros

Images are (planes, depth, height, width); before: how much padding stands before each dimension. Grid: blocks of 256
threads with a grid-stride loop, a thread for each element of the result; in the backward pass one for each element of
the gradient, which is added atomically.

In PyTorch: `aten/src/ATen/native/cuda/ReflectionPad.cu`, `aten/src/ATen/native/cuda/ReplicationPadding.cu`,
`aten/src/ATen/native/PadNd.cpp`.
"""

import functools

from numba import cuda

from readtorch.aten.native.pad_nd import crop
from readtorch.aten.native.padding import inside
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.tensor_impl import dtype_of

from .copy import copy as copy_kernel
from .fill_kernel import filled
from .loops import THREADS, place
from .pool import in_rows, in_wide
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


def pad_elements(source, x, before, out):
    run(pad_kernel(source), out, contiguous(x), before, out)


def pad_backward(source, grad, before, out):
    run(unpad_kernel(source), grad, contiguous(grad), before, out)


def run(kernel, elements, *arguments):
    if elements.size:
        launch(kernel, blocks_of(elements.size, THREADS), THREADS, *arguments)


def mirrored(i, n):
    """… 2 1 | 0 1 2 3 | 2 1 …"""
    i = -i if i < 0 else i
    return i if i < n else 2 * (n - 1) - i


def nearest(i, n):
    """… 0 0 | 0 1 2 3 | 3 3 …"""
    return min(max(i, 0), n - 1)


@functools.cache
def pad_kernel(source):
    def pad(x, before, out):
        front, top, left = before
        _, depth, height, width = x.shape
        for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            p, i, j, k = place(e, out.shape)
            out[p, i, j, k] = x[p, source(i - front, depth), source(j - top, height), source(k - left, width)]

    return pad


@functools.cache
def unpad_kernel(source):
    def unpad(grad, before, out):
        front, top, left = before
        _, depth, height, width = out.shape
        for e in range(cuda.grid(1), grad.size, cuda.gridsize(1)):
            p, i, j, k = place(e, grad.shape)
            to = (p, source(i - front, depth), source(j - top, height), source(k - left, width))
            cuda.atomic.add(out, to, grad[p, i, j, k])

    return unpad


@cuda_impl(operator_named("constant_pad_nd"))
def constant_pad_cuda(self, pad, value, out):
    """A filled tensor, with `self` in its middle; negative padding cuts off."""
    filled(out, value)
    x, wider = crop(self._array, pad)
    copy_kernel(x, out._array[inside(x.shape, wider)])


def as_volumes(array, dims):
    """(planes, depth, height, width) of an array whose last `dims` dimensions are padded."""
    return array.reshape(-1, *[1] * (3 - dims), *array.shape[array.ndim - dims :])


def padding_operators(name, dims, source):
    def before(padding):
        return (*[0] * (3 - dims), *padding[2 * dims - 2 :: -2])

    @cuda_impl(operator_named(name))
    def pad(self, padding, out):
        if self._array.dtype.kind == "b":
            raise not_implemented(name)(dtype_of(self))
        if out._array.size:
            with in_rows(out) as result:
                x = as_volumes(contiguous(self._array), dims)
                pad_elements(source, x, before(padding), as_volumes(result._array, dims))

    @cuda_impl(operator_named(f"{name}_backward"))
    def unpad(grad_output, self, padding, grad_input):
        """The sums are atomic: their last digit is not fixed."""
        with in_wide(grad_input, row_major=True) as sums:
            filled(sums, 0)
            if grad_output._array.size:
                grad = as_volumes(contiguous(wide(grad_output)._array), dims)
                pad_backward(source, grad, before(padding), as_volumes(sums._array, dims))


for _dims in (1, 2, 3):
    padding_operators(f"reflection_pad{_dims}d", _dims, mirrored)
    padding_operators(f"replication_pad{_dims}d", _dims, nearest)
