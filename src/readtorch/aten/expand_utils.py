"""Broadcasting: the shape of a result, and how an operand is read as if it had that shape.

In PyTorch: `aten/src/ATen/ExpandUtils.cpp`. Explained in the chapter "One operator call".
"""


def broadcast_strides(array, shape):
    """The strides, in bytes, of `array` as if it had this shape: 0 where it is repeated."""
    lead = len(shape) - array.ndim
    return (0,) * lead + tuple([s if n == m else 0 for n, m, s in zip(array.shape, shape[lead:], array.strides)])


def broadcast_shape(*shapes):
    """The shape that these broadcast to. RuntimeError if they do not."""
    width = max(map(len, shapes), default=0)
    result = []
    for sizes in zip(*[(1,) * (width - len(shape)) + tuple(shape) for shape in shapes]):
        size = 1
        for n in sizes:
            if n != 1:
                if size != 1 and size != n:
                    raise broadcast_error(*shapes)
                size = n if size == 1 else size
        result.append(size)
    return tuple(result)


def broadcast_error(*shapes):
    """The RuntimeError for shapes that do not broadcast, or None if they do."""
    result = []
    for shape in shapes:
        width = max(len(result), len(shape))
        a, b = [1] * (width - len(result)) + result, [1] * (width - len(shape)) + list(shape)
        for dim in reversed(range(width)):
            if a[dim] != b[dim] and 1 not in (a[dim], b[dim]):
                return RuntimeError(
                    f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]}) at "
                    f"non-singleton dimension {dim}"
                )
        result = [y if x == 1 else x for x, y in zip(a, b)]
    return None


def inplace_shape_error(shape, *others):
    """The RuntimeError for an in-place write to `shape` whose operands broadcast to something else."""
    error = broadcast_error(shape, *others)
    if error is not None:
        return error
    target = broadcast_shape(shape, *others)
    return RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(target)}")
