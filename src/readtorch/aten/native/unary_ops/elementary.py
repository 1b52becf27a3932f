"""Elementary functions: neg, abs, exp, log, sqrt, rounding, frexp.

In PyTorch: `aten/src/ATen/native/UnaryOps.cpp` and `aten/src/ATen/native/cpu/UnaryOpsKernel.cpp`.
Explained in the chapter "One operator call".
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native import return_types
from readtorch.aten.native.binary_ops.arithmetic import add_scalar, mul_scalar
from readtorch.aten.native.exact_out import exact_out, found_dtype
from readtorch.aten.native.functions_manual import as_numbers_of
from readtorch.aten.native.tensor_iterator import (
    cast,
    conj,
    elementwise,
    float_result_type,
    is_floating,
    is_integer_or_floating,
    is_real,
    laid_out,
    not_implemented,
    refuse_overlap,
    refusing,
    result_type,
    unary_float_kernel,
    unary_kernel,
)
from readtorch.aten.native.vectorized import or_loop
from readtorch.aten.native_function import BOTH, alias_of, native_function
from readtorch.aten.tensor_meta import like
from readtorch.c10.scalar_type import BOOL, FLOAT, int32, op_math_type
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap, wrap_result


def unary(name, kernel, function, common=result_type, converts_out=True, **options):
    """Declare `name(Tensor self) -> Tensor` with its in-place and out= forms.

    kernel: what computes it on the CPU. function, common, options: see `elementwise`.
    """
    out = converts_out or exact_out(found_dtype)
    operator = native_function(f"{name}(Tensor self) -> Tensor", BOTH, inplace=True, out=out, direct=True)
    operator.kernel(kernel)
    elementwise(operator, function, common, **options)
    return operator


def unary_float(name, compute, function):
    """`unary` for functions whose results are floats. compute: NumPy's.

    # in PyTorch: on CUDA complex numbers, too (thrust's functions). Those of math.py know real numbers alone.
    """
    return unary(name, unary_float_kernel(compute), function, float_result_type, takes=is_real)


def node_of_its_own(operator):
    """Make the in-place form an operator apart, with another node than the functional one."""
    operator.inplace.variant_of = None
    return operator.inplace


def refused_with(text, error=RuntimeError):
    """dtype -> an error with a fixed message."""
    return lambda dtype: error(text)


# ---------------------------------------------------------------------------------------------- sign and size

no_bools = refused_with(
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead."
)
neg = unary("neg", unary_kernel(np.negative, no_bools), f.neg, check=refusing(no_bools, "b"), converts_out=False)


@neg.backward
class NegBackward0:
    def self(grad):
        return grad.neg()

    result = "auto_element_wise"


alias_of("negative", "neg")

positive = native_function("positive(Tensor(a) self) -> Tensor(a)", BOTH)


@positive.compose
def positive_composite(self):
    if self._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


absolute = unary(
    "abs",
    unary_kernel(np.abs, not_implemented("abs_cpu")),
    f.absolute,
    result=lambda dtype: dtype.to_real() if dtype.is_complex else dtype,
    takes=lambda dtype: dtype.category > BOOL,
    converts_out=False,
)
abs_meta_ = absolute.inplace.meta(refusing(refused_with("In-place abs is not supported for complex tensors."), "c"))


@absolute.inplace.kernel
def abs_cpu_(self):
    abs_meta_(self)
    refuse_overlap(self)
    np.copyto(self._array, absolute.call(self)._array)
    return self


@absolute.backward
class AbsBackward0:
    def self(grad, self):
        return grad * self.sgn()

    def result(self_p, self_t, result):
        return as_numbers_of(result, self_t.conj() * self_p.sgn())


alias_of("absolute", "abs")


def sign_array(x):
    """-1, 0 or 1; 0 for nan, unlike NumPy's sign. For complex numbers the number on the unit circle."""
    if x.dtype.kind in "fiu":
        return np.subtract(x > 0, x < 0, dtype=x.dtype)
    return laid_out(x, x) if x.dtype.kind == "b" else np.sign(x)


no_directions = refused_with(
    "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    NotImplementedError,
)
sign = unary(
    "sign",
    unary_kernel(sign_array, no_directions, refused="c"),
    f.sign,
    check=refusing(no_directions, "c"),
    converts_out=False,
)


@sign.backward
class SignBackward0:
    def self(grad):
        return at.zeros_like(grad)

    result = "auto_element_wise"


sgn = unary(
    "sgn",
    unary_kernel(sign_array),
    lambda dtype: f.direction if dtype.is_complex else f.sign,
    by_dtype=True,
    converts_out=False,
)


@sgn.backward
class SgnBackward0:
    def self(grad, self, result):
        if self._array.dtype.kind != "c":
            return at.zeros_like(grad)
        size = self.abs()
        along = (grad * conj(result)).real * result  # the part that points along self: sgn cannot see it
        return ((grad - along) / size).masked_fill(size == 0, 0)

    def result(self_p, self_t, result):
        return SgnBackward0.self(self_t, self_p, result)


# ------------------------------------------------------------------------------------------- powers and roots

square = native_function("square(Tensor self) -> Tensor", BOTH, inplace=True, out=True, direct=True)


@square.compose
def square_composite(self):
    return at.pow(self, 2)


@square.inplace.compose
def square_composite_(self):
    return self.pow_(2)


sqrt = unary_float("sqrt", np.sqrt, f.sqrt)


@sqrt.backward
class SqrtBackward0:
    def self(grad, result):
        return grad / mul_scalar.call(conj(result), 2)

    result = "auto_element_wise"


def rsqrt_array(x):
    return np.reciprocal(np.sqrt(x))


rsqrt = unary_float("rsqrt", or_loop(f.rsqrt, rsqrt_array), f.rsqrt)


@rsqrt.backward
class RsqrtBackward0:
    def self(grad, result):
        slope = conj(result.pow(3))
        return mul_scalar.call(grad, -0.5) * slope

    result = "auto_element_wise"


reciprocal = unary("reciprocal", unary_float_kernel(np.reciprocal), f.reciprocal, float_result_type)


@reciprocal.backward
class ReciprocalBackward0:
    def self(grad, result):
        slope = conj(result * result)
        return -grad * slope

    result = "auto_element_wise"


# ------------------------------------------------------------------------------------------- exponential, log

exp = unary_float("exp", np.exp, f.exp)


@exp.backward
class ExpBackward0:
    def self(grad, result):
        return grad * conj(result)

    result = "auto_element_wise"


def exp2_array(x):
    return np.exp(x * math.log(2)) if x.dtype.kind == "c" else np.exp2(x)


exp2 = unary("exp2", unary_float_kernel(exp2_array), f.exp2, float_result_type)


@exp2.backward
class Exp2Backward0:
    def self(grad, result):
        return mul_scalar.call(grad * conj(result), math.log(2))

    result = "auto_element_wise"


expm1 = unary_float("expm1", np.expm1, f.expm1)


@expm1.backward
class Expm1Backward0:
    def self(grad, result):
        return grad * add_scalar.call(conj(result), 1, 1)

    result = "auto_element_wise"


log = unary_float("log", np.log, f.log)


@log.backward
class LogBackward0:
    def self(grad, self):
        return grad.div(conj(self))

    result = "auto_element_wise"


def log2_array(x):
    return np.log(x) / math.log(2) if x.dtype.kind == "c" else np.log2(x)


log2 = unary_float("log2", log2_array, f.log2)


@log2.backward
class Log2Backward0:
    def self(grad, self):
        return grad / mul_scalar.call(conj(self), math.log(2))

    result = "auto_element_wise"


log10 = unary_float("log10", np.log10, f.log10)


@log10.backward
class Log10Backward0:
    def self(grad, self):
        return grad / mul_scalar.call(conj(self), math.log(10))

    result = "auto_element_wise"


log1p = unary_float("log1p", np.log1p, f.log1p)


@log1p.backward
class Log1PBackward0:
    def self(grad, self):
        return grad / conj(add_scalar.call(self, 1, 1))

    result = "auto_element_wise"


# --------------------------------------------------------------------------------------------------- rounding


def rounding(name, function, scalar_function, complex_refusal=None):
    """floor, ceil, trunc, round: integers stay as they are, and nothing flows back."""

    def rounded(x):
        return laid_out(x, x) if x.dtype.kind in "iu" else function(x)

    bool_refusal = not_implemented(f"{name}_vml_cpu")
    no_complex = complex_refusal or bool_refusal
    kernel = unary_kernel(
        rounded, lambda dtype: (no_complex if dtype.is_complex else bool_refusal)(dtype), refused="bc"
    )
    return unary(
        name,
        kernel,
        lambda dtype: f.itself if dtype.category < FLOAT else scalar_function,
        by_dtype=True,
        check=complex_refusal and refusing(complex_refusal, "c"),
        takes=is_integer_or_floating,
        converts_out=False,
    )


def no_complex_inputs(name):
    return refused_with(f"{name} is not supported for complex inputs", NotImplementedError)


floor = rounding("floor", np.floor, f.floor, no_complex_inputs("floor"))
ceil = rounding("ceil", np.ceil, f.ceil, no_complex_inputs("ceil"))
trunc = rounding("trunc", np.trunc, f.trunc, no_complex_inputs("trunc"))
alias_of("fix", "trunc")
round_ = rounding("round", np.rint, f.nearest)


@floor.backward
class FloorBackward0:
    def self(grad):
        return at.zeros_like(grad)

    result = "auto_element_wise"


@ceil.backward
class CeilBackward0:
    def self(grad):
        return at.zeros_like(grad)

    result = "auto_element_wise"


@trunc.backward
class TruncBackward0:
    def self(grad):
        return at.zeros_like(grad)

    result = "auto_element_wise"


@round_.backward
class RoundBackward0:
    def self(grad):
        return at.zeros_like(grad)

    result = "auto_element_wise"


round_decimals = native_function(
    "round.decimals(Tensor self, *, int decimals) -> Tensor", BOTH, inplace=True, out=exact_out(found_dtype)
)


def scaled_rounding(decimals):
    """x -> x rounded to so many decimals, by scaling with a power of ten as PyTorch does."""
    if decimals == 0:
        return np.rint
    ten = 10.0 ** abs(decimals) if abs(decimals) <= 308 else np.inf
    return (
        (lambda x: np.rint(x * x.dtype.type(ten)) / x.dtype.type(ten))
        if decimals > 0
        else (lambda x: np.rint(x / x.dtype.type(ten)) * x.dtype.type(ten))
    )


elementwise(
    round_decimals,
    lambda decimals: f.round_to_parts if decimals >= 0 else f.round_to_multiples,
    by_number=True,
    scalars=lambda decimals: (10.0 ** abs(decimals),),
    takes=is_floating,
)


@round_decimals.kernel
def round_decimals_cpu(self, decimals):
    return unary_kernel(scaled_rounding(decimals), not_implemented("round_vml_cpu"), refused="biuc")(self)


@round_decimals.backward
class RoundBackward1:
    def self(grad):
        return at.zeros_like(grad)

    result = "auto_element_wise"


frac = unary(
    "frac",
    unary_kernel(lambda x: x - np.trunc(x), not_implemented("frac_cpu"), refused="biuc"),
    f.fraction,
    takes=is_floating,
    converts_out=False,
)


@frac.backward
class FracBackward0:
    def self(grad):
        return grad

    def result(self_t):
        return self_t


# ------------------------------------------------------------------------------------------- degrees, radians


def conversion(name, factor):
    no_complex = refused_with(f"{name} is not supported for complex tensors.")
    return unary(
        name,
        unary_float_kernel(lambda x: x * x.dtype.type(factor), no_complex),
        f.times,
        float_result_type,
        scalars=lambda: (factor,),
        check=refusing(no_complex, "c"),
    )


deg2rad = conversion("deg2rad", math.pi / 180)
rad2deg = conversion("rad2deg", 180 / math.pi)


@deg2rad.backward
class Deg2RadBackward0:
    def self(grad):
        return grad * (math.pi / 180)

    result = "auto_element_wise"


@rad2deg.backward
class Rad2DegBackward0:
    def self(grad):
        return grad * (180 / math.pi)

    result = "auto_element_wise"


# ------------------------------------------------------------------------------------------------- nan_to_num

nan_to_num = native_function(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(
        lambda out, result, *_: (
            f"nan_to_num: dtype of out: {type_name(out)} should be same as input: {type_name(result)}"
        )
    ),
)


def _largest(dtype):
    return float(np.finfo(dtype).max) if dtype.kind != "V" else float(_ml_finfo(dtype).max)


def _ml_finfo(dtype):
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


def nan_to_num_array(x, nan, posinf, neginf):
    if x.dtype.kind == "c":
        result = np.empty_like(x)
        result.real, result.imag = [nan_to_num_array(part, nan, posinf, neginf) for part in (x.real, x.imag)]
        return result
    largest = _largest(x.dtype)
    result = laid_out(x, x)
    result[np.isnan(x)] = nan or 0.0
    result[x == np.inf] = largest if posinf is None else posinf
    result[x == -np.inf] = -largest if neginf is None else neginf
    return result


@nan_to_num.meta
def nan_to_num_meta(self, nan, posinf, neginf):
    return like(self)


@nan_to_num.kernel
def nan_to_num_cpu(self, nan, posinf, neginf):
    x = self._array
    return wrap(laid_out(x, x) if x.dtype.kind in "biu" else nan_to_num_array(x, nan, posinf, neginf))


@nan_to_num.backward
class NanToNumBackward0:
    def self(grad, self):
        return grad * at.isfinite(self)

    result = "auto_element_wise"


# ------------------------------------------------------------------------------------------------------ frexp


def wrong_type(name):
    def message(out, result, *_):
        if name == "exponent":
            return f"torch.frexp() expects exponent to have int dtype but got {dtype_of(out).name}"
        want, have = dtype_of(result).name, dtype_of(out).name
        return f"torch.frexp() expects mantissa to have dtype {want} but got {have}"

    return message


frexp = native_function(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    BOTH,
    out=exact_out(wrong_type("mantissa"), wrong_type("exponent")),
)


@frexp.meta
def frexp_meta(self):
    if not dtype_of(self).is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return like(self), like(self, int32)


@frexp.kernel
def frexp_cpu(self):
    """(m, e) with self = m · 2 ** e and 1/2 <= |m| < 1"""
    dtype = dtype_of(self)
    if not dtype.is_floating_point:
        frexp_meta(self)
    mantissa, exponent = np.frexp(cast(self._array, op_math_type(dtype).numpy))
    return return_types.frexp(
        wrap_result(mantissa.astype(dtype.numpy, copy=False)), wrap_result(exponent.astype(np.int32, copy=False))
    )


@frexp.backward
class FrexpBackward0:
    output_differentiability = [True, False]

    def self(grad, exponent):
        return grad / exponent.exp2()

    def mantissa(self_t, exponent):
        return self_t / exponent.exp2()
