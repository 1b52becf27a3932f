"""Pointwise operators: which function of single elements each of them is.

In PyTorch: `aten/src/ATen/native/cuda/{Unary,Binary}*Kernel*.cu`, `ActivationKernels`, `CompareKernels.cu`,
`TensorCompare.cu`, `Lerp.cu`, `PointwiseOpsKernel.cu`.
"""

from .....c10 import scalar_type
from .....c10.scalar_type import FLOAT
from .....c10.tensor_impl import dtype_of
from ....dispatcher import registry
from ....functions import at
from ...tensor_iterator import float_result_type, result_type
from ...tensor_iterator import scalar_tensor as weak
from .. import bits
from .. import functions as f
from .. import more_functions as g
from .broadcasting import apply, apply_
from .registration import cuda_kernel, empty

NEVER = ()


def operator_named(name):
    return registry[f"aten::{name}"]


def declare(name, kernel, kernel_=None):
    """`kernel` for the operator, `kernel_` for its in-place form, whether derived from it or declared for
    itself."""
    operator = operator_named(name)
    cuda_kernel(operator)(kernel)
    base, dot, overload = name.partition(".")
    inplace = operator.inplace or registry.get(f"aten::{base}_{dot}{overload}")
    if kernel_ is not None and inplace is not None:
        cuda_kernel(inplace)(kernel_)


def own_float(t):
    """The dtype of functions like exp: the tensor's, the default one for integers."""
    dtype = dtype_of(t)
    return dtype if dtype.category >= FLOAT else scalar_type.get_default_dtype()


# -------------------------------------------------------------------------------------------------- one
# tensor


def unary(name, function, dtype=dtype_of, result=None, numbers=lambda *arguments: NEVER):
    """`numbers(*arguments)`: the function's numbers, from the schema's arguments behind the tensor."""

    def kernel(self, *arguments):
        return apply(chosen(function, self), [self], numbers(*arguments), dtype(self), result)

    def kernel_(self, *arguments):
        return apply_(chosen(function, self), self, [], numbers(*arguments), dtype(self))

    declare(name, kernel, None if result else kernel_)


def chosen(function, self):
    """Rounding leaves integers as they are. The sign of a complex number is a direction."""
    if function is f.sign and dtype_of(self).is_complex:
        return bits.direction
    return g.itself if function in ROUNDING and dtype_of(self).category < FLOAT else function


ROUNDING = {f.floor, f.ceil, g.trunc, g.nearest}

for _name, _function in {
    "neg": f.neg,
    "sign": f.sign,
    "sgn": f.sign,
    "floor": f.floor,
    "ceil": f.ceil,
    "trunc": g.trunc,
    "round": g.nearest,
}.items():
    unary(_name, _function)
for _name, _function in {
    "relu": f.relu,
    "silu": f.silu,
    "mish": g.mish,
    "hardswish": f.hardswish,
    "hardsigmoid": g.hardsigmoid,
}.items():
    unary(_name, _function)



def length(self):
    dtype = dtype_of(self)
    return apply(f.absolute, [self], (), dtype, dtype.to_real() if dtype.is_complex else dtype)


def length_(self):
    if dtype_of(self).is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return apply_(f.absolute, self, [])


declare("abs", length, length_)


for _name, _function in {
    "exp": f.exp,
    "exp2": g.exp2,
    "expm1": g.expm1,
    "log": f.log,
    "log2": g.log2,
    "log10": g.log10,
    "log1p": g.log1p,
    "sqrt": f.sqrt,
    "rsqrt": f.rsqrt,
    "reciprocal": f.reciprocal,
    "sin": f.sin,
    "cos": f.cos,
    "tan": g.tan,
    "asin": g.asin,
    "acos": g.acos,
    "atan": g.atan,
    "sinh": g.sinh,
    "cosh": g.cosh,
    "tanh": f.tanh,
    "asinh": g.asinh,
    "acosh": g.acosh,
    "atanh": g.atanh,
    "erf": f.erf,
    "erfc": g.erfc,
    "sigmoid": f.sigmoid,
}.items():
    unary(_name, _function, own_float)

for _name, _function in {
    "logical_not": g.logical_not,
    "isnan": g.isnan,
    "isfinite": g.isfinite,
    "isinf": g.isinf,
}.items():
    unary(_name, _function, result=scalar_type.bool)

unary("leaky_relu", f.leaky_relu, numbers=lambda slope: (slope,))
unary("elu", f.elu, numbers=lambda alpha, scale, inside: (alpha * scale, scale, inside))
unary("softplus", f.softplus, numbers=lambda beta, threshold: (beta, threshold))
unary("hardtanh", f.clamp, numbers=lambda low, high: (low, high))


def by_form(plain, tanh):
    """The function that gelu's argument `approximate` names."""
    return lambda approximate: tanh if approximate == "tanh" else plain


gelu_of, gelu_gradient_of = by_form(f.gelu, f.gelu_tanh), by_form(f.gelu_backward, f.gelu_tanh_backward)
declare(
    "gelu",
    lambda self, approximate: apply(gelu_of(approximate), [self]),
    lambda self, approximate: apply_(gelu_of(approximate), self, []),
)


@cuda_kernel(operator_named("log_sigmoid_forward"))
def log_sigmoid_forward_cuda(self):
    return apply(g.log_sigmoid, [self]), empty((0,), self._array.dtype)


@cuda_kernel(operator_named("clamp"))
def clamp_cuda(self, min, max):
    numbers = [weak(n) for n in (min, max) if n is not None]
    common = result_type(self, *numbers)
    if min is not None and max is not None:
        return apply(f.clamp, [self], (min, max), common)
    return apply(g.clamp_min if max is None else g.clamp_max, [self], (min if max is None else max,), common)


@cuda_kernel(operator_named("clamp.Tensor"))
def clamp_tensors_cuda(self, min, max):
    common = result_type(*[t for t in (self, min, max) if t is not None])
    if min is not None and max is not None:
        return apply(g.clamp_between, [self, min, max], (), common)
    bound = max if min is None else min
    return apply(f.minimum if min is None else f.maximum, [self, bound], (), common)


@cuda_kernel(operator_named("round.decimals"))
def round_decimals_cuda(self, decimals):
    return apply(
        g.round_to_parts if decimals >= 0 else g.round_to_multiples, [self], (10.0 ** abs(decimals),)
    )


# ------------------------------------------------------------------------------------------------- two
# tensors


def binary(name, function, dtype=result_type, result=None, numbers=lambda *arguments: NEVER):
    """An operator of two tensors. `numbers`: from the arguments behind them."""

    def kernel(self, other, *arguments):
        return apply(function, [self, other], numbers(*arguments), dtype(self, other), result)

    def kernel_(self, other, *arguments):
        return apply_(function, self, [other], numbers(*arguments), dtype(self, other))

    declare(name, kernel, kernel_)


def scalar(name, function, dtype=result_type, result=None, numbers=lambda *arguments: NEVER):
    """An operator of a tensor and a Python number."""

    def kernel(self, other, *arguments):
        other = weak(other)
        return apply(function, [self, other], numbers(*arguments), dtype(self, other), result)

    def kernel_(self, other, *arguments):
        other = weak(other)
        return apply_(function, self, [other], numbers(*arguments), dtype(self, other))

    declare(name, kernel, kernel_)


def alpha_alone(alpha=1):
    return (alpha,)


for _name, _function in {"add": f.add, "sub": f.sub, "rsub": g.rsub}.items():
    binary(f"{_name}.Tensor", _function, numbers=alpha_alone)
    scalar(f"{_name}.Scalar", _function, numbers=alpha_alone)

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
        "bitwise_and": g.bitwise_and,
        "bitwise_or": g.bitwise_or,
        "bitwise_xor": g.bitwise_xor,
    }.items():
        _declare(f"{_name}.{_form}", _function)

for _name, _function in {"maximum": f.maximum, "minimum": f.minimum, "fmax": g.fmax, "fmin": g.fmin}.items():
    binary(_name, _function)
for _name, _function in {
    "logical_and": g.logical_and,
    "logical_or": g.logical_or,
    "logical_xor": g.logical_xor,
}.items():
    binary(_name, _function, result=scalar_type.bool)
binary("atan2", f.atan2, float_result_type)
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


quotient("remainder.Tensor", g.integer_remainder, g.remainder, lambda t: t)
quotient("remainder.Scalar", g.integer_remainder, g.remainder, weak)
quotient("fmod.Tensor", g.fmod, g.fmod, lambda t: t)
quotient("fmod.Scalar", g.fmod, g.fmod, weak)
quotient("floor_divide", g.floor_divide, g.floor_divide, lambda t: t)


@cuda_kernel(operator_named("div.Tensor_mode"))
def div_mode_cuda(self, other, rounding_mode):
    if rounding_mode is None:
        return apply(f.div, [self, other], (), float_result_type(self, other))
    return apply(g.floor_divide if rounding_mode == "floor" else g.trunc_divide, [self, other])


@cuda_kernel(operator_named("pow.Tensor_Scalar"))
def pow_number_cuda(self, exponent):
    common = result_type(self, weak(exponent))
    return apply_power(self, exponent, common)


def apply_power(self, exponent, common):
    """The common exponents without the general power function."""
    if exponent == 2:
        return apply(f.square, [self], (), common)
    if exponent == 0.5:
        return apply(f.sqrt, [self], (), common)
    return apply(f.power_of_number, [self], (exponent,), common)


@cuda_kernel(operator_named("pow.Scalar"))
def number_to_the_power_cuda(self, exponent):
    return apply(g.number_to_the_power, [exponent], (self,), result_type(weak(self), exponent))


# ------------------------------------------------------------------------------------------- bounds as
# tensors

for _name, _function in {"clamp_min": g.clamp_min, "clamp_max": g.clamp_max}.items():
    unary(_name, _function, numbers=lambda bound: (bound,))
binary("clamp_min.Tensor", f.maximum)
binary("clamp_max.Tensor", f.minimum)


# ------------------------------------------------------------------------------------ gradients of
# activations


def gradient(name, function, numbers=lambda *arguments: NEVER):
    """An operator of grad and the input (or result): its other arguments are numbers."""

    @cuda_kernel(operator_named(name))
    def kernel(grad_output, self, *arguments):
        return apply(function, [grad_output, self], numbers(*arguments))


gradient("threshold_backward", f.threshold_backward, lambda threshold: (threshold,))
gradient("sigmoid_backward", f.sigmoid_backward)
gradient("tanh_backward", f.tanh_backward)
gradient("silu_backward", f.silu_backward)
gradient("mish_backward", g.mish_backward)
gradient("hardsigmoid_backward", g.hardsigmoid_backward)
gradient("hardswish_backward", g.hardswish_backward)
gradient("leaky_relu_backward", f.leaky_relu_backward, lambda slope, is_result: (slope,))
gradient("hardtanh_backward", g.hardtanh_backward, lambda low, high: (low, high))
gradient("softplus_backward", g.softplus_backward, lambda beta, threshold: (beta, threshold))
gradient("log_sigmoid_backward", g.log_sigmoid_backward)


@cuda_kernel(operator_named("gelu_backward"))
def gelu_backward_cuda(grad_output, self, approximate):
    return apply(gelu_gradient_of(approximate), [grad_output, self])


@cuda_kernel(operator_named("elu_backward"))
def elu_backward_cuda(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    return apply(
        g.elu_backward, [grad_output, self_or_result], (alpha * scale, scale, input_scale, is_result)
    )


# ----------------------------------------------------------------------------------------------- three
# tensors


@cuda_kernel(operator_named("lerp.Scalar"))
def lerp_number_cuda(self, end, weight):
    return apply(g.lerp_by_number, [self, end], (weight,))


@cuda_kernel(operator_named("lerp.Scalar").inplace)
def lerp_number_cuda_(self, end, weight):
    return apply_(g.lerp_by_number, self, [end], (weight,))


@cuda_kernel(operator_named("lerp.Tensor"))
def lerp_cuda(self, end, weight):
    return apply(f.lerp, [self, end, weight])


def with_value(name, function):
    declare(
        name,
        lambda self, tensor1, tensor2, value: apply(function, [self, tensor1, tensor2], (value,)),
        lambda self, tensor1, tensor2, value: apply_(function, self, [tensor1, tensor2], (value,)),
    )


with_value("addcmul", f.addcmul)
with_value("addcdiv", f.addcdiv)


# ------------------------------------------------------------------------------------------------------
# comparing


@cuda_kernel(operator_named("isclose"))
def isclose_cuda(self, other, rtol, atol, equal_nan):
    common = result_type(self, other)
    if common.category < FLOAT:
        common = scalar_type.float64
    return apply(g.is_close, [self, other], (rtol, atol, equal_nan), common, scalar_type.bool)


@cuda_kernel(operator_named("equal"))
def equal_cuda(self, other):
    """One bool, for which the host waits."""
    return self._array.shape == other._array.shape and bool(at.all(at.eq(self, other)))
