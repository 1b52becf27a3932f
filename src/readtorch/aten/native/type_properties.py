"""Questions about a tensor that its dtype, its sizes or its place answer.

In PyTorch: `aten/src/ATen/native/TypeProperties.cpp`. Explained in the chapter "Tensor and Storage".
"""
from ...c10.dispatch_key import INFERENCE_TENSOR
from ...c10.tensor_impl import dtype_of
from ..native_function import native_function

BOTH = "function, method"

is_floating_point = native_function("is_floating_point(Tensor self) -> bool", BOTH, direct=True)
is_complex = native_function("is_complex(Tensor self) -> bool", BOTH, direct=True)
is_signed = native_function("is_signed(Tensor self) -> bool", BOTH, direct=True)
is_same_size = native_function("is_same_size(Tensor self, Tensor other) -> bool", BOTH, direct=True)
is_inference = native_function("is_inference(Tensor self) -> bool", BOTH, direct=True)
# Tensors here never stand for the conjugate or the negative of what their memory holds: see complex_views.py.
is_conj = native_function("is_conj(Tensor self) -> bool", BOTH, direct=True)
is_neg = native_function("is_neg(Tensor self) -> bool", BOTH, direct=True)
is_distributed = native_function("is_distributed(Tensor self) -> bool", BOTH, direct=True)


@is_floating_point.kernel
def is_floating_point_cpu(self):
    return dtype_of(self).is_floating_point


@is_complex.kernel
def is_complex_cpu(self):
    return dtype_of(self).is_complex


@is_signed.kernel
def is_signed_cpu(self):
    return dtype_of(self).is_signed


@is_same_size.kernel
def is_same_size_cpu(self, other):
    return self._array.shape == other._array.shape


@is_inference.kernel
def is_inference_cpu(self):
    return bool(self._keys & INFERENCE_TENSOR)


@is_conj.kernel
@is_neg.kernel
@is_distributed.kernel
def never(self):
    return False
