"""Copies and conversions: clone, contiguous, copy_, to and its relatives.

In PyTorch: `aten/src/ATen/native/Copy.cpp`, `aten/src/ATen/native/TensorConversions.cpp`,
`aten/src/ATen/native/TensorProperties.cpp`. Explained in the chapter "Tensor and Storage".
"""

import numpy as np

from readtorch.aten.expand_utils import broadcast_shape, inplace_shape_error
from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, below_autograd, binding_maker, native_function, python_binding
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.aten.torch_function import is_overridden, overriders
from readtorch.c10 import scalar_type
from readtorch.c10.device import cpu as cpu_device
from readtorch.c10.device import current_device, has_accelerator, is_faked
from readtorch.c10.device import device as Device
from readtorch.c10.dispatch_key import (
    BACKENDS,
    CONJUGATE,
    CPU,
    GPUS,
    INFERENCE_TENSOR,
    MATH_BITS,
    META,
    NEGATIVE,
    PYTHON,
    ZEROTENSOR,
)
from readtorch.c10.layout import strided
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.memory_format import (
    contiguous_format,
    dense_strides,
    format_strides,
    has_format,
    preserve_format,
    strides_in_format,
    suggested_format,
)
from readtorch.c10.storage_impl import StorageImpl
from readtorch.c10.tensor_impl import (
    alias,
    contiguous_strides,
    dtype_of,
    only_element,
    resolved,
    seen_by_python,
    storage_nbytes,
    wrap,
)
from readtorch.c10.torch_dispatch_mode_tls import mode_tls

from . import vec_convert
from .tensor_iterator import refuse_overlap


def cast(array, numpy_dtype):
    """The array's elements as another type, in C's way: floats to ints cut off, complex to real drops the
    imaginary part."""
    if array.dtype.kind == "c" and numpy_dtype.kind not in "cb":
        array = array.real
    return array.astype(numpy_dtype) if array.size < vec_convert.FROM_SIZE else vec_convert.cast(array, numpy_dtype)


# ------------------------------------------------------------------------------------------------------ clone

clone = native_function("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", BOTH, direct=True)


def allocate(size, strides, numpy_dtype):
    """Uninitialised memory for `size` and `strides`, which count elements."""
    if min(strides, default=0) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(strides)}")
    buffer = np.empty(storage_nbytes(size, strides, numpy_dtype.itemsize), np.uint8)
    return StorageImpl(buffer).as_strided(numpy_dtype, tuple(size), strides, 0)


def allocate_like(array, memory_format=None, numpy_dtype=None):
    """Uninitialised memory for a copy of `array` in a memory format; without one, in its likeness."""
    return allocate(array.shape, strides_in_format(array, memory_format), numpy_dtype or array.dtype)


def lies_plainly(array, memory_format):
    """Whether a tensor in the likeness of `array` in that format has the strides that NumPy gives a new array."""
    if memory_format not in (None, preserve_format, contiguous_format) or not array.flags.c_contiguous:
        return False
    return (
        1 not in array.shape  # else the stride of that dimension, which says nothing, may be any
        or memory_format is contiguous_format
        or dense_strides(array) == contiguous_strides(array.shape)
    )


# Note [ Transposed copies ]
# A processor fetches memory in lines of 64 bytes. Copying x.t() row by row reads one element of each line, and by the
# time its neighbor is wanted the line is gone from the cache; with rows of 2**k bytes almost at once, for such lines
# share few places there. So a large transposed array is copied in strips of columns, as wide as a line of the result:
# each line that is read or written is used up while it is at hand. (2048 x 2048 float32: 4 ms, where 54 were needed.)
# In PyTorch: `copy_transpose_valid`, by blocks of 60 x 60 elements through a buffer.
CACHE_LINE = 64
LARGE = 2**20  # bytes: what is smaller stays in the cache meanwhile


def is_transposed(array):
    """Whether neighbors in memory lie in another than the last dimension, whose elements are many lines apart."""
    return array.nbytes >= LARGE and array.strides[-1] >= 16 * CACHE_LINE and array.itemsize in array.strides


def write(result, array):
    """`result[...] = array`, for arrays of one shape; see Note [ Transposed copies ]."""
    if not (is_transposed(array) and result.flags.c_contiguous):
        result[...] = array
        return
    width = CACHE_LINE // array.itemsize
    for start in range(0, array.shape[-1], width):
        strip = (..., slice(start, start + width))
        result[strip] = array[strip]


def copy_in_format(array, memory_format):
    """A copy laid out as `memory_format` says; by default as the original, if that has no gaps."""
    if lies_plainly(array, memory_format):
        return array.copy()
    result = allocate_like(array, memory_format)
    write(result, array)
    return result


@clone.meta
def clone_meta(self, memory_format):
    return TensorMeta(self._array.shape, dtype_of(self), strides_in_format(self._array, memory_format))


@clone.kernel
def clone_cpu(self, memory_format):
    array = self._array
    if memory_format is None and array.flags.c_contiguous and 1 not in array.shape:
        return wrap(array.copy())
    return wrap(copy_in_format(array, memory_format))


def clone_inference_tensor(self, memory_format):
    """An inference tensor carries no Autograd key, but what it is copied to does: so `copy_` records if it requires grad."""
    return at.empty_like(self, memory_format=memory_format).copy_(self)


clone.kernel(clone_inference_tensor, INFERENCE_TENSOR)


def conjugate_or_negate_(t, bits):
    """Compute, in the memory of `t`, what these bits stand for."""
    if t._keys & BACKENDS == CPU:
        if bits:
            t._array[...] = resolved(t._array, bits)
        return
    with below_autograd():
        if bits & CONJUGATE and t._array.dtype.kind == "c":
            at.conj_physical_(t)
        if bits & NEGATIVE:
            at.neg_(t)


def clone_given_bits(kernel):
    """Note [ Kernels that are given the bits ]: the fallbacks of Conjugate and Negative leave the computing to `clone`."""

    def clone_bits(self, memory_format):
        result = kernel(plain_alias(self), memory_format)
        bits = self._keys & MATH_BITS
        if not bits & ZEROTENSOR:
            conjugate_or_negate_(result, bits)
        return result

    return clone_bits


clone.math_bits_kernel = clone_given_bits


@clone.backward
class CloneBackward0:
    def self(grad):
        return grad

    result = "auto_linear"


contiguous = native_function(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)", "method"
)


@binding_maker("contiguous", "method")
def make_contiguous(public):
    def contiguous_binding(self, memory_format=contiguous_format, /, **named):
        """`self` if its elements already lie in this order, else a copy in which they do."""
        if overriders and is_overridden((self,)):
            return public.override((self,) if memory_format is contiguous_format else (self, memory_format), named)
        if named:
            memory_format = _format_named(**named)
        if memory_format is contiguous_format and self._array.flags.c_contiguous and not threads_with_modes:
            return self
        return contiguous.call(self, memory_format)

    return contiguous_binding


def _format_named(memory_format):
    return memory_format


@contiguous.compose
def contiguous_composite(self, memory_format):
    return self if has_format(self._array, memory_format) else at.clone(self, memory_format=memory_format)


# ------------------------------------------------------------------------------------------------------ copy_

copy_ = native_function(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    "method",
    numbers_as_tensors=True,
    direct=True,
)


@copy_.meta
def copy_meta(self, src, non_blocking):
    if not self._keys & META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    check_broadcast(self._array.shape, src._array.shape)


def check_broadcast(shape, other):
    """Raises RuntimeError unless `other` broadcasts to `shape`."""
    if broadcast_shape(shape, other) != shape:
        raise inplace_shape_error(shape, other)


@copy_.kernel
def copy_cpu(self, src, non_blocking):
    if self is src:
        return self
    target, source = self._array, src._array
    refuse_overlap(self, src)
    if source.dtype is target.dtype and source.shape == target.shape:
        write(target, source)
        return self
    if source.ndim > target.ndim:  # NumPy would leave out leading dimensions of size 1
        raise inplace_shape_error(target.shape, source.shape)
    if source.dtype.kind == "c" and target.dtype.kind not in "cb":
        source = source.real
    try:
        np.copyto(target, source, casting="unsafe")
    except ValueError:
        raise inplace_shape_error(target.shape, source.shape) from None
    return self


def copy_given_bits(kernel):
    """The elements are copied as they lie in memory; where only one of the two has a bit, they are changed there."""

    def copy_bits(self, src, non_blocking):
        if self._keys & ZEROTENSOR:
            raise RuntimeError(
                "ZeroTensors are immutable. Please materialize the tensor using `.clone()`, if you want a mutable zero tensor."
            )
        if self is src:
            return self
        target = plain_alias(self)
        kernel(target, plain_alias(src), non_blocking)
        if not src._keys & ZEROTENSOR:
            conjugate_or_negate_(target, (self._keys ^ src._keys) & MATH_BITS)
        return self

    return copy_bits


def plain_alias(t):
    """The memory of `t` as a tensor without math bits."""
    if not t._keys & MATH_BITS:
        return t
    result = alias(t, t._array)
    result._keys &= ~MATH_BITS
    return result


copy_.math_bits_kernel = copy_given_bits


@copy_.backward
class CopyBackwards:
    namespace = "torch::autograd::"  # written by hand in PyTorch, not generated

    def self(grad):
        return at.zeros_like(grad)

    def src(grad):
        return grad

    def result(self_t, src_t):
        return self_t.copy_(src_t)


# --------------------------------------------------------------------------------------------------------- to

_to_copy = native_function(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    "function",
)


@_to_copy.meta
def to_copy_meta(self, dtype, layout, device, pin_memory, non_blocking, memory_format):
    return TensorMeta(self._array.shape, dtype or dtype_of(self), strides_in_format(self._array, memory_format))


@_to_copy.kernel
def to_copy_cpu(self, dtype, layout, device, pin_memory, non_blocking, memory_format):
    if self._keys & META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if self._keys & GPUS:  # the kernel of its device fetches the elements
        with below_autograd():
            return copy_.call(host_tensor_like(self, dtype, non_blocking, memory_format), self, non_blocking)
    array = self._array
    if dtype is None or dtype.numpy == array.dtype:
        return wrap(copy_in_format(array, memory_format))
    if lies_plainly(array, memory_format):
        return wrap(cast(array, dtype.numpy))
    result = allocate_like(array, memory_format, dtype.numpy)
    result[...] = cast(array, dtype.numpy)
    return wrap(result)


def host_tensor_like(self, dtype, pin, memory_format):
    """Uninitialised host memory for a copy of what lies on a device."""
    strides = strides_in_format(self._array, memory_format)
    return at.empty_strided(self._array.shape, strides, dtype=dtype or dtype_of(self), pin_memory=pin)


@_to_copy.backward
class ToCopyBackward0:
    may_return_integers = True

    def self(grad, self_scalar_type, self_device):
        return convert(grad, self_scalar_type, self_device)

    def result(self_t, dtype, layout, device, pin_memory, non_blocking, memory_format):
        return _to_copy.call(self_t, dtype, layout, device, pin_memory, non_blocking, memory_format)


def convert(self, dtype=None, device=None, copy=False, memory_format=None, non_blocking=False):
    """`self` itself when it already is as asked, else a converted copy. non_blocking: between pinned memory and a device the
    host does not wait for it."""
    if threads_with_modes and tls.tracer is not None:
        return tls.tracer.converted(
            self, dtype, device, copy, memory_format, lambda: convert(self, dtype, device, copy, memory_format)
        )
    if threads_with_modes and mode_tls.pre_dispatch is not None:
        return converted_by_operator(self, dtype, device, copy, memory_format, non_blocking)
    same_place = device is None or device == self.device or is_current(device, self.device)
    same_type = dtype is None or dtype is dtype_of(self)
    any_format = memory_format in (None, preserve_format)
    same_format = any_format or suggested_format(self._array) is memory_format
    if same_type and same_place and same_format and not copy:
        return self
    memory_format = None if memory_format is preserve_format else memory_format
    return _to_copy.call(self, dtype, None, device, None, non_blocking, memory_format)


# The operators by which PyTorch converts. Here only modes above autograd see them, and graphs that hold them.
_REST = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"
to_dtype = native_function(f"to.dtype(Tensor(a) self, ScalarType dtype, {_REST}", "")
to_device = native_function(f"to.device(Tensor(a) self, Device device, ScalarType dtype, {_REST}", "")
to_other = native_function(f"to.other(Tensor(a) self, Tensor other, {_REST}", "")
to_dtype_layout = native_function(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    + _REST,
    "",
)
type_as_operator = native_function("type_as(Tensor self, Tensor other) -> Tensor", "")


@to_dtype.compose
def to_dtype_composite(self, dtype, non_blocking, copy, memory_format):
    return convert(self, dtype, None, copy, memory_format, non_blocking)


@to_device.compose
def to_device_composite(self, device, dtype, non_blocking, copy, memory_format):
    return convert(self, dtype, device, copy, memory_format, non_blocking)


@to_other.compose
def to_other_composite(self, other, non_blocking, copy, memory_format):
    return convert(self, dtype_of(other), other.device, copy, memory_format, non_blocking)


@to_dtype_layout.compose
def to_dtype_layout_composite(self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format):
    return convert(self, dtype, device, copy, memory_format, non_blocking)


@type_as_operator.compose
def type_as_composite(self, other):
    return convert(self, dtype_of(other), other.device)


def converted_by_operator(self, dtype, device, copy, memory_format, non_blocking):
    """`convert`, by the operator that PyTorch's binding chooses."""
    memory_format = None if memory_format is preserve_format else memory_format
    rest = non_blocking, copy, memory_format
    if device is None:
        return to_dtype.call(self, dtype or dtype_of(self), *rest)
    if dtype is None:
        return to_dtype_layout.call(self, dtype_of(self), strided, device, None, *rest)
    return to_device.call(self, device, dtype, *rest)


_assert_tensor_metadata = native_function(
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, "
    "Layout? layout=None) -> ()",
    "",
)


@_assert_tensor_metadata.compose
def assert_tensor_metadata(a, size, stride, dtype, device, layout):
    """RuntimeError for a tensor that is not what an exported graph was made for."""
    for what, found, expected in (
        ("sizes", tuple(a.shape), size and tuple(size)),
        ("strides", tuple(a.stride()), stride and tuple(stride)),
        ("dtype", dtype_of(a), dtype),
        ("device", a.device, device),
        ("layout", a.layout, layout),
    ):
        if expected is not None and found != expected:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected} Got: {found}")


def empty_in_format_of(array, shape):
    """Uninitialised memory for a result of another shape, in the memory format of the input `array`."""
    if suggested_format(array) is contiguous_format:
        return np.empty(shape, array.dtype)
    return allocate(shape, format_strides(array, shape), array.dtype)


def constant_beside(t, array):
    """What a formula or a composite needs in addition to its inputs: `array` as a tensor on the device of `t`."""
    from .tensor_shape.view import told_of  # it imports this module

    constant = told_of(wrap(array)) if is_faked() else wrap(array)
    return constant if t.device is cpu_device else convert(constant, device=t.device)


def is_current(place, own):
    """Whether "cuda" without a number means the device `own`."""
    return place.type == own.type and place.index is None and own.index == current_device.index


_TO = """to() received an invalid combination of arguments - got ({}), but expected one of:
 * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
 * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
 * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
"""


@python_binding("to", "method")
def to(self, *args, **kwargs):
    """`to(dtype)`, `to(device, dtype)`, `to(other)`, each also with non_blocking, copy: self, or a converted copy."""
    if len(args) == 1 and not kwargs and isinstance(args[0], scalar_type.dtype):  # what autocast calls for each cast
        return convert(self, args[0])
    device, dtype, non_blocking, copy, memory_format = parse_to(*args, **kwargs)
    return convert(self, dtype, device, bool(copy), memory_format, non_blocking)


def parse_to(*args, dtype=None, device=None, other=None, non_blocking=False, copy=None, memory_format=None):
    """What the arguments of `to` mean: (device, dtype, non_blocking, copy, memory_format); copy is None where nobody speaks of it."""
    places = list(args)
    if places and hasattr(places[0], "_array"):
        other = places.pop(0)
    elif places and _is_dtype(places[0]):
        dtype = places.pop(0)
    elif places and (places[0] is None or isinstance(places[0], (str, Device, int))):
        device = places.pop(0)
        if places and (places[0] is None or _is_dtype(places[0])):
            dtype = places.pop(0)
    if len(places) > 2 or not all(isinstance(p, bool) for p in places):
        raise TypeError(_TO.format(", ".join(_type_name(a) for a in args)))
    non_blocking, copy = (*places, *(non_blocking, copy)[len(places) :])
    if other is not None:
        dtype, device = other.dtype, other.device
    dtype = scalar_type.from_python_type(dtype) if isinstance(dtype, type) else dtype
    return None if device is None else Device(device), dtype, non_blocking, copy, memory_format


def _is_dtype(value):
    known_type = isinstance(value, type) and scalar_type.from_python_type(value) is not None
    return known_type or isinstance(value, scalar_type.dtype)


def _type_name(value):
    return {scalar_type.dtype: "torch.dtype", Device: "torch.device"}.get(type(value), type(value).__name__)


def _conversion(name, dtype):
    @python_binding(name, "method")
    def binding(self, memory_format=preserve_format):
        return convert(self, dtype=dtype, memory_format=memory_format)

    binding.__name__ = name
    binding.__doc__ = f"`self.to({dtype})`."


for _name, _dtype in {
    **scalar_type.ALIASES,
    "bool": scalar_type.bool,
    "bfloat16": scalar_type.bfloat16,
    "char": scalar_type.int8,
    "byte": scalar_type.uint8,
}.items():
    _conversion(_name, _dtype)


def _conversion_to_missing_device(name, error, message, shown=None):
    @python_binding(name, "method")
    def binding(self, device=None, non_blocking=False, memory_format=preserve_format):
        if isinstance(device, int):
            raise RuntimeError("Cannot access accelerator device when none is available.")
        if device is not None and Device(device).type != name:
            raise RuntimeError(f"Invalid device, must be {shown or name} device")
        raise error(message)

    binding.__name__ = name
    binding.__doc__ = f"`self.to({name!r})`: raises, for this build has no such device."


@python_binding("cuda", "method")
def cuda(self, device=None, non_blocking=False, memory_format=preserve_format):
    """`self.to("cuda")`: on the current device, or the one whose number or name is given."""
    if isinstance(device, int) and not has_accelerator():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    place = Device("cuda" if device is None else device)
    if place.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return convert(self, device=place, memory_format=memory_format, non_blocking=non_blocking)


_conversion_to_missing_device("ipu", RuntimeError, "PyTorch is not linked with support for ipu devices")
_conversion_to_missing_device("xpu", AssertionError, "Torch not compiled with XPU enabled")
_conversion_to_missing_device(
    "mtia",
    AssertionError,
    "Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in "
    "your python src file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!",
    "MTIA",
)


@python_binding("cpu", "method")
def cpu(self, memory_format=preserve_format):
    """`self.to("cpu")`."""
    return convert(self, device=Device("cpu"), memory_format=memory_format)


@python_binding("type_as", "method")
def type_as(self, other):
    """`self` with `other`'s dtype and device."""
    if threads_with_modes and tls.tracer is not None:
        return tls.tracer.call("aten::type_as", [self, other], lambda: type_as(self, other))
    if threads_with_modes and mode_tls.pre_dispatch is not None:
        return type_as_operator.call(self, other)
    return convert(self, dtype=dtype_of(other), device=other.device)


@python_binding("item", "method")
def item(self):
    """The only element as a Python number. Raises RuntimeError if there is not exactly one."""
    if self._array.size != 1:
        raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
    if threads_with_modes and tls.tracer is not None:
        tls.tracer.warn_of_conversion("number")
    if (threads_with_modes or self._keys & PYTHON) and seen_by_python(self):
        return _local_scalar_dense.call(self)
    array = only_element(self)
    return python_number(array.item(), array.dtype)


_local_scalar_dense = native_function("_local_scalar_dense(Tensor self) -> Scalar", "")


@_local_scalar_dense.kernel
def local_scalar_dense_cpu(self):
    """The element of `self` as a Python number."""
    array = only_element(self)
    return python_number(array.item(), array.dtype)


def python_number(value, numpy_dtype):
    """What `ndarray.item()` gave, as the Python type of its kind (ml_dtypes gives its own scalars)."""
    return value if type(value) in (int, float, bool, complex) else float(value)
