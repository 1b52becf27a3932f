"""What ONNX calls the things that PyTorch has names for: element types, and the settings of an export.

In PyTorch: `torch/csrc/onnx/onnx.h`. Explained in the chapter "export and ONNX".
"""

from enum import Enum, IntEnum

from readtorch.c10 import scalar_type


class TensorProtoDataType(IntEnum):
    """The numbers of ONNX's element types, as its protobuf file counts them."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


class TrainingMode(Enum):
    """In which mode a model is exported: evaluating, as it stands, or training."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(Enum):
    """Only ONNX is left: every operator becomes one of ONNX's own."""

    ONNX = 0


_ONNX_NAMES = {
    "float32": "FLOAT",
    "uint8": "UINT8",
    "int8": "INT8",
    "uint16": "UINT16",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "float16": "FLOAT16",
    "float64": "DOUBLE",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
    "bfloat16": "BFLOAT16",
}

onnx_type_of = {getattr(scalar_type, ours): TensorProtoDataType[theirs] for ours, theirs in _ONNX_NAMES.items()}
dtype_of_onnx_type = {theirs: ours for ours, theirs in onnx_type_of.items()}


def library():
    """The `onnx` package, which only an export loads. Raises ModuleNotFoundError that says how to get it."""
    try:
        import onnx
        import onnx.numpy_helper  # not loaded by the package itself
        import onnx.shape_inference
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "Module onnx is not installed! Exporting to ONNX needs it: pip install 'readtorch[onnx]'", name=missing.name
        ) from None
    return onnx
