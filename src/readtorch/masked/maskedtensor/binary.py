"""Functions of two elements: the masks of two MaskedTensors must be the same.

In PyTorch: `torch/masked/maskedtensor/binary.py`.
"""

import readtorch

from .core import get_data, get_mask, map_masked, masks_match, wrapped

NAMES = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod "
    "logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt "
    "less_equal lt less maximum minimum fmax fmin not_equal"
).split()
_NOT_INPLACE = {"logaddexp", "logaddexp2", "fmin", "minimum", "maximum", "fmax"}
INPLACE_NAMES = [name + "_" for name in NAMES if name not in _NOT_INPLACE]


def _result(operator, args, kwargs):
    if kwargs:
        raise ValueError("len(kwargs) must equal 0")
    if any(map(readtorch.is_tensor, args[2:])):
        raise TypeError("MaskedTensor binary ops do not support Tensor arguments aside from the lhs and rhs")
    if not masks_match(*args[:2]):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    return operator(*map_masked(args, get_data))


def apply(operator, *args, **kwargs):
    """ValueError for keyword arguments and for masks that differ, TypeError for a third tensor."""
    data = _result(operator, args, kwargs)
    mask = next(mask for mask in map(get_mask, args[:2]) if mask is not None)
    return wrapped(data, mask.expand_as(data))


def apply_inplace(operator, *args, **kwargs):
    """The same, written to the first argument."""
    args[0]._set_data_mask(_result(operator, args, kwargs), get_mask(args[0]))
    return args[0]
