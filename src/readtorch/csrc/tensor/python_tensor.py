"""`FloatTensor`, `LongTensor` … and `cuda.FloatTensor` …: types by name, from before a tensor had a dtype.

No object is ever of such a class. To call one makes a Tensor of its dtype; `isinstance` asks a Tensor for its dtype.
In PyTorch: `torch/csrc/tensor/python_tensor.cpp`. Explained in the chapter "Tensor and Storage".
"""

from readtorch.c10 import scalar_type
from readtorch.c10.exception import warn_once
from readtorch.c10.layout import strided
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import TensorImpl, dtype_of
from readtorch.csrc.utils.tensor_new import legacy_tensor_new

_NAMED = (
    scalar_type.float32,
    scalar_type.float64,
    scalar_type.float16,
    scalar_type.bfloat16,
    scalar_type.uint8,
    scalar_type.int8,
    scalar_type.int16,
    scalar_type.int32,
    scalar_type.int64,
    scalar_type.bool,
)


class tensortype(type):
    """The class of these classes."""

    def __call__(cls, *args, **kwargs):
        if cls.is_cuda:
            raise TypeError(_not_available(cls))
        return legacy_tensor_new(cls.dtype, *args, **kwargs)

    def __instancecheck__(cls, obj):
        return isinstance(obj, TensorImpl) and dtype_of(obj) is cls.dtype and obj.is_cuda == cls.is_cuda


def _not_available(cls):
    return f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled."


def _new(cls, *args, **kwargs):
    """What pickles of before 0.4 call: `FloatTensor.__new__(FloatTensor)`."""
    return cls(*args, **kwargs)


def tensor_types(module, is_cuda):
    """Name -> class of one Python module."""
    facts = {"__module__": module, "layout": strided, "is_cuda": is_cuda, "is_sparse": False, "__new__": _new}
    names = {dtype: f"{SCALAR_TYPE_NAMES[dtype]}Tensor" for dtype in _NAMED}
    return {name: tensortype(name, (), {**facts, "dtype": dtype}) for dtype, name in names.items()}


cpu_types = tensor_types("readtorch", is_cuda=False)
cuda_types = tensor_types("readtorch.cuda", is_cuda=True)


def set_default_tensor_type(t):
    """Make the dtype of a type such as `DoubleTensor`, or of its name "torch.DoubleTensor", the default dtype.

    Deprecated: use `set_default_dtype` and `set_default_device`. Raises TypeError unless it is a floating-point type.
    """
    if isinstance(t, str):
        t = type_named(t)
    if not isinstance(t, tensortype):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not t.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if t.is_cuda:
        raise TypeError(_not_available(t))
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    scalar_type.set_default_dtype(t.dtype)


def type_named(name):
    """The class called "torch.FloatTensor" or "torch.cuda.FloatTensor". Raises ValueError if there is none."""
    module, _, last = name.rpartition(".")
    found = {"torch": cpu_types, "torch.cuda": cuda_types}.get(module, {}).get(last)
    if found is None:
        raise ValueError(f"invalid type: '{name}'")
    return found
