"""Single elements of global memory, and sixteen bytes at once: four float32 as one access.

Note [ An element without an index ]
`array[i, k, j]` costs more than it seems to: for each index a comparison and a selection, since an index below 0 would count
from the end, and a multiplication of 64 bits for each dimension. In loops over memory the kernels therefore take arrays of
one dimension, add up offsets themselves, and say `load(array, i)`, which is the instruction and nothing else. It also says
that the memory is global, which the compiler otherwise cannot know everywhere. The simulator checks these accesses as all
others.

In PyTorch: `aten/src/ATen/native/cuda/MemoryAccess.cuh`.
"""

import numpy as np

from readtorch.c10.cuda.compile import Intrinsic
from readtorch.c10.cuda.launch import address

FLOAT32 = np.dtype(np.float32)

GLOBAL = 1  # the number of global memory among LLVM's address spaces for NVIDIA


def load_one(array, i):
    """array[i] of a contiguous array of one dimension."""
    return array[i]


def store_one(array, i, value):
    """array[i] = value, likewise."""
    array[i] = value


def load_four(array, i):
    """(array[i], …, array[i + 3]) of a contiguous float32 array; i is a multiple of 4, the address one of 16."""
    return array[i], array[i + 1], array[i + 2], array[i + 3]


def store_four(array, i, a, b, c, d):
    """array[i … i + 3] = a, b, c, d, likewise."""
    array[i] = a
    array[i + 1] = b
    array[i + 2] = c
    array[i + 3] = d


def element_at(context, builder, kind, array, i, i_kind):
    """A pointer to one element in global memory, as LLVM instructions."""
    from numba import types

    data = context.make_array(kind)(context, builder, array).data
    element = builder.gep(data, [context.cast(builder, i, i_kind, types.intp)])
    return builder.addrspacecast(element, context.get_data_type(kind.dtype).as_pointer(GLOBAL))


def make_load_one():
    from numba.cuda.extending import intrinsic

    @intrinsic
    def load(typing, array, i):
        def emit(context, builder, signature, arguments):
            place = element_at(context, builder, signature.args[0], *arguments, signature.args[1])
            return context.unpack_value(builder, signature.return_type, place)

        return array.dtype(array, i), emit

    return load


def make_store_one():
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def store(typing, array, i, value):
        def emit(context, builder, signature, arguments):
            kind, i_kind, value_kind = signature.args
            place = element_at(context, builder, kind, *arguments[:2], i_kind)
            context.pack_value(builder, kind.dtype, context.cast(builder, arguments[2], value_kind, kind.dtype), place)
            return context.get_dummy_value()

        return types.none(array, i, value), emit

    return store


def four_at(context, builder, kind, array, i, i_kind):
    """A pointer to four float32, as LLVM instructions."""
    from llvmlite import ir
    from numba import types

    data = context.make_array(kind)(context, builder, array).data
    element = builder.gep(data, [context.cast(builder, i, i_kind, types.intp)])
    return builder.bitcast(element, ir.VectorType(ir.FloatType(), 4).as_pointer(data.type.addrspace))


def make_load():
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def load(typing, array, i):
        def emit(context, builder, signature, arguments):
            four = builder.load(four_at(context, builder, signature.args[0], *arguments, signature.args[1]))
            four.align = 16
            scalars = [builder.extract_element(four, ir.Constant(ir.IntType(32), k)) for k in range(4)]
            return context.make_tuple(builder, signature.return_type, scalars)

        return types.UniTuple(types.float32, 4)(array, i), emit

    return load


def make_store():
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def store(typing, array, i, a, b, c, d):
        def emit(context, builder, signature, arguments):
            four = ir.Constant(ir.VectorType(ir.FloatType(), 4), ir.Undefined)
            for k, (number, kind) in enumerate(zip(arguments[2:], signature.args[2:])):
                number = context.cast(builder, number, kind, types.float32)
                four = builder.insert_element(four, number, ir.Constant(ir.IntType(32), k))
            place = four_at(context, builder, signature.args[0], *arguments[:2], signature.args[1])
            builder.store(four, place).align = 16
            return context.get_dummy_value()

        return types.none(array, i, a, b, c, d), emit

    return store


load, store = Intrinsic(load_one, make_load_one), Intrinsic(store_one, make_store_one)
load4, store4 = Intrinsic(load_four, make_load), Intrinsic(store_four, make_store)


def in_fours(*arrays):
    """May these be read four numbers at a time?"""
    return all([a.dtype == FLOAT32 and a.flags.c_contiguous and address(a) % 16 == 0 for a in arrays])
