"""What a place for checkpoints must be able to do. In PyTorch: `torch/distributed/checkpoint/storage.py`."""

import abc
from dataclasses import dataclass
from typing import Any

from .metadata import MetadataIndex

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """Where an item has been written."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint. Its methods are called in the order in which they stand here."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """On all ranks: another checkpoint begins, at the place `checkpoint_id` if one is given."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """On all ranks: what this rank is."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """On all ranks: the plan with the storage's own notes."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """On the coordinator: the plans of all ranks, with notes."""

    @abc.abstractmethod
    def write_data(self, plan, planner):
        """On all ranks: write what the planner resolves for each item; a Future of WriteResults."""

    @abc.abstractmethod
    def finish(self, metadata, results):
        """On the coordinator, when all have written: write the metadata, by which the checkpoint becomes valid."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether this storage can write to such a place."""

    def storage_meta(self):
        """A StorageMeta for the planner, or None."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint. Its methods are called in the order in which they stand here."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """On all ranks: another checkpoint is to be read."""

    @abc.abstractmethod
    def read_metadata(self, *args, **kwargs):
        """On all ranks: the Metadata."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """On all ranks: what this rank is."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """On all ranks: the plan with the storage's own notes."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """On the coordinator: the plans of all ranks, with notes."""

    @abc.abstractmethod
    def read_data(self, plan, planner):
        """On all ranks: give the planner what it asks for; a Future that completes then."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether this storage can read from such a place."""
