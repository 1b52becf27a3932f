"""Comparisons and logic: eq, lt, isnan, logical_and, where the result is a mask of bools.

In PyTorch: `aten/src/ATen/native/{BinaryOps,TensorCompare}.cpp`.
"""
from functools import partial

import numpy as np

from ...c10 import scalar_type
from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import TensorImpl, dtype_of, wrap_result
from ..functions import at
from ..native_function import alias_of, any_device, native_function, python_face, write_out
from .exact_out import exact_out
from .tensor_iterator import (broadcast_error, cast, compute, computing, laid_out, not_implemented,
                              number_of, result_type, scalar_tensor)

BOTH = "function, method"

# ------------------------------------------------------------------------------------------------ comparisons


def comparison(name, ufunc, refuses_complex=True):
    """Declare eq, lt …: operands are compared in their common type, the result is bool and has no
    gradient.
    """
    operator = native_function(f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True,
                               out=True, direct=True)
    with_number = native_function(f"{name}.Scalar(Tensor self, Scalar other) -> Tensor", BOTH, inplace=True,
                                  out=True)
    with_number.kernel(lambda self, other: compare(self, scalar_tensor(other)))
    refusal = not_implemented(f"{name}_cpu")

    @operator.kernel
    def compare(self, other):
        x, y = self._array, other._array
        try:
            if x.dtype is y.dtype and x.dtype.kind != "c":
                return wrap_result(ufunc(x, y))
            common = result_type(self, other)
            if refuses_complex and common.is_complex:
                raise refusal(common)
            return wrap_result(compute(ufunc, (x, y), common, scalar_type.bool))
        except ValueError:
            raise broadcast_error(x.shape, y.shape) from None
    return operator


eq = comparison("eq", np.equal, refuses_complex=False)
ne = comparison("ne", np.not_equal, refuses_complex=False)
lt = comparison("lt", np.less)
le = comparison("le", np.less_equal)
gt = comparison("gt", np.greater)
ge = comparison("ge", np.greater_equal)


for _alias, _name in {"not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
                      "greater_equal": "ge"}.items():
    alias_of(_alias, _name)

# ------------------------------------------------------------------------------- questions about each element


def question(name, function, variants=BOTH, out=False):
    """Declare `name(Tensor self) -> Tensor` of bools."""
    operator = native_function(f"{name}(Tensor self) -> Tensor", variants, out=out, direct=True)
    operator.kernel(lambda self: wrap_result(function(self._array)))
    return operator


def no_complex(name, function):
    def checked(x):
        if x.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return function(x)
    return checked


def signbit_array(x):
    if x.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return np.signbit(x) if x.dtype.kind in "fV" else x < 0


isnan = question("isnan", np.isnan)
isinf = question("isinf", np.isinf)
isfinite = question("isfinite", np.isfinite)
isposinf = question("isposinf", no_complex("isposinf", lambda x: x == np.inf), out=True)
isneginf = question("isneginf", no_complex("isneginf", lambda x: x == -np.inf), out=True)
isreal = question("isreal", lambda x: np.imag(x) == 0 if x.dtype.kind == "c" else laid_out(np.ones(x.shape, bool), x))
signbit = question("signbit", signbit_array, out=True)


def out_must_be_bool(operator, name):
    """isposinf and its like write only to bool tensors."""
    @operator.out.kernel
    @any_device
    def compute_then_copy(self, out):
        if out._array.dtype.kind != "b":
            raise RuntimeError(f"{name} does not support non-boolean outputs.")
        return write_out(operator.call(self), (out,))


for _operator, _name in ((isposinf, "isposinf"), (isneginf, "isneginf"), (signbit, "signbit")):
    out_must_be_bool(_operator, _name)

# ------------------------------------------------------------------------------------------------------ logic

logical_not = native_function("logical_not(Tensor self) -> Tensor", BOTH, inplace=True, out=True, direct=True)


@logical_not.kernel
def logical_not_cpu(self):
    return wrap_result(np.logical_not(self._array))


def logical(name, ufunc):
    operator = native_function(f"{name}(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True,
                               direct=True)

    @operator.kernel
    def combine(self, other):
        return computing(ufunc, self, other, result=scalar_type.bool)
    return operator


logical_and = logical("logical_and", np.logical_and)
logical_or = logical("logical_or", np.logical_or)
logical_xor = logical("logical_xor", np.logical_xor)

# --------------------------------------------------------------------------------------------- equal or close

equal = native_function("equal(Tensor self, Tensor other) -> bool", BOTH)
isclose = native_function(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
                          BOTH)
allclose = native_function(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
                           BOTH)
is_nonzero = native_function("is_nonzero(Tensor self) -> bool", BOTH)


@equal.kernel
def equal_cpu(self, other):
    x, y = self._array, other._array
    return x.shape == y.shape and bool((x == y).all())


@isclose.kernel
def isclose_cpu(self, other, rtol, atol, equal_nan):
    if self._array.dtype != other._array.dtype:
        raise RuntimeError(f"{SCALAR_TYPE_NAMES[dtype_of(self)]} did not match "
                           f"{SCALAR_TYPE_NAMES[dtype_of(other)]}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    return computing(partial(close_array, rtol, atol, equal_nan), self, other, result=scalar_type.bool)


def close_array(rtol, atol, equal_nan, x, y):
    close = x == y
    if equal_nan and x.dtype.kind in "fc":
        close = close | (np.isnan(x) & np.isnan(y))
    if rtol == 0 and atol == 0:
        return close
    if x.dtype.kind in "biu":
        x, y = x.astype(np.float64), y.astype(np.float64)
    difference = np.abs(x - y)
    return close | (np.isfinite(difference) & (difference <= atol + np.abs(rtol * y)))


@allclose.compose
def allclose_composite(self, other, rtol, atol, equal_nan):
    return bool(at.all(isclose.call(self, other, rtol, atol, equal_nan)))


is_nonzero.compose(bool)

# -------------------------------------------------------------------------------------- what programs assert

_is_all_true = native_function("_is_all_true(Tensor self) -> Tensor", BOTH)
_is_any_true = native_function("_is_any_true(Tensor self) -> Tensor", BOTH)
_assert_async = native_function("_assert_async(Tensor self) -> ()")
_assert_async_message = native_function("_assert_async.msg(Tensor self, str assert_msg) -> ()")


def check_bool(self, name):
    if self._array.dtype.kind != "b":  # in PyTorch: an internal assertion
        raise RuntimeError(f"{name}(): expected a bool tensor, but got {SCALAR_TYPE_NAMES[dtype_of(self)]}")


@_is_all_true.compose
def is_all_true(self):
    check_bool(self, "_is_all_true")
    return self.all()


@_is_any_true.compose
def is_any_true(self):
    check_bool(self, "_is_any_true")
    return self.any()


@_assert_async.compose
def assert_async(self):
    """Raises RuntimeError if the only element is 0. In PyTorch: on a GPU without waiting for it."""
    assert_async_message(self, "Expected Tensor with single nonzero value, but got zero")


@_assert_async_message.compose
def assert_async_message(self, assert_msg):
    if not is_nonzero.call(self):
        raise RuntimeError(assert_msg)

# ------------------------------------------------------------------------------------------------------- isin

isin = native_function(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor", out=True)
isin_number = native_function(
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor", out=True)
isin_of_number = native_function(
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
    "invert=False) -> Tensor", out=True)


for _operator in (isin, isin_number, isin_of_number):
    exact_out(_operator)


@isin.kernel
def isin_cpu(elements, test_elements, assume_unique, invert):
    common = result_type(elements, test_elements).numpy
    x, candidates = cast(elements._array, common), cast(test_elements._array, common)
    return wrap_result(np.isin(x, candidates, assume_unique=assume_unique, invert=invert))


isin_number.kernel(lambda elements, number, *flags: isin_cpu(elements, scalar_tensor(number), *flags))
isin_of_number.kernel(lambda number, tests, *flags: isin_cpu(scalar_tensor(number), tests, *flags))

# ------------------------------------------------------------------------------------- questions about dtypes


@python_face("result_type", "function")
def result_type_face(tensor, other):
    """The dtype of an operation on two tensors or numbers."""
    return result_type(*[t if isinstance(t, TensorImpl) else scalar_tensor(number_of(t))
                         for t in (tensor, other)])


@python_face("promote_types", "function")
def promote_types(type1, type2):
    """The smallest dtype to which both may be cast."""
    return scalar_type.promote_types(type1, type2)


@python_face("can_cast", "function")
def can_cast(from_, to):
    """Whether a result of the first dtype may be written to a tensor of the second."""
    return scalar_type.can_cast(from_, to)
