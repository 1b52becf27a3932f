"""The key ZeroTensor: all elements are 0, no memory holds them, and none may be written.

Forward-mode differentiation makes such tensors for what does not depend on its input; a few operators know what follows from
a zero without computing, for all others the fallback puts a real zero in the tensor's place.

In PyTorch: `aten/src/ATen/ZeroTensorFallback.cpp`, and `mul_zerotensor` and its like in `aten/src/ATen/native/BinaryOps.cpp`.
"""

import math

from readtorch.c10.dispatch_key import CPU, META, ZEROTENSOR
from readtorch.c10.tensor_impl import TensorImpl

from .dispatcher import registry, set_fallback
from .functions import at
from .native.math_bit_fall_through_lists import UTILITIES_AND_CONSTRUCTORS, VIEW_FUNCTIONS, fall_through
from .native.math_bits_fallback import below, writing
from .native_function import below_autograd

IMMUTABLE = "ZeroTensors are immutable. Please use the materialized zero tensor obtained using .clone() if you want a mutable tensor."


def zero_tensor_fallback(operator, keys, args, kwargs):
    """Every ZeroTensor among the operands becomes one real 0, expanded to its size. Raises RuntimeError if it is written to."""
    arguments = [*args, *kwargs.values()]
    kinds = writing(operator)
    if len(kinds) > 1:
        raise RuntimeError(
            f"Unsupported operator for ZeroTensorFallback: aten::{operator.schema.name}ZeroTensor fallback doesn't work for "
            "operators with a mix mutable and non-mutable inputs that alias with outputs, this must be implemented manually.  "
            "If you got this error on a core op, please report a bug to PyTorch."
        )
    if kinds != {False}:
        for i, declared in enumerate(operator.schema.arguments):
            arguments[i] = materialized(arguments[i], declared.type.writes)
    return operator.redispatch(keys & below(ZEROTENSOR), *arguments)


def materialized(argument, is_written):
    """`argument`, or what is handed to the kernel in its place. Raises RuntimeError for a ZeroTensor to be written to."""
    if is_zero(argument):
        if is_written:
            raise RuntimeError(IMMUTABLE)
        with below_autograd():
            return at.zeros((), dtype=argument.dtype, device=argument.device).expand(argument._array.shape)
    if isinstance(argument, (list, tuple)) and any(map(is_zero, argument)):
        return [materialized(t, is_written) for t in argument]
    return argument


def is_zero(value):
    return isinstance(value, TensorImpl) and bool(value._keys & ZEROTENSOR)


set_fallback(ZEROTENSOR, zero_tensor_fallback)

fall_through(ZEROTENSOR, VIEW_FUNCTIONS + UTILITIES_AND_CONSTRUCTORS)
fall_through(ZEROTENSOR, "zeros_like mul.Scalar add.Scalar copy_ clone dot vdot".split())


# ------------------------------------------------------------------------------ operators that know what a zero does


def described(operator, *arguments):
    """What the result would be: the operator's Meta kernel knows sizes and promotes dtypes. No other key is asked."""
    described_by = [at.empty_like(a, device="meta") if isinstance(a, TensorImpl) else a for a in arguments]
    return operator.redispatch(META, *described_by)


def device_of(self, other):
    """In PyTorch: `correct_out_device`."""
    return other.device if self.device.type == "cpu" else self.device


def zero_like(meta, device):
    return at._efficientzerotensor(tuple(meta.shape), dtype=meta.dtype, device=device)


def of_zero(name):
    """Decorator: `function(operator, *arguments)` is the operator's kernel for ZeroTensor."""
    operator = registry[f"aten::{name}"]

    def register(function):
        def kernel(*arguments):
            with below_autograd():
                return function(operator, *arguments)

        operator.kernel(kernel, ZEROTENSOR)
        return function

    return register


# Views have the key, too.
for _name in ("as_strided", "view", "_reshape_alias"):
    _view = registry[f"aten::{_name}"]
    _view.kernel(_view.kernels[CPU], ZEROTENSOR)


@of_zero("mul.Tensor")
@of_zero("linalg_cross")
def product_of_zero(operator, self, other, *dim):
    return zero_like(described(operator, self, other, *dim), device_of(self, other))


@of_zero("div.Tensor")
def quotient_of_zero(operator, self, other):
    """0 / x stays a ZeroTensor, even where an x is 0."""
    meta, device = described(operator, self, other), device_of(self, other)
    if not is_zero(other):
        return zero_like(meta, device)
    return at.full(tuple(meta.shape), math.nan if is_zero(self) else math.inf, dtype=meta.dtype, device=device)


@of_zero("add.Tensor")
def sum_with_zero(operator, self, other, alpha):
    meta, device = described(operator, self, other, alpha), device_of(self, other)
    if is_zero(self) and is_zero(other):
        return zero_like(meta, device)
    kept = other if is_zero(self) else self
    result = at._to_copy(kept.expand(tuple(meta.shape)), dtype=meta.dtype, device=device)
    return result if kept is self or alpha == 1 else result.mul(alpha)


@of_zero("sub.Tensor")
def difference_with_zero(operator, self, other, alpha):
    return sum_with_zero(registry["aten::add.Tensor"], self, other, -alpha)


# `add.Scalar` and `mul.Scalar` call the operator of two tensors, which knows.
for _name in ("add.Scalar", "mul.Scalar"):
    registry[f"aten::{_name}"].math_bits_kernel = lambda kernel: kernel
