"""Dictionaries of tensors in the safetensors format: names, shapes and bytes, no pickle.

PyTorch has no such file: `torch.load` calls the library's own `safetensors.torch` for a path that ends in
.safetensors. That module imports PyTorch, so this one stands in for it with the same four functions; the library
reads and writes the format. Explained in the chapter "state_dict, save and load".
"""

import numpy as np

import readtorch
from readtorch.c10.extras import extra
from readtorch.c10.tensor_impl import storage_impl, wrap

_DTYPES = {
    "F64": readtorch.float64,
    "F32": readtorch.float32,
    "F16": readtorch.float16,
    "BF16": readtorch.bfloat16,
    "I64": readtorch.int64,
    "I32": readtorch.int32,
    "I16": readtorch.int16,
    "I8": readtorch.int8,
    "U64": readtorch.uint64,
    "U32": readtorch.uint32,
    "U16": readtorch.uint16,
    "U8": readtorch.uint8,
    "BOOL": readtorch.bool,
    "C64": readtorch.complex64,
    "F8_E4M3": readtorch.float8_e4m3fn,
    "F8_E5M2": readtorch.float8_e5m2,
    "F8_E4M3FNUZ": readtorch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": readtorch.float8_e5m2fnuz,
}


def save(tensors, metadata=None):
    """The bytes of a file. tensors: name -> tensor, contiguous, of different storages. metadata: text ->
    text.
    """
    with _needed():
        from safetensors import numpy
    return numpy.save(_arrays(tensors), metadata)


def save_file(tensors, filename, metadata=None):
    """Write `save`'s bytes to a file. Raises RuntimeError for tensors that share memory, ValueError for gaps
    in them.
    """
    with _needed():
        from safetensors import numpy
    numpy.save_file(_arrays(tensors), filename, metadata)


def load(data):
    """Name -> tensor, from the bytes of a file. Raises SafetensorError for a damaged one and for unknown dtypes."""
    with _needed():
        import safetensors
    return {name: _tensor(name, entry) for name, entry in safetensors.deserialize(data)}


def load_file(filename, device="cpu"):
    """Name -> tensor on `device`. Raises what the library raises for a damaged file."""
    try:
        import safetensors  # noqa: F401
    except ImportError as error:
        raise RuntimeError(
            "Attempting to load a safetensors file but safetensors is not installed. "
            "Please install safetensors with: pip install safetensors"
        ) from error
    with open(filename, "rb") as file:
        tensors = load(file.read())
    return tensors if str(device) == "cpu" else {name: tensor.to(device) for name, tensor in tensors.items()}


def _needed():
    return extra("safetensors", "A .safetensors file")


def _arrays(tensors):
    owners = {}
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not "
                "allowed. Call "
                "`.contiguous()` on it before saving."
            )
        owner = owners.setdefault(storage_impl(tensor), name)
        if owner != name:
            raise RuntimeError(
                f"Some tensors share memory, this will lead to duplicate memory on disk and "
                "potential differences "
                f"when loading them again: {owner}, {name}"
            )
    return {name: tensor.detach().resolve_conj().resolve_neg()._array for name, tensor in tensors.items()}


def _tensor(name, entry):
    dtype = _DTYPES.get(entry["dtype"])
    if dtype is None:  # in PyTorch: F4 and F8_E8M0 have dtypes
        from safetensors import SafetensorError

        raise SafetensorError(
            f"Dtype not understood: {entry['dtype']}, of the tensor {name!r}. readtorch has no "
            "such dtype: convert the tensor to another one with PyTorch and save it again."
        )
    return wrap(np.frombuffer(bytearray(entry["data"]), dtype.numpy).reshape(entry["shape"]))
