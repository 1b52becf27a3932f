"""The key Negative, which `x.conj().imag` carries: the memory holds the negatives of the elements.

In PyTorch: `aten/src/ATen/native/NegateFallback.cpp`. Explained in the chapter "One operator call".
"""

from readtorch.aten.dispatcher import set_fallback
from readtorch.c10.dispatch_key import NEGATIVE

from .math_bit_fall_through_lists import (
    UTILITIES_AND_CONSTRUCTORS,
    VIEW_FUNCTIONS,
    VIEW_FUNCTIONS_WITH_KERNELS,
    fall_through,
)
from .math_bits_fallback import MathOpFallback

_resolving = MathOpFallback(NEGATIVE, "negation")


def negation_fallback(operator, keys, args, kwargs):
    """Every operator that has no kernel for Negative: see MathOpFallback."""
    return _resolving(operator, keys, args, kwargs)


set_fallback(NEGATIVE, negation_fallback)

OWN = (
    "set_.source_Storage_storage_offset set_.source_Tensor set_ copy_ clone neg_ resolve_neg resolve_conj "
    "repeat_interleave.Tensor repeat_interleave.self_Tensor repeat_interleave.self_int linalg_solve_triangular "
    "linalg_solve_triangular.out linalg_svd linalg_svd.U _has_same_storage_numel _new_zeros_with_same_feature_meta"
).split()

fall_through(NEGATIVE, VIEW_FUNCTIONS + VIEW_FUNCTIONS_WITH_KERNELS + UTILITIES_AND_CONSTRUCTORS + OWN)
