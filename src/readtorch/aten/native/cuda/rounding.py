"""Rounding to whole numbers that are still floats: floor, ceil, trunc, and rint, which is half to even.

`math.floor` gives an integer, which a nan, an infinity or 1e30 do not fit into. The chip has an
instruction for each of the four, in each width.

In PyTorch: `aten/src/ATen/native/cuda/UnaryFractionKernels.cu`, which calls CUDA's functions of these names.
"""
import numpy as np

from ....c10.cuda.compile import Intrinsic


def of_libdevice(name):
    """CUDA's function of this name in its argument's width: `floor` for float64, `floorf` for float32."""

    def make():
        from llvmlite import ir
        from numba import types
        from numba.core import cgutils
        from numba.cuda.extending import intrinsic

        @intrinsic
        def rounded(typing, x):
            def emit(context, builder, signature, arguments):
                number = context.get_value_type(x)
                kind = ir.FunctionType(number, [number])
                known = f"__nv_{name}f" if x is types.float32 else f"__nv_{name}"
                function = cgutils.get_or_insert_function(builder.module, kind, known)
                return builder.call(function, arguments)

            return x(x), emit

        return rounded

    return make


floor_of = Intrinsic(np.floor, of_libdevice("floor"))
ceil_of = Intrinsic(np.ceil, of_libdevice("ceil"))
trunc_of = Intrinsic(np.trunc, of_libdevice("trunc"))
rint_of = Intrinsic(np.rint, of_libdevice("rint"))
