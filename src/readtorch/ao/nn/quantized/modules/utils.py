"""Weights become integers. In PyTorch: `torch/ao/nn/quantized/modules/utils.py`."""

import readtorch

from .packed_params import PackedLinearWeight

__all__ = []


def _quantize_weight(float_wt, observer, bias):
    """The weight [out, in] as integers with the scale and zero point of an observer that saw it."""
    scale, zero_point = observer.calculate_qparams()
    by_row = _along_rows(observer.qscheme, scale.detach(), zero_point)
    # As FBGEMM does it: by the reciprocal, which is float32.
    q = readtorch.round(float_wt.detach() * (1 / by_row[0])) + by_row[1]
    low, high = max(observer.quant_min, -128), min(observer.quant_max, 127)
    return PackedLinearWeight(q.clamp(low, high).to(readtorch.int8), *by_row, observer.qscheme, bias)


def _along_rows(qscheme, scale, zero_point):
    if qscheme == readtorch.per_channel_affine_float_qparams:
        raise NotImplementedError("readtorch has no weights whose zero point is a float")
    return scale[:, None], zero_point[:, None]
