"""One kernel call for lists of tensors: the elements of all are one long row, which the threads share.

Note [ Where an array's elements lie ]
An array as an argument costs a compiled loop 0.2 µs, and asking an array for its address takes 1 µs: with a
hundred small parameters an optimizer would do little else. But `id(array)` is the address of a Python object,
and an array's object is Python's header followed by the address of the elements (NumPy's `PyArray_DATA` reads
it there). So a kernel is given the objects' addresses, and looks up the elements' itself. The caller's lists
keep the objects alive.

In PyTorch: `aten/src/ATen/native/cuda/MultiTensorApply.cuh`. On the CPU its fused operators call a kernel
once a tensor.
"""

import numpy as np

from readtorch.aten import parallel
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, float32

from .tensor_iterator import F4, F8

GRAIN = 1 << 18  # elements that are worth a thread


def multi_tensor_apply(kernel, lists, numbers=(), numbers_of_each=(), flags=(), read_only=()):
    """Call `kernel(objects, ends, like, *numbers, *numbers_of_each, *flags, begin, end)`: a step in place.

    lists: lists of tensors, which in each place have the same shape and dtype. Different dtypes in a list
    mean a call for each. read_only: positions of lists that are not changed. numbers: floats.
    numbers_of_each: lists with a float for each tensor. The kernel sees objects[j, i], where the i-th tensor
    of list j is; ends[i], where its elements end in the long row; like, an empty array of the dtype, in which
    the numbers are too; and does begin … end of the row.
    """
    arrays = [[t._array for t in tensors] for tensors in lists]
    dtypes = {a.dtype for a in arrays[0]}
    if len(dtypes) > 1:
        for dtype in dtypes:
            chosen = [i for i, a in enumerate(arrays[0]) if a.dtype == dtype]
            theirs = [[tensors[i] for i in chosen] for tensors in lists]
            of_each = [[each[i] for i in chosen] for each in numbers_of_each]
            multi_tensor_apply(kernel, theirs, numbers, of_each, flags, read_only)
        return
    (dtype,) = dtypes
    wide = dtype if dtype is F4 or dtype is F8 else F4
    scattered = {i for each in arrays for i, a in enumerate(each) if not (a.dtype is wide and a.flags.c_contiguous)}
    flat = [list(each) for each in arrays] if scattered else arrays
    for i in scattered:
        for each in flat:
            each[i] = in_memory_order(each[i], arrays[0][i], wide)
    objects = np.array([[id(a) for a in each] for each in flat])
    ends = np.array([a.size for a in flat[0]]).cumsum()
    like = np.empty(0, wide)
    numbers = *map(wide.type, numbers), *[np.array(each, wide) for each in numbers_of_each], *flags

    def run(begin, end):
        kernel(objects, ends, like, *numbers, begin, end)

    parallel.parallel_for(0, int(ends[-1]), GRAIN, run)
    for j in set(range(len(lists))).difference(read_only):
        for i in scattered:
            write_back(flat[j][i], arrays[j][i], arrays[0][i])
        for t in lists[j]:
            t._counter[0] += 1


def in_memory_order(array, first, dtype):
    """The elements in the order in which `first` has them in memory; a view if `array` has them so, too."""
    return np.ascontiguousarray(array.transpose(order(first)), dtype)


def write_back(result, array, first):
    """Undo `in_memory_order`, if it had to copy."""
    view = array.transpose(order(first))
    if not np.may_share_memory(result, view):
        view[...] = result.reshape(view.shape)


def order(array):
    return sorted(range(array.ndim), key=lambda axis: -array.strides[axis])


def divide_in_place(grad, scale):
    grad._array[...] = grad._array / np.float32(scale.item())


def unscale(grads, grad_scale, found_inf, divide=divide_in_place):
    """Divide gradients by the scale of a GradScaler, in place -> whether the step is to be done: none of them was infinite.

    In PyTorch: the kernel of the step does it as it reads a gradient; of a bfloat16 one it uses the quotient before it is rounded.
    """
    for t in (grad_scale, found_inf):
        if t is not None and t.dtype != float32:
            raise RuntimeError(f"expected scalar type Float but found {SCALAR_TYPE_NAMES[t.dtype]}")
    if found_inf is not None and found_inf.item() == 1.0:
        return False
    if grad_scale is not None:
        for grad in grads:
            divide(grad, grad_scale)
    return True


def only_counted(read_only=()):
    """The kernel of such an operator on the Meta device: the writes are counted, but for the lists at these positions."""

    def kernel(*arguments):
        lists = [a for a in arguments if isinstance(a, (list, tuple))]
        for j in set(range(len(lists))).difference(read_only):
            for t in lists[j]:
                t._counter[0] += 1

    return kernel
