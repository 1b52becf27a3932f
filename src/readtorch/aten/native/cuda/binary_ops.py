"""Functions of two tensors, or of a tensor and a scalar, element by element.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp`, `aten/src/ATen/native/cuda/BinaryMiscOpsKernels.cu`,
`aten/src/ATen/native/cuda/BinaryBitwiseOpsKernels.cu`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import float_result_type, not_implemented, result_type
from readtorch.aten.native.tensor_iterator import scalar_tensor as weak
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import COMPLEX, FLOAT, INTEGRAL
from readtorch.c10.tensor_impl import dtype_of

from .register_dispatch_key import cuda_kernel, operator_named
from .tensor_iterator import apply, apply_
from .unary_ops_kernel import NEVER, declare


def binary(name, function, dtype=result_type, result=None, scalars=lambda *arguments: NEVER):
    """An operator of two tensors. `scalars`: from the arguments behind them."""

    def kernel(self, other, *arguments):
        return apply(function, [self, other], scalars(*arguments), dtype(self, other), result)

    def kernel_(self, other, *arguments):
        return apply_(function, self, [other], scalars(*arguments), dtype(self, other))

    declare(name, kernel, kernel_)


def scalar(name, function, dtype=result_type, result=None, scalars=lambda *arguments: NEVER):
    """An operator of a tensor and a Python number."""

    def kernel(self, other, *arguments):
        other = weak(other)
        return apply(function, [self, other], scalars(*arguments), dtype(self, other), result)

    def kernel_(self, other, *arguments):
        other = weak(other)
        return apply_(function, self, [other], scalars(*arguments), dtype(self, other))

    declare(name, kernel, kernel_)


def alpha_alone(alpha=1):
    return (alpha,)


for _name, _function in {"add": f.add, "sub": f.sub, "rsub": f.rsub}.items():
    binary(f"{_name}.Tensor", _function, scalars=alpha_alone)
    scalar(f"{_name}.Scalar", _function, scalars=alpha_alone)


for _kind in (("Tensor", binary), ("Scalar", scalar)):
    _form, _declare = _kind
    _declare(f"mul.{_form}", f.mul)
    _declare(f"div.{_form}", f.div, float_result_type)
    for _name, _function in {
        "eq": f.equal,
        "ne": f.not_equal,
        "lt": f.less,
        "le": f.less_equal,
        "gt": f.greater,
        "ge": f.greater_equal,
    }.items():
        _declare(f"{_name}.{_form}", _function, result=scalar_type.bool)
    for _name, _function in {
        "bitwise_and": f.bitwise_and,
        "bitwise_or": f.bitwise_or,
        "bitwise_xor": f.bitwise_xor,
    }.items():
        _declare(f"{_name}.{_form}", _function)


for _name, _function in {"maximum": f.maximum, "minimum": f.minimum, "fmax": f.fmax, "fmin": f.fmin}.items():
    binary(_name, _function)
for _name, _function in {
    "logical_and": f.nonzero_and,
    "logical_or": f.nonzero_or,
    "logical_xor": f.nonzero_xor,
}.items():
    binary(_name, _function, result=scalar_type.bool)
binary("pow.Tensor_Tensor", f.power)


def for_integers(integral, floating, common):
    return floating if common.category >= FLOAT else integral


def quotient(name, integral, floating, wrap_other):
    """Operators that are one function for integers and another for floats."""

    def kernel(self, other, *arguments):
        other = wrap_other(other)
        common = result_type(self, other)
        return apply(for_integers(integral, floating, common), [self, other], (), common)

    def kernel_(self, other, *arguments):
        other = wrap_other(other)
        common = result_type(self, other)
        return apply_(for_integers(integral, floating, common), self, [other], (), common)

    declare(name, kernel, kernel_)


quotient("remainder.Tensor", f.integer_remainder, f.remainder, lambda t: t)
quotient("remainder.Scalar", f.integer_remainder, f.remainder, weak)
quotient("fmod.Tensor", f.fmod, f.fmod, lambda t: t)
quotient("fmod.Scalar", f.fmod, f.fmod, weak)
quotient("floor_divide", f.floor_divide, f.floor_divide, lambda t: t)


@cuda_kernel(operator_named("div.Tensor_mode"))
def div_mode_cuda(self, other, rounding_mode):
    if rounding_mode is None:
        return apply(f.div, [self, other], (), float_result_type(self, other))
    return apply(f.floor_divide if rounding_mode == "floor" else f.trunc_divide, [self, other])


def copysign_cuda(self, other):
    common = float_result_type(self, other)
    if common.category == COMPLEX:
        raise not_implemented("copysign_cuda")(common)
    return apply(f.copysign, [self, other], (), common)


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
    return apply(f.heaviside, [self, values])


@cuda_kernel(operator_named("nextafter"))
def nextafter_cuda(self, other):
    common = result_type(self, other)
    if common not in (scalar_type.float32, scalar_type.float64):
        raise not_implemented("nextafter_cuda")(common)
    return apply(f.nextafter, [self, other], (), common)


@cuda_kernel(operator_named("ldexp.Tensor"))
def ldexp_cuda(self, other):
    return at.mul(self, at.pow(2.0, other))


def of_integers(name, function):
    refusal = not_implemented(f"{name}_cuda")

    @cuda_kernel(operator_named(name))
    def kernel(self, other):
        common = result_type(self, other)
        if common.category != INTEGRAL:
            raise refusal(common)
        return apply(function, [self, other], (), common)


of_integers("gcd", f.gcd)
of_integers("lcm", f.lcm)


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


shift("bitwise_left_shift", f.shift_left, "lshift_cuda")
shift("bitwise_right_shift", f.shift_right, "rshift_cuda")


for _name, _function in {"and": f.bitwise_and, "or": f.bitwise_or, "xor": f.bitwise_xor}.items():
    cuda_kernel(operator_named(f"bitwise_{_name}.Scalar_Tensor"))(
        lambda self, other, function=_function: apply(function, [weak(self), other])
    )


@cuda_kernel(operator_named("remainder.Scalar_Tensor"))
def remainder_of_number_cuda(self, other):
    return at.remainder(weak(self), other)
