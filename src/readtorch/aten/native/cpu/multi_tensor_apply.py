"""What a kernel over lists of tensors needs: `survey`, `piece` and `elements`. See ../multi_tensor_apply.py.

In PyTorch: `aten/src/ATen/native/cuda/MultiTensorApply.cuh`.
"""

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from readtorch.aten.cpu.compile import kernel, scalar

# Where the fields of Python's and NumPy's objects lie, in bytes: see Note [ Where an array's elements lie ]
HEADER = object.__basicsize__
LIST_ITEMS = HEADER + 8  # `PyListObject`: after the length
DATA, NDIM, SHAPE, DTYPE, FLAGS = (HEADER + i for i in (0, 8, 16, 40, 48))  # `PyArrayObject_fields`
INT = 0xFFFFFFFF  # what belongs to an `int` in the eight bytes that begin with it
C_CONTIGUOUS = 1


@kernel
def survey(lists, dtype, addresses, ends):
    """Find the elements of lists of arrays -> whether they lie as the loops want them.

    That is contiguous, of one dtype, and of one shape in each place. lists: where the lists' Python objects are; dtype: where
    NumPy's object for it is. addresses[j, i]: is set to where the elements of the i-th array of list j are; ends[i]: to how many
    elements there are up to and including the i-th array of a list.
    """
    total = 0
    for i in range(ends.size):
        first = load(load(lists[0] + LIST_ITEMS) + 8 * i)
        for j in range(lists.size):
            array = load(load(lists[j] + LIST_ITEMS) + 8 * i)
            if load(array + DTYPE) != dtype or not load(array + FLAGS) & C_CONTIGUOUS or not same_shape(array, first):
                return False
            addresses[j, i] = load(array + DATA)
        size = 1
        for k in range(load(first + NDIM) & INT):
            size *= load(load(first + SHAPE) + 8 * k)
        total += size
        ends[i] = total
    return True


@scalar
def same_shape(array, other):
    if array == other:
        return True
    ndim = load(array + NDIM) & INT
    if ndim != load(other + NDIM) & INT:
        return False
    shape, other_shape = load(array + SHAPE), load(other + SHAPE)
    for k in range(ndim):
        if load(shape + 8 * k) != load(other_shape + 8 * k):
            return False
    return True


@scalar
def piece(ends, i, begin, end):
    """Which elements of the i-th tensor belong to begin … end of the long row: where they begin and end."""
    first = ends[i - 1] if i > 0 else 0
    return max(begin - first, 0), min(end, ends[i]) - first


@scalar
def elements(address, begin, end, like):
    """The elements begin … end of those that begin at `address`, of `like`'s dtype."""
    return numba.carray(pointer_to(address, like), end)[begin:]


@intrinsic
def load(typing_context, address):
    """The eight bytes at `address`, as an integer."""

    def emit(context, builder, signature, arguments):
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

    return types.int64(types.int64), emit


@intrinsic
def pointer_to(typing_context, address, like):
    def emit(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(address, like), emit
