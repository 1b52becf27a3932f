"""Functions of several tensors that PyTorch writes in Python: broadcast_tensors, split, meshgrid,
atleast_1d …

In PyTorch: `torch/functional.py`.
"""

import itertools
import operator

import numpy as np

from . import _C
from .aten.functions import at
from .aten.native.copy import constant_beside
from .aten.native.tensor_shape import cat as joins
from .aten.native.tensor_shape.reshape import view_on_grid
from .c10.exception import warn_once
from .c10.size import Size
from .csrc.utils.disable_torch_function import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)


def _list_of(tensors):
    """`f(a, b)` and `f([a, b])` mean the same."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def broadcast_tensors(*tensors):
    """All tensors expanded to the shape they have in common. Raises RuntimeError."""
    if has_torch_function(tensors):
        return handle_torch_function(broadcast_tensors, tensors, *tensors)
    return at.broadcast_tensors(list(_list_of(tensors)))


def broadcast_shapes(*shapes):
    """The Size to which all of `shapes` broadcast; an int counts as a shape of one dimension. Raises
    RuntimeError."""
    result = [1] * max((1 if isinstance(s, int) else len(s) for s in shapes), default=0)
    for position, shape in enumerate(shapes):
        shape = (shape,) if isinstance(shape, int) else shape
        sizes = tuple(map(operator.index, shape))
        for i in range(-1, -1 - len(sizes), -1):
            _merge_size(result, i, sizes, f"index {position} had {shape}")
    return Size(result)


def _merge_size(result, i, sizes, given):
    if sizes[i] < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension ({sizes[i]}): ({sizes[i]})")
    if sizes[i] not in (1, result[i]):
        if result[i] != 1:
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {sizes[i]} at {i}! "
                f"Mismatching argument at {given}; but expected shape should be broadcastable to {result}"
            )
        result[i] = sizes[i]


def split(tensor, split_size_or_sections, dim=0):
    """Views of `tensor`: pieces of equal size, or of the sizes listed."""
    if has_torch_function_unary(tensor):
        return handle_torch_function(split, (tensor,), tensor, split_size_or_sections, dim=dim)
    return tensor.split(split_size_or_sections, dim)


def meshgrid(*tensors, indexing=None):
    """Each 1-dimensional tensor expanded to the grid that all of them span; indexing: "ij" (matrices) or
    "xy" (plots)."""
    if has_torch_function(tensors):
        return handle_torch_function(meshgrid, tensors, *tensors, indexing=indexing)
    tensors = list(_list_of(tensors))
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=2
        )
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError('torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + str(indexing))
    if indexing == "ij" or len(tensors) < 2:
        return tuple(view_on_grid(tensors))
    rows, columns, *others = view_on_grid([tensors[1], tensors[0], *tensors[2:]])
    return (columns, rows, *others)


def _each(operator_):
    def at_least(*tensors):
        if has_torch_function(tensors):
            return handle_torch_function(at_least, tensors, *tensors)
        tensors = _list_of(tensors)
        if isinstance(tensors, tuple) and len(tensors) == 1:
            return operator_.call(tensors[0])
        return tuple([operator_.call(t) for t in tensors])

    at_least.__name__ = at_least.__qualname__ = operator_.schema.name
    count = operator_.schema.name[8]
    at_least.__doc__ = f"Each tensor with at least {count} dimensions; one tensor, or a tuple of several."
    return at_least


atleast_1d, atleast_2d, atleast_3d = map(_each, (joins.atleast_1d, joins.atleast_2d, joins.atleast_3d))


def block_diag(*tensors):
    """Matrices along the diagonal of a larger one, zeros elsewhere."""
    if has_torch_function(tensors):
        return handle_torch_function(block_diag, tensors, *tensors)
    return joins.block_diag.call(tensors)


def cartesian_prod(*tensors):
    """All combinations of the elements of 1-dimensional tensors, one a row."""
    if has_torch_function(tensors):
        return handle_torch_function(cartesian_prod, tensors, *tensors)
    for t in tensors:
        if t._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return at.stack([at.flatten(g) for g in grids], 1)


# What the operator calls 0, 1 and 2.
_COMPUTE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norms of the differences of each row of x1 and each row of x2: (*, P, M), (*, R, M) -> (*, P, R).

    compute_mode: whether a matrix product may serve for p = 2; by default if there are more than 25 rows. Raises
    RuntimeError if x1 and x2 do not fit together.
    """
    if has_torch_function_variadic(x1, x2):
        return handle_torch_function(cdist, (x1, x2), x1, x2, p=p, compute_mode=compute_mode)
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return at.cdist(x1, x2, p, _COMPUTE_MODES[compute_mode])


def unravel_index(indices, shape):
    """The coordinates of flat indices into a tensor of that shape: a tuple with one tensor for each dimension.

    Raises TypeError for indices that are not integers or a shape that is none, ValueError for negative sizes.
    """
    if has_torch_function_unary(indices):
        return handle_torch_function(unravel_index, (indices,), indices, shape=shape)
    if indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in shape:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    steps = list(itertools.accumulate((1, *reversed(shape[1:])), operator.mul))[::-1] if shape else []
    steps, sizes = (constant_beside(indices, np.array(numbers, np.int64)) for numbers in (steps, shape))
    return (indices.unsqueeze(-1).floor_divide(steps) % sizes).unbind(-1)


def _operators(*names):
    """Operators whose functions are Python in PyTorch, and stand here; here they are like all others."""
    functions = {name: getattr(_C._VariableFunctions, name) for name in names}
    for function in functions.values():
        function.__module__ = __name__
    return functions


globals().update(
    _operators("chain_matmul", "einsum", "lu", "norm", "stft", "tensordot", "unique", "unique_consecutive")
)
