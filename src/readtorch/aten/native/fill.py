"""Every element the same: fill_, zero_, fill_diagonal_.

In PyTorch: `aten/src/ATen/native/Fill.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, native_function, python_binding
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.memory_format import strides_in_format
from readtorch.c10.overflows import number_as
from readtorch.c10.tensor_impl import dtype_of

from .copy import cast
from .tensor_iterator import refuse_overlap

fill_tensor = native_function("fill.Tensor(Tensor self, Tensor value) -> Tensor", "function")
fill_scalar = native_function("fill.Scalar(Tensor self, Scalar value) -> Tensor", "function")


@fill_scalar.meta
@fill_tensor.meta
def fill_meta(self, value):
    if hasattr(value, "_array"):
        check_value(value)
    return TensorMeta(self._array.shape, dtype_of(self), strides_in_format(self._array))


fill_scalar_ = native_function("fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", BOTH)
fill_tensor_ = native_function("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", BOTH)


@fill_scalar.impl()
def fill_cpu(self, value, out):
    out._array[...] = number_for(self, value)


@fill_scalar_.kernel
def fill_cpu_(self, value):
    self._array[...] = number_for(self, value)
    return self


def number_for(self, value):
    """`value` as NumPy may write it to the elements of `self`: as it is if each floating-point type has it."""
    if type(value) in (int, float) and -6e4 < value < 6e4 and self._array.dtype.kind == "f":
        return value
    return number_as(value, dtype_of(self))


def element_of(value, self):
    """The only element of `value` as one of `self`."""
    check_value(value)
    return cast(value._array, self._array.dtype)


def check_value(value):
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )


@fill_tensor.impl()
def fill_tensor_cpu(self, value, out):
    out._array[...] = element_of(value, self)


@fill_tensor_.kernel
def fill_tensor_cpu_(self, value):
    refuse_overlap(self)
    self._array[...] = element_of(value, self)
    return self


@python_binding("fill_")
def fill_binding(input, value):
    """Every element becomes `value`, a number or a tensor without dimensions."""
    if isinstance(value, (int, float, complex)):
        return fill_scalar_.call(input, value)
    if hasattr(value, "_array"):
        return fill_tensor_.call(input, value)
    raise TypeError(f"fill_(): argument 'value' (position 1) must be Number, not {type(value).__name__}")


# The in-place forms have derivatives of their own in PyTorch, which gives their nodes other numbers.


@fill_scalar.backward
class FillBackward0:
    def self(grad):
        return at.zeros_like(grad)

    def result(self_t):
        return fill_scalar.call(self_t, 0)


@fill_tensor.backward
class FillBackward1:
    def self(grad):
        return at.zeros_like(grad)

    def value(grad):
        return grad.sum()

    def result(self_t, value_t):
        return fill_tensor.call(self_t, value_t)


@fill_scalar_.backward
class FillBackward2:
    def self(grad):
        return at.zeros_like(grad)

    def result(self_t):
        return self_t.fill_(0)


@fill_tensor_.backward
class FillBackward3:
    def self(grad):
        return at.zeros_like(grad)

    def value(grad):
        return grad.sum()

    def result(self_t, value_t):
        return self_t.fill_(value_t)


zero_ = native_function("zero_(Tensor(a!) self) -> Tensor(a!)", BOTH, direct=True)


@zero_.kernel
def zero_cpu_(self):
    self._array[...] = 0
    return self


@zero_.backward
class ZeroBackward0:
    def self(grad):
        return at.zeros_like(grad)

    result = "auto_linear"


# --------------------------------------------------------------------------------------------- fill_diagonal_

fill_diagonal_ = native_function(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", "method"
)


@fill_diagonal_.compose
def fill_diagonal_composite(self, fill_value, wrap):
    """Through a view of the diagonal. wrap: in a tall matrix another begins below where the last has ended."""
    sizes, strides, offset = self.shape, self.stride(), self.storage_offset()
    if len(sizes) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(sizes) > 2 and len(set(sizes)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    length, step = min(sizes[:2]), sum(strides)
    self.as_strided((length,), (step,), offset).fill_(fill_value)
    if wrap and len(sizes) == 2 and sizes[0] > sizes[1] + 1:
        round_ = sizes[1] + 1  # from one element of the diagonal to the next, counted along the rows
        rest = -(-self.numel() // round_) - length
        self.as_strided((rest,), (step,), offset + strides[0] * round_).fill_(fill_value)
    return self
