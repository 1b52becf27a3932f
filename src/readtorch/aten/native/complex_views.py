"""Complex numbers as pairs of real ones, and back; real and imaginary parts.

In PyTorch: `aten/src/ATen/native/{ComplexHelper.h,UnaryOps.cpp}`.
"""
import numpy as np

from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of, storage_offset, strides_of, view as view_of, wrap_result
from ..functions import at
from ..native_function import native_function
from .exact_out import exact_out, found_dtype
from .slicing import select
from .tensor_iterator import refuse_overlap
from .views import restrided

BOTH = "function, method"

view_as_real = native_function("view_as_real(Tensor(a) self) -> Tensor(a)", "function")
view_as_complex = native_function("view_as_complex(Tensor(a) self) -> Tensor(a)", "function")


@view_as_real.kernel
def view_as_real_cpu(self):
    """One dimension more, of size 2: real and imaginary part."""
    array = self._array
    if array.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    half = dtype_of(self).to_real().numpy
    return view_of(self, restrided(self, (*array.shape, 2), (*array.strides, half.itemsize), 0, half))


@view_as_real.backward
class ViewAsRealBackward0:
    def self(grad):
        return at.view_as_complex(grad.contiguous())


@view_as_complex.kernel
def view_as_complex_cpu(self):
    """Pairs along the last dimension become complex numbers."""
    array, dtype = self._array, dtype_of(self)
    if dtype.numpy.kind != "f":
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a "
                           "tensor of scalar type: "
                           f"{SCALAR_TYPE_NAMES[dtype]}")
    if array.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if array.size and array.strides[-1] != array.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if array.size and any(s % 2 for s in strides_of(self)[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if storage_offset(self) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return view_of(self, restrided(self, array.shape[:-1], array.strides[:-1], 0, dtype.to_complex().numpy))


@view_as_complex.backward
class ViewAsComplexBackward0:
    def self(grad):
        return at.view_as_real(grad.contiguous())


real = native_function("real(Tensor(a) self) -> Tensor(a)", "function")
imag = native_function("imag(Tensor(a) self) -> Tensor(a)", "function")


@real.compose
def real_composite(self):
    """A view of the real parts; a real tensor itself."""
    return select.call(at.view_as_real(self), self._array.ndim, 0) if self._array.dtype.kind == "c" else self


@imag.compose
def imag_composite(self):
    if self._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return select.call(at.view_as_real(self), self._array.ndim, 1)


# in PyTorch: `conj` is lazy, a view with the dispatch key Conjugate, whose fallback computes it before the next operator that
# has no kernel for that key; here it is computed at once.
_conj = native_function("_conj(Tensor(a) self) -> Tensor(a)", BOTH)
conj = native_function("conj(Tensor(a) self) -> Tensor(a)", BOTH, direct=True)
conj_physical = native_function("conj_physical(Tensor self) -> Tensor", BOTH, out=True)
_conj_physical = native_function("_conj_physical(Tensor self) -> Tensor")
conj_physical_ = native_function("conj_physical_(Tensor(a!) self) -> Tensor(a!)", BOTH)
resolve_conj = native_function("resolve_conj(Tensor(a) self) -> Tensor(a)", BOTH)
resolve_neg = native_function("resolve_neg(Tensor(a) self) -> Tensor(a)", BOTH)


@_conj.kernel
def conj_cpu(self):
    return wrap_result(np.conjugate(self._array))


@_conj.backward
class ConjBackward0:
    def self(grad):
        return grad.conj()


@conj.compose
def conj_composite(self):
    return _conj.call(self) if self._array.dtype.kind == "c" else self


exact_out(conj_physical, found_dtype)


@conj_physical.compose
def conj_physical_composite(self):
    return _conj_physical.call(self) if self._array.dtype.kind == "c" else self


@_conj_physical.kernel
def conj_physical_cpu(self):
    return wrap_result(np.conjugate(self._array))


@conj_physical_.kernel
def conj_physical_cpu_(self):
    if self._array.dtype.kind == "c":
        refuse_overlap(self)
        np.conjugate(self._array, self._array)
    self._counter[0] += 1
    return self


@conj_physical_.backward
class ConjPhysicalBackward1:
    def self(grad):
        return grad.conj_physical()


@_conj_physical.backward
class ConjPhysicalBackward0:
    def self(grad):
        return grad.conj_physical()


@resolve_conj.compose
def resolve_conj_composite(self):
    return self


@resolve_neg.compose
def resolve_neg_composite(self):
    return self
