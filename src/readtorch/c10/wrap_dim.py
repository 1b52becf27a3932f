"""Dimensions counted from the end.

In PyTorch: `c10/core/WrapDimMinimal.h`, `aten/src/ATen/WrapDimUtils.h`.
"""


def wrap_dim(dim, ndim):
    """`dim` as a number from 0 to ndim - 1. A 0-dimensional tensor counts as having one. Raises IndexError."""
    span = ndim or 1
    if 0 <= dim < span:
        return dim
    if -span <= dim < 0:
        return dim + span
    raise IndexError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {dim})")


def wrap_dim_of_some(dim, ndim):
    """The same where a 0-dimensional tensor has no dimension to name."""
    if ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def wrap_dims(dims, ndim):
    """Each of `dims` wrapped; raises RuntimeError if one appears twice."""
    wrapped = [wrap_dim(d, ndim) for d in dims]
    for i, d in enumerate(wrapped):
        if d in wrapped[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return wrapped
