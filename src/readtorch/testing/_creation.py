"""Random tensors for tests. In PyTorch: `torch/testing/_creation.py`."""

import collections.abc
import math
import warnings

import readtorch

_BOOLEAN_OR_INTEGRAL_TYPES = (
    readtorch.bool,
    readtorch.uint8,
    readtorch.int8,
    readtorch.int16,
    readtorch.int32,
    readtorch.int64,
    readtorch.uint16,
    readtorch.uint32,
    readtorch.uint64,
)
_COMPLEX_TYPES = (readtorch.complex64, readtorch.complex128)
_FLOATING_8BIT_TYPES = (
    readtorch.float8_e4m3fn,
    readtorch.float8_e5m2,
    readtorch.float8_e4m3fnuz,
    readtorch.float8_e5m2fnuz,
)
_FLOATING_OR_COMPLEX_TYPES = (
    readtorch.float16,
    readtorch.bfloat16,
    readtorch.float32,
    readtorch.float64,
    *_COMPLEX_TYPES,
)


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of this shape, uniformly random in [low, high): the numbers that PyTorch's makes from the same seed.

    low, high: by default -9 and 10 for integers (0 and 10 without a sign), -9 and 9 for floating and complex dtypes, 0 and 2 for bool;
    what the dtype cannot hold is cut off.
    noncontiguous: every second element of a last dimension twice as long, from 1 on. Not together with `memory_format`.
    exclude_zero: zeros become 1, or the smallest normal number of a floating or complex dtype.

    Raises ValueError for an empty or impossible interval, for `noncontiguous` with `memory_format` and for `requires_grad` of
    integers; TypeError for another dtype. In PyTorch: `torch/testing/_creation.py`.
    """
    if len(shape) == 1 and isinstance(shape[0], collections.abc.Sequence):
        (shape,) = shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=}"
        )
    integral = dtype in _BOOLEAN_OR_INTEGRAL_TYPES
    if requires_grad and integral:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    if not integral and dtype not in _FLOATING_OR_COMPLEX_TYPES and dtype not in _FLOATING_8BIT_TYPES:
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). To request support, "
            "file an issue at: https://github.com/pytorch/pytorch/issues"
        )

    shape = tuple(shape)
    noncontiguous = noncontiguous and math.prod(shape) > 1
    if noncontiguous:
        shape = (*shape[:-1], 2 * shape[-1])
    low, high = _interval(low, high, dtype)
    result = _integers(low, high, shape, dtype, device) if integral else _numbers(low, high, shape, dtype, device)
    if noncontiguous:
        result = result[..., 1::2]  # the offset is to be met, too
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if integral else readtorch.finfo(dtype).tiny
    if dtype in _FLOATING_OR_COMPLEX_TYPES:
        result.requires_grad = requires_grad
    return result


def _limits(dtype):
    """The default interval of a dtype, and the widest: from its least number up to, without it, one more than its greatest.

    That of int64 and of floating dtypes is the greatest itself: `randint` takes its bounds as int64.
    """
    if dtype is readtorch.bool:
        return (0, 2), (0, 2)
    if dtype in _BOOLEAN_OR_INTEGRAL_TYPES:
        info = readtorch.iinfo(dtype)
        return (-9, 10), (info.min, info.max + (dtype is not readtorch.int64))
    info = readtorch.finfo(dtype)
    return (-9, 9), (info.min, info.max)


def _interval(low, high, dtype):
    """`low` and `high` with defaults, checked, within what the dtype has; whole numbers for integers."""
    (default_low, default_high), (least, end) = _limits(dtype)
    low = default_low if low is None else low
    high = default_high if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype in _FLOATING_OR_COMPLEX_TYPES:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will "
            "be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, {end})"
        )
    low, high = (min(max(value, least), end) for value in (low, high))
    # Both up: the least whole number that is not below `low`, and the first that is not below `high`.
    return (math.ceil(low), math.ceil(high)) if dtype in _BOOLEAN_OR_INTEGRAL_TYPES else (low, high)


def _integers(low, high, shape, dtype, device):
    return readtorch.randint(low, high, shape, device=device, dtype=dtype)


def _numbers(low, high, shape, dtype, device):
    narrow = dtype in _FLOATING_8BIT_TYPES
    result = readtorch.empty(shape, device=device, dtype=readtorch.float32 if narrow else dtype)
    parts = readtorch.view_as_real(result) if dtype in _COMPLEX_TYPES else result
    if high - low >= readtorch.finfo(parts.dtype).max:
        parts.uniform_(low / 2, high / 2).mul_(2)  # `uniform_` takes no wider interval
    else:
        parts.uniform_(low, high)
    return result.to(dtype) if narrow else result
