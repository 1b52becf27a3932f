"""Complex numbers and what they are made of: from real and imaginary part, from length and angle.

In PyTorch: `aten/src/ATen/native/{TensorFactories,UnaryOps}.cpp`, `cpu/ComplexKernel.cpp`.
"""
import numpy as np

from ...c10.scalar_type import SCALAR_TYPE_NAMES, float16, float32, float64
from ...c10.tensor_impl import dtype_of, type_name, wrap_result
from ..functions import at
from ..native_function import native_function
from .exact_out import exact_out
from .scalar_ops import mul_scalar
from .tensor_iterator import computing, empty_for, unary_float_kernel

angle = native_function("angle(Tensor self) -> Tensor", "function, method", out=True)
complex_ = native_function("complex(Tensor real, Tensor imag) -> Tensor", out=True)
polar = native_function("polar(Tensor abs, Tensor angle) -> Tensor", out=True)


# ------------------------------------------------------------------------------------------------------- angle

def angle_of_real(x):
    """0, or π for a negative number; a nan stays."""
    return np.where(np.isnan(x), x, np.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0)))


_angle_of_real = unary_float_kernel(angle_of_real)


@angle.kernel
def angle_cpu(self):
    """The angle in the complex plane, from -π to π."""
    if self._array.dtype.kind != "c":
        return _angle_of_real(self)
    return wrap_result(np.ascontiguousarray(np.angle(self._array)))  # row by row, unlike that of real numbers


@angle.backward
class AngleBackward0:
    def self(grad, self):
        """A step at a right angle to z, to the left, turns it by 1/|z|. At 0, where the angle jumps, 0 is taken."""
        if not dtype_of(self).is_complex:
            return at.zeros_like(self)
        turn = mul_scalar.call(grad * self / self.abs().pow(2), 1j)
        return at.where(self == 0.0, at.zeros((), dtype=self.dtype, device=self.device), turn)


# --------------------------------------------------------------------------------------- two numbers make one

def wrong_output_type(out, result, *arguments):
    return (f"Expected object of scalar type {type_name(result)} but got scalar type {type_name(out)} for argument "
            "'out'")


exact_out(complex_, wrong_output_type)
exact_out(polar, wrong_output_type)


def complex_type(first, second):
    """The complex type for parts of these two types. Raises RuntimeError."""
    one, other = dtype_of(first), dtype_of(second)
    if not {one, other} <= {float16, float32, float64}:
        raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                           f"{SCALAR_TYPE_NAMES[one]} and {SCALAR_TYPE_NAMES[other]}")
    if one is not other:
        raise RuntimeError(f"Expected object of scalar type {SCALAR_TYPE_NAMES[one]} but got scalar type "
                           f"{SCALAR_TYPE_NAMES[other]} for second argument")
    if one is float16:
        # in PyTorch: complex32. NumPy has no such type.
        raise RuntimeError("readtorch has no complex numbers of 16-bit floats")
    return one.to_complex()


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


@polar.kernel
def polar_cpu(abs, angle):
    """abs · (cos angle + i sin angle)"""
    return computing(lambda length, turn: from_parts(length * np.cos(turn), length * np.sin(turn)), abs, angle,
                     common=dtype_of(abs), result=complex_type(abs, angle))


@polar.backward
class PolarBackward0:
    def abs__angle(grad, result):
        """Longer: along the number. Further round: at a right angle to it."""
        back = grad.conj()
        return at.real(back * at.sgn(result)), at.real(back * mul_scalar.call(result, 1j))
