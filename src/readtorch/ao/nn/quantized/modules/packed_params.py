"""A linear layer's weight in 8-bit integers, and its product with numbers that become integers on the way.

In PyTorch: `aten/src/ATen/native/quantized/cpu/fbgemm_utils.h`, `qlinear_dynamic.cpp` and `QuantUtils.h` there.

Two roundings are FBGEMM's: a number is multiplied by the scale's reciprocal, in float32, before it is rounded to an integer;
a sum of integers becomes float32, and its product with the scale and the sum with the bias are rounded once.
"""

import copy
import warnings
from math import inf

import readtorch

SMALL_SCALE_THRESHOLD = 6.1e-5
# Symmetric is how a scale is found; what is kept has a zero point, which is 0 then.
_STORED_AS = {
    readtorch.per_tensor_symmetric: readtorch.per_tensor_affine,
    readtorch.per_channel_symmetric: readtorch.per_channel_affine,
}


def no_quantized_tensors():
    """The error for what PyTorch gives as a quantized tensor."""
    return NotImplementedError(f"readtorch has no tensors of dtype {readtorch.qint8}")


class PackedLinearWeight:
    """weight: int8 [out, in]. scale: float32, zero_point: integers, each [1, 1] or [out, 1]. bias: float32 [out] or None."""

    def __init__(self, weight, scale, zero_point, qscheme, bias):
        self.weight, self.scale, self.zero_point, self.bias = weight, scale, zero_point, bias
        self.qscheme = _STORED_AS.get(qscheme, qscheme)

    def __deepcopy__(self, memo):
        parts = (copy.deepcopy(part, memo) for part in (self.weight, self.scale, self.zero_point))
        return PackedLinearWeight(*parts, self.qscheme, copy.deepcopy(self.bias, memo))

    def __reduce_ex__(self, protocol):
        raise no_quantized_tensors()

    def apply_dynamic(self, x, reduce_range):
        """x [..., in] -> [..., out], both float32. Raises RuntimeError for other dtypes, shapes, and for nan."""
        _check_input(x, self.weight.shape[1])
        return _LinearDynamic.apply(x, self, reduce_range)

    def _product(self, x, reduce_range):
        low, high = (bound.item() for bound in readtorch.aminmax(x)) if x.numel() else (0.0, 0.0)
        scale, zero_point = choose_quantization_params(low, high, 0, 255, reduce_range)
        q = (x * (1 / readtorch.tensor(scale))).round() + zero_point
        # float64 holds the sums exactly: they are below 2**53.
        integers = q.clamp(0, 255).double() - zero_point
        weights = self.weight.double() - self.zero_point
        sums = (integers @ weights.t()).float()
        y = sums.double() * (self.scale * scale).flatten().double()
        return (y if self.bias is None else y + self.bias.double()).float()


class _LinearDynamic(readtorch.autograd.Function):
    """Its results have a node in the graph, and no gradients pass it."""

    @staticmethod
    def forward(ctx, x, packed, reduce_range):
        return packed._product(x, reduce_range)

    @staticmethod
    def backward(ctx, grad):
        warnings.warn(
            "quantized::linear_dynamic: an autograd kernel was not registered to the Autograd key(s) but we are trying to "
            "backprop through it. This may lead to silently incorrect behavior."
        )
        return None, None, None


def _check_input(x, columns):
    if x.device.type != "cpu":
        raise NotImplementedError(f"readtorch multiplies quantized weights on the CPU, not on {x.device}")
    if x.dtype != readtorch.float32:
        name = {"int64": "Long", "float64": "Double", "float16": "Half"}.get(x.dtype.name, x.dtype.name.capitalize())
        raise RuntimeError(f"expected scalar type Float but found {name}")
    if x.dim() < 2:
        raise RuntimeError("The dimension of input tensor should be larger than or equal to 2")
    if x.shape[-1] != columns:
        raise RuntimeError(f"The number of rows in the packB should be equal to K: {x.shape[-1]}")


def choose_quantization_params(low, high, qmin, qmax, reduce_range):
    """(scale, zero_point) for numbers between `low` and `high` as integers between `qmin` and `qmax`; zero is one of them.

    reduce_range: half as many integers, so that products of 8-bit ones can be added in pairs in 16 bits.
    """
    if not low <= high:
        raise RuntimeError("In ChooseQuantizationParams, min should be less than or equal to max")
    if inf in (-low, high):
        raise NotImplementedError("readtorch quantizes no infinite numbers")
    if reduce_range:
        qmin, qmax = qmin // 2, qmax // 2
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (qmax - qmin)
    if _float32(scale) == 0 or 1 / _float32(scale) > readtorch.finfo(readtorch.float32).max:
        scale = 0.1
    if scale < SMALL_SCALE_THRESHOLD:
        low, high, scale = _widened(low, high, scale, qmax - qmin)
    from_low, from_high = qmin - low / scale, qmax - high / scale
    nearer_low = abs(qmin) - abs(low / scale) < abs(qmax) - abs(high / scale)
    zero_point = round(from_low if nearer_low else from_high)
    return _float32(scale), min(max(zero_point, qmin), qmax)


def _widened(low, high, scale, steps):
    """The range and scale that take the place of a scale below the threshold."""
    least = _float32(SMALL_SCALE_THRESHOLD)
    if low == 0:
        return low, _float32(least * steps), least
    if high == 0:
        return -_float32(least * steps), high, least
    amplifier = _float32(least / _float32(scale))
    return _float32(low * amplifier), _float32(high * amplifier), least


def _float32(number):
    return readtorch.tensor(number, dtype=readtorch.float32).item()
