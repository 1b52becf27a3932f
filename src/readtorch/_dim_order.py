"""The order in which a tensor's dimensions lie in memory.

In PyTorch: `compute_elementwise_output_logical_to_physical_perm` in `torch/_prims_common/__init__.py`, and
`Tensor.dim_order` in `torch/_tensor.py`.
"""

from itertools import pairwise

from .aten.sparse_tensor_impl import is_sparse
from .c10.memory_format import channels_last, memory_format

_AMBIGUOUS = "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."


def dim_order(t, ambiguity_check=False):
    """The dimensions of `t`, the outermost in memory first. See `Tensor.dim_order`."""
    if is_sparse(t):
        raise AttributeError(
            f"Can't get dim order on sparse type: {t.type()} Use Tensor.to_dense() to convert to a dense tensor first."
        )
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is not False and _has_several(t):
        if sum(t.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError(_AMBIGUOUS)
    order, is_unique = _by_strides(t)
    if ambiguity_check and not is_unique:
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(order)


def _has_several(t):
    """Whether a dimension of size 1, or two of one stride, could change places without a trace."""
    return 1 in t.shape or any(a == b for a, b in pairwise(t.stride()))


def _by_strides(t):
    """(the dimensions by falling stride, whether every neighbour's place is certain). A stride of 0 has no place of its own."""
    if t.dim() < 2:
        return list(range(t.dim())), True
    if t.is_contiguous() != (t.dim() == 4 and t.is_contiguous(memory_format=channels_last)):
        return (list(range(t.dim())) if t.is_contiguous() else [0, 2, 3, 1]), True
    inner_first = list(reversed(range(t.dim())))
    for start in range(1, t.dim()):
        place = start
        for other in reversed(range(start)):  # insertion: a pair that cannot be told apart is passed over
            relation = _compared(t, inner_first[other], inner_first[place])
            if relation > 0:
                inner_first[other], inner_first[place] = inner_first[place], inner_first[other]
                place = other
            elif relation < 0:
                break
    is_unique = all(_compared(t, a, b) < 0 for a, b in pairwise(inner_first))
    return inner_first[::-1], is_unique


def _compared(t, a, b):
    """-1 if dimension `a` lies further in than `b`, 1 if further out, 0 if nothing tells."""
    inner, outer = t.stride(a), t.stride(b)
    if inner == 0 or outer == 0:
        return 0
    if inner == outer:
        return 0 if t.size(b) >= t.size(a) else 1
    return -1 if outer > inner else 1
