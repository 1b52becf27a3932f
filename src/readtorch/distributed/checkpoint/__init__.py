"""Checkpoints that many ranks write and read together, each its own part; another number of ranks may read them.

In PyTorch: `torch/distributed/checkpoint/__init__.py`. Left out: writing in the background (`async_save`), Hugging Face's
files, extensions that change the bytes on their way, and the plans that are kept from one save to the next.

    state_dict_saver, state_dict_loader   the two ways, step by step
    planner, default_planner              who writes what, and who reads which part of what was written
    planner_helpers, resharding           boxes of tensors, and where two of them overlap
    storage, filesystem                   where it goes: a folder with a file a rank and one that says what is where
    metadata, _metadata_pickle            that file, and how it is read without trusting it
    state_dict                            the state of a model and an optimizer by full names
"""

from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import save, save_state_dict
from .storage import StorageReader, StorageWriter
