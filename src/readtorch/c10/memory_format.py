"""Memory formats: in which order the dimensions of a dense tensor lie in memory, and the strides that follow.

In PyTorch: `c10/core/MemoryFormat.h`; `infer_dense_strides` stands in `aten/src/ATen/ExpandUtils.cpp`.
Explained in the chapter "Tensor and Storage".
"""

from .tensor_impl import contiguous_strides


class memory_format:
    """The order in which a dense tensor's dimensions lie in memory."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


# ---------------------------------------------------------------------------------------- the format of an array


def channels_last_order(ndim):
    """The axes of a channels-last tensor from the slowest to the fastest."""
    return (0, *range(2, ndim), 1)


def check_rank(shape, memory_format):
    """RuntimeError unless the shape has as many dimensions as a channels-last format is for."""
    rank = 4 if memory_format is channels_last else 5
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")


def has_format(array, memory_format):
    """Whether the array lies in memory as `memory_format` says."""
    if memory_format in (channels_last, channels_last_3d):
        ndim = 4 if memory_format is channels_last else 5
        return array.ndim == ndim and array.transpose(channels_last_order(ndim)).flags.c_contiguous
    return array.flags.c_contiguous


def suggested_format(array):
    """The memory format that an array's strides suggest (`TensorImpl::suggest_memory_format`)."""
    if array.ndim not in (4, 5) or not array.strides[1] or 0 in array.shape:
        return contiguous_format
    least = 0
    for d in reversed(channels_last_order(array.ndim)):
        step = array.strides[d]
        if step < least or d == 0 and least == array.strides[1]:
            return contiguous_format
        least = step * array.shape[d]
    return channels_last if array.ndim == 4 else channels_last_3d


def is_non_overlapping_and_dense(array):
    """Whether the elements lie side by side in memory, each once, in whatever order of the dimensions."""
    step = array.itemsize
    for stride, size in sorted(zip(array.strides, array.shape)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


# ---------------------------------------------------------------------------------- the strides of a new tensor
# All strides below count elements.


def fastest_first(shape, *strides):
    """The dimensions from the fastest to the slowest, by the strides of one or several arrays of that shape.

    A stride of 0 says nothing about order; where the strides say nothing, dimensions stay as they are.
    In PyTorch: `TensorIteratorBase::reorder_dimensions`, `infer_dense_strides`.
    """
    order = list(reversed(range(len(shape))))

    def slower(a, b):
        for steps in strides:
            if steps[a] and steps[b] and steps[a] != steps[b]:
                return 1 if steps[a] > steps[b] else -1
            if steps[a] and steps[b] and shape[a] > shape[b]:
                return 1
        return 0

    for i in range(1, len(order)):
        moving = i
        for candidate in reversed(range(i)):
            comparison = slower(order[candidate], order[moving])
            if comparison > 0:
                order[candidate], order[moving] = order[moving], order[candidate]
                moving = candidate
            elif comparison < 0:
                break
    return order


def strides_in_order(shape, order):
    """Strides without gaps; `order` names the dimensions from the fastest to the slowest."""
    strides, step = [0] * len(shape), 1
    for d in order:
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def dense_strides(array):
    """The strides of a new tensor in the likeness of `array`: its own if it has no gaps, else none in the same order."""
    if array.size and (array.flags.c_contiguous or is_non_overlapping_and_dense(array)):
        return tuple([s // array.itemsize for s in array.strides])
    return strides_in_order(array.shape, fastest_first(array.shape, array.strides))


def strides_in_format(array, memory_format=None):
    """The strides of a copy of `array` in a memory format; without one, those of a tensor in its likeness.

    RuntimeError if a channels-last format is asked for an array of another number of dimensions.
    """
    return (
        dense_strides(array)
        if memory_format in (None, preserve_format)
        else format_strides_of(array.shape, memory_format)
    )


def format_strides_of(shape, memory_format):
    """The strides of a tensor of this shape in a memory format. RuntimeError if it has another number of dimensions."""
    if memory_format in (channels_last, channels_last_3d):
        check_rank(shape, memory_format)
        return strides_in_order(shape, reversed(channels_last_order(len(shape))))
    return contiguous_strides(shape)


def format_strides(array, shape):
    """The strides of a result of another shape in the memory format of the input `array`."""
    if suggested_format(array) is contiguous_format or len(shape) != array.ndim:
        return contiguous_strides(shape)
    return strides_in_order(shape, reversed(channels_last_order(array.ndim)))
