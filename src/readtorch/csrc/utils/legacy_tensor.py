"""What `Tensor(…)`, `FloatTensor(…)` and `x.new(…)` make: the constructors from before `tensor` and `empty`.

In PyTorch: `legacy_tensor_ctor` in `torch/csrc/utils/tensor_new.cpp`. Explained in the chapter "Tensor and Storage".
"""
from ...aten.functions import at
from ...c10 import scalar_type
from ...c10.device import cpu
from ...c10.device import device as Device
from ...c10.size import Size
from ...c10.storage_impl import StorageImpl
from ...c10.tensor_impl import TensorImpl, dtype_of, wrap


def legacy_tensor_new(dtype, data=(), *sizes, size=None, device=None):
    """Of sizes an uninitialized tensor, of a sequence a tensor of `dtype`, of a tensor an alias, of a storage a
    tensor over it.

    dtype: None stands for the default dtype, and lets a tensor of any dtype through. Raises TypeError for
    anything else, RuntimeError for a device that is not the CPU.
    """
    check_device(device)
    made_of = dtype or scalar_type.get_default_dtype()
    if size is not None or isinstance(data, Size):
        return at.empty(data if size is None else size, dtype=made_of)
    if isinstance(data, TensorImpl):
        return alias_of(data, dtype)
    if type(data) is int:
        return at.empty(check_sizes((data, *sizes)), dtype=made_of)
    if hasattr(data, "_untyped_storage") or isinstance(getattr(data, "_impl", None), StorageImpl):
        return over_storage(data, made_of)
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if sizes or isinstance(data, dict) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return at.tensor(data, dtype=made_of, device=cpu)


def check_device(device):
    if device is not None and Device(device).type != "cpu":
        raise RuntimeError("legacy constructor expects device type: cpu but device type: "
                           f"{Device(device).type} was passed")


def check_sizes(sizes):
    for position, n in enumerate(sizes, start=1):
        if type(n) is not int:
            raise TypeError(f"new(): argument 'size' failed to unpack the object at pos {position} with error "
                            f"\"type must be tuple of ints,but got {type(n).__name__}\"")
    return sizes


def alias_of(data, dtype):
    """A tensor that shares `data`'s elements. Raises TypeError if they are not of `dtype`."""
    if dtype not in (None, dtype_of(data)):
        raise TypeError(f"expected {_options(dtype)} (got {_options(dtype_of(data))})")
    return at.alias(data)


def _options(dtype):
    """A dtype on the CPU, as C++ prints `TensorOptions`."""
    return (f"TensorOptions(dtype={scalar_type.C_TYPE_NAMES.get(dtype, dtype.name)}, device=cpu, layout=Strided, "
            "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))")


def over_storage(storage, dtype):
    """A one-dimensional tensor over all elements of a storage. Raises RuntimeError if they are not of `dtype`."""
    held = getattr(storage, "dtype", dtype)
    if held is not dtype:
        names = scalar_type.SCALAR_TYPE_NAMES
        raise RuntimeError(f"Expected a Storage of type {names[dtype]} or an UntypedStorage, but got type "
                           f"{names[held]} for argument 1 'storage'")
    impl = getattr(storage, "_untyped_storage", storage)._impl
    t = wrap(impl.as_strided(dtype.numpy, (impl.nbytes // dtype.itemsize,), (1,), 0))
    t._keys = impl.keys
    t._storage_impl = impl
    return t
