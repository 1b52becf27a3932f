"""`fma(a, b, c)`: a * b + c rounded once, in compiled loops. NumPy and Python have no such operation.

In PyTorch: `fmadd` of `aten/src/ATen/cpu/vec/vec_base.h`; included by `aten/src/ATen/cpu/vec/vec.h`.
"""

from numba.extending import intrinsic


@intrinsic
def fma(typing_context, a, b, c):
    """a * b + c for three float32 or three float64."""

    def emit(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return a(a, a, a), emit
