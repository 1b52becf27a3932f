"""What stands in the file `.metadata`: which tensors there are, cut into which boxes, and where each lies.

In PyTorch: `torch/distributed/checkpoint/metadata.py`, whose field names these are, since the file is a pickle of the objects.
"""

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import readtorch

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins, and how long its sides are."""

    offsets: readtorch.Size
    sizes: readtorch.Size


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats in the file, as PyTorch's own cannot be pickled."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_MEMORY_FORMATS = {
    _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT: readtorch.contiguous_format,
    _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST: readtorch.channels_last,
    _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT: readtorch.preserve_format,
}


@dataclass
class TensorProperties:
    """What makes an empty tensor like the saved one. All but `dtype` is kept for old files."""

    dtype: Any = field(default_factory=readtorch.get_default_dtype)
    layout: Any = readtorch.strided
    requires_grad: bool = False
    memory_format: Any = readtorch.contiguous_format
    pin_memory: bool = False

    def __getstate__(self):
        for code, memory_format in _MEMORY_FORMATS.items():
            if self.memory_format == memory_format:
                return self.dtype, self.layout, self.requires_grad, code, self.pin_memory
        raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, code, self.pin_memory = state
        if code not in _MEMORY_FORMATS:
            raise RuntimeError(f"Invalid torch.memory_format encoding: {code}")
        self.memory_format = _MEMORY_FORMATS[code]

    @staticmethod
    def create_from_tensor(tensor):
        return TensorProperties(
            tensor.dtype, tensor.layout, tensor.requires_grad, readtorch.contiguous_format, tensor.is_pinned()
        )


@dataclass
class TensorStorageMetadata:
    """A tensor of the checkpoint: `size` of the whole, and the boxes that were written."""

    properties: TensorProperties
    size: readtorch.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Something that is no tensor."""


@dataclass
class StorageMeta:
    """When and where a checkpoint was saved or loaded, for logs."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The whole checkpoint: flat name -> what it is; the planner's and the storage's own notes."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None  # flat name -> path in the nested state_dict
    storage_data: Any = None  # MetadataIndex -> file, position, length
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """Names an entry of a checkpoint: `fqn`, and for a box of a tensor its offset. `index` is a hint where to look."""

    fqn: str
    offset: readtorch.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn, offset=None, index=None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", readtorch.Size(offset))
