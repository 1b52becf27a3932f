"""Tensors from Python data: `tensor`, `as_tensor`, `asarray`, `new_tensor`, `sparse_coo_tensor`, legacy constructors.

In PyTorch: `torch/csrc/utils/tensor_new.cpp`. Explained in the chapter "Tensor and Storage".
"""

import warnings

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.copy import cast, convert
from readtorch.aten.native.sparse.sparse_csr_tensor import (
    _sparse_compressed_tensor_unsafe,
    _validate_sparse_compressed_tensor_args,
    check_compressed,
    size_of,
)
from readtorch.aten.native.sparse.sparse_tensor import (
    _sparse_coo_tensor_unsafe,
    _validate_sparse_coo_tensor_args,
    empty_sparse,
    size_from,
)
from readtorch.aten.native.tensor_factories import check_options, numpy_type
from readtorch.aten.native.tensor_shape.view import told_of
from readtorch.aten.native_function import python_binding
from readtorch.aten.python_arg_parser import require_grad
from readtorch.aten.sparse_csr_tensor_impl import COMPRESSED, ROWS, is_strided, names_of
from readtorch.c10 import scalar_type
from readtorch.c10.device import cpu, is_faked, keys_on
from readtorch.c10.device import device as Device
from readtorch.c10.exception import warn_once
from readtorch.c10.local_dispatch_key_set import trace_under_way
from readtorch.c10.scalar_type import promote_types
from readtorch.c10.size import Size
from readtorch.c10.storage_impl import StorageImpl
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, host_array, wrap
from readtorch.c10.torch_dispatch_mode_tls import mode_tls

from .tensor_dlpack import _from_dlpack, capsule_of
from .tensor_numpy import check_array, from_numpy, tensor_from_buffer, tensor_from_cuda_array_interface


@python_binding("tensor", "function")
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new leaf tensor that holds a copy of `data`: numbers, nested sequences of numbers, an array, a
    tensor.

    dtype: by default the smallest that holds every element; a Python float counts as the default dtype.
    Raises ValueError for ragged sequences, TypeError for strings, RuntimeError for what cannot be converted.
    """
    if isinstance(data, TensorImpl):
        warn_about_copy("torch.tensor(sourceTensor)")
    if trace_under_way():
        trace_under_way().warn_of_constructor("torch.tensor")
    check_options(None, None, pin_memory)
    if pin_memory and is_on_gpu(data):
        raise RuntimeError("Can't pin tensor constructed from __cuda_array_interface__")
    result = as_leaf(told_of(from_data(data, as_dtype(dtype), device)))
    if pin_memory:
        result = result.pin_memory()
    if trace_under_way():
        trace_under_way().constructed(result)
    return require_grad(result) if requires_grad else result


def as_leaf(t):
    """In PyTorch: a call of `detach_`, which only modes above autograd see."""
    return t if mode_tls.pre_dispatch is None else t.detach_()


def warn_about_copy(call):
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        "or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {call}.",
        stacklevel=3,
    )


@python_binding("new_tensor", "method")
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """`tensor(data)` with `self`'s dtype."""
    if isinstance(data, TensorImpl):
        warn_about_copy("tensor.new_tensor(sourceTensor)")
    result = from_data(data, as_dtype(dtype) or dtype_of(self), device or self.device)
    result = as_leaf(told_of(result))
    if trace_under_way():
        trace_under_way().constructed(result)
    return require_grad(result) if requires_grad else result


@python_binding("as_tensor", "function")
def as_tensor(data, dtype=None, device=None):
    """`data` as a tensor, without a copy if it is a tensor or an array of that dtype already."""
    dtype = as_dtype(dtype)
    if trace_under_way() and not isinstance(data, np.ndarray):  # of an array `from_numpy` says it
        trace_under_way().warn_of_constructor("torch.as_tensor")
    if isinstance(data, TensorImpl):
        return data.to(device=device or data.device, dtype=dtype or dtype_of(data))
    target = cpu if device is None else Device(device)
    foreign = foreign_tensor(data)
    if foreign is not None:
        return foreign.to(device=device or foreign.device, dtype=dtype or dtype_of(foreign))
    if isinstance(data, np.ndarray) and target.type == "cpu" and (dtype is None or dtype.numpy == data.dtype):
        return from_numpy(data)
    result = told_of(from_data(data, dtype, device))
    return trace_under_way().constructed(result, detach=False) if trace_under_way() else result


@python_binding("asarray", "function")
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """`obj` as a tensor: shares memory if it can and `copy` is not True. Raises ValueError if `copy=False`
    cannot be."""
    dtype = as_dtype(dtype)
    shared = shared_tensor(obj, dtype)
    if shared is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        result = from_data(obj, dtype, device)
    elif dtype not in (None, dtype_of(shared)):
        if copy is False:
            names = scalar_type.SCALAR_TYPE_NAMES
            raise ValueError(f"can't alias tensor with dtype '{names[dtype_of(shared)]}' into dtype '{names[dtype]}'.")
        result = shared.to(dtype)
    else:
        result = shared.clone() if copy else shared
    if isinstance(obj, TensorImpl) and not requires_grad and result.requires_grad:
        result = result.detach()
    return require_grad(result) if requires_grad and not result.requires_grad else result


def shared_tensor(obj, dtype):
    """A tensor over `obj`'s own memory, or None if it has none that a tensor could use."""
    if isinstance(obj, TensorImpl):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if type(obj).__name__ == "PyCapsule":
        return _from_dlpack(obj)
    if hasattr(obj, "__dlpack__"):
        return from_lender(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return tensor_from_buffer(obj, dtype or scalar_type.get_default_dtype())
    return None


# ------------------------------------------------------------------------------------------ from any data


def as_dtype(dtype):
    """The dtype that a `dtype=` argument means; Python's `float` means float64."""
    if dtype is None or isinstance(dtype, scalar_type.dtype):
        return dtype
    found = scalar_type.from_python_type(dtype) if isinstance(dtype, type) else None
    if found is None:
        raise TypeError(f"tensor(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return found


def from_data(data, dtype=None, device=None):
    """A new tensor with a copy of `data`'s elements (`internal_new_from_data`)."""
    foreign = foreign_tensor(data)
    if foreign is not None:
        return foreign.to(device=device or foreign.device, dtype=dtype or dtype_of(foreign), copy=True)
    if device is None:
        target = data.device if isinstance(data, TensorImpl) else cpu
    else:
        target = Device(device)
    if target is not cpu:
        keys_on(target, 0)  # raises if there can be no tensors
        if target.type != "cpu":
            return convert(told_of(on_host(data, dtype)) if is_faked() else on_host(data, dtype), device=target)
    return on_host(data, dtype)


def is_on_gpu(data):
    """Whether it is another library's array on a GPU."""
    return not isinstance(data, _WITHOUT_INTERFACE) and hasattr(data, "__cuda_array_interface__")


def tensor_of_array(value):
    """A NumPy array of numbers that there is a dtype for, as a tensor over its memory; None of anything else."""
    return from_numpy(value) if isinstance(value, np.ndarray) and value.dtype in scalar_type.by_numpy else None


def foreign_tensor(data):
    """A tensor over the memory of another library's object, on a GPU or lent as a DLPack capsule; None of anything else."""
    if is_on_gpu(data):
        return tensor_from_cuda_array_interface(data)
    lends = not isinstance(data, _WITHOUT_INTERFACE) and hasattr(data, "__dlpack__")
    return from_lender(data) if lends else None


def from_lender(data):
    """A tensor over the memory that another library's object lends."""
    return _from_dlpack(capsule_of(data, {"max_version": (1, 0)})[0])


_WITHOUT_INTERFACE = list, tuple, int, float, bool, complex, TensorImpl, np.ndarray


def on_host(data, dtype):
    """The same in the host's memory."""
    if isinstance(data, (TensorImpl, np.ndarray)):
        array = host_array(data) if isinstance(data, TensorImpl) else check_array(data)
        return wrap(cast(array, dtype.numpy if dtype else array.dtype))
    if isinstance(data, (str, bytes)) or hasattr(data, "untyped"):
        return of_bytes(data, dtype)
    plain = _PLAIN.get(type(data))
    if plain is not None:
        dtype = dtype or plain()
    elif dtype is None:
        compute_sizes(data)  # refuses what is nested too deeply
        dtype = infer_scalar_type(data)
    return wrap(to_array(data, dtype))


def of_bytes(data, dtype):
    """A tensor with all elements of a storage, whose memory it shares. Raises RuntimeError if they are of another dtype,
    TypeError for a string."""
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    typed = getattr(data, "dtype", None)
    if dtype is None:  # bytes alone are ints
        dtype = scalar_type.int64 if typed is None else scalar_type.get_default_dtype()
    if typed not in (None, dtype):
        names = scalar_type.SCALAR_TYPE_NAMES
        raise RuntimeError(f"Expected a Storage of type {names[dtype]} or an UntypedStorage, but got {names[typed]}")
    return over_storage(data, dtype)


_PLAIN = {
    bool: lambda: scalar_type.bool,
    int: lambda: scalar_type.int64,
    float: scalar_type.get_default_dtype,
    complex: scalar_type.get_default_complex_dtype,
}


def infer_scalar_type(data):
    """The dtype that holds every number in `data` (`torch::utils::infer_scalar_type`)."""
    plain = _PLAIN.get(type(data))
    if plain is not None:
        return plain()
    if isinstance(data, TensorImpl):
        return dtype_of(data)
    if isinstance(data, np.ndarray):
        return scalar_type.by_numpy[check_array(data).dtype]
    if isinstance(data, np.generic) and data.dtype in scalar_type.by_numpy:
        return scalar_type.by_numpy[data.dtype]
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if is_sequence(data):
        return infer_sequence_type(data)
    for kind, plain in _PLAIN.items():
        if isinstance(data, kind):
            return plain()
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def infer_sequence_type(data):
    if len(data) == 0:
        return scalar_type.get_default_dtype()
    if isinstance(data[0], str):
        raise ValueError("too many dimensions 'str'")
    kinds = set(map(type, data))
    found = [_PLAIN[kind]() for kind in kinds] if kinds <= _PLAIN.keys() else list(map(infer_scalar_type, data))
    common = found[0]
    for dtype in found[1:]:
        common = promote_types(common, dtype)
    return common


def is_sequence(data):
    """Whether `data` adds a dimension. A tensor inside a list does not: it stands for its one element."""
    if isinstance(data, (list, tuple)):
        return True
    return (
        hasattr(data, "__len__")
        and hasattr(data, "__getitem__")
        and not isinstance(data, (dict, set, frozenset, TensorImpl, np.generic))
    )


# ------------------------------------------------------------------------------------------ nested sequences


def to_array(data, dtype):
    """A new NumPy array of nested sequences of numbers."""
    target = dtype.numpy
    first = first_leaf(data)
    if isinstance(first, TensorImpl):
        return one_by_one(data, dtype)
    if isinstance(first, np.ndarray) and first is not data:
        warn_once(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single "
            "numpy.ndarray with numpy.array() before converting to a tensor.",
            stacklevel=6,
        )
    try:
        if target.kind in "iu":
            return integers(np.array(data), dtype)
        return np.array(data, target)
    except (ValueError, TypeError, RuntimeError, OverflowError):
        return one_by_one(data, dtype)


def first_leaf(data):
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def integers(array, dtype):
    """`array` as integers, floats cut off. Raises OverflowError for numbers out of range, -1 as uint8 is
    255."""
    if array.dtype.kind not in "iufb" or array.dtype.kind == "f" and not np.isfinite(array).all():
        raise OverflowError
    limits = np.iinfo(dtype.numpy)
    lowest = limits.min if dtype.is_signed else -limits.max
    if array.size and not (lowest <= array.min() and array.max() <= limits.max):
        raise OverflowError
    return array.astype(dtype.numpy)


def one_by_one(data, dtype):
    """What NumPy does not convert: tensors among the numbers, or an element that is none, which is an error."""
    sizes = compute_sizes(data)
    check_sizes(data, sizes)
    numbers = [as_number(v, dtype) for v in leaves(data, len(sizes))]
    try:
        array = np.array(numbers)
        array = integers(array, dtype) if dtype.numpy.kind in "iu" else array.astype(dtype.numpy)
    except OverflowError:
        if any(isinstance(n, int) and not -(2**63) <= n < 2**63 for n in numbers):
            raise ValueError("Overflow when unpacking long long") from None
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow") from None
    return array.reshape(sizes)


MAX_DIMS = 128


def compute_sizes(data):
    """The sizes of nested sequences, read off their first elements."""
    sizes = []
    while is_sequence(data):
        sizes.append(len(data))
        if not len(data):
            break
        if len(sizes) > MAX_DIMS:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        try:
            data = data[0]
        except Exception:
            raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None
    return sizes


def check_sizes(data, sizes, dim=0):
    """Raises ValueError unless every sequence has the length that its depth asks for."""
    if dim == len(sizes):
        return
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != sizes[dim]:
        raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(data)})")
    for part in data:
        check_sizes(part, sizes, dim + 1)


def leaves(data, depth):
    """Every number in nested sequences, in order."""
    if depth == 0:
        yield data
    else:
        for part in data:
            yield from leaves(part, depth - 1)


def as_number(value, dtype):
    """One element as a Python number of the kind that `dtype` asks for."""
    if isinstance(value, np.generic):
        return value.item()
    if dtype.is_complex:
        return complex(value)
    if dtype.is_floating_point:
        if isinstance(value, complex):
            raise TypeError("must be real number, not complex")
        return float(value)
    if dtype is scalar_type.bool:
        return bool(value)
    if isinstance(value, float):
        return value
    return value.__index__() if hasattr(value, "__index__") else no_integer(value)


def no_integer(value):
    raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")


# ---- sparse tensors

_SPARSE_FORMS = """sparse_coo_tensor() received an invalid combination of arguments - got ({}), but expected one of:
 * (object indices, object values, *, torch.dtype dtype = None, torch.device device = None, \
bool pin_memory = False, bool requires_grad = False, bool check_invariants = None, bool is_coalesced = None)
 * (object indices, object values, tuple of ints size, *, torch.dtype dtype = None, \
torch.device device = None, bool pin_memory = False, bool requires_grad = False, bool check_invariants = None, \
bool is_coalesced = None)
 * (tuple of ints size, *, torch.dtype dtype = None, torch.device device = None, bool requires_grad = False, \
bool check_invariants = None)
"""


@python_binding("sparse_coo_tensor", "function")
def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A sparse tensor with `values` at `indices`, a column for each. `sparse_coo_tensor(size)`: an empty one.

    size: by default the smallest that holds all indices. Tensors of the right dtype are not copied.
    check_invariants: False leaves out the look at the indices. Raises RuntimeError for what does not fit.
    """
    if values is None and _is_size(size if indices is None else indices):
        result = empty_sparse(tuple(size if indices is None else indices), numpy_type(as_dtype(dtype)))
    elif values is None and size is None and indices is not None:
        raise TypeError(
            f"sparse_coo_tensor(): argument 'size' (position 1) must be tuple of ints, not {type(indices).__name__}"
        )
    elif indices is None or values is None or not (size is None or _is_size(size)):
        given = [type(a).__name__ for a in (indices, values, size) if a is not None]
        raise TypeError(_SPARSE_FORMS.format(", ".join(given)))
    else:
        result = _from_parts(indices, values, size, as_dtype(dtype), device, check_invariants, is_coalesced)
    return require_grad(result) if requires_grad else result


def _is_size(value):
    return isinstance(value, (tuple, list)) and all(isinstance(n, int) for n in value)


def _from_parts(indices, values, size, dtype, device, check_invariants, is_coalesced):
    indices = _part(indices, scalar_type.int64, device)
    values = _part(values, dtype, device)
    size = size_from(indices, values) if size is None else tuple(size)
    if check_invariants is not False:
        # in PyTorch: by default nobody looks at the indices; one out of range reads memory out of range
        _validate_sparse_coo_tensor_args.call(indices, values, size, is_coalesced, None)
    return _sparse_coo_tensor_unsafe.call(indices, values, size, None, None, None, None, is_coalesced)


def _part(data, dtype, device):
    if isinstance(data, TensorImpl) and not is_strided(data):
        return data
    return as_tensor(data, dtype, device)


def _compressed_forms(name, names):
    options = (
        "*, torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, "
        "bool requires_grad = False, bool check_invariants = None)"
    )
    start = f" * (object {names[0]}, object {names[1]}, object values, "
    return (
        f"{name}() received an invalid combination of arguments - got ({{}}), but expected one of:\n"
        f"{start}tuple of ints size, {options}\n{start}{options}\n"
    )


def _compressed_tensor(name, required, parts, size, dtype, layout, device, requires_grad, check_invariants):
    """The tensor of one of the compressed layouts; required: the one that the function's name says, if any."""
    layout = layout or required
    if required and layout is not required:
        raise RuntimeError(f"{name}: layout must be {required.in_words()} but got {layout.in_words()}")
    names = ("compressed_indices", "plain_indices") if required is None else names_of(required)
    if any(part is None for part in parts) or not (size is None or _is_size(size)):
        given = [type(part).__name__ for part in (*parts, size) if part is not None]
        raise TypeError(_compressed_forms(name, names).format(", ".join(given)))
    check_compressed(layout, name)
    compressed, plain, values = (
        _part(part, wanted, device) for part, wanted in zip(parts, (None, None, as_dtype(dtype)))
    )
    size = size_of(compressed, plain, values, layout) if size is None else tuple(size)
    if check_invariants is not False:
        # in PyTorch: by default nobody looks at the indices, as with sparse_coo_tensor
        _validate_sparse_compressed_tensor_args.call(compressed, plain, values, size, layout, None)
    result = _sparse_compressed_tensor_unsafe.call(compressed, plain, values, size, None, layout, None, None)
    return require_grad(result) if requires_grad else result


@python_binding("sparse_compressed_tensor", "function")
def sparse_compressed_tensor(
    compressed_indices=None,
    plain_indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A tensor of the compressed sparse layout `layout`: Note [ Compressed indices ]. The arguments are shared where their dtypes fit.

    size: by default the smallest that holds all indices. check_invariants: False leaves out the look at the indices.
    Raises RuntimeError for what does not fit.
    """
    parts = compressed_indices, plain_indices, values
    return _compressed_tensor(
        "sparse_compressed_tensor", None, parts, size, dtype, layout, device, requires_grad, check_invariants
    )


def _by_rows(required):
    """`sparse_csr_tensor`, `sparse_bsr_tensor`."""
    name = f"{required.name}_tensor"

    @python_binding(name, "function")
    def function(
        crow_indices=None,
        col_indices=None,
        values=None,
        size=None,
        *,
        dtype=None,
        layout=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        check_invariants=None,
    ):
        """A sparse tensor whose rows, or rows of blocks, are compressed: see `sparse_compressed_tensor`."""
        parts = crow_indices, col_indices, values
        return _compressed_tensor(name, required, parts, size, dtype, layout, device, requires_grad, check_invariants)

    return function


def _by_columns(required):
    """`sparse_csc_tensor`, `sparse_bsc_tensor`."""
    name = f"{required.name}_tensor"

    @python_binding(name, "function")
    def function(
        ccol_indices=None,
        row_indices=None,
        values=None,
        size=None,
        *,
        dtype=None,
        layout=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        check_invariants=None,
    ):
        """A sparse tensor whose columns, or columns of blocks, are compressed: see `sparse_compressed_tensor`."""
        parts = ccol_indices, row_indices, values
        return _compressed_tensor(name, required, parts, size, dtype, layout, device, requires_grad, check_invariants)

    return function


for _layout in COMPRESSED:
    (_by_rows if _layout in ROWS else _by_columns)(_layout)


# ---- what `Tensor(…)`, `FloatTensor(…)` and `x.new(…)` make: from before `tensor` and `empty`


def legacy_tensor_new(dtype, data=(), *sizes, size=None, device=None):
    """Of sizes an uninitialized tensor, of a sequence a tensor of `dtype`, of a tensor an alias, of a storage a
    tensor over it.

    dtype: None stands for the default dtype, and lets a tensor of any dtype through. Raises TypeError for
    anything else, RuntimeError for a device that is not the CPU.
    """
    check_legacy_device(device)
    made_of = dtype or scalar_type.get_default_dtype()
    if size is not None or isinstance(data, Size):
        return at.empty(data if size is None else size, dtype=made_of)
    if isinstance(data, TensorImpl):
        if device is not None:
            raise RuntimeError(
                "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use torch.tensor(...) or "
                "torch.as_tensor(...) instead."
            )
        return alias_of(data, dtype)
    if type(data) is int or _is_number(data):
        return at.empty(check_legacy_sizes((data, *sizes)), dtype=made_of)
    if hasattr(data, "_untyped_storage") or isinstance(getattr(data, "_impl", None), StorageImpl):
        return over_storage(data, made_of)
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if sizes or isinstance(data, dict) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return at.tensor(data, dtype=made_of, device=cpu)


def check_legacy_device(device):
    if device is not None and Device(device).type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {Device(device).type} was passed"
        )


def _is_number(n):
    """A size is an int, or an object of a class derived from it such as an IntEnum, but no bool."""
    return isinstance(n, int) and not isinstance(n, bool)


def check_legacy_sizes(sizes):
    for position, n in enumerate(sizes, start=1):
        if type(n) is not int and not _is_number(n):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {position} with error "
                f'"type must be tuple of ints,but got {type(n).__name__}"'
            )
    return sizes


def alias_of(data, dtype):
    """A tensor that shares `data`'s elements. Raises TypeError if they are not of `dtype`."""
    if dtype not in (None, dtype_of(data)):
        raise TypeError(f"expected {_options(dtype)} (got {_options(dtype_of(data))})")
    return at.alias(data)


def _options(dtype):
    """A dtype on the CPU, as C++ prints `TensorOptions`."""
    return (
        f"TensorOptions(dtype={scalar_type.C_TYPE_NAMES.get(dtype, dtype.name)}, device=cpu, layout=Strided, "
        "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def over_storage(storage, dtype):
    """A one-dimensional tensor over all elements of a storage. Raises RuntimeError if they are not of `dtype`."""
    held = getattr(storage, "dtype", dtype)
    if held is not dtype:
        names = scalar_type.SCALAR_TYPE_NAMES
        raise RuntimeError(
            f"Expected a Storage of type {names[dtype]} or an UntypedStorage, but got type "
            f"{names[held]} for argument 1 'storage'"
        )
    impl = getattr(storage, "_untyped_storage", storage)._impl
    t = wrap(impl.as_strided(dtype.numpy, (impl.nbytes // dtype.itemsize,), (1,), 0))
    t._keys = impl.keys
    t._storage_impl = impl
    return t
