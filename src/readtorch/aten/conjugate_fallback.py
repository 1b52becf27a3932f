"""The key Conjugate, which `x.conj()` of a complex tensor carries: the memory holds the conjugates of the elements.

In PyTorch: `aten/src/ATen/ConjugateFallback.cpp`. Explained in the chapter "One operator call".
"""

from readtorch.c10.dispatch_key import CONJUGATE

from .dispatcher import set_fallback
from .native.math_bit_fall_through_lists import (
    UTILITIES_AND_CONSTRUCTORS,
    VIEW_FUNCTIONS,
    VIEW_FUNCTIONS_WITH_KERNELS,
    fall_through,
)
from .native.math_bits_fallback import MathOpFallback

_resolving = MathOpFallback(CONJUGATE, "conjugate")


def conjugate_fallback(operator, keys, args, kwargs):
    """Every operator that has no kernel for Conjugate: see MathOpFallback."""
    return _resolving(operator, keys, args, kwargs)


set_fallback(CONJUGATE, conjugate_fallback)

OWN = (
    "set_.source_Storage_storage_offset set_.source_Tensor set_ copy_ clone _conj_physical conj_physical conj_physical_ "
    "resolve_conj resolve_neg repeat_interleave.Tensor repeat_interleave.self_Tensor repeat_interleave.self_int "
    "_has_same_storage_numel _new_zeros_with_same_feature_meta"
).split()

# In PyTorch BLAS and LAPACK conjugate: see Note [ Kernels that are given the bits ].
LINEAR_ALGEBRA = (
    "dot vdot dot.out vdot.out mm mm.out addmm addmm_ addmm.out bmm bmm.out baddbmm baddbmm_ baddbmm.out linalg_svd "
    "linalg_svd.U linalg_solve_triangular linalg_solve_triangular.out"
).split()

fall_through(
    CONJUGATE, VIEW_FUNCTIONS + VIEW_FUNCTIONS_WITH_KERNELS + UTILITIES_AND_CONSTRUCTORS + OWN + LINEAR_ALGEBRA
)
