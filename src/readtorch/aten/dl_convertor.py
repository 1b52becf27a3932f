"""DLPack: a tensor's memory handed from one library to another, without a copy.

Note [ DLPack capsules ]
The producer fills a C struct (where the data is, on which device, its type, sizes and strides, and a function that frees it) and
wraps its address in a Python capsule named "dltensor", or "dltensor_versioned" for the struct that begins with a version
number. The consumer reads the struct, renames the capsule, "used_dltensor", so that nobody takes it again, and calls
the function when it needs the memory no longer.

NumPy does both in C: its array makes the capsule, and takes one. What NumPy does not know is the number that stands for a dtype
like bfloat16. So such memory goes through NumPy as unsigned integers, and the number in the struct is changed.

In PyTorch: `aten/src/ATen/DLConvertor.cpp`, `aten/src/ATen/dlpack.h`. Explained in the chapter "Tensor and Storage".
"""

import ctypes

import numpy as np

from readtorch.c10 import scalar_type
from readtorch.c10.device import device as Device
from readtorch.c10.tensor_impl import contiguous_strides

MAJOR = 1  # of the versions that we read


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # in elements; may be NULL for contiguous data
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("version", Version),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    ]


CAPSULES = {b"dltensor": DLManagedTensor, b"dltensor_versioned": DLManagedTensorVersioned}
READ_ONLY = 1

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = ctypes.py_object, ctypes.c_char_p
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def managed(capsule):
    """The struct in a capsule that nobody has taken. RuntimeError for anything else."""
    for name, struct in CAPSULES.items():
        if _is_valid(capsule, name):
            return struct.from_address(_pointer(capsule, name))
    raise RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have "
        "already constructed a tensor from it once."
    )


# ------------------------------------------------------------------------------------------------------- dtypes

INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6
_KINDS = {
    INT: ("kInt", ("int8", "int16", "int32", "int64")),
    UINT: ("kUInt", ("uint8", "uint16", "uint32", "uint64")),
    FLOAT: ("kFloat", ("float16", "float32", "float64")),
    BFLOAT: ("kFloat", ("bfloat16",)),
    COMPLEX: ("kFloat", ("complex64", "complex128")),
    BOOL: ("kDLBool", ("bool",)),
    10: ("kDLFloat8_e4m3fn", ("float8_e4m3fn",)),
    11: ("kDLFloat8_e4m3fnuz", ("float8_e4m3fnuz",)),
    12: ("kDLFloat8_e5m2", ("float8_e5m2",)),
    13: ("kDLFloat8_e5m2fnuz", ("float8_e5m2fnuz",)),
}
_DTYPES = {
    (code, getattr(scalar_type, name).itemsize * 8): getattr(scalar_type, name)
    for code, (_, names) in _KINDS.items()
    for name in names
}
_CODES = {dtype.numpy: code for (code, _), dtype in _DTYPES.items()}
NUMPYS_OWN = (INT, UINT, FLOAT, COMPLEX, BOOL)


def dtype_of_struct(tensor):
    """The NumPy dtype that a DLTensor names. BufferError if we have none."""
    if tensor.lanes != 1:
        raise BufferError(f"ATen does not support lanes != 1 for dtype code{tensor.code}")
    if tensor.code not in _KINDS:
        raise BufferError(f"Unsupported code {tensor.code}")
    found = _DTYPES.get((tensor.code, tensor.bits))
    if found is None:
        raise BufferError(f"Unsupported {_KINDS[tensor.code][0]} bits {tensor.bits}")
    return found.numpy


# ------------------------------------------------------------------------------------------------------ devices

DL_CPU, DL_CUDA = 1, 2


def torch_device_to_dl_device(device):
    """(type, index), as DLPack counts devices. BufferError for one that it has not."""
    if device.type not in ("cpu", "cuda"):
        raise BufferError(f"Cannot pack tensors on {device.type}")
    if device.type == "cpu":
        return DL_CPU, 0
    return (
        DL_CUDA,
        255 if device.index is None else device.index,
    )  # in PyTorch, too: an index that is not given is -1, of 8 bits


def dl_device_to_torch_device(device_type, index):
    if device_type not in (DL_CPU, DL_CUDA):
        raise BufferError(f"Unsupported device_type: {device_type}")
    return Device("cpu") if device_type == DL_CPU else Device("cuda", index)


# ------------------------------------------------------------------------------------------------- there and back


def to_dlpack(array, versioned, device):
    """A capsule of the memory of an array, or of a window on a device's. See Note [ DLPack capsules ]."""
    code = _CODES[array.dtype]
    if code not in NUMPYS_OWN:
        array = array.view(f"u{array.itemsize}")
    array = written_to(array)  # of an expanded one whoever takes it must know what it writes to
    capsule = array.__dlpack__(max_version=(MAJOR, 0) if versioned else None)
    tensor = managed(capsule).dl_tensor
    tensor.code = code
    tensor.device_type, tensor.device_id = torch_device_to_dl_device(device)
    return capsule


class Writable:
    """An array's memory as NumPy's array interface, to be written to whatever NumPy thinks of it."""

    def __init__(self, array):
        self.array = array  # keeps the memory
        interface = array.__array_interface__
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}


def written_to(array):
    """The same array, writable also where NumPy thinks otherwise."""
    return array if array.flags.writeable else np.asarray(Writable(array))


class Capsule:
    """What `numpy.from_dlpack` asks for a capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return DL_CPU, 0


class ForeignMemory:
    """What keeps the memory of a capsule's struct: it calls the producer's function when nobody needs that any more."""

    def __init__(self, struct):
        self.struct = struct

    def __del__(self):
        if self.struct.deleter:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.struct.deleter)(ctypes.addressof(self.struct))


_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes = ctypes.py_object, ctypes.c_char_p
_USED = {
    DLManagedTensor: b"used_dltensor",
    DLManagedTensorVersioned: b"used_dltensor_versioned",
}  # the capsule keeps the address


def taken(capsule, struct):
    """The struct's owner; the capsule is used up."""
    _set_name(capsule, _USED[type(struct)])
    return ForeignMemory(struct)


def on_device(capsule, struct):
    """(address, dtype, sizes, strides, owner) of the memory of a GPU that a capsule tells of; strides in elements."""
    tensor = struct.dl_tensor
    numpy_dtype, shape = dtype_of_struct(tensor), tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else contiguous_strides(shape)
    return (tensor.data or 0) + tensor.byte_offset, numpy_dtype, shape, strides, taken(capsule, struct)


def from_dlpack(capsule):
    """An array over the memory that a capsule tells of, or what `on_device` says of it; the capsule is used up. RuntimeError,
    BufferError.

    That it is for reading only is not heeded, as in PyTorch.
    """
    struct = managed(capsule)
    if isinstance(struct, DLManagedTensorVersioned):
        if struct.version.major > MAJOR:
            raise RuntimeError(
                f"unsupported DLPack capsule major version: {struct.version.major}. Maximum supported version: {MAJOR}"
            )
        struct.flags &= ~READ_ONLY
    tensor = struct.dl_tensor
    device = dl_device_to_torch_device(tensor.device_type, tensor.device_id)
    if device.type != "cpu":
        return on_device(capsule, struct)
    dtype = dtype_of_struct(tensor)
    if tensor.code not in NUMPYS_OWN:
        tensor.code = UINT
    return written_to(np.from_dlpack(Capsule(capsule))).view(dtype)
