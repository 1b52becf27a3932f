"""What a kernel over lists of tensors needs: `piece` and `elements`. See ../multi_tensor_apply.py.

In PyTorch: `aten/src/ATen/native/cuda/MultiTensorApply.cuh`.
"""

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from readtorch.aten.cpu.compile import scalar

HEADER = object.__basicsize__


@scalar
def piece(ends, i, begin, end):
    """Which elements of the i-th tensor belong to begin … end of the long row: where they begin and end."""
    first = ends[i - 1] if i > 0 else 0
    return max(begin - first, 0), min(end, ends[i]) - first


@scalar
def elements(object, begin, end, like):
    """The elements begin … end of the array whose Python object has this address, of `like`'s dtype."""
    return numba.carray(address_of_elements(object, like), end)[begin:]


@intrinsic
def address_of_elements(typing_context, object, like):
    """Note [ Where an array's elements lie ]"""

    def emit(context, builder, signature, arguments):
        pointer = context.get_value_type(signature.return_type)
        place = builder.add(arguments[0], ir.Constant(arguments[0].type, HEADER))
        return builder.load(builder.inttoptr(place, pointer.as_pointer()))

    return types.CPointer(like.dtype)(object, like), emit
