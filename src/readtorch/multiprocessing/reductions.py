"""What stands in a message for a tensor: where its storage is to be found in shared memory, and its four
numbers.

In PyTorch: `torch/multiprocessing/reductions.py`. Explained in the chapter "Multiprocessing
and TensorBoard".

Note [ A tensor in a message ]
Pickling a tensor for a message moves its storage to shared memory, for good: sender and receiver then look at
the same bytes. Two tensors of one storage still share it at the receiver, in one message or in several,
because `shared_cache` knows the storages of this process by what names their memory: the file's inode, or its
name. The cache holds them weakly, so it keeps nothing alive; and while a storage is alive its inode belongs
to no other file.

A descriptor is a number that means something to one process only. There are two ways to send one. A message
of `multiprocessing` (Queue, Pipe) is bytes alone: it mentions an address where the receiver calls the sender,
and a thread of the sender answers with the descriptor (`reduction.DupFd`), to those alone who show that they
know the `authkey` of the program's processes. If the receiver never calls, the descriptor stays open as long as
the sender lives. Messages of our own, as the DataLoader's, go through a
socket that takes descriptors along (`parcel`): that needs no thread and no call, and what is not received
goes with the socket. Memory that has no name yet gets none there, whatever the strategy; with file_system the
receiver closes the descriptor as soon as the memory is mapped, so that not many are open at a time.
"""

import multiprocessing.resource_sharer  # noqa: F401  before a fork: a child might find it half imported
import os
import threading
import weakref
from multiprocessing import reduction

import readtorch
from readtorch import storage as storages
from readtorch._utils import _rebuild_tensor
from readtorch.c10.tensor_impl import storage_impl, storage_offset, strides_of
from readtorch.csrc import storage_sharing
from readtorch.nn.parameter import Parameter
from readtorch.storage import TypedStorage, UntypedStorage
from readtorch.utils.hooks import warn_if_has_hooks

shared_cache = weakref.WeakValueDictionary()  # inode and device, or name -> StorageImpl


# Tensors


def reduce_tensor(tensor):
    """(function, arguments) that make the tensor at the receiver. Raises RuntimeError for one that was
    computed with gradients, because a graph ends at the border of its process."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
            "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
            "the tensor before serializing (e.g., putting it on the queue)."
        )
    warn_if_has_hooks(tensor)
    if tensor.device.type != "cpu":
        # in PyTorch: a handle of CUDA's own (cudaIpcMemHandle); on the meta device the four numbers alone
        raise RuntimeError(f"readtorch cannot send a {tensor.device.type} tensor to another process: send its .cpu()")
    if storage_impl(tensor).nbytes:
        storage_sharing.share(storage_impl(tensor), only=tensor)
    # in PyTorch, too: a conjugate arrives as what lies in memory, for the bit is not sent
    metadata = storage_offset(tensor), tuple(tensor.shape), strides_of(tensor), tensor.requires_grad
    return rebuild_tensor, (type(tensor), tensor._typed_storage(), metadata)


def rebuild_tensor(cls, storage, metadata):
    offset, size, stride, requires_grad = metadata
    tensor = _rebuild_tensor(storage, offset, size, stride)
    if cls is Parameter:  # takes it as an argument, because integers must not require grad
        return Parameter(tensor, requires_grad=requires_grad)
    tensor.requires_grad = requires_grad
    return tensor


# Storages


def reduce_storage(storage):
    """The same for an UntypedStorage, which `storage_sharing.strategy` moves."""
    if storage.is_cuda:
        raise RuntimeError("Cannot pickle CUDA storage; try pickling a CUDA tensor instead")
    if _goes_by_name(storage._impl):
        manager, name, size = storage._share_filename_cpu_()
        storage._shared_incref()
        shared_cache[name] = storage._impl
        return rebuild_storage_filename, (UntypedStorage, manager, name, size)
    if storage.size() == 0:
        return rebuild_storage_empty, (UntypedStorage,)
    fd, size = storage._share_fd_cpu_()
    shared_cache[fd_id(fd)] = storage._impl
    return rebuild_storage_fd, (UntypedStorage, send_fd(storage._impl.allocator), size)


def _goes_by_name(impl):
    by_strategy = storage_sharing.strategy == "file_system" and parcel.contents is None
    return by_strategy or storage_sharing.has_name(impl)


def rebuild_storage_filename(cls, manager, name, size):
    known = shared_cache.get(name)
    storage = cls._new_shared_filename_cpu(manager, name, size) if known is None else storages.untyped(known)
    shared_cache[name] = storage._impl
    return storage._shared_decref()


def rebuild_storage_empty(cls):
    return cls()


def rebuild_storage_fd(cls, descriptor, size):
    fd = descriptor.detach()
    key = fd_id(fd)
    known = shared_cache.get(key)
    if known is None:
        known = shared_cache[key] = storage_sharing.new_shared_fd(fd, size)
        if storage_sharing.strategy == "file_system":
            known.allocator.close_fd()
    else:
        os.close(fd)
    return storages.untyped(known)


def fd_id(fd):
    """What two descriptors of one file have in common, in all processes."""
    stat = os.fstat(fd)
    return stat.st_ino, stat.st_dev


def reduce_typed_storage(storage):
    return rebuild_typed_storage, (storage._untyped_storage, storage.dtype)


def rebuild_typed_storage(storage, dtype):
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


# Descriptors


class Parcel(threading.local):
    """What goes along with the message that this thread is pickling or unpickling, None if nothing can.

    Sender: MapAllocators, which keep their descriptors open until the message is sent. Receiver: descriptors.
    """

    contents = None


parcel = Parcel()


class Enclosed:
    """Stands in a message for the descriptor with that number in its parcel."""

    def __init__(self, number):
        self.number = number

    def detach(self):
        """The descriptor, which is the caller's to close."""
        fd, parcel.contents[self.number] = parcel.contents[self.number], None
        return fd


def send_fd(allocator):
    """What to pickle for an allocator's descriptor. See Note [ A tensor in a message ]."""
    if parcel.contents is None:
        return reduction.DupFd(allocator.fd)
    parcel.contents.append(allocator)
    return Enclosed(len(parcel.contents) - 1)


def init_reductions():
    """Tell `multiprocessing` about storages and tensors. Subclasses of Tensor are pickled as usual: their
    storage is not."""
    reduction.register(UntypedStorage, reduce_storage)
    reduction.register(TypedStorage, reduce_typed_storage)
    reduction.register(readtorch.Tensor, reduce_tensor)
    reduction.register(Parameter, reduce_tensor)
