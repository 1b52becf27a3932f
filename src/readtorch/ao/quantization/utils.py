"""The ranges of integers that numbers are quantized to. In PyTorch: `torch/ao/quantization/utils.py`."""

import warnings

import readtorch

__all__ = ["calculate_qmin_qmax", "check_min_max_valid", "is_per_channel", "is_per_tensor", "validate_qmin_qmax"]

_INT8, _UINT8, _INT32 = (-128, 127), (0, 255), (-(2**31), 2**31 - 1)
_RANGES = {
    readtorch.qint8: _INT8,
    readtorch.int8: _INT8,
    readtorch.quint8: _UINT8,
    readtorch.uint8: _UINT8,
    readtorch.qint32: _INT32,
    readtorch.int32: _INT32,
    readtorch.uint16: (0, 2**16 - 1),
    readtorch.int16: (-(2**15), 2**15 - 1),
}
_FOUR_BITS = (0, 15)


def is_per_tensor(qscheme):
    """Whether one scale is for a whole tensor."""
    return qscheme in (readtorch.per_tensor_affine, readtorch.per_tensor_symmetric)


def is_per_channel(qscheme):
    """Whether each channel has a scale of its own."""
    return qscheme in (
        readtorch.per_channel_affine,
        readtorch.per_channel_affine_float_qparams,
        readtorch.per_channel_symmetric,
    )


def validate_qmin_qmax(quant_min, quant_max):
    """Raises AssertionError for a range without zero, or of one value."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


def calculate_qmin_qmax(quant_min, quant_max, has_customized_qrange, dtype, reduce_range):
    """The least and the greatest integer: those given, or those of `dtype`; with `reduce_range`, half as many.

    Raises AssertionError if the given range has more values than `dtype`.
    """
    if not has_customized_qrange:
        low, high = _RANGES.get(dtype, _FOUR_BITS)
        halved = reduce_range and (low, high) in (_INT8, _UINT8)
        return (low // 2, high // 2) if halved else (low, high)
    bits = {_INT8: 8, _INT32: 32}.get(_RANGES.get(dtype))
    if bits is not None and not 0 < quant_max - quant_min + 1 <= 2**bits:
        raise AssertionError(
            f"quantization range should be positive and not exceed the maximum bit range (={2**bits})."
        )
    return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)


def check_min_max_valid(min_val, max_val):
    """Whether something was observed, of which these are the least and the greatest. Warns if not."""
    unseen = min_val.numel() == 0 or max_val.numel() == 0
    if not unseen and min_val.dim() == 0:
        unseen = bool(min_val == float("inf") and max_val == float("-inf"))
    if unseen:
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
    elif (min_val > max_val).any():
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return not unseen


def resize_as_saved(module, names, state_dict, prefix):
    """Buffers of `module` become as large as those that are to be loaded into them: how many channels there are is known then."""
    for name in names:
        if prefix + name in state_dict:
            getattr(module, name).resize_(state_dict[prefix + name].shape)
