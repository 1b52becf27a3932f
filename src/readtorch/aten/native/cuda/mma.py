"""Tensor cores: products of small matrices that a warp makes in one instruction.

    d = mma_tf32(a, b, c)      16 × 8 of float32 = (16 × 8) (8 × 8) + c       numbers of 32 bits, of which 19 count
    d = mma_bf16(a, b, c)      16 × 8 of float32 = (16 × 16) (16 × 8) + c     numbers of 16 bits, two in a word
    d = mma_f16(a, b, c)       the same of float16
    word = to_tf32(word)       a float32's bits, rounded to the 19 that mma_tf32 looks at
    word = as_word(x)          a float32's bits, and x = as_float(word) back
    load_words, store_words    four words at once, as load4 and store4 do with floats
    a = ldmatrix(words, i)     four 8 × 8 matrices of 16-bit numbers from shared memory to the lanes
    a = ldmatrix_transposed(words, i)

Note [ Who holds what ]
All 32 lanes call it together, and the matrices lie spread over their registers. A register is a word of 32 bits: one
TF32 number, or two 16-bit numbers that follow each other along K, the first in the low half. So both kinds of product
have operands of 16 × 8 and 8 × 8 *words*. Lane 4 g + t holds

    a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)               row, word along K
    b: (t, g), (t + 4, g)                                           word along K, column
    c, d: (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)    row, column

`a` and `b` are tuples of words (uint32), `c` and `d` of float32.

Note [ Eight rows at an instruction ]
`ldmatrix` brings 16-bit operands into that form. The words at i, i + 1, i + 2, i + 3 are a row of eight numbers; lanes
0 … 7 name the rows of the first matrix, 8 … 15 of the second, and so on. Lane 4 g + t receives of each matrix the t-th
word of row g; transposed: the numbers (2 t, g) and (2 t + 1, g). A row begins at a multiple of four words.

PyTorch has no such file: its kernels take these instructions from CUTLASS (`cute/arch/mma_sm80.hpp`, `copy_sm75.hpp`).
"""

import functools

import numpy as np
from numba import cuda

from readtorch.c10.cuda.compile import Intrinsic

from .memory_access import four_at, load_four, store_four

ALL_LANES = 0xFFFFFFFF
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LDMATRIX = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"


# ------------------------------------------------------------------------------------- as the simulator runs it


def simulated_tf32(a, b, c):
    return cuda.mma("m16n8k8.tf32", a, b, c)


def simulated_bf16(a, b, c):
    return cuda.mma("m16n8k16.bf16", a, b, c)


def simulated_f16(a, b, c):
    return cuda.mma("m16n8k16.f16", a, b, c)


def rounded_to_tf32(word):
    """Ten bits of fraction are kept; halves are rounded away from zero."""
    return np.uint32((int(word) + 0x1000) & 0xFFFFE000)


def word_of(x):
    return np.float32(x).view(np.uint32)


def float_of(word):
    return np.uint32(word).view(np.float32)


def simulated_ldmatrix(words, i):
    lane, found = cuda.laneid, []
    for matrix in range(4):
        row = cuda.shfl_sync(ALL_LANES, np.int64(i), 8 * matrix + lane // 4)
        found.append(words[row + lane % 4])
    return tuple(found)


def simulated_ldmatrix_transposed(words, i):
    lane, found = cuda.laneid, []
    g, t = lane // 4, lane % 4
    for matrix in range(4):
        first = cuda.shfl_sync(ALL_LANES, np.int64(i), 8 * matrix + 2 * t)
        second = cuda.shfl_sync(ALL_LANES, np.int64(i), 8 * matrix + 2 * t + 1)
        low, high = (int(words[row + g // 2]) >> 16 * (g % 2) & 0xFFFF for row in (first, second))
        found.append(np.uint32(low | high << 16))
    return tuple(found)


# ------------------------------------------------------------------------------------------ as instructions of PTX


def assembly(builder, text, results, letter, operands, constraints):
    """One instruction with so many results. All lanes execute it together: LLVM must not move it into a branch."""
    from llvmlite import ir

    kinds = ir.LiteralStructType([results] * letter.count("=")) if letter.count("=") > 1 else results
    function = ir.InlineAsm(
        ir.FunctionType(kinds, [o.type for o in operands]), text, f"{letter},{constraints}", side_effect=True
    )
    call = builder.call(function, operands, attrs=("convergent",))
    return [builder.extract_value(call, k) for k in range(letter.count("="))] if letter.count("=") > 1 else [call]


def make_mma(instruction):
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    text = f"{instruction} {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, {{$8, $9}}, {{$10, $11, $12, $13}};"

    @intrinsic
    def mma(typing, a, b, c):
        def emit(context, builder, signature, arguments):
            registers = [
                builder.extract_value(value, k)
                for value, kind in zip(arguments, signature.args)
                for k in range(kind.count)
            ]
            d = assembly(builder, text, ir.FloatType(), "=f,=f,=f,=f", registers, "r,r,r,r,r,r,f,f,f,f")
            return context.make_tuple(builder, signature.return_type, d)

        four, two, sums = (
            types.UniTuple(types.uint32, 4),
            types.UniTuple(types.uint32, 2),
            types.UniTuple(types.float32, 4),
        )
        return sums(four, two, sums), emit

    return mma


def make_to_tf32():
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def convert(typing, word):
        def emit(context, builder, signature, arguments):
            return assembly(builder, "cvt.rna.tf32.f32 $0, $1;", ir.IntType(32), "=r", arguments, "r")[0]

        return types.uint32(types.uint32), emit

    return convert


def make_bits(source, result):
    """The same 32 bits as another type."""
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def bits(typing, value):
        def emit(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

        return getattr(types, result)(getattr(types, source)), emit

    return bits


def make_load_words():
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def load(typing, array, i):
        def emit(context, builder, signature, arguments):
            four = builder.load(four_at(context, builder, signature.args[0], *arguments, signature.args[1]))
            four.align = 16
            numbers = [builder.extract_element(four, ir.Constant(ir.IntType(32), k)) for k in range(4)]
            words = [builder.bitcast(number, ir.IntType(32)) for number in numbers]
            return context.make_tuple(builder, signature.return_type, words)

        return types.UniTuple(types.uint32, 4)(array, i), emit

    return load


def make_store_words():
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def store(typing, array, i, a, b, c, d):
        def emit(context, builder, signature, arguments):
            four = ir.Constant(ir.VectorType(ir.FloatType(), 4), ir.Undefined)
            for k, word in enumerate(arguments[2:]):
                four = builder.insert_element(
                    four, builder.bitcast(word, ir.FloatType()), ir.Constant(ir.IntType(32), k)
                )
            place = four_at(context, builder, signature.args[0], *arguments[:2], signature.args[1])
            builder.store(four, place).align = 16
            return context.get_dummy_value()

        words = [types.uint32] * 4
        return types.none(array, i, *words), emit

    return store


def make_ldmatrix(instruction):
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    text = f"{instruction} {{$0, $1, $2, $3}}, [$4];"

    @intrinsic
    def load(typing, words, i):
        def emit(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.gep(data, [context.cast(builder, arguments[1], signature.args[1], types.intp)])
            shared = builder.addrspacecast(place, ir.IntType(32).as_pointer(3))
            address = builder.ptrtoint(shared, ir.IntType(32))
            found = assembly(builder, text, ir.IntType(32), "=r,=r,=r,=r", [address], "r,~{memory}")
            return context.make_tuple(builder, signature.return_type, found)

        return types.UniTuple(types.uint32, 4)(words, i), emit

    return load


mma_tf32 = Intrinsic(simulated_tf32, functools.partial(make_mma, TF32))
mma_bf16 = Intrinsic(simulated_bf16, functools.partial(make_mma, BF16))
mma_f16 = Intrinsic(simulated_f16, functools.partial(make_mma, F16))
to_tf32 = Intrinsic(rounded_to_tf32, make_to_tf32)
as_word = Intrinsic(word_of, functools.partial(make_bits, "float32", "uint32"))
as_float = Intrinsic(float_of, functools.partial(make_bits, "uint32", "float32"))
load_words, store_words = Intrinsic(load_four, make_load_words), Intrinsic(store_four, make_store_words)
ldmatrix = Intrinsic(simulated_ldmatrix, functools.partial(make_ldmatrix, LDMATRIX))
ldmatrix_transposed = Intrinsic(
    simulated_ldmatrix_transposed, functools.partial(make_ldmatrix, LDMATRIX.replace(".x4", ".x4.trans"))
)
