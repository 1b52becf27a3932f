"""What all pointwise operators share: type promotion, broadcasting errors, computing wide and storing narrow.

In PyTorch: `aten/src/ATen/TensorIterator.cpp`, `aten/src/ATen/native/TypeProperties.cpp`.
Explained in the chapter "One operator call".
"""

import warnings

import numpy as np

from readtorch.aten.expand_utils import broadcast_error, broadcast_shape, inplace_shape_error
from readtorch.aten.memory_overlap import check_no_overlap, check_no_partial_overlap
from readtorch.aten.python_arg_parser import number_as_tensor
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import broadcast, pointwise_strides
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import BACKENDS, WRAPPED_NUMBER
from readtorch.c10.scalar_type import COMPLEX, FLOAT, INTEGRAL, SCALAR_TYPE_NAMES, op_math_type, promote_types
from readtorch.c10.sym_int import SYM_TYPES
from readtorch.c10.tensor_impl import contiguous_strides, dtype_of, wrap_number, wrap_result

from . import vec_convert
from .vec_convert import F4, FROM_SIZE, WIDENED

# 1/0 and log(-1) are not worth a warning to PyTorch. One filter for all kernels costs an ordinary call
# nothing, while `np.errstate` around each of them would.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"readtorch\.")

F8, C8, C16 = np.dtype(np.float64), np.dtype(np.complex64), np.dtype(np.complex128)
BOOL = np.dtype(np.bool_)

# ------------------------------------------------------------------------------------------------- promotion


def result_type(*tensors):
    """The dtype in which an operation on these tensors gives its result.

    Three ranks: tensors with dimensions, then 0-dimensional ones, then Python numbers. A lower rank counts only if it
    is of a higher category: `ones(2) * 2.5` stays float32, `arange(2) * 2.5` becomes the default float.
    """
    with_dims = zero_dim = number = None
    for t in tensors:
        current = dtype_of(t)
        if t._array.ndim:
            with_dims = _promote(with_dims, current)
        elif t._keys & WRAPPED_NUMBER:
            number = _promote(number, _default_of(current))
        else:
            zero_dim = _promote(zero_dim, current)
    return _combine(with_dims, _combine(zero_dim, number))


def _promote(a, b):
    return b if a is None else a if b is None else promote_types(a, b)


def _default_of(number_type):
    """The dtype that a Python number stands for: float means the default dtype."""
    if number_type.category == FLOAT:
        return scalar_type.get_default_dtype()
    return scalar_type.get_default_complex_dtype() if number_type.category == COMPLEX else number_type


def _combine(higher, lower):
    if higher is None or lower is None or lower.category <= higher.category:
        return higher or lower
    if lower.is_complex and higher.is_floating_point:
        return higher.to_complex()
    return promote_types(higher, lower)


def float_result_type(*tensors):
    """Like `result_type`, but integers give the default float dtype: what `div` or `atan2` return."""
    common = result_type(*tensors)
    return common if common.category >= FLOAT else scalar_type.get_default_dtype()


# What Python code may write where an operator takes a number.
NUMBERS = (int, float, complex, np.number, np.bool_, *SYM_TYPES)


def number_of(value):
    """A Python or NumPy number as a Python number."""
    return value.item() if isinstance(value, np.generic) else value


def scalar_tensor(number):
    """A Python number as a tensor that is weak in type promotion."""
    if isinstance(number, SYM_TYPES):
        return number_as_tensor(number)
    dtype = scalar_type.from_python_type(type(number))
    if dtype is None:  # a number of a trace is a subclass
        dtype = scalar_type.float64 if isinstance(number, float) else scalar_type.int64
    return wrap_number(number, dtype.numpy)


# ------------------------------------------------------------------------------------------------- computing


def cast(array, numpy_dtype):
    """`array` as another type, in C's way; itself if it has that type."""
    if array.dtype is numpy_dtype:
        return array
    if 0 in array.strides:  # astype orders the dimensions of an expanded array otherwise than a loop would
        result = empty_for(numpy_dtype, array)
        np.copyto(result, array, casting="unsafe")
        return result
    many = array.size >= FROM_SIZE
    return vec_convert.cast(array, numpy_dtype) if many else array.astype(numpy_dtype, copy=False)


# Note [ Whose order of dimensions ]
# A loop's result lies in memory as its operands do. Where they contradict each other, PyTorch follows the first that says
# anything (`TensorIteratorBase::reorder_dimensions`), NumPy the one that lies row by row. The two can differ only if the
# first operand has several dimensions and does not lie row by row; then, and only then, `in_order` looks closer.


def empty_for(numpy_dtype, *operands):
    """An empty array for the result of a loop over the operands, broadcast: Note [ Whose order of dimensions ]."""
    if len(operands) == 1:  # no contradiction: NumPy is asked, which is quicker
        roles = [["readonly"], ["writeonly", "allocate"]]
        loop = np.nditer([*operands, None], ["zerosize_ok"], roles, [None, numpy_dtype], casting="unsafe")
        return loop.operands[-1]
    shape = broadcast_shape(*[a.shape for a in operands])
    return empty_strided_array(shape, pointwise_strides(shape, operands), numpy_dtype)


def empty_strided_array(shape, strides, numpy_dtype):
    """An empty array without gaps; strides in elements, None for row by row."""
    result = np.empty(shape, numpy_dtype)
    if strides is None or not result.size:
        return result
    return np.ndarray(shape, numpy_dtype, result.reshape(-1), 0, [s * result.itemsize for s in strides])


def in_order(value, *operands):
    """`value`, which NumPy computed from the operands, with its dimensions as PyTorch's loop has them:
    Note [ Whose order of dimensions ]."""
    if len(operands) == 2 and (operands[0].flags.c_contiguous and value.flags.c_contiguous or operands[1].ndim < 2):
        return value
    first = operands[0] if operands[0].ndim else operands[1]
    if first.shape == value.shape:
        if first.flags.c_contiguous and value.flags.c_contiguous:
            return value
        if says_all(first):
            return value if value.strides == first.strides else copied(value, np.empty_like(first, value.dtype))
    strides = pointwise_strides(value.shape, operands) or contiguous_strides(value.shape)
    wanted = [s * value.itemsize for s in strides]
    if all([n == 1 or a == b for n, a, b in zip(value.shape, value.strides, wanted)]):
        return value
    return copied(value, empty_strided_array(value.shape, strides, value.dtype))


def says_all(array):
    """Whether no two dimensions of `array` could change places without its strides showing it: then its order is the loop's."""
    strides = array.strides
    return 1 not in array.shape and 0 not in strides and len(set(strides)) == len(strides)


def copied(value, result):
    result[...] = value
    return result


def wrap_reduced(value):
    """The tensor of a reduction's result. It has the strides of a new array, however the operand lies.

    In PyTorch: `resize_reduction_result` in `ReduceOpsUtils.h`.
    """
    is_other = value.ndim and value.strides != np.empty(value.shape, value.dtype).strides
    return wrap_result(value.copy() if is_other else value)


def laid_out(value, *operands):
    """`value`, which was computed from the operands, as an array whose dimensions lie in their order."""
    result = empty_for(value.dtype, *operands)
    np.copyto(result, value)
    return result


def compute(function, arrays, common, result=None, exact_numbers=False):
    """`function` on arrays cast to `common` (then widened if it is a 16-bit float), stored as `result` or `common`.

    exact_numbers: an operand without dimensions is widened at once, not rounded to 16 bits before.
    """
    wide = op_math_type(common).numpy
    if wide is not common.numpy:
        arrays = [a if exact_numbers and not a.ndim else cast(a, common.numpy) for a in arrays]
    value = function(*[cast(a, wide) for a in arrays])
    return cast(value, (result or common).numpy)


def computing(function, self, *others, common=None, result=None, exact_numbers=False):
    """The tensor `function(self, *others)`, computed in their common type.

    Raises RuntimeError if shapes do not fit.
    """
    arrays = [self._array, *[t._array for t in others]]
    try:
        value = compute(function, arrays, common or result_type(self, *others), result, exact_numbers)
        return wrap_result(value if value.ndim < 2 else in_order(value, *arrays))
    except ValueError:
        raise broadcast_error(*[a.shape for a in arrays]) from None


# ---------------------------------------------------------------------------------------------------- errors


def refuse_overlap(self, other=None):
    """Raises RuntimeError if `self`, about to be written to, has an element at several indices, or shares memory with
    `other` otherwise than element by element.

    Only a view can do that.
    """
    if other is not None and other._counter is self._counter and other is not self:
        check_no_partial_overlap(self, other)
    if (self._base is not None or self._storage_impl is not None) and 0 in self._array.strides:
        check_no_overlap(self)


def cast_error(have, want):
    return RuntimeError(
        f"result type {SCALAR_TYPE_NAMES[have]} can't be cast to the desired output type {SCALAR_TYPE_NAMES[want]}"
    )


def not_implemented(kernel_name):
    """dtype -> the NotImplementedError of a kernel that does not know that dtype."""

    def error(dtype):
        return NotImplementedError(f"\"{kernel_name}\" not implemented for '{SCALAR_TYPE_NAMES[dtype]}'")

    return error


# ------------------------------------------------------------------------------------------- kernel factories


def of_many_small(ufunc, x, y):
    """`ufunc` on two arrays of one type of a byte or two. NumPy would convert 16-bit floats one by one."""
    is_converted = x.dtype in vec_convert.KINDS
    return vec_convert.cast(ufunc(cast(x, F4), cast(y, F4)), x.dtype) if is_converted else ufunc(x, y)


def binary_kernel(ufunc, exact_numbers=False):
    """A CPU kernel for two tensors from a NumPy ufunc. exact_numbers: see `compute`."""

    def kernel(self, other):
        x, y = self._array, other._array
        try:
            if x.dtype is y.dtype:
                value = ufunc(x, y) if x.itemsize > 2 or x.size < FROM_SIZE else of_many_small(ufunc, x, y)
            else:
                value = compute(ufunc, (x, y), result_type(self, other), None, exact_numbers)
            if x.ndim == 1 or x.flags.c_contiguous or x.strides == y.strides:
                return wrap_result(value)
            return wrap_result(in_order(value, x, y))
        except ValueError:
            raise broadcast_error(x.shape, y.shape) from None

    return kernel


def binary_float_kernel(function, exact_numbers=False):
    """Like `binary_kernel`, but integers give the default float dtype (div, atan2 …)."""

    def kernel(self, other):
        x, y = self._array, other._array
        dtype = x.dtype
        try:
            if dtype is y.dtype and (dtype is F4 or dtype is F8):
                value = function(x, y)
            else:
                value = compute(function, (x, y), float_result_type(self, other), None, exact_numbers)
            if x.ndim == 1 or x.flags.c_contiguous or x.strides == y.strides:
                return wrap_result(value)
            return wrap_result(in_order(value, x, y))
        except ValueError:
            raise broadcast_error(x.shape, y.shape) from None

    return kernel


def binary_inplace_kernel(ufunc, common_type=result_type, exact_numbers=False):
    """A CPU kernel that writes `ufunc(self, other)` to `self`."""

    def kernel(self, other):
        x, y = self._array, other._array
        if self._base is not None or self._storage_impl is not None or self._counter is other._counter:
            refuse_overlap(self, other)
        try:
            if x.dtype is y.dtype and (common_type is result_type or x.dtype is F4):
                ufunc(x, y, x)
            else:
                common, own = common_type(self, other), dtype_of(self)
                if common is not own and not scalar_type.can_cast(common, own):
                    raise cast_error(common, own)
                np.copyto(x, _fitting(compute(ufunc, (x, y), common, None, exact_numbers), x), casting="unsafe")
        except ValueError:
            raise inplace_shape_error(x.shape, y.shape) from None
        return self

    return kernel


def _fitting(value, target):
    if value.shape != target.shape:
        raise ValueError("shape")
    return value


def unary_kernel(function, refusal=None, refused="b"):
    """A CPU kernel for one tensor; the result has the operand's dtype.

    For dtypes of the kinds `refused` (NumPy's letters) it raises `refusal(dtype)`.
    """
    takes_floats = "f" not in refused

    def kernel(self):
        x = self._array
        dtype = x.dtype
        if dtype is F4 and takes_floats:
            return wrap_result(function(x))
        if refusal is not None and dtype.kind in refused:
            raise refusal(dtype_of(self))
        wide = WIDENED.get(x.dtype)
        return wrap_result(function(x) if wide is None else cast(function(cast(x, wide)), x.dtype))

    return kernel


def unary_float_kernel(function, refusal=None, refused="c"):
    """Like `unary_kernel`, but integers give the default float dtype (exp, sqrt, sin …)."""

    def kernel(self):
        x = self._array
        dtype = x.dtype
        if dtype is F4 or dtype is F8:
            return wrap_result(function(x))
        if refusal is not None and dtype.kind in refused:
            raise refusal(dtype_of(self))
        kind = dtype_of(self)
        if kind.category < FLOAT:
            kind = scalar_type.get_default_dtype()
        return wrap_result(compute(function, (x,), kind))

    return kernel


# -------------------------------------------------------------------------------------- functions of elements


class Elementwise:
    """What a pointwise operator does to single elements, and in which dtypes. In PyTorch: TensorIteratorConfig."""

    def __init__(self, operator, function, common, result, scalars, takes, constants, kernel_name):
        self.function = function  # dtype, other arguments -> the function for elements computed in that dtype
        self.common = common  # tensors -> the dtype to compute in
        self.result = result  # that dtype -> the dtype of the output
        self.scalars = scalars  # the operator's other arguments -> the function's scalars
        self.takes = takes  # whether there is a CUDA kernel for that dtype
        self.constants = constants  # that dtype -> more scalars, or None
        self.kernel_name = kernel_name or operator.schema.name.removeprefix("special_")  # in the refusal of a dtype
        self.places = [i for i, a in enumerate(operator.schema.arguments) if a.type.is_tensor]

    def parted(self, arguments):
        """The operator's arguments as (tensors, others)."""
        others = [a for i, a in enumerate(arguments) if i not in self.places]
        return [arguments[i] for i in self.places], others


def elementwise(
    operator,
    function,
    common=result_type,
    result=None,
    scalars=lambda *others: (),
    by_dtype=False,
    by_number=False,
    check=None,
    takes=None,
    constants=None,
    kernel_name=None,
):
    """Say what `operator` does to an element: `function(x, ..., scalars)` of aten/native/math.py.

    From this follow its shape rule, and its CUDA kernels, functional and in place: cuda/tensor_iterator.py.
    common: the tensors -> the dtype in which it is computed. result: the output's dtype, if another; or a function of the
    former. scalars: the operator's other arguments -> the function's scalars.
    by_dtype: `function` is chosen by the dtype that is computed in: `function(dtype)`.
    by_number: it is chosen by the other arguments: `function(*others)`.
    A function that is None gives the shape rule alone.
    check: takes the operator's arguments and raises what PyTorch's shape rule does.
    takes: that dtype -> whether there is a CUDA kernel for it; unless given, there is one for all.
    constants: that dtype -> more scalars of the function. kernel_name: as refusals name the kernels, if not as the schema.
    """
    out_dtype = result if callable(result) else lambda dtype: result or dtype
    if by_number:
        choose = lambda dtype, *others: function(*others)
    else:
        choose = lambda dtype, *others: function(dtype) if by_dtype else function
    loop = Elementwise(operator, choose, common, out_dtype, scalars, takes, constants, kernel_name)
    if function is not None:
        operator.scalar_function = loop

    @operator.meta
    def pointwise_meta(*arguments):
        if check is not None:
            check(*arguments)
        tensors, _ = loop.parted(arguments)
        return broadcast(out_dtype(common(*tensors)), *tensors)


def refusing(error, refused):
    """A `check` that raises `error(dtype)` for a first tensor whose dtype is of the kinds `refused` (NumPy's letters)."""

    def check(self, *others):
        if self._array.dtype.kind in refused:
            raise error(dtype_of(self))

    return check


def is_real(dtype):
    return not dtype.is_complex


def is_wide(dtype):
    """Whether it is real and no 16-bit float."""
    return not dtype.is_complex and op_math_type(dtype) is dtype


def is_floating(dtype):
    return dtype.is_floating_point


def is_floating_or_complex(dtype):
    return dtype.category >= FLOAT


def is_integer_or_floating(dtype):
    """Whether it is neither bool nor complex."""
    return dtype.category in (INTEGRAL, FLOAT)


def is_integer(dtype):
    """Whether it is an integer and no bool."""
    return dtype.category == INTEGRAL


def is_bits(dtype):
    """Whether it is a bool or an integer."""
    return dtype.category < FLOAT


def takes_number(operator, of_tensors, first=False):
    """The kernel of an overload that takes a number (`first` or second) where `of_tensors` takes a tensor is that
    operator's, on every device."""
    table = of_tensors.table

    def kernel(self, other):
        return table[self._keys & BACKENDS](self, scalar_tensor(other))

    def kernel_of_number(self, other):
        return table[other._keys & BACKENDS](scalar_tensor(self), other)

    operator.kernel(any_device(kernel_of_number if first else kernel))


# ----------------------------------------------------------------------------------------- words for formulas


def conj(t):
    """`t.conj()`, without the call when `t` is real."""
    return t.conj() if t._array.dtype.kind == "c" else t


def no_derivative(what):
    """A formula for an input that PyTorch has no derivative for."""

    def formula(grad):
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return formula
