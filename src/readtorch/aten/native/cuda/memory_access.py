"""Sixteen bytes at once: four float32 as one access of memory.

In PyTorch: `aten/src/ATen/native/cuda/MemoryAccess.cuh`.
"""

from readtorch.c10.cuda.compile import Intrinsic
from readtorch.c10.cuda.launch import address


def load_four(array, i):
    """(array[i], …, array[i + 3]) of a contiguous float32 array; i is a multiple of 4, the address one of 16."""
    return array[i], array[i + 1], array[i + 2], array[i + 3]


def store_four(array, i, a, b, c, d):
    """array[i … i + 3] = a, b, c, d, likewise."""
    array[i] = a
    array[i + 1] = b
    array[i + 2] = c
    array[i + 3] = d


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


load4, store4 = Intrinsic(load_four, make_load), Intrinsic(store_four, make_store)


def in_fours(*arrays):
    """May these be read four numbers at a time?"""
    return all(a.dtype == "float32" and a.flags.c_contiguous and address(a) % 16 == 0 for a in arrays)
