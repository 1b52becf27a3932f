"""Numbers rounded as integers of few bits would hold them, and kept as floating-point numbers: fake_quantize_per_tensor_affine,
fake_quantize_per_channel_affine.

A number x is stored as q = round(x / scale) + zero_point, no smaller than quant_min and no larger than quant_max, and read as
(q - zero_point) * scale. In training a model sees what it will lose; gradients pass where nothing was cut off.

In PyTorch: `aten/src/ATen/native/quantized/FakeQuantPerTensorAffine.cpp`, `FakeQuantPerChannelAffine.cpp` and
`cpu/kernels/QuantizedOpKernels.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import like
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, bfloat16, float16, float32, int32
from readtorch.c10.scalar_type import bool as bool_
from readtorch.c10.tensor_impl import dtype_of, type_name
from readtorch.c10.wrap_dim import wrap_dim

_RANGE = "int quant_min, int quant_max"
_RESULTS = "-> (Tensor output, Tensor mask)"
_UNSORTED = "`quant_min` should be less than or         equal to `quant_max`."  # the gap is PyTorch's
_OUTSIDE = "`zero_point` must be between `quant_min` and `quant_max`."


def check_dtype(name, self):
    if not dtype_of(self).is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{SCALAR_TYPE_NAMES[dtype_of(self)]}'")


def fill(output, mask, array, scale, zero_point, quant_min, quant_max, computed=np.float32):
    """scale, zero_point: a float32 and an integer, or arrays that broadcast. A floating zero point is added before rounding.

    computed: the type of the product with the scale, before it becomes that of `output`.
    """
    scaled = array.astype(np.float64 if array.dtype == np.float64 else np.float32) * (np.float32(1) / scale)
    if np.asarray(zero_point).dtype.kind == "i":
        stored = zero_point + np.rint(scaled).astype(np.float64)
    else:
        stored = np.rint(scaled + zero_point).astype(np.float64)
    mask._array[...] = (quant_min <= stored) & (stored <= quant_max)
    kept = np.fmin(np.fmax(stored, quant_min), quant_max)
    output._array[...] = (kept - zero_point).astype(computed) * scale.astype(computed)


# -------------------------------------------------------------------------------------------------- per tensor

fake_quantize_per_tensor_affine_tensor_qparams = native_function(
    f"fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, {_RANGE}) -> Tensor",
    "function",
)
fake_quantize_per_tensor_affine = native_function(
    f"fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, {_RANGE}) -> Tensor", "function"
)
fake_quantize_per_tensor_affine_cachemask = native_function(
    f"fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, {_RANGE}) {_RESULTS}", ""
)
_fake_quantize_per_tensor_affine_cachemask_tensor_qparams = native_function(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
    f"Tensor fake_quant_enabled, {_RANGE}) {_RESULTS}",
    "",
)


@fake_quantize_per_tensor_affine.compose
def fake_quantize_per_tensor_affine_composite(self, scale, zero_point, quant_min, quant_max):
    return fake_quantize_per_tensor_affine_cachemask.call(self, scale, zero_point, quant_min, quant_max)[0]


@fake_quantize_per_tensor_affine_tensor_qparams.compose
def fake_quantize_per_tensor_affine_of_tensors(self, scale, zero_point, quant_min, quant_max):
    """The same with a scale and a zero point that are tensors of one element. They get no gradients."""
    enabled = scale.new_ones(1, dtype=int32)
    operator = _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    return operator.call(self, scale, zero_point, enabled, quant_min, quant_max)[0]


def check_range(quant_min, quant_max):
    if quant_min > quant_max:
        raise RuntimeError(_UNSORTED)


@fake_quantize_per_tensor_affine_cachemask.meta
def cachemask_meta(self, scale, zero_point, quant_min, quant_max):
    """`output`, and whether each number was inside the range."""
    check_range(quant_min, quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError(_OUTSIDE)
    check_dtype("fake_quantize_tensor_cachemask_kernel_type_handling", self)
    return like(self), like(self, bool_)


@fake_quantize_per_tensor_affine_cachemask.impl()
def cachemask_cpu(self, scale, zero_point, quant_min, quant_max, output, mask):
    with np.errstate(all="ignore"):
        fill(output, mask, self._array, np.float32(scale), zero_point, quant_min, quant_max)


@_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.meta
def cachemask_of_tensors_meta(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    check_range(quant_min, quant_max)
    check_dtype("fake_quantize_tensor_cachemask_kernel_type_handling", self)
    return like(self), like(self, bool_)


@_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.impl()
def cachemask_of_tensors_cpu(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max, output, mask):
    """fake_quant_enabled: 0 gives the numbers as they are."""
    if not fake_quant_enabled.item():
        output._array[...], mask._array[...] = self._array, True
        return
    with np.errstate(all="ignore"):
        fill(output, mask, self._array, np.float32(scale.item()), int(zero_point.item()), quant_min, quant_max)


# ------------------------------------------------------------------------------------------------- per channel

fake_quantize_per_channel_affine = native_function(
    f"fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, {_RANGE}) -> Tensor",
    "function",
)
fake_quantize_per_channel_affine_cachemask = native_function(
    f"fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, {_RANGE}) {_RESULTS}",
    "",
)


@fake_quantize_per_channel_affine.compose
def fake_quantize_per_channel_affine_composite(self, scale, zero_point, axis, quant_min, quant_max):
    """Each index of the dimension `axis` has a scale and a zero point of its own."""
    return fake_quantize_per_channel_affine_cachemask.call(self, scale, zero_point, axis, quant_min, quant_max)[0]


def check_channels(self, scale, zero_point, axis):
    if dtype_of(scale) not in (float32, bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {type_name(scale)}")
    if dtype_of(zero_point) not in (int32, float32, float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {type_name(zero_point)}")
    if scale.dim() != 1:
        raise RuntimeError("scale should be a 1-D tensor")
    if zero_point.dim() != 1:
        raise RuntimeError("zero point should be a 1-D tensor")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if scale.numel() != self.shape[wrap_dim(axis, self.dim())]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")


@fake_quantize_per_channel_affine_cachemask.meta
def channel_cachemask_meta(self, scale, zero_point, axis, quant_min, quant_max):
    check_channels(self, scale, zero_point, axis)
    check_range(quant_min, quant_max)
    if axis < 0:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    check_dtype("fake_quantize_channel_cachemask_cpu_type_handling", self)
    return like(self), like(self, bool_)


@fake_quantize_per_channel_affine_cachemask.impl()
def channel_cachemask_cpu(self, scale, zero_point, axis, quant_min, quant_max, output, mask):
    zeros = zero_point._array
    if zeros.dtype.kind == "i" and zeros.size and not quant_min <= zeros.min() <= zeros.max() <= quant_max:
        raise RuntimeError(_OUTSIDE)
    shape = [1] * self.dim()
    shape[axis] = -1
    scales = scale._array.astype(np.float32).reshape(shape)
    with np.errstate(all="ignore"):
        fill(output, mask, self._array, scales, zeros.reshape(shape), quant_min, quant_max, computed=np.float64)


# --------------------------------------------------------------------------------------------------- gradients


@fake_quantize_per_tensor_affine_cachemask.backward
class FakeQuantizePerTensorAffineCachemaskBackward0:
    output_differentiability = [True, False]

    def self(grad, mask):
        return grad * mask


@_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.backward
class FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0:
    output_differentiability = [True, False]

    def self(grad, mask):
        return grad * mask


@fake_quantize_per_channel_affine_cachemask.backward
class FakeQuantizePerChannelAffineCachemaskBackward0:
    output_differentiability = [True, False]

    def self(grad, mask):
        return grad * mask
