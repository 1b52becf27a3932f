"""What every tensor is made of, and the few functions that make one from an array.

In PyTorch: `c10/core/TensorImpl.h`. Explained in the chapters "Tensor and Storage" and "The tensor as an object".
"""

import numpy as np

from . import dispatch_key, scalar_type
from .dispatch_key import (
    BACKENDS,
    BATCHED,
    CONJUGATE,
    CPU_TENSOR,
    GRAD_WRAPPER,
    HISTORY,
    MATH_BITS,
    META,
    NEGATIVE,
    OF_VIEWS,
    PYTHON,
    SPARSE,
    TORCH_FUNCTION,
    WRAPPED_NUMBER,
)
from .local_dispatch_key_set import tls
from .storage_impl import address_of, is_placed, owner_of, storage_of
from .symbolic_shape_meta import SymbolicArray
from .torch_dispatch_mode_tls import mode_tls

ndarray = np.ndarray
new = object.__new__

# An edge is a pair (node, input number). This one leads nowhere: "does not require grad".
NO_EDGE = (None, 0)


class TensorImpl:
    """Sizes, strides, offset and dtype over a storage, plus what the dispatcher and autograd need to know.

    The first four numbers live in one strided NumPy array, kept ready for the kernels: a kernel reads `_array`, never
    the parts. In PyTorch they are fields of their own, and a kernel gets a pointer.
    """

    __slots__ = (
        "_array",  # the elements: a strided view of the storage's bytes
        "_keys",  # dispatch key set
        "_counter",  # [number of in-place writes], one cell shared by all views of the same data
        "_edge",  # where a gradient of this tensor goes; None for a leaf that requires grad, else NO_EDGE
        "_storage_impl",  # StorageImpl; None until a view or the user asks for it
        "_base",  # the tensor that this one is a view of, if autograd follows it, else None; never itself a view
        "_creation",  # of a view: one of the Creation values, decides whether it may be written to in place; of a wrapped
        # number: the number
        "_view_version",  # of a view only: the shared version at which its `_edge` was last right
        "_autograd_meta",  # AutogradMeta (grad, hooks, name …); None until needed
        "__weakref__",
    )


# `t._keys`, also of a tensor whose class refuses attributes: see Note [ What an uninitialized tensor refuses ].
key_set = TensorImpl._keys.__get__
set_key_set = TensorImpl._keys.__set__


class Creation:
    """How a view came to be; decides whether it may be written to in place (`CreationMeta`)."""

    DEFAULT = "default"
    IN_CUSTOM_FUNCTION = "in_custom_function"
    MULTI_OUTPUT_NODE = "multi_output_node"
    NO_GRAD_MODE = "no_grad_mode"
    INFERENCE_MODE = "inference_mode"


# The class that `wrap` instantiates. `_tensor.py` sets it once Tensor is defined; in PyTorch: THPVariableClass.
tensor_class = TensorImpl


def set_tensor_class(cls):
    global tensor_class
    tensor_class = cls


class AutogradMetaFactory:
    """What is asked of autograd, which is above this room and fills it in."""

    fw_grad = None  # (t, level) -> the tangent of `t` or None: csrc/autograd/forward_grad.py


def wrap(array):
    """A new tensor that owns `array`: no history, version 0."""
    t = new(tensor_class)
    t._array = array
    t._keys = CPU_TENSOR
    t._counter = [0]
    t._edge = NO_EDGE
    t._storage_impl = t._base = t._autograd_meta = None
    return t


def wrap_result(result):
    """Like `wrap`, for what a ufunc returned: NumPy gives a scalar where PyTorch has a 0-dimensional tensor.

    It repeats `wrap`'s lines: most operator calls end here, and a second call would cost them a twentieth.
    """
    t = new(tensor_class)
    t._array = result if type(result) is ndarray else np.asarray(result)
    t._keys = CPU_TENSOR
    t._counter = [0]
    t._edge = NO_EDGE
    t._storage_impl = t._base = t._autograd_meta = None
    return t


def wrap_number(number, numpy_dtype):
    """A Python number as a 0-dimensional tensor that is weak in type promotion.

    An int above int64 becomes uint64. Raises OverflowError if that does not have it either.
    """
    try:
        array = np.array(number, numpy_dtype)
    except OverflowError:
        array = np.array(as_uint64(number), np.uint64)
    t = wrap(array)
    t._keys |= WRAPPED_NUMBER
    t._creation = number
    return t


def as_uint64(number):
    """The int itself. Raises OverflowError if uint64 does not have it."""
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number >= 2**64:
        raise OverflowError("int too big to convert")
    return number


def seen_by_python(t):
    """Whether a mode or the class of `t` would see a call with it."""
    return keys_seen_by_python(key_set(t))


def keys_seen_by_python(keys):
    """The same for all keys of a call's tensors together."""
    return (mode_tls.modes or keys & PYTHON) and not tls.excluded & PYTHON


def storage_impl(t):
    """The tensor's StorageImpl, made at the first call. A view has its base's, unless the base has other memory by now.

    None for a sparse tensor, whose indices and values lie in two storages.
    """
    if t._storage_impl is None and not key_set(t) & dispatch_key.SPARSE:
        base = t._base
        shared = base is not None and owner_of(base._array) is owner_of(t._array)
        t._storage_impl = storage_impl(base) if shared else storage_of(t._array)
    return t._storage_impl


# What a view's key set has of its base's: all but what depends on the base's own history, or on its class.
KEPT_BY_VIEWS = ~(HISTORY | WRAPPED_NUMBER | TORCH_FUNCTION | PYTHON | dispatch_key.PYTHON_TLS_SNAPSHOT)

# The same for a tensor that autograd does not follow.
KEPT_BY_ALIASES = KEPT_BY_VIEWS & ~OF_VIEWS

_FOLLOWED = Creation.DEFAULT


def view(base, array):
    """What the kernel of a view returns: a tensor over `array`, which shares `base`'s storage and version counter.

    Whose view it is the kernel above notes: csrc/autograd/gen_inplace_or_view_type.py.
    """
    t = new(tensor_class)
    t._array = array
    t._keys = base._keys & KEPT_BY_VIEWS | OF_VIEWS
    t._counter = counter = base._counter
    t._view_version = counter[0]
    t._creation = _FOLLOWED
    t._edge = NO_EDGE
    t._storage_impl = base._storage_impl
    t._base = t._autograd_meta = None
    return t


def alias(base, array):
    """A new tensor over `array` that shares `base`'s storage and version counter but that autograd does not follow."""
    t = wrap(array)
    t._keys = base._keys & KEPT_BY_ALIASES
    t._counter = base._counter
    t._storage_impl = base._storage_impl or storage_impl(base)
    return t


def has_compatible_shallow_copy_type(t, other):
    """Whether `t` can take over `other`'s elements and stay the object that it is: both strided in memory, both sparse, or alike."""
    ours, theirs = key_set(t) & BACKENDS, key_set(other) & BACKENDS
    return ours == theirs or not (ours | theirs) & (META | SPARSE)


def detached(t):
    """A new tensor over the elements of `t`, on its device, with no history and a version counter of its own."""
    result = wrap(t._array)
    result._keys = key_set(t) & KEPT_BY_ALIASES
    result._storage_impl = storage_impl(t)
    return result


def strides_of(t):
    """Strides counted in elements."""
    array = t._array
    if type(array) is SymbolicArray:
        return array.steps
    item = array.itemsize
    if not array.size and not any(array.strides) and not is_placed(array):  # NumPy's strides of every new empty array
        return contiguous_strides(array.shape)
    return tuple([s // item for s in array.strides])


def contiguous_strides(shape):
    """Row-major strides, counted in elements; a dimension of size 0 counts as 1."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    return tuple(reversed(strides))


def storage_nbytes(shape, strides, itemsize, offset=0):
    """How large a storage must be for a tensor of these sizes and strides, which starts `offset` elements behind its beginning.

    In PyTorch: `computeStorageNbytes` in `aten/src/ATen/EmptyTensor.cpp`.
    """
    return (offset + 1 + sum([(n - 1) * s for n, s in zip(shape, strides)])) * itemsize if 0 not in shape else 0


def storage_offset(t):
    """How many elements lie between the start of the storage and the tensor's first element."""
    buffer, array = storage_impl(t).buffer, t._array
    if type(array) is SymbolicArray:
        return array.start
    if not (buffer.nbytes or is_placed(array) or t._keys & dispatch_key.META):
        return 0
    return (address_of(array) - address_of(buffer)) // array.itemsize


def strided(t):
    """The array of a tensor without elements, with the tensor's strides: Note [ Where no elements lie ]."""
    array = t._array
    if is_placed(array):
        return array
    return storage_impl(t).as_strided(array.dtype, array.shape, strides_of(t), storage_offset(t))


def host_array(t):
    """The elements of `t` where the host can read them: its array, or a copy of what lies on a device that runs
    kernels, or of what a math bit stands for: Note [ Math bits have a storage ].
    """
    storage = t._storage_impl
    return t._array if storage is None else resolved(storage.host_array(t._array), key_set(t))


def whole_array(t):
    """The elements of `t`, and those of all examples together if function transforms wrap it."""
    while key_set(t) & (BATCHED | GRAD_WRAPPER):
        t = t._storage_impl.value
    return host_array(t)


def resolved(array, keys):
    """The elements of a tensor with these keys, whose memory is `array`: conjugated, negated, or as they are."""
    if not keys & MATH_BITS:
        return array
    if keys & CONJUGATE:
        array = array.conj()
    if not keys & NEGATIVE:
        return array
    if array.dtype.kind == "b":
        raise NotImplementedError("\"neg_cpu\" not implemented for 'Bool'")
    return np.negative(array)


# Note [ Math bits have a storage ]
# What makes a view with the key Conjugate or Negative gives it a StorageImpl (`flipped`), and views of it have that, too.
# So who reads elements outside a kernel asks for the bits only where a tensor has a storage, and of most tensors nothing.


def flipped(t, key):
    """`t` itself, which begins to look at its memory through one math bit more, or one less."""
    storage_impl(t)
    t._keys ^= key
    return t


def set_math_bit(t, key, is_set):
    """Say whether the memory of `t` holds the conjugates or the negatives of its elements. RuntimeError for a real conjugate."""
    if key == CONJUGATE and t._array.dtype.kind != "c":
        raise RuntimeError("isComplexType(typeMetaToScalarType(dtype())) INTERNAL ASSERT FAILED")
    if bool(t._keys & key) != is_set:
        flipped(t, key)


def only_element(t):
    """The array of a tensor of one element where the host can read it. RuntimeError if there are no elements."""
    storage = t._storage_impl
    if storage is None:
        return t._array
    if t._keys & dispatch_key.META:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    return resolved(storage.host_array(t._array), t._keys)


def type_name(t):
    """The element type as error messages spell it: "Float"."""
    return scalar_type.SCALAR_TYPE_NAMES[dtype_of(t)]


def legacy_type_name(t):
    """The type as old error messages spell it: "torch.FloatTensor", or "CPUBFloat16Type" for one that Lua's Torch had not.

    In PyTorch: `Tensor::toString` and `DeprecatedTypeProperties::toString`.
    """
    kind, name = t.device.type, type_name(t)
    if name in _LEGACY_NAMES and kind in _LEGACY_MODULES:
        return f"{_LEGACY_MODULES[kind]}.{name}Tensor"
    return f"{kind.upper() if kind != 'meta' else 'Meta'}{name}Type"


_LEGACY_NAMES = frozenset(("Byte", "Char", "Double", "Float", "Int", "Long", "Short", "Half"))
_LEGACY_MODULES = {"cpu": "torch", "cuda": "torch.cuda"}


def dtype_of(t):
    return scalar_type.by_numpy[t._array.dtype]
