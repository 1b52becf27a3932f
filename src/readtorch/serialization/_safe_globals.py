"""The classes and functions that a checkpoint may name, and what they may be called with.

In PyTorch: part of `torch/_weights_only_unpickler.py`. Explained in the chapter "state_dict, save and load".
"""

import functools
import re
from _codecs import encode
from collections import Counter, OrderedDict
from pickle import UnpicklingError

from readtorch import _tensor, _utils, storage
from readtorch.aten.sparse_csr_tensor_impl import COMPRESSED
from readtorch.c10 import scalar_type
from readtorch.c10.device import device
from readtorch.c10.layout import sparse_coo
from readtorch.c10.size import Size
from readtorch.csrc.tensor.python_tensor import cpu_types

from ._layouts import _get_layout
from ._names import torch_name
from ._storage_type import StorageType

# What the user allowed: functions and classes, or pairs of one and its full name.
_marked_safe_globals_set = set()


def add_safe_globals(safe_globals):
    """Let `load` accept these classes and functions, or pairs of one and its full name, with weights_only=True."""
    _marked_safe_globals_set.update(safe_globals)


def get_safe_globals():
    """The classes and functions that were added, as a list."""
    return list(_marked_safe_globals_set)


def clear_safe_globals():
    """Forget the classes and functions that were added."""
    _marked_safe_globals_set.clear()


def remove_safe_globals(globals_to_remove):
    _marked_safe_globals_set.difference_update(globals_to_remove)


class safe_globals:
    """Allows some more names within a `with` block."""

    def __init__(self, safe_globals):
        self.safe_globals = safe_globals

    def __enter__(self):
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception):
        remove_safe_globals(self.safe_globals)


def _get_user_allowed_globals():
    """Full name -> what the user allowed. Classes of readtorch go by PyTorch's names, as in files."""
    allowed = {}
    for item in _marked_safe_globals_set:
        if not isinstance(item, tuple):
            allowed[".".join(torch_name(item.__module__, item.__qualname__))] = item
            continue
        if len(item) != 2:
            raise ValueError(
                f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(item)}"
            )
        if type(item[1]) is not str:
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
        allowed[item[1]] = item[0]
    return allowed


def is_user_allowed(obj):
    """Whether `obj` itself was given to `add_safe_globals`."""
    return any(obj is allowed for allowed in _get_user_allowed_globals().values())


def parameter_class():
    from readtorch.nn.parameter import Parameter

    return Parameter


def _rebuild_functions():
    return [
        _utils._rebuild_parameter,
        _utils._rebuild_parameter_with_state,
        _utils._rebuild_tensor,
        _utils._rebuild_tensor_v2,
        _utils._rebuild_tensor_v3,
        _utils._rebuild_sparse_tensor,
        _utils._rebuild_meta_tensor_no_storage,
        _utils._rebuild_wrapper_subclass,
    ]


@functools.cache
def _get_allowed_globals():
    """Full name in files -> what stands for it here."""
    allowed = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": parameter_class(),
        "torch.serialization._get_layout": _get_layout,
        "torch.Size": Size,
        "torch.Tensor": _tensor.Tensor,
        "torch.device": device,
        "_codecs.encode": encode,  # makes bytes
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
        "torch.storage.UntypedStorage": storage.UntypedStorage,
        "torch.storage.TypedStorage": storage.TypedStorage,
        "torch._tensor._rebuild_from_type_v2": _tensor._rebuild_from_type_v2,
    }
    allowed.update({str(t): t for t in scalar_type.ALL_TYPES})
    allowed.update({f"torch.{name}": StorageType(name) for name in storage.legacy_classes})
    allowed.update({f"torch.{name}": cls for name, cls in cpu_types.items()})
    allowed.update({f"torch._utils.{f.__name__}": f for f in _rebuild_functions()})
    return allowed


_PYTORCHS = re.compile(
    r"torch\.(_utils\._rebuild_\w+|(cuda\.)?\w+Storage|"
    r"((cuda|sparse|cuda\.sparse)\.)?\w+Tensor|"
    r"(q?u?int|bits|float|complex)\d\w*|per_(tensor|channel)_\w+)"
)


def is_pytorchs(full_path):
    """Whether a name is one of those that PyTorch's table has beyond ours: sparse, quantized and the like."""
    return _PYTORCHS.fullmatch(full_path) is not None


# ---------------------------------------------------------------------- what the functions may be called with
# A check is called like the function, with the unpickler before the arguments, and raises UnpicklingError.


@functools.cache
def checks():
    """Function -> its check. What is not here is not called: see Note [ What a hostile pickle cannot do ]."""
    return {
        OrderedDict: _check_pairs,
        Counter: _check_counts,
        set: _check_items,
        complex: _check_numbers,
        Size: _check_size,
        encode: _check_text,
        bytearray: _check_bytes,
        device: _check_names,
        _get_layout: _check_names,
        parameter_class(): _check_parameter,
        _utils._rebuild_parameter: _check_parameter,
        _utils._rebuild_parameter_with_state: _check_parameter_with_state,
        _utils._rebuild_tensor: _check_tensor,
        _utils._rebuild_tensor_v2: _check_tensor_v2,
        _utils._rebuild_tensor_v3: _check_tensor_v3,
        _utils._rebuild_sparse_tensor: _check_sparse_tensor,
        _utils._rebuild_meta_tensor_no_storage: _check_meta_tensor,
        _utils._rebuild_wrapper_subclass: _check_wrapper,
        _tensor._rebuild_from_type_v2: _check_typed_tensor,
        **dict.fromkeys((_tensor.Tensor, *cpu_types.values()), _check_nothing),
    }


def _require(truth, what):
    if not truth:
        raise UnpicklingError(f"a checkpoint cannot call {what}")


def classes_to_make():
    """The classes of which a pickle may make objects without calling them."""
    return OrderedDict, parameter_class(), _tensor.Tensor, *cpu_types.values()


def is_plain_tensor(obj):
    """Whether it may be given a state: Note [ Tensors of before 0.4 ]."""
    return type(obj) in (_tensor.Tensor, parameter_class())


def checked_state(unpickler, tensor, state):
    """Note [ Tensors of before 0.4 ]

    Today's pickles call a function with the parts of a tensor. Older ones make an empty tensor and set its state: a
    Tensor's is (storage, offset, sizes, strides), a Parameter's (data, _, hooks, requires_grad, _), or in between
    (requires_grad, _, hooks). What the file says of a storage is believed as little as in the function's arguments: a
    tensor beyond its storage is refused, while `set_` would make the storage larger.
    """
    lengths = (4,) if type(tensor) is _tensor.Tensor else (3, 4, 5)
    _require(type(state) is tuple and len(state) in lengths, "for such a state")
    if len(state) == 4:
        rebuilt = unpickler.call(_utils._rebuild_tensor, state)
        _require(rebuilt.dtype is tensor.dtype, "for the state of a tensor of another dtype")
        return rebuilt, rebuilt.storage_offset(), rebuilt.size(), rebuilt.stride()
    hooks, requires_grad = (state[2], state[0]) if len(state) == 3 else (state[2], state[3])
    _require(type(requires_grad) is bool and not hooks and type(hooks) in (OrderedDict, type(None)), "for such a state")
    _require(len(state) == 3 or type(state[0]) is _tensor.Tensor, "for a state without a tensor")
    return state


def _check_nothing(unpickler, *args):
    _require(not args, "a tensor of something")


def _check_pairs(unpickler, pairs=()):
    _require(type(pairs) in (list, tuple), "OrderedDict so")
    _require(all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs), "OrderedDict so")
    unpickler.copies(pairs)
    unpickler.check_keys(key for key, _ in pairs)


def _check_counts(unpickler, counts={}):
    _require(type(counts) is dict, "Counter so")
    unpickler.copies(counts)


def _check_items(unpickler, items=()):
    _require(type(items) in (list, tuple), "set so")
    unpickler.copies(items)
    unpickler.check_keys(items)


def _check_numbers(unpickler, *numbers):
    _require(all(type(n) in (int, float) for n in numbers), "complex so")


def _check_size(unpickler, sizes=()):
    _require(type(sizes) in (list, tuple) and all(type(n) is int for n in sizes), "Size so")
    unpickler.copies(sizes)


def _check_text(unpickler, text, encoding):
    _require(type(text) is str and encoding in ("latin1", "latin-1"), "encode so")
    unpickler.copies(text)


def _check_bytes(unpickler, data=b"", encoding="latin1"):
    _require(type(data) in (str, bytes) and encoding in ("latin1", "latin-1"), "bytearray so")
    unpickler.copies(data)


def _check_names(unpickler, *names):
    _require(all(type(n) in (str, int) for n in names), "device so")


_MOST_DIMENSIONS = 64  # NumPy's limit


def _check_tensor(unpickler, source, offset, size, stride, metadata=None):
    is_storage = isinstance(source, (storage.TypedStorage, storage.UntypedStorage))
    _require(is_storage, "_rebuild_tensor without a storage")
    for numbers in (size, stride):
        good = type(numbers) in (tuple, list, Size) and len(numbers) <= _MOST_DIMENSIONS
        _require(good, "_rebuild_tensor so")
    if metadata:
        _require(type(metadata) is dict, "a tensor's metadata that is no dict")


def _check_tensor_v2(unpickler, source, offset, size, stride, requires_grad, hooks, metadata=None):
    _check_tensor(unpickler, source, offset, size, stride, metadata)
    _require(type(requires_grad) is bool, "for a tensor whose requires_grad is no bool")


def _check_meta_tensor(unpickler, dtype, size, stride, requires_grad):
    _require(type(dtype) is scalar_type.dtype, "_rebuild_meta_tensor_no_storage so")
    _check_size(unpickler, size)
    _check_size(unpickler, stride)


def _check_tensor_v3(unpickler, source, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
    _check_tensor_v2(unpickler, source, offset, size, stride, requires_grad, hooks, metadata)
    _require(type(dtype) is scalar_type.dtype, "_rebuild_tensor_v3 without a dtype")


def _check_wrapper(unpickler, cls, dtype, size, stride, offset, layout, place, requires_grad):
    _require(isinstance(cls, type) and issubclass(cls, _tensor.Tensor), "_rebuild_wrapper_subclass so")
    _check_meta_tensor(unpickler, dtype, size, stride, requires_grad)
    good = len(size) == len(stride) <= _MOST_DIMENSIONS and min(0, *size, *stride, offset) == 0 and type(offset) is int
    _require(good and type(place) is device and type(requires_grad) is bool, "_rebuild_wrapper_subclass so")


def _check_sizes(size):
    good = type(size) in (tuple, list, Size) and len(size) <= _MOST_DIMENSIONS
    _require(good and all(type(n) is int and n >= 0 for n in size), "_rebuild_sparse_tensor so")


def _check_sparse_tensor(unpickler, kind, data):
    """Whether indices lie within the size, the function looks at itself."""
    if kind in COMPRESSED:
        _require(type(data) is tuple and len(data) == 4, "_rebuild_sparse_tensor so")
        _require(all(type(part) is _tensor.Tensor for part in data[:3]), "_rebuild_sparse_tensor without tensors")
        _check_sizes(data[3])
        return
    _require(kind is sparse_coo and type(data) is tuple and len(data) in (3, 4), "_rebuild_sparse_tensor so")
    indices, values, size, is_coalesced = (*data, None)[:4]
    _require(type(indices) is type(values) is _tensor.Tensor, "_rebuild_sparse_tensor without tensors")
    _check_sizes(size)
    _require(
        indices.dtype is scalar_type.int64 and type(is_coalesced) in (bool, type(None)), "_rebuild_sparse_tensor so"
    )


def _check_parameter(unpickler, data=None, requires_grad=True, backward_hooks=None):
    _require(data is None or isinstance(data, _tensor.Tensor), "Parameter without a tensor")
    _require(type(requires_grad) is bool, "for a tensor whose requires_grad is no bool")


def _check_parameter_with_state(unpickler, data, requires_grad, backward_hooks, state):
    _check_parameter(unpickler, data, requires_grad)
    _check_state(unpickler, state)


def _check_typed_tensor(unpickler, function, cls, args, state):
    rebuilds = any(function is known for known in _rebuild_functions())
    _require(rebuilds and type(args) is tuple, "_rebuild_from_type_v2 so")
    checks()[function](unpickler, *args)
    _require(isinstance(cls, type) and issubclass(cls, _tensor.Tensor), "_rebuild_from_type_v2 so")
    _check_state(unpickler, state)


def _check_state(unpickler, state):
    parts = state if type(state) is tuple else (state, None)
    good = len(parts) == 2 and all(part is None or type(part) is dict for part in parts)
    _require(good, "for such a state")
    for part in parts:
        unpickler.copies(part or ())
        _require(all(type(name) is str for name in part or ()), "for such a state")
