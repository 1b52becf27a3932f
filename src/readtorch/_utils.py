"""What pickles of tensors refer to: functions that put a tensor together again.

In PyTorch: `torch/_utils.py`. Explained in the chapter "state_dict, load_state_dict, save and load".
"""
import copy

from .c10 import tensor_impl
from .c10.storage_impl import StorageImpl
from .c10.tensor_impl import storage_impl, storage_offset, strides_of


def tensor_over(storage, numpy_dtype, sizes, strides, offset, cls=None):
    """A new leaf over an existing StorageImpl."""
    t = tensor_impl.wrap(storage.as_strided(numpy_dtype, tuple(sizes), tuple(strides), offset))
    t._storage_impl = storage
    return t if cls is None else cls._make_subclass(cls, t)


def _rebuild_typed_tensor(storage, dtype, offset, size, stride, requires_grad, state):
    t = tensor_over(storage, dtype.numpy, size, stride, offset)
    t.__dict__.update(state)
    return t.requires_grad_() if requires_grad else t


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A Parameter from its pickled parts."""
    from .nn.parameter import Parameter
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    parameter.__dict__.update(state)
    return parameter


def reduce_tensor(t):
    """How a plain tensor is pickled."""
    return _rebuild_typed_tensor, (storage_impl(t), t.dtype, storage_offset(t), tuple(t._array.shape), strides_of(t),
                                   t.requires_grad, t.__dict__)


def deepcopy_tensor(t, memo):
    """A deep copy of a leaf: its storage is copied once a `memo`, so tensors that shared it share the copy."""
    storage = storage_impl(t)
    copied_storage = memo.get(id(storage))
    if copied_storage is None:
        copied_storage = memo[id(storage)] = StorageImpl(storage.buffer.copy(), storage.device)
        memo.setdefault(id(memo), []).append(storage)  # ids stay unique while the originals live
    copied = tensor_over(copied_storage, t._array.dtype, t._array.shape, strides_of(t), storage_offset(t),
                         None if type(t) is tensor_impl.tensor_class else type(t))
    memo[id(t)] = copied
    if t.requires_grad:
        copied.requires_grad_()
    if t._meta is not None and t._meta.grad is not None:
        copied.grad = copy.deepcopy(t._meta.grad, memo)
    copied.__dict__.update(copy.deepcopy(t.__dict__, memo))
    return copied
