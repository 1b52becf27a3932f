"""Tensors of classes with a `__torch_dispatch__`: those that wrap other tensors and have no memory of their own, and those
that are made over the memory of another tensor.

In PyTorch: `THPVariable_make_wrapper_subclass` and `THPVariable_make_subclass` in
`torch/csrc/autograd/python_variable.cpp`. Explained in the chapter "One operator call".
"""

from readtorch.aten import dispatcher
from readtorch.aten.empty_tensor import MetaStorageImpl
from readtorch.aten.function_schema import Type
from readtorch.aten.python_arg_parser import REJECTED, check_differentiable, convert
from readtorch.aten.python_fallback_kernel import python_detach
from readtorch.aten.torch_function import class_key
from readtorch.c10 import scalar_type
from readtorch.c10.device import cpu
from readtorch.c10.device import device as Device
from readtorch.c10.dispatch_key import (
    AUTOCAST,
    BACKENDS,
    CPU,
    CPU_TENSOR,
    CUDA_TENSOR,
    INFERENCE_TENSOR,
    META,
    META_TENSOR,
    NO_STORAGE,
    PYTHON,
)
from readtorch.c10.layout import strided
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.sym_int import hint_of
from readtorch.c10.tensor_impl import (
    KEPT_BY_ALIASES,
    NO_EDGE,
    TensorImpl,
    contiguous_strides,
    key_set,
    new,
    set_key_set,
    storage_impl,
    storage_nbytes,
    storage_offset,
    strides_of,
)
from readtorch.c10.torch_dispatch_mode_tls import StashTorchDispatchModes, has_torch_dispatch

from .variable import set_requires_grad

NO_DATA = "Cannot access data pointer of Tensor that doesn't have storage"


class WrapperStorageImpl(MetaStorageImpl):
    """The storage of a wrapper: it has a device and a size, and shows which wrappers are views of each other.

    In PyTorch: a storage whose data pointer is null.
    """

    def __init__(self, nbytes, device):
        super().__init__(nbytes)
        self.device = device
        self.keys = backend_keys(device) | NO_STORAGE

    def host_array(self, array):
        raise RuntimeError(NO_DATA)

    def host_bytes(self):
        raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")

    def copy(self):
        raise RuntimeError("Attempted to call copy_() on an invalid python storage.")

    def __reduce__(self):
        return WrapperStorageImpl, (self.nbytes, self.device)


def backend_keys(device):
    """The keys of tensors on a device, which need not be there."""
    return {"cpu": CPU_TENSOR, "cuda": CUDA_TENSOR, "meta": META_TENSOR}[device.type]


def _make_wrapper_subclass(
    cls,
    size=REJECTED,
    strides=None,
    storage_offset=None,
    memory_format=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
    dispatch_sizes_strides_policy=None,
    dispatch_device=False,
    dispatch_layout=False,
    _extra_dispatch_keys=None,
    storage_size=None,
):
    """A tensor of class `cls` with sizes, strides, dtype and device, and without elements.

    dispatch_device, dispatch_layout: the class says itself what these are, by properties. storage_size: in bytes, if it does
    not follow from the sizes. Raises TypeError for a class without `__torch_dispatch__`, RuntimeError, ValueError for what does
    not fit, NotImplementedError for a policy.
    """
    check_class(cls)
    if size is REJECTED:
        raise TypeError('_make_wrapper_subclass() missing 1 required positional arguments: "size"')
    if not has_torch_dispatch(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    sizes = as_ints("size", 2, size)
    strides = None if strides is None else as_ints("strides", 3, strides)
    if strides is None and storage_offset is not None:
        raise RuntimeError("setting storage offset without stride not supported")
    check_policy(dispatch_sizes_strides_policy)
    refuse_questions(cls, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    dtype = scalar_type.get_default_dtype() if dtype is None else dtype
    device = cpu if device is None else Device(device)
    strides, offset = contiguous_strides(sizes) if strides is None else strides, storage_offset or 0
    nbytes = nbytes_in_this_trace(sizes, strides, dtype.itemsize, offset) if storage_size is None else storage_size
    storage = WrapperStorageImpl(nbytes, device)
    t = new(cls)
    t._array = storage.as_strided(dtype.numpy, sizes, strides, offset)
    set_key_set(t, storage.keys | class_key(cls))
    t._counter, t._edge, t._storage_impl, t._base, t._autograd_meta = [0], NO_EDGE, storage, None, None
    if requires_grad:
        made_leaf(t)
    return t


def _make_subclass(cls, data, require_grad=False, *, device_for_backend_keys=None, **asked):
    """A tensor of class `cls` over `data`'s elements, without its history; both count writes together.

    device_for_backend_keys: the device as whose tensor it is dispatched. asked: dispatch_sizes_strides_policy,
    dispatch_device and dispatch_layout, as of `_make_wrapper_subclass`.
    """
    check_class(cls)
    check_tensor_class(cls)
    if type(require_grad) is not bool:
        kind = type(require_grad).__name__
        raise TypeError(f"_make_subclass(): argument 'require_grad' (position 3) must be bool, not {kind}")
    if key_set(data) & PYTHON:
        with StashTorchDispatchModes():
            data = python_detach(data)
    t = new(cls)
    t._array, t._counter, t._storage_impl = data._array, data._counter, storage_impl(data)
    t._edge, t._base, t._autograd_meta = NO_EDGE, None, None
    set_key_set(t, key_set(data) & KEPT_BY_ALIASES)
    set_key_set(t, key_set(t) | class_key(cls))
    if device_for_backend_keys is not None or asked:
        ask_its_class(t, device_for_backend_keys, **asked)
    return made_leaf(t) if require_grad else t


def made_leaf(t):
    check_differentiable(t)
    if key_set(t) & INFERENCE_TENSOR and not tls.inference_mode:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    set_requires_grad(t, True)
    return t


def ask_its_class(t, device, *, dispatch_sizes_strides_policy=None, dispatch_device=False, dispatch_layout=False):
    """device: the one as whose tensor `t` is dispatched.

    What lies on the Meta device stays there: its kernels are the only ones that do without elements. In PyTorch: the key of the
    other device, and FakeTensorMode includes Meta around each kernel. Autocast is that of the other device here, too.
    """
    check_policy(dispatch_sizes_strides_policy)
    if device is not None and key_set(t) & META:
        set_key_set(t, key_set(t) | backend_keys(Device(device)) & AUTOCAST)
    if device is not None and not key_set(t) & META:
        set_key_set(t, key_set(t) & ~BACKENDS | backend_keys(Device(device)) & BACKENDS)


def refuse_questions(cls, policy, device, layout):
    """Raises NotImplementedError where `__torch_dispatch__` would have to be asked: a class may have properties instead."""
    asked = ["sizes and strides"] if policy is not None else []
    asked += [name for name, wanted in (("device", device), ("layout", layout)) if wanted and not _own(cls, name)]
    if asked:
        raise NotImplementedError(f"readtorch does not ask __torch_dispatch__ for {' and '.join(asked)}")


def _own(cls, name):
    """Whether a property is the class's own."""
    owner = next(base for base in cls.__mro__ if name in vars(base))
    return not owner.__module__.startswith(__name__.partition(".")[0])


def check_class(cls):
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")


def check_policy(policy):
    if policy not in (None, "sizes", "strides"):
        raise ValueError(f"Unknown sizes_strides_policy: {policy}; expected 'strides' or 'sizes'")


_INTS = Type("int", is_list=True)


def nbytes_in_this_trace(sizes, strides, itemsize, offset):
    """As large as this is a storage taken to be where sizes are left open."""
    hints = [tuple(map(hint_of, numbers)) for numbers in (sizes, strides)]
    return storage_nbytes(*hints, itemsize, hint_of(offset))


def as_ints(name, position, value):
    converted = convert(_INTS, value, False)
    if converted is REJECTED:
        raise TypeError(
            f"_make_wrapper_subclass(): argument '{name}' (position {position}) must be tuple of ints, "
            f"not {type(value).__name__}"
        )
    return converted


def _functionalize_unsafe_set(t, source):
    """Give `t` the storage of `source`, and leave its sizes and strides as they are."""
    storage, offset = storage_impl(source), storage_offset(t)
    array = t._array
    t._array = storage.as_strided(array.dtype, array.shape, strides_of(t), offset)
    t._storage_impl = storage


def make_kernel_without_storage(operator, keys):
    """What a kernel becomes if an operand has no storage: it serves if it only looks at sizes and strides, else it raises.

    In PyTorch a kernel that reads through the null pointer ends the process.
    """
    compute = operator.kernels.get(CPU)
    if operator.composite is not None:
        return operator.composite
    if operator.schema.name.endswith("_like") or operator.schema.name.startswith("new_"):
        return compute
    if compute is not None and (operator.schema.is_view or getattr(compute, "only_geometry", False)):
        return lambda *arguments: still_without_storage(arguments[0], compute(*arguments))

    def kernel(*arguments):
        raise RuntimeError(NO_DATA)

    return kernel


def still_without_storage(base, results):
    """Results of geometry on a wrapper: plain tensors that have no storage either."""
    if isinstance(results, TensorImpl):
        if results is not base:
            set_key_set(results, key_set(base) & KEPT_BY_ALIASES)
            results._storage_impl = base._storage_impl
        return results
    return type(results)([still_without_storage(base, r) for r in results])


dispatcher.writers[NO_STORAGE] = make_kernel_without_storage


def check_tensor_class(cls):
    if not (isinstance(cls, type) and issubclass(cls, TensorImpl)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
            "inherits from Tensor."
        )
