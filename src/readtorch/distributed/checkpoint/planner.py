"""Plans: what is to be written or read, and by whom. In PyTorch: `torch/distributed/checkpoint/planner.py`.

A planner makes a plan on each rank (`create_local_plan`); one rank, the coordinator, sees all of them and may change them
(`create_global_plan`); each rank gets its own back (`finish_plan`) and hands out the data for it. In plans there are names
and sizes, never data.
"""

import abc
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import readtorch

from .metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(Enum):
    TENSOR = auto()  # a whole tensor
    SHARD = auto()  # a box of one
    BYTE_IO = auto()  # anything else


class LoadItemType(Enum):
    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The box to write, and the tensor that it is a part of."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: readtorch.Size


@dataclass(frozen=True)
class WriteItem:
    """One thing to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self):
        """Bytes of the whole tensor, or None if this is no tensor."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One box to read: `lengths` elements from `storage_offsets` of a saved box to `dest_offsets` of one's own."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: readtorch.Size
    storage_index: MetadataIndex
    storage_offsets: readtorch.Size
    lengths: readtorch.Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True  # in PyTorch: False says that the plan of the last time still holds


@dataclass
class LoadPlan:
    """What one rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what is saved. Its methods are called in the order in which they stand here."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        """On all ranks: what is to be saved."""

    @abc.abstractmethod
    def create_local_plan(self):
        """On all ranks: the SavePlan for what this rank has."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans):
        """On the coordinator: (the plans of all ranks, the Metadata of the checkpoint)."""

    @abc.abstractmethod
    def finish_plan(self, new_plan):
        """On all ranks: the plan to follow, given what the coordinator made of it."""

    @abc.abstractmethod
    def resolve_data(self, write_item):
        """On all ranks, item by item: the tensor, or a BytesIO."""


class LoadPlanner:
    """Decides what is loaded and where to. Its methods are called in the order in which they stand here."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """On all ranks: what is to be filled, and what the checkpoint holds."""

    @abc.abstractmethod
    def create_local_plan(self):
        """On all ranks: the LoadPlan for what this rank needs."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan):
        """On the coordinator: the plans of all ranks."""

    @abc.abstractmethod
    def finish_plan(self, central_plan):
        """On all ranks: the plan to follow."""

    @abc.abstractmethod
    def load_bytes(self, read_item, value):
        """Take what is no tensor from the BytesIO `value`."""

    def resolve_bytes(self, read_item):
        """A BytesIO to read into."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item):
        """The part of a tensor that is to be filled."""

    @abc.abstractmethod
    def commit_tensor(self, read_item, tensor):
        """Called when that has been filled."""
