"""Operators on integers: and, or, xor, not, shifts, gcd, lcm.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`.
"""

import numpy as np

from readtorch.aten.native import math as f
from readtorch.aten.native.exact_out import exact_out, found_dtype
from readtorch.aten.native.tensor_iterator import (
    NUMBERS,
    computing,
    elementwise,
    is_bits,
    is_integer,
    not_implemented,
    number_of,
    result_type,
    scalar_tensor,
    takes_number,
    unary_kernel,
)
from readtorch.aten.native_function import BOTH, native_function, python_binding
from readtorch.aten.tensor_meta import TensorMeta, like
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import FLOAT
from readtorch.c10.tensor_impl import type_name, wrap, wrap_result
from readtorch.c10.wrap_dim import wrap_dim


def bitwise(name, ufunc, function, takes=is_bits, kernel_name=None, constants=None):
    """Declare the overloads (tensor, tensor), (number, tensor) and (tensor, number) of a bitwise operator.

    function and further settings: see `elementwise`.
    """
    of_tensors = native_function(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True, direct=True
    )
    number_name = "Scalar" if takes is is_bits else "Tensor_Scalar"
    with_number = native_function(
        f"{name}.{number_name}(Tensor self, Scalar other) -> Tensor", BOTH, inplace=True, out=True
    )
    of_number = native_function(f"{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", "function", out=True)
    elementwise(of_tensors, function, takes=takes, constants=constants, kernel_name=kernel_name)
    refusal = not_implemented(f"{kernel_name or name}_cpu")

    @of_tensors.kernel
    def kernel(self, other):
        x, y = self._array, other._array
        if x.dtype is y.dtype and x.ndim == 1 and x.shape == y.shape and x.dtype.kind in "iu":
            return wrap(ufunc(x, y))
        common = result_type(self, other)
        if not takes(common):
            raise refusal(common)
        return computing(ufunc, self, other, common=common)

    takes_number(with_number, of_tensors)
    takes_number(of_number, of_tensors, first=True)
    return of_tensors


def shift_left(x, y):
    """Shifting by the width or more, or by a negative number, gives 0."""
    width = x.dtype.itemsize * 8
    return np.where((y < 0) | (y >= width), x.dtype.type(0), np.left_shift(x, np.clip(y, 0, width - 1)))


def shift_right(x, y):
    """Shifting by the width or more, or by a negative number, leaves only the sign."""
    width = x.dtype.itemsize * 8
    outside = (y < 0) | (y >= width)
    shifted = np.right_shift(x, np.where(outside, x.dtype.type(width - 1), y))
    return shifted if x.dtype.kind == "i" else np.where(outside, x.dtype.type(0), shifted)


def bits_of(dtype):
    return (dtype.itemsize * 8,)


bitwise_and = bitwise("bitwise_and", np.bitwise_and, f.bitwise_and)
bitwise_or = bitwise("bitwise_or", np.bitwise_or, f.bitwise_or)
bitwise_xor = bitwise("bitwise_xor", np.bitwise_xor, f.bitwise_xor)
bitwise_left_shift = bitwise("bitwise_left_shift", shift_left, f.shift_left, is_integer, "lshift", bits_of)
bitwise_right_shift = bitwise("bitwise_right_shift", shift_right, f.shift_right, is_integer, "rshift", bits_of)

bitwise_not = native_function(
    "bitwise_not(Tensor self) -> Tensor", BOTH, inplace=True, out=exact_out(found_dtype), direct=True
)
bitwise_not.meta(like)
bitwise_not.kernel(unary_kernel(np.invert, not_implemented("bitwise_not_cpu"), refused="fcV"))


@python_binding("__invert__", "method")
def __invert__(self):
    """`~self`: the other truth values, or the other bits."""
    if self.dtype.category >= FLOAT:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not.call(self)


@python_binding("__rlshift__", "method")
def __rlshift__(self, other):
    """`other << self`, where `other` is not a tensor."""
    if not isinstance(other, NUMBERS):
        return NotImplemented
    return bitwise_left_shift.call(scalar_tensor(number_of(other)), self)


@python_binding("__rrshift__", "method")
def __rrshift__(self, other):
    """`other >> self`, where `other` is not a tensor."""
    if not isinstance(other, NUMBERS):
        return NotImplemented
    return bitwise_right_shift.call(scalar_tensor(number_of(other)), self)


@python_binding("__ilshift__", "method")
def __ilshift__(self, other):
    """`self <<= other`."""
    return self.bitwise_left_shift_(other)


@python_binding("__irshift__", "method")
def __irshift__(self, other):
    """`self >>= other`."""
    return self.bitwise_right_shift_(other)


# --------------------------------------------------------------------------------------------------- hash_tensor

hash_tensor = native_function(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    BOTH,
    out=exact_out(lambda out, *_: f"Expected result to be of dtype uint64, but got {type_name(out)}"),
)


@hash_tensor.meta
def hash_tensor_meta(self, dim, keepdim, mode):
    if mode:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    axes = hashed_axes(self, dim)
    sizes = [1 if d in axes else n for d, n in enumerate(self._array.shape) if keepdim or d not in axes]
    return TensorMeta(tuple(sizes), scalar_type.uint64)


def hashed_axes(self, dim):
    ndim = self._array.ndim
    return tuple([wrap_dim(d, ndim) for d in dim]) if dim and ndim else tuple(range(ndim))


@hash_tensor.kernel
def hash_tensor_cpu(self, dim, keepdim, mode):
    """All elements, as 64 bits (a double or a long), combined by xor: one flipped bit anywhere changes it."""
    hash_tensor_meta(self, dim, keepdim, mode)
    x = self._array
    bits = np.ascontiguousarray(x).astype(np.int64 if x.dtype.kind in "biu" else np.float64).reshape(x.shape)
    return wrap_result(np.bitwise_xor.reduce(bits.view(np.uint64), hashed_axes(self, dim), keepdims=keepdim))


# --------------------------------------------------------------------------------------------------- gcd, lcm


def of_integers(name, ufunc, function):
    """Declare a function of two tensors of integers."""
    operator = native_function(f"{name}(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True)
    elementwise(operator, function, takes=is_integer)

    @operator.kernel
    def kernel(self, other):
        common = result_type(self, other)
        if not is_integer(common):
            raise not_implemented(f"{name}_cpu")(common)
        return computing(ufunc, self, other, common=common)

    return operator


gcd = of_integers("gcd", np.gcd, f.gcd)  # not negative; gcd(0, 0) is 0
lcm = of_integers("lcm", np.lcm, f.lcm)
