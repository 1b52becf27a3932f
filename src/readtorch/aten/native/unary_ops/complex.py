"""Complex numbers: their real and imaginary parts, conjugates, angles; and complex tensors from pairs of real ones.

In PyTorch: `aten/src/ATen/native/UnaryOps.cpp`, `aten/src/ATen/native/ComplexHelper.h`;
complex and polar in `aten/src/ATen/native/TensorFactories.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.binary_ops.arithmetic import mul_scalar
from readtorch.aten.native.copy import allocate_like, lies_plainly
from readtorch.aten.native.exact_out import exact_out, found_dtype
from readtorch.aten.native.tensor_iterator import (
    computing,
    elementwise,
    empty_for,
    float_result_type,
    unary_float_kernel,
)
from readtorch.aten.native.tensor_shape.slice import select
from readtorch.aten.native.tensor_shape.view import restrided
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.register_dispatch_key import any_device, write_result
from readtorch.aten.tensor_meta import TensorMeta, broadcast
from readtorch.c10.dispatch_key import CONJUGATE, NEGATIVE, SPARSE_CPU
from readtorch.c10.memory_format import strides_in_format
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, float16, float32, float64
from readtorch.c10.tensor_impl import (
    dtype_of,
    flipped,
    set_math_bit,
    storage_impl,
    storage_offset,
    strided,
    strides_of,
    type_name,
    wrap,
    wrap_result,
)
from readtorch.c10.tensor_impl import view as view_of

view_as_real = native_function("view_as_real(Tensor(a) self) -> Tensor(a)", "function")
view_as_complex = native_function("view_as_complex(Tensor(a) self) -> Tensor(a)", "function")


@view_as_real.kernel
def view_as_real_cpu(self):
    """One dimension more, of size 2: real and imaginary part."""
    array = self._array if self._array.size else strided(self)
    if array.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if self._keys & CONJUGATE:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view "
            "it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
        )
    half = dtype_of(self).to_real().numpy
    return view_of(self, restrided(self, (*array.shape, 2), (*array.strides, half.itemsize), 0, half))


@view_as_real.backward
class ViewAsRealBackward0:
    def self(grad):
        return at.view_as_complex(grad.contiguous())

    def result(self_t):
        return at.view_as_real(self_t)


@view_as_complex.kernel
def view_as_complex_cpu(self):
    """Pairs along the last dimension become complex numbers."""
    array, dtype = self._array if self._array.size else strided(self), dtype_of(self)
    if dtype.numpy.kind != "f":
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
            f"scalar type: {SCALAR_TYPE_NAMES[dtype]}"
        )
    if array.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if array.strides[-1] != array.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 and n != 1 for n, s in zip(array.shape[:-1], strides_of(self))):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if storage_offset(self) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return view_of(self, restrided(self, array.shape[:-1], array.strides[:-1], 0, dtype.to_complex().numpy))


@view_as_complex.backward
class ViewAsComplexBackward0:
    def self(grad):
        return at.view_as_real(grad.contiguous().resolve_conj())

    def result(self_t):
        return at.view_as_complex(self_t)


real = native_function("real(Tensor(a) self) -> Tensor(a)", "function")
imag = native_function("imag(Tensor(a) self) -> Tensor(a)", "function")


@real.compose
def real_composite(self):
    """A view of the real parts; a real tensor itself."""
    if self._array.dtype.kind != "c":
        return self
    plain = _conj.call(self) if self._keys & CONJUGATE else self
    return select.call(at.view_as_real(plain), self._array.ndim, 0)


@imag.compose
def imag_composite(self):
    if self._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if not self._keys & CONJUGATE:
        return select.call(at.view_as_real(self), self._array.ndim, 1)
    return select.call(_neg_view.call(at.view_as_real(_conj.call(self))), self._array.ndim, 1)


# ------------------------------------------------------------------------------- conjugates and negatives, as views

_conj = native_function("_conj(Tensor(a) self) -> Tensor(a)", BOTH)
conj = native_function("conj(Tensor(a) self) -> Tensor(a)", BOTH, direct=True)
conj_physical = native_function("conj_physical(Tensor self) -> Tensor", BOTH, out=exact_out(found_dtype))
_conj_physical = native_function("_conj_physical(Tensor self) -> Tensor", BOTH)
conj_physical_ = native_function("conj_physical_(Tensor(a!) self) -> Tensor(a!)", BOTH)
resolve_conj = native_function("resolve_conj(Tensor(a) self) -> Tensor(a)", BOTH)
_neg_view = native_function("_neg_view(Tensor(a) self) -> Tensor(a)", BOTH)
resolve_neg = native_function("resolve_neg(Tensor(a) self) -> Tensor(a)", BOTH)


@conj.compose
def conj_composite(self):
    """The same memory through the key Conjugate: no element is moved, whatever reads them later conjugates them."""
    if self._array.dtype.kind != "c":
        return self
    return conj_physical.call(self) if self._keys & SPARSE_CPU else _conj.call(self)


@_conj.kernel
def conj_view(self):
    storage_impl(self)  # made here, for a tensor with a math bit makes its own
    result = view_of(self, self._array)
    set_math_bit(result, CONJUGATE, not self._keys & CONJUGATE)
    return result


@_conj.backward
class ConjBackward0:
    def self(grad):
        return grad.conj()

    def result(self_t):
        return self_t.conj()


@_neg_view.kernel
def neg_view(self):
    storage_impl(self)
    return flipped(view_of(self, self._array), NEGATIVE)


@_neg_view.backward
class NegViewBackward0:
    def self(grad):
        return grad.neg()

    def result(self_t):
        return self_t._neg_view()


@resolve_conj.compose
def resolve_conj_composite(self):
    """`self` without the bit: a copy with the conjugates, which `clone` computes, if it has it."""
    return at.clone(self) if self._keys & CONJUGATE else self


@resolve_neg.compose
def resolve_neg_composite(self):
    return at.clone(self) if self._keys & NEGATIVE else self


# -------------------------------------------------------------------------------------- conjugates, as numbers

elementwise(_conj_physical, f.conjugate)
elementwise(conj_physical, None)


@_conj_physical.meta
def conj_physical_meta(self):
    return TensorMeta(self._array.shape, dtype_of(self), strides_in_format(self._array, None))


@_conj_physical.kernel
def conj_physical_cpu(self):
    array = self._array
    if lies_plainly(array, None):
        return wrap_result(np.conjugate(array))
    return wrap(np.conjugate(array, out=allocate_like(array)))


@_conj_physical.backward
class ConjPhysicalBackward0:
    def self(grad):
        return grad.conj_physical()

    def result(self_t):
        return self_t.conj_physical()


@conj_physical.compose
def conj_physical_composite(self):
    return _conj_physical.call(self) if self._array.dtype.kind == "c" else self


@conj_physical_.kernel
@any_device
def conj_physical_any_(self):
    if self._array.dtype.kind == "c":
        return write_result(self, _conj_physical.call(self))
    return self


@conj_physical_.backward
class ConjPhysicalBackward1:
    def self(grad):
        return grad.conj_physical()

    def result(self_t):
        return self_t.conj_physical_()


# -------------------------------------------------------------- angle, and complex numbers from two real ones

angle = native_function("angle(Tensor self) -> Tensor", "function, method", out=True)


# ------------------------------------------------------------------------------------------------------- angle


def angle_of_real(x):
    """0, or π for a negative number; a nan stays."""
    return np.where(np.isnan(x), x, np.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0)))


_angle_of_real = unary_float_kernel(angle_of_real)


elementwise(
    angle,
    lambda dtype: f.angle_of_complex if dtype.is_complex else f.angle,
    float_result_type,
    result=lambda dtype: dtype.to_real() if dtype.is_complex else dtype,
    by_dtype=True,
)
angle_of_real_meta = angle.shape_rule


@angle.meta
def angle_meta(self):
    """Row by row for complex numbers, unlike that of real ones."""
    output = angle_of_real_meta(self)
    return TensorMeta(output.shape, output.dtype) if self._array.dtype.kind == "c" else output


@angle.kernel
def angle_cpu(self):
    """The angle in the complex plane, from -π to π."""
    if self._array.dtype.kind != "c":
        return _angle_of_real(self)
    return wrap_result(np.asarray(np.angle(self._array), order="C"))


@angle.backward
class AngleBackward0:
    def self(grad, self):
        """A step at a right angle to z, to the left, turns it by 1/|z|. At 0, where the angle jumps, 0 is taken."""
        if not dtype_of(self).is_complex:
            return at.zeros_like(self)
        turn = mul_scalar.call(grad * self / self.abs().pow(2), 1j)
        return at.where(self == 0.0, at.zeros((), dtype=self.dtype, device=self.device), turn)

    def result(self_p, self_t):
        """Only the part of a step at a right angle to z turns it."""
        if not dtype_of(self_p).is_complex:
            return at.zeros_like(self_t)
        turn = at.imag(self_t * self_p.conj()) / self_p.abs().pow(2)
        return at.where(self_p == 0.0, at.zeros((), dtype=turn.dtype, device=turn.device), turn)


# --------------------------------------------------------------------------------------- two numbers make one


def wrong_output_type(out, result, *arguments):
    return f"Expected object of scalar type {type_name(result)} but got scalar type {type_name(out)} for argument 'out'"


complex_ = native_function("complex(Tensor real, Tensor imag) -> Tensor", out=exact_out(wrong_output_type))
polar = native_function("polar(Tensor abs, Tensor angle) -> Tensor", out=exact_out(wrong_output_type))


def complex_type(first, second):
    """The complex type for parts of these two types. Raises RuntimeError."""
    one, other = dtype_of(first), dtype_of(second)
    if not {one, other} <= {float16, float32, float64}:
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{SCALAR_TYPE_NAMES[one]} and {SCALAR_TYPE_NAMES[other]}"
        )
    if one is not other:
        raise RuntimeError(
            f"Expected object of scalar type {SCALAR_TYPE_NAMES[one]} but got scalar type "
            f"{SCALAR_TYPE_NAMES[other]} for second argument"
        )
    if one is float16:
        # in PyTorch: complex32. NumPy has no such type.
        raise RuntimeError("readtorch has no complex numbers of 16-bit floats")
    return one.to_complex()


@complex_.meta
def complex_meta(real, imag):
    return broadcast(complex_type(real, imag), real, imag)


@complex_.kernel
def complex_cpu(real, imag):
    return computing(from_parts, real, imag, common=dtype_of(real), result=complex_type(real, imag))


def from_parts(real, imag):
    """Written part by part: real + 1j · imag would turn an infinite imag into a nan."""
    z = empty_for(np.result_type(real.dtype, np.complex64), real, imag)
    z.real, z.imag = real, imag
    return z


@complex_.backward
class ComplexBackward0:
    def real(grad):
        return at.real(grad)

    def imag(grad):
        return at.imag(grad)

    def result(real_t, imag_t):
        return at.complex(real_t, imag_t)


polar.meta(complex_meta)


@polar.kernel
def polar_cpu(abs, angle):
    """abs · (cos angle + i sin angle)"""
    return computing(
        lambda length, turn: from_parts(length * np.cos(turn), length * np.sin(turn)),
        abs,
        angle,
        common=dtype_of(abs),
        result=complex_type(abs, angle),
    )


@polar.backward
class PolarBackward0:
    def abs__angle(grad, result):
        """The derivative by abs points along the number, that by angle at a right angle to it."""
        back = grad.conj()
        return at.real(back * at.sgn(result)), at.real(back * mul_scalar.call(result, 1j))

    def result(abs_p, abs_t, angle_p, angle_t):
        cos, sin = angle_p.cos(), angle_p.sin()
        return at.complex(abs_t * cos - angle_t * abs_p * sin, abs_t * sin + angle_t * abs_p * cos)
