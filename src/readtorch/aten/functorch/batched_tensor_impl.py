"""A tensor as one example of a batch sees it: another tensor, one of whose dimensions is hidden.

Note [ In a storage's place ]
A wrapper of a transform is an ordinary Tensor to Python: it has sizes, strides and a dtype, and no elements that a kernel could
read. What it wraps stands where other tensors have their StorageImpl, and answers as a storage that has no memory. Its `_array`
looks at the wrapped tensor's memory, for the sake of sizes and strides alone; a call with a wrapper never reaches a kernel that
would read it. So whatever copies array, keys and storage of a tensor (`detach`, saved results) makes another such wrapper.

In PyTorch: `aten/src/ATen/functorch/BatchedTensorImpl.h`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.empty_tensor import MetaStorageImpl
from readtorch.c10 import tensor_impl
from readtorch.c10.device import cpu
from readtorch.c10.dispatch_key import (
    AUTOCAST,
    BACKENDS,
    BATCHED,
    CONJUGATE,
    FOLLOWED,
    NEGATIVE,
    NO_STORAGE,
    ON_EVERY_TENSOR,
    WRAPPED_NUMBER,
)
from readtorch.c10.scalar_type import by_numpy
from readtorch.c10.storage_impl import is_placed
from readtorch.c10.tensor_impl import NO_EDGE, key_set, new, storage_impl

# What a wrapper's key set has of the wrapped tensor's. In PyTorch: `kKeysToPropagateToWrapper`.
PROPAGATED = BACKENDS | AUTOCAST | CONJUGATE | NEGATIVE | WRAPPED_NUMBER
OF_EVERY_WRAPPER = FOLLOWED | ON_EVERY_TENSOR | NO_STORAGE

NO_DATA = "Cannot access data pointer of Tensor that doesn't have storage"


class WrappedImpl:
    """What a wrapper has in place of a storage: Note [ In a storage's place ]. exists: whether there has been a transform."""

    __slots__ = ("value", "layer")
    exists = False
    resizable = False

    @property
    def level(self):
        return self.layer.level

    @property
    def device(self):
        storage = self.value._storage_impl
        return cpu if storage is None else storage.device

    @property
    def buffer(self):
        """For `storage_offset`: it is the wrapped tensor's."""
        return storage_impl(self.value).buffer

    @property
    def keys(self):
        return storage_impl(self.value).keys | NO_STORAGE

    @property
    def nbytes(self):
        return storage_impl(self.value).nbytes

    def as_strided(self, numpy_dtype, sizes, strides, offset):
        return storage_impl(self.value).as_strided(numpy_dtype, sizes, strides, offset)

    def data_ptr(self):
        raise RuntimeError(NO_DATA)

    def host_bytes(self):
        raise RuntimeError(NO_DATA)

    def copy(self):
        raise RuntimeError(NO_DATA)


class BatchedTensorImpl(WrappedImpl):
    """value: the whole batch. bdim: which of its dimensions is hidden. layer: the vmap that hides it."""

    __slots__ = ("bdim",)
    name = "BatchedTensorImpl"

    def host_array(self, array):
        raise RuntimeError(NO_FALLBACK.format("aten::item") if self.layer.legacy else NO_ITEM)


def refuse_control_flow(t):
    """RuntimeError for a batched tensor of which Python asks whether it is true."""
    if key_set(t) & BATCHED:
        legacy = t._storage_impl.layer.legacy
        raise RuntimeError(NO_FALLBACK.format("aten::is_nonzero") if legacy else NO_CONTROL_FLOW)


NO_DATA_OF_BATCH = "accessing `data` under vmap transform is not allowed"
NO_FALLBACK = "Batching rule not implemented for {}. We could not generate a fallback."

NO_CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, please "
    "file an issue at https://github.com/pytorch/pytorch/issues ."
)
NO_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
    "rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug "
    "report."
)


def make_batched(value, bdim, layer):
    """`value` as one example of it sees it, in the vmap `layer`."""
    impl = new(BatchedTensorImpl)
    impl.value, impl.bdim, impl.layer = value, bdim, layer
    return wrapper_with(impl, example_of(value._array, bdim), BATCHED)


def wrapper_with(impl, array, key):
    """A tensor without a history that stands for `impl.value` and looks like `array`. key: what calls with it reach first."""
    value = impl.value
    t = new(tensor_impl.tensor_class)
    t._array = array
    keys = t._keys = key_set(value) & PROPAGATED | OF_EVERY_WRAPPER | key
    if keys & WRAPPED_NUMBER:
        t._creation = value._creation
    t._counter = value._counter
    t._edge = NO_EDGE
    t._storage_impl = impl
    t._base = t._autograd_meta = None
    return t


def example_of(array, bdim):
    """An array with the sizes, strides and place of an example."""
    if array.size and not is_placed(array) or type(array) is not _ndarray:
        return array[0, ...] if bdim == 0 else array[(slice(None),) * bdim + (0,)]
    sizes = array.shape[:bdim] + array.shape[bdim + 1 :]
    strides = [s // array.itemsize for s in array.strides]
    del strides[bdim]
    return MetaStorageImpl(0).as_strided(by_numpy[array.dtype].numpy, sizes, strides, 0)


_ndarray = tensor_impl.ndarray


def refresh_metadata(t):
    """Give a wrapper the sizes and strides that the tensor in it has by now."""
    impl = t._storage_impl
    t._array = example_of(impl.value._array, impl.bdim)


def is_batched(t):
    return bool(key_set(t) & BATCHED)


def maybe_batched_at(t, level):
    """The BatchedTensorImpl of a tensor if it is batched at this level, else None."""
    if key_set(t) & BATCHED:
        impl = t._storage_impl
        if impl.layer.level == level:
            return impl
    return None


def unwrap_at(t, level):
    """(value, bdim) of a tensor that is batched at this level, else (the tensor itself, None)."""
    impl = maybe_batched_at(t, level)
    return (t, None) if impl is None else (impl.value, impl.bdim)
