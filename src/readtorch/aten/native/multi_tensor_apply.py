"""One kernel call for lists of tensors: the elements of all are one long row, which the threads share.

Note [ Where an array's elements lie ]
An array as an argument costs a compiled loop 0.2 µs, asking an array for its address takes 1 µs, and comparing shapes, dtypes
and layouts in Python about as much: with a hundred small parameters an optimizer would do little else. But `id(x)` is the address
of the Python object `x`. A list's object holds the address of its items' addresses, and an array's object holds its elements'
address, its shape, its dtype and its flags: structures that are part of Python's and NumPy's C interface (`PyListObject`,
`PyArrayObject_fields`) and stay as they are. So one compiled pass over lists of arrays, `survey`, is given the lists' addresses,
checks that all fits, and notes where the elements are. The caller's lists keep the objects alive.

In PyTorch: `aten/src/ATen/native/cuda/MultiTensorApply.cuh`. On the CPU its fused operators call a kernel
once a tensor.
"""

import numpy as np

from readtorch.aten import parallel
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, by_numpy, float32

from .tensor_iterator import F4, F8

GRAIN = 1 << 18  # elements that are worth a thread
LIKE = {F4: np.empty(0, F4), F8: np.empty(0, F8)}  # what tells a loop in which dtype it works


def multi_tensor_apply(kernel, lists, numbers=(), numbers_of_each=(), flags=(), read_only=()):
    """Call `kernel(addresses, ends, like, *numbers, *numbers_of_each, *flags, begin, end)`: a step in place.

    lists: lists of tensors, which in each place have the same shape and dtype. Different dtypes in a list
    mean a call for each. read_only: positions of lists that are not changed. numbers: floats.
    numbers_of_each: lists with a float for each tensor. The kernel sees addresses[j, i], where the elements of the i-th
    tensor of list j are; ends[i], where they end in the long row; like, an empty array of the dtype, in which
    the numbers are too; and does begin … end of the row. RuntimeError for other shapes or dtypes.
    """
    arrays = [[t._array for t in tensors] for tensors in lists]
    surveyed = survey(arrays)
    if surveyed is None:
        apply_to_copies(kernel, arrays, numbers, numbers_of_each, flags, read_only)
    else:
        run(kernel, surveyed, numbers, numbers_of_each, flags)
    for j, tensors in enumerate(lists):
        if j not in read_only:
            count_writes(tensors)


def count_writes(tensors):
    for t in tensors:
        t._counter[0] += 1


def survey(arrays):
    """(addresses, ends, like) of lists of arrays that lie as the loops want them, else None."""
    from .cpu import multi_tensor_apply as compiled

    first = arrays[0]
    like = LIKE.get(first[0].dtype) if first else None
    if like is None or any([len(each) != len(first) for each in arrays]):
        return None
    addresses, ends = np.empty((len(arrays), len(first)), np.int64), np.empty(len(first), np.int64)
    fits = compiled.survey(np.array([id(each) for each in arrays]), id(like.dtype), addresses, ends)
    return (addresses, ends, like) if fits else None


def run(kernel, surveyed, numbers, numbers_of_each, flags):
    addresses, ends, like = surveyed
    dtype = like.dtype
    numbers = *map(dtype.type, numbers), *[np.array(each, dtype) for each in numbers_of_each], *flags

    def run_piece(begin, end):
        kernel(addresses, ends, like, *numbers, begin, end)

    parallel.parallel_for(0, int(ends[-1]), GRAIN, run_piece)


def apply_to_copies(kernel, arrays, numbers, numbers_of_each, flags, read_only):
    """A call for each dtype, with copies of what lies otherwise or has 16 bits; what has changed is copied back."""
    check_against_first(arrays)
    for dtype in {a.dtype for a in arrays[0]}:
        chosen = [i for i, a in enumerate(arrays[0]) if a.dtype == dtype]
        theirs = [[each[i] for i in chosen] for each in arrays]
        wide = dtype if dtype == F4 or dtype == F8 else F4
        flat = [[in_memory_order(a, first, wide) for a, first in zip(each, theirs[0])] for each in theirs]
        run(kernel, survey(flat), numbers, [[each[i] for i in chosen] for each in numbers_of_each], flags)
        for j in set(range(len(arrays))).difference(read_only):
            for result, array, first in zip(flat[j], theirs[j], theirs[0]):
                write_back(result, array, first)


def check_against_first(arrays):
    """A kernel reads all lists in the dtype of the first, and counts its elements: shorter arrays would end too early."""
    # in PyTorch: sizes are not checked on the CPU, and the memory behind is changed
    for each in arrays:
        for first, a in zip(arrays[0], each, strict=True):
            if a.dtype != first.dtype:
                wanted, found = (SCALAR_TYPE_NAMES[by_numpy[t.dtype]] for t in (first, a))
                raise RuntimeError(f"expected scalar type {wanted} but found {found}")
            if a.shape != first.shape:
                raise RuntimeError(
                    f"a fused step needs tensors of the parameter's shape {[*first.shape]}, got {[*a.shape]}"
                )


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
            count_writes(lists[j])

    return kernel
