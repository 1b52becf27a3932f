"""The same operation for all tensors of a list, in one launch for many of them.

Which operators have such a kernel is listed where they are declared (`ONE_LOOP` in aten/native/foreach_ops_kernels.py). It serves
lists of contiguous float32 or float64 tensors; for others the operator of one tensor is called for each, as on the CPU.

In PyTorch: `aten/src/ATen/native/cuda/ForeachFunctors.cuh`; the operators are in `ForeachUnaryOp.cu`,
`ForeachBinaryOpScalar.cu`, `ForeachBinaryOpScalarList.cu`, `ForeachBinaryOpList.cu`, `ForeachPointwiseOp.cu`,
`ForeachTernaryOp.cu`, each of which falls back likewise (`can_use_fast_route`).
"""

import functools

import numpy as np
from numba import cuda

from readtorch.aten.native.foreach_ops_kernels import ONE_LOOP, are_plain
from readtorch.aten.native.multi_tensor_apply import count_writes
from readtorch.aten.native.tensor_iterator import F4, F8

from .multi_tensor_apply import CHUNK, chunk_of, multi_tensor_apply
from .register_dispatch_key import cuda_kernel, empty, is_on_device, operator_named


def foreach(function, arrays, results, numbers):
    """results[i] = function(arrays[0][i], …, (numbers[i],)). Contiguous, of one dtype."""
    number = results[0].dtype.type
    lists = results, *arrays
    multi_tensor_apply(KERNELS[len(arrays)](function), lists, each=[[number(n) for n in numbers]])


@functools.cache
def of_one(function):
    def foreach(ends, results, xs, numbers):
        t, first = chunk_of(ends)
        out, x, number = results[t], xs[t], numbers[t]
        for i in range(first + cuda.threadIdx.x, min(first + CHUNK, out.size), cuda.blockDim.x):
            out[i] = function(x[i], (number,))

    return foreach


@functools.cache
def of_two(function):
    def foreach(ends, results, xs, ys, numbers):
        t, first = chunk_of(ends)
        out, x, y, number = results[t], xs[t], ys[t], numbers[t]
        for i in range(first + cuda.threadIdx.x, min(first + CHUNK, out.size), cuda.blockDim.x):
            out[i] = function(x[i], y[i], (number,))

    return foreach


@functools.cache
def of_three(function):
    def foreach(ends, results, xs, ys, zs, numbers):
        t, first = chunk_of(ends)
        out, x, y, z, number = results[t], xs[t], ys[t], zs[t], numbers[t]
        for i in range(first + cuda.threadIdx.x, min(first + CHUNK, out.size), cuda.blockDim.x):
            out[i] = function(x[i], y[i], z[i], (number,))

    return foreach


KERNELS = {1: of_one, 2: of_two, 3: of_three}


def can_use_fast_route(lists, numbers):
    """Whether one kernel can do it: everywhere the first tensor's dtype, in each place one shape, all contiguous, on the device."""
    first = lists[0]
    dtype = first[0]._array.dtype if first else None
    if dtype not in (F4, F8) or len(numbers) != len(first) or not are_plain(numbers):
        return False
    return all(
        [
            len(tensors) == len(first)
            and all(
                [
                    is_on_device(t) and a.dtype == dtype and a.shape == b.shape and a.flags.c_contiguous
                    for t, a, b in [(t, t._array, u._array) for t, u in zip(tensors, first)]
                ]
            )
            for tensors in lists
        ]
    )


def register(overload, function, lists):
    """The kernels of `_foreach_{overload}` and of its form that writes in place."""
    name, _, kind = overload.partition(".")
    for suffix in ("", "_"):
        operator = operator_named(f"_foreach_{name}{suffix}{kind and '.' + kind}")
        cuda_kernel(operator)(in_one_launch(operator.composite, function, lists, inplace=suffix == "_"))


def in_one_launch(composite, function, lists, inplace):
    def kernel(*arguments):
        tensors, (numbers,) = arguments[:lists], arguments[lists:] or (0.0,)
        numbers = numbers if isinstance(numbers, (list, tuple)) else [numbers] * len(tensors[0])
        if not can_use_fast_route(tensors, numbers):
            return composite(*arguments)
        arrays = [[t._array for t in each] for each in tensors]
        results = tensors[0] if inplace else [empty(a.shape, np.dtype(a.dtype)) for a in arrays[0]]
        foreach(function, arrays, [t._array for t in results], numbers)
        return count_writes(results) if inplace else tuple(results)

    return kernel


for _overload, _function, _lists in ONE_LOOP:
    register(_overload, _function, _lists)
