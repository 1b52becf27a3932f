"""The dtypes in which decompositions compute. In PyTorch: `type_casts` in `torch/_decomp/decompositions.py`."""

import functools

from readtorch._tensor import Tensor
from readtorch.c10.scalar_type import bfloat16, float16, float32
from readtorch.utils._pytree import tree_leaves, tree_map

HALVES = (float16, bfloat16)


def in_opmath(function):
    """`function` with numbers of 16 bits as float32, as kernels compute; its results have their dtype again."""

    @functools.wraps(function)
    def inner(*args, **kwargs):
        halves = {t.dtype for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor) and t.dtype in HALVES}
        if not halves:
            return function(*args, **kwargs)
        args, kwargs = tree_map(widened, (args, kwargs))
        dtype = halves.pop() if len(halves) == 1 else float32
        return tree_map(
            lambda t: t.to(dtype) if isinstance(t, Tensor) and t.dtype is float32 else t, function(*args, **kwargs)
        )

    return inner


def widened(value):
    return value.to(float32) if isinstance(value, Tensor) and value.dtype in HALVES else value
