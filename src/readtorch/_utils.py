"""What pickles of tensors refer to: functions that put a tensor together again.

In PyTorch: `torch/_utils.py`. Explained in the chapter "state_dict, save and load".
"""

import copy
import copyreg
import functools
import sys
import threading
import traceback
import warnings

from .aten.functions import at
from .aten.native.sparse.sparse_csr_tensor import (
    _sparse_compressed_tensor_unsafe,
    _validate_sparse_compressed_tensor_args,
)
from .aten.native.sparse.sparse_tensor import _sparse_coo_tensor_unsafe, _validate_sparse_coo_tensor_args
from .aten.sparse_csr_tensor_impl import COMPRESSED
from .aten.sparse_tensor_impl import is_sparse
from .c10 import tensor_impl
from .c10.device import device as Device
from .c10.dispatch_key import BATCHED, CONJUGATE, GRAD_WRAPPER, NEGATIVE, NO_STORAGE, SPARSE_CSR_CPU, ZEROTENSOR
from .c10.layout import sparse_coo
from .c10.scalar_type import dtype as Dtype
from .c10.tensor_impl import key_set, set_math_bit, storage_impl, storage_offset, strides_of
from .c10.torch_dispatch_mode_tls import _TorchDispatchModeKey, get_mode


def _element_size(dtype):
    """How many bytes an element of this dtype takes. Raises RuntimeError for what is no dtype."""
    if not isinstance(dtype, Dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


class _SerializationLocal(threading.local):
    """What a `with` block asks of the `save` and `load` of its own thread."""

    # in PyTorch: in torch/serialization.py, which torch/_tensor.py reads as well
    map_location = None  # of the `load` that goes on, for tensors that are rebuilt without a storage
    skip_data = False
    materialize_fake_tensors = False


_serialization_tls = _SerializationLocal()


def tensor_over(storage, numpy_dtype, sizes, strides, offset, cls=None):
    """A new leaf over an existing StorageImpl."""
    t = tensor_impl.wrap(storage.as_strided(numpy_dtype, tuple(sizes), tuple(strides), offset))
    t._keys = storage.keys
    t._storage_impl = storage
    return t if cls is None else cls._make_subclass(cls, t)


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a TypedStorage. Raises RuntimeError if it would leave it."""
    return _tensor_over(storage, storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """As PyTorch has pickled tensors since 0.4. backward_hooks: see Note [ Hooks are not saved ]."""
    return _rebuild_tensor_v3(
        storage, storage_offset, size, stride, requires_grad, backward_hooks, storage.dtype, metadata
    )


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """The same for dtypes younger than the classes of storages: uint16, float8 …"""
    tensor = _tensor_over(storage, dtype, storage_offset, size, stride)
    tensor = tensor.requires_grad_() if requires_grad else tensor
    if metadata:
        set_tensor_metadata(tensor, metadata)
    return tensor


def get_tensor_metadata(tensor):
    """What is saved of a tensor besides its geometry: the math bits that are set, by name."""
    if tensor._keys & ZEROTENSOR:
        raise RuntimeError("ZeroTensor is not serializable, please file an issue if required.")
    return {name: True for name, key in MATH_BIT_NAMES.items() if tensor._keys & key}


def set_tensor_metadata(tensor, metadata):
    """Set the math bits that `get_tensor_metadata` found."""
    for name, is_set in metadata.items():
        if name not in MATH_BIT_NAMES:
            raise RuntimeError(f"Unexpected key `{name}` passed to setTensorMetadata.")
        set_math_bit(tensor, MATH_BIT_NAMES[name], is_set)


MATH_BIT_NAMES = {"conj": CONJUGATE, "neg": NEGATIVE}


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """A tensor on the Meta device, which has nothing to be saved but these."""
    for n in (*size, *stride):
        if type(n) is not int:
            raise TypeError("empty_strided(): size and stride must be ints")
    return at.empty_strided(size, stride, dtype=dtype, device="meta").requires_grad_(requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    """A tensor of a subclass that wraps others and has no elements of its own; its attributes hold what it wraps."""
    return tensor_impl.tensor_class._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        dtype=dtype,
        storage_offset=storage_offset,
        layout=layout,
        device=_get_restore_location(device),
        requires_grad=requires_grad,
    )


def _get_restore_location(device):
    """The device where `map_location` puts what was on `device`, for a tensor without a storage."""
    place = _serialization_tls.map_location
    if callable(place):
        raise RuntimeError(
            "Callable map_location not supported with _rebuild_wrapper_subclass or _rebuild_device_tensor_from_numpy"
        )
    if isinstance(place, dict):
        return place.get(device, device)
    return device if place is None else place


def _tensor_over(storage, dtype, offset, size, stride):
    """A tensor over a storage; under a FakeTensorMode a FakeTensor of the device for which the storage stands."""
    storage = getattr(storage, "_untyped_storage", storage)
    tensor = _tensor_within(storage._impl, dtype, offset, size, stride)
    mode = get_mode(_TorchDispatchModeKey.FAKE)
    if mode is None or storage.device.type != "meta":
        return tensor
    return mode.fake_tensor_converter.from_meta_and_device(mode, tensor, Device(storage._fake_device or "meta"))


def _tensor_within(storage, dtype, offset, size, stride):
    """`tensor_over`, for numbers from a file: checks them first."""
    numbers = (*size, *stride, offset)
    if not all(type(n) is int for n in numbers):
        raise TypeError("set_(): storage_offset, size and stride must be ints")
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    reach = 0 if 0 in size else offset + 1 + sum((n - 1) * step for n, step in zip(size, stride))
    # in PyTorch: `set_` makes a storage that is too short longer, with whatever bytes the memory holds
    if min(numbers) < 0 or reach * dtype.itemsize > storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{offset}, and itemsize "
            f"{dtype.itemsize} requiring a storage size of {reach * dtype.itemsize} are out "
            "of bounds for "
            f"storage of size {storage.nbytes}"
        )
    try:
        return tensor_over(storage, dtype.numpy, size, stride, min(offset, storage.nbytes // dtype.itemsize))
    except (ValueError, OverflowError) as error:  # more dimensions or elements than NumPy counts
        raise RuntimeError(f"a tensor of sizes {list(size)} is too large: {error}") from None


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A Parameter from its pickled parts."""
    from .nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    return _set_obj_state(parameter, state)


def _get_obj_state(obj):
    """What Python keeps about a tensor: its `__dict__`, or (`__dict__`, slots) if its class has slots."""
    slots = {name: getattr(obj, name) for name in _slots_of_subclass(type(obj)) if hasattr(obj, name)}
    return (obj.__dict__, slots) if slots else obj.__dict__


@functools.cache
def _slots_of_subclass(cls):
    """The slots that a subclass of Tensor adds to those that hold the tensor itself."""
    return [name for name in copyreg._slotnames(cls) if name not in tensor_impl.TensorImpl.__slots__]


def _set_obj_state(obj, state):
    """Give back what `_get_obj_state` took. Raises RuntimeError for anything else."""
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        obj.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        if name not in _slots_of_subclass(type(obj)):
            raise RuntimeError(f"Invalid serialized state: {type(obj).__name__} has no slot {name}")
        setattr(obj, name, value)
    return obj


def warn_if_has_hooks(tensor):
    """Note [ Hooks are not saved ]

    A hook is a function of the program, not data of the model: pickled by name it breaks as soon as the
    function moves. So pickles leave a tensor's hooks out, with a warning, and hold an empty dictionary where
    older files held them.
    """
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


def _rebuild_sparse_tensor(layout, data):
    """A sparse tensor from its pickled parts: indices, values, size, and whether it is coalesced. Of a compressed layout: both
    lists of indices, values, size.

    They come from outside: what does not fit together raises RuntimeError.
    """
    if layout in COMPRESSED:
        compressed, plain, values, size = data
        _validate_sparse_compressed_tensor_args.call(compressed, plain, values, size, layout, None)
        return _sparse_compressed_tensor_unsafe.call(compressed, plain, values, size, None, layout, None, None)
    if layout is not sparse_coo:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    indices, values, size, is_coalesced = (*data, None)[:4]
    _validate_sparse_coo_tensor_args.call(indices, values, size, is_coalesced, None)
    return _sparse_coo_tensor_unsafe.call(indices, values, size, None, None, None, None, is_coalesced)


def deepcopy_tensor(t, memo):
    """A deep copy of a leaf. Its storage is copied once a `memo`: tensors that shared it share the copy."""
    if is_sparse(t):
        memo[id(t)] = t.clone()
        return memo[id(t)]
    if key_set(t) & (BATCHED | GRAD_WRAPPER | SPARSE_CSR_CPU):
        t.untyped_storage()  # raises NotImplementedError: these have none
    if key_set(t) & NO_STORAGE:
        memo[id(t)] = cloned_wrapper(t)
        return memo[id(t)]
    storage = storage_impl(t)
    copied_storage = memo.get(id(storage))
    if copied_storage is None:
        copied_storage = memo[id(storage)] = storage.copy()
        memo.setdefault(id(memo), []).append(storage)  # ids stay unique while the originals live
    copied = tensor_over(copied_storage, t._array.dtype, t._array.shape, strides_of(t), storage_offset(t))
    if t._keys & CONJUGATE:
        copied = copied.conj_physical()
    if t._keys & NEGATIVE:
        copied = copied.neg()
    if type(t) is not tensor_impl.tensor_class:
        copied = type(t)._make_subclass(type(t), copied)
    memo[id(t)] = copied
    if t.requires_grad:
        copied.requires_grad_()
    if t._autograd_meta is not None and t._autograd_meta.grad is not None:
        copied.grad = copy.deepcopy(t._autograd_meta.grad, memo)
    copied.__dict__.update(copy.deepcopy(t.__dict__, memo))
    return copied


def cloned_wrapper(t):
    """A deep copy of a wrapper, which knows how to clone what it wraps."""
    cloned = t.clone()
    if type(cloned) is not type(t):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that properly "
            "implement clone() and for which cloning returns another instance of the same subclass. You should either "
            "properly implement clone() for your subclass or override __deepcopy__() if it is intended behavior for clone() "
            "to return an instance of a different type."
        )
    copied = cloned.detach().requires_grad_(t.requires_grad) if t.requires_grad else cloned
    own = {name: value for name, value in t.__dict__.items() if name not in copied.__dict__}
    copied.__dict__.update(copy.deepcopy(own))  # a Parameter's mark, say
    return copied


class KeyErrorMessage(str):
    """Text that a KeyError prints as it is: of other text it prints the repr, line breaks as two letters."""

    __slots__ = ()

    def __repr__(self):
        return self


class ExceptionWrapper:
    """An exception that happened elsewhere, in a form that can be sent: its type, and its traceback as text."""

    # No reference to the exception itself: its traceback would keep all variables of its frames alive.

    def __init__(self, exc_info=None, where="in background"):
        exc_info = exc_info or sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raise an exception of the same type that says where it happened, or RuntimeError if it cannot be made."""
        msg = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            msg = KeyErrorMessage(msg)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=msg)
        try:
            exception = self.exc_type(msg)
        except Exception:  # its constructor wants something else
            raise RuntimeError(msg) from None
        raise exception


# ------------------------------------------------------------------------------------------- many tensors as one


def _flatten_dense_tensors(tensors):
    """The elements of tensors of one dtype, one behind the other in a new tensor of one dimension."""
    return at.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Views of `flat`, one after the other, with the sizes of `tensors`."""
    views, start = [], 0
    for tensor in tensors:
        views.append(flat.narrow(0, start, tensor.numel()).view(tensor.shape))
        start += tensor.numel()
    return tuple(views)
