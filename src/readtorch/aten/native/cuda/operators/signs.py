"""Signs, bits, divisors, the parts of numbers, and complex numbers from their parts.

In PyTorch: `aten/src/ATen/native/cuda/{CopysignKernel,StepKernel,GcdLcmKernel,BinaryShiftOpsKernels,
BinaryGeometricKernels,UnaryFractionKernels,UnaryComplexKernels}.cu`.
"""

import math

from .....c10 import scalar_type
from .....c10.scalar_type import COMPLEX, FLOAT, INTEGRAL
from .....c10.tensor_impl import dtype_of
from ....functions import at
from ... import return_types
from ...unary_ops.complex import complex_type
from ...tensor_iterator import float_result_type, not_implemented, result_type
from ...tensor_iterator import scalar_tensor as weak
from .. import bits
from .. import more_functions as g
from .broadcasting import apply
from .copies import clone_cuda
from .factories import filled
from .pointwise import operator_named, own_float
from .registration import broadcast_shape, cuda_kernel, empty, write_back

# ------------------------------------------------------------------------------------------------- questions


def constant(self, value):
    return filled(empty(self._array.shape, scalar_type.bool.numpy), value)


@cuda_kernel(operator_named("signbit"))
def signbit_cuda(self):
    dtype = dtype_of(self)
    if dtype.is_complex:
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    if dtype is scalar_type.bool:
        return constant(self, False)
    function = bits.signbit if dtype.category == FLOAT else bits.is_negative
    return apply(function, [self], (), dtype, scalar_type.bool)


def which_infinity(name, value):
    @cuda_kernel(operator_named(name))
    def kernel(self):
        dtype = dtype_of(self)
        if dtype.is_complex:
            raise RuntimeError(f"{name} does not support complex inputs.")
        if dtype.category < FLOAT:
            return constant(self, False)
        return apply(bits.is_infinite, [self], (value,), dtype, scalar_type.bool)


which_infinity("isposinf", math.inf)
which_infinity("isneginf", -math.inf)


@cuda_kernel(operator_named("isreal"))
def isreal_cuda(self):
    return at.imag(self) == 0 if dtype_of(self).is_complex else constant(self, True)


# ----------------------------------------------------------------------------------------- angles, conjugates


@cuda_kernel(operator_named("angle"))
def angle_cuda(self):
    dtype = dtype_of(self)
    if dtype.is_complex:
        return apply(bits.angle_of_complex, [self], (), dtype, dtype.to_real())
    return apply(bits.angle, [self], (), own_float(self))


@cuda_kernel(operator_named("_conj"), operator_named("_conj_physical"))
def conj_physical_cuda(self):
    return apply(bits.conjugate, [self]) if dtype_of(self).is_complex else clone_cuda(self, None)


@cuda_kernel(operator_named("conj_physical_"))
def conj_physical_cuda_(self):
    return write_back(self, conj_physical_cuda(self)) if dtype_of(self).is_complex else self


# ----------------------------------------------------------------------------------------- two numbers make one


@cuda_kernel(operator_named("complex"))
def complex_cuda(real, imag):
    """Written part by part."""
    shape = broadcast_shape(real._array.shape, imag._array.shape)
    result = empty(shape, complex_type(real, imag).numpy)
    parts = at.view_as_real(result)
    parts.select(-1, 0).copy_(real)
    parts.select(-1, 1).copy_(imag)
    return result


@cuda_kernel(operator_named("polar"))
def polar_cuda(abs, angle):
    """abs · (cos angle + i sin angle)"""
    complex_type(abs, angle)
    return complex_cuda(abs * at.cos(angle), abs * at.sin(angle))


# ------------------------------------------------------------------------------------------------------ signs


def copysign_cuda(self, other):
    common = float_result_type(self, other)
    if common.category == COMPLEX:
        raise not_implemented("copysign_cuda")(common)
    return apply(bits.copysign, [self, other], (), common)


cuda_kernel(operator_named("copysign.Tensor"))(copysign_cuda)
cuda_kernel(operator_named("copysign.Scalar"))(lambda self, other: copysign_cuda(self, weak(other)))


@cuda_kernel(operator_named("heaviside"))
def heaviside_cuda(self, values):
    if dtype_of(self).is_complex or dtype_of(values).is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if dtype_of(self) is not dtype_of(values):
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if dtype_of(self) is scalar_type.bool:
        return at.logical_or(self, values)
    return apply(bits.heaviside, [self, values])


@cuda_kernel(operator_named("nextafter"))
def nextafter_cuda(self, other):
    common = result_type(self, other)
    if common not in (scalar_type.float32, scalar_type.float64):
        raise not_implemented("nextafter_cuda")(common)
    return apply(bits.nextafter, [self, other], (), common)


# ------------------------------------------------------------------------------------------ parts of a number


@cuda_kernel(operator_named("frac"))
def frac_cuda(self):
    if not dtype_of(self).is_floating_point:
        raise not_implemented("frac_cuda")(dtype_of(self))
    return apply(bits.fraction, [self])


@cuda_kernel(operator_named("frexp.Tensor"))
def frexp_cuda(self):
    if not dtype_of(self).is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return return_types.frexp(
        apply(bits.mantissa, [self]), apply(bits.exponent, [self], result=scalar_type.int32)
    )


@cuda_kernel(operator_named("ldexp.Tensor"))
def ldexp_cuda(self, other):
    return at.mul(self, at.pow(2.0, other))


# ---------------------------------------------------------------------------------------- divisors and shifts


def of_integers(name, function):
    refusal = not_implemented(f"{name}_cuda")

    @cuda_kernel(operator_named(name))
    def kernel(self, other):
        common = result_type(self, other)
        if common.category != INTEGRAL:
            raise refusal(common)
        return apply(function, [self, other], (), common)


of_integers("gcd", bits.gcd)
of_integers("lcm", bits.lcm)


def shift(name, function, kernel_name):
    """The kernel's number is the width of the integers."""
    refusal = not_implemented(kernel_name)

    def kernel(self, other):
        common = result_type(self, other)
        if common.category != INTEGRAL:
            raise refusal(common)
        return apply(function, [self, other], (common.itemsize * 8,), common)

    cuda_kernel(operator_named(f"{name}.Tensor"))(kernel)
    cuda_kernel(operator_named(f"{name}.Tensor_Scalar"))(lambda self, other: kernel(self, weak(other)))
    cuda_kernel(operator_named(f"{name}.Scalar_Tensor"))(lambda self, other: kernel(weak(self), other))


shift("bitwise_left_shift", bits.shift_left, "lshift_cuda")
shift("bitwise_right_shift", bits.shift_right, "rshift_cuda")

for _name, _function in {"and": g.bitwise_and, "or": g.bitwise_or, "xor": g.bitwise_xor}.items():
    cuda_kernel(operator_named(f"bitwise_{_name}.Scalar_Tensor"))(
        lambda self, other, function=_function: apply(function, [weak(self), other])
    )


@cuda_kernel(operator_named("remainder.Scalar_Tensor"))
def remainder_of_number_cuda(self, other):
    return at.remainder(weak(self), other)
